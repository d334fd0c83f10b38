"""Put the page of the workflow-pilots report together and write the files of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.report.content import Block, Fact, Made, Page, Part, blocks
from brokerlab.report.outputs import listed_rows, write_results, write_tables
from brokerlab.report.workflow_pilots import pictures, tables
from brokerlab.report.workflow_pilots import sentences as say
from brokerlab.report.workflow_pilots.study import Study
from brokerlab.workflows.rules import PilotRules

REPORT = "workflow-pilots"
QUESTION = "How should a workflow be submitted to a batch queue, and what do the two rule sets of grouping do?"


def write(study: Study, out_dir: str | Path) -> dict[str, Any]:
    """Write charts, tables and `results.json` of a run.

    Args:
        study: The study.
        out_dir: Folder of the run.

    Returns:
        What `results.json` holds.
    """
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    page = assemble(study, folder / "charts")
    shown = frames(study)
    write_tables(folder / "tables", shown, {"runs": study.comparison.runs, **timelines(study)})
    digests = {
        **{f"queue {name}": system.digest for name, system in study.inputs.systems.items()},
        **{f"workflow {name}": dag.digest for name, dag in study.inputs.workflows.items()},
        **{f"rules {name}": PilotRules(name).digest for name in ("notes", "paper")},
    }
    numbers = {"comparison": study.comparison.to_dict(), **listed_rows(shown)}
    return write_results(folder, page, numbers, digests)


def frames(study: Study) -> dict[str, pl.DataFrame]:
    """Return the frames behind the page."""
    names = (
        "means",
        "ratios",
        "by_queue",
        "against",
        "rules",
        "modes",
        "published",
        "waits",
        "predictions",
    )
    return {name: getattr(study, name) for name in names}


def timelines(study: Study) -> dict[str, pl.DataFrame]:
    """Return jobs, tasks and decisions of the example, all strategies together."""
    if study.example is None:
        return {}
    return {f"example_{name}": frame for name, frame in study.example.timelines().items()}


def assemble(study: Study, charts: Path) -> Page:
    """Draw the charts and put the page together.

    Args:
        study: The study.
        charts: Folder for the charts.
    """
    shown: dict[str, Block] = dict(pictures.draw(study, charts))
    return Page(
        report=REPORT,
        question=QUESTION,
        verdict=say.verdict(study),
        parts=tuple(
            part
            for part in (_strategies(study, shown), _rules(study, shown), _waits(study, shown),
                         _example(study, shown), _published(study))
            if part is not None
        ),
        cannot_tell=say.cannot_tell(study),
        archive=study.inputs.source,
        window=f"{study.n_times} instants per queue",
        synthetic=study.inputs.synthetic,
        made=Made(facts=_facts(study)),
    )  # fmt: skip


def _strategies(study: Study, shown: dict[str, Block]) -> Part:
    spread = [block for name, block in shown.items() if name.startswith("turnarounds_")]
    return Part(
        name="strategies",
        title="Grouping against simpler ways",
        verdict=say.strategies(study),
        picture=blocks(shown.get("where"), say.degenerate(study)),
        before_after=blocks(tables.by_strategy(study), spread[0] if spread else None),
        gains=blocks(tables.by_place(study), *spread[1:]),
        certainty=blocks(say.certainty(study)),
        headings={
            "picture": "Where grouping wins, and where it is none",
            "before_after": "Strategy by strategy",
            "gains": "Workflow by workflow, queue by queue",
        },
    )


def _rules(study: Study, shown: dict[str, Block]) -> Part:
    return Part(
        name="rules",
        title="The rules of the notes against those of the paper",
        verdict=say.rules(study),
        picture=blocks(shown.get("rules")),
        before_after=blocks(tables.rules(study)),
        headings={"before_after": "What becomes of the runs"},
    )


def _waits(study: Study, shown: dict[str, Block]) -> Part:
    return Part(
        name="waits",
        title="Wait against run time",
        verdict=say.waits(study),
        picture=blocks(shown.get("waits")),
        before_after=blocks(tables.machines(study), tables.workflows(study)),
        certainty=blocks(tables.predictions(study)),
        headings={
            "before_after": "Queues and workflows",
            "certainty": "How well waits can be told",
        },
    )


def _example(study: Study, shown: dict[str, Block]) -> Part | None:
    verdict = say.example(study)
    if verdict is None:
        return None
    return Part(
        name="example",
        title="One instant, every strategy",
        verdict=verdict,
        picture=blocks(shown.get("gantt")),
        before_after=blocks(tables.example(study)),
        headings={"before_after": "Strategy by strategy"},
    )


def _published(study: Study) -> Part:
    return Part(
        name="published",
        title="The published results",
        verdict=say.published(study),
        before_after=blocks(tables.published(study)),
        headings={"before_after": "Check by check"},
    )


def _facts(study: Study) -> tuple[Fact, ...]:
    """Return what the report knows about how it was made; the runner adds the rest."""
    inputs = study.inputs
    return (
        *(Fact(label=label, value=value) for label, value in inputs.facts.items()),
        Fact(label="Instants", value=f"{study.n_times} per queue, drawn with seed {study.comparison.seed}"),
        Fact(label="Rules", value=", ".join(PilotRules(name).digest for name in ("notes", "paper"))),
        Fact(label="Estimates", value="the queue carried forward under its policy, jobs lasting what they ask for"),
    )  # fmt: skip
