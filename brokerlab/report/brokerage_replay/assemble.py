"""Put the page of the brokerage replay report together and write the files of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.report.brokerage_replay import pictures, tables, tables_nuclei
from brokerlab.report.brokerage_replay import sentences as say
from brokerlab.report.brokerage_replay.study import Study
from brokerlab.report.content import Block, Fact, Made, Page, Part, blocks
from brokerlab.report.outputs import digests_of, facts_of, listed_rows, write_results, write_tables
from brokerlab.report.replays import tables as shared
from brokerlab.words import number

REPORT = "brokerage-replay"
QUESTION = "What decides where work goes in this period, and which settings matter?"


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
    large = {"decided_queues": study.decisions.queues, "decided_tasks": study.decisions.tasks}
    if study.nuclei is not None:
        large |= {"decided_nuclei": study.nuclei.decisions.nuclei}
    write_tables(folder / "tables", _frames(study), large)
    inputs = study.inputs
    digests = digests_of(inputs.archive, inputs.jobs.config, inputs.rules)
    return write_results(folder, page, numbers(study), digests)


def assemble(study: Study, charts: Path) -> Page:
    """Draw the charts and put the page together.

    Args:
        study: The study.
        charts: Folder for the charts.
    """
    shown: dict[str, Block] = dict(pictures.draw(study, charts))
    inputs = study.inputs
    return Page(
        report=REPORT,
        question=QUESTION,
        verdict=say.verdict(study),
        parts=(_checks(study, shown), _weights(study, shown), _settings(study, shown),
               _rules(study, shown), _nuclei(study, shown)),
        cannot_tell=say.cannot_tell(study),
        archive=inputs.archive.path.as_posix(),
        window=f"brokerages {say.days(study)} (UTC)",
        synthetic=inputs.archive.synthetic,
        made=Made(facts=_facts(study)),
    )  # fmt: skip


def _checks(study: Study, shown: dict[str, Block]) -> Part:
    seen = study.n_pairs > 0
    return Part(
        name="checks",
        title="What removes queues",
        verdict=say.checks(study),
        picture=blocks(shown.get("funnel"), shown.get("over_time")),
        before_after=blocks(tables.checks(study) if seen else None),
        gains=blocks(
            shown.get("by_gshare"),
            tables.gshares(study) if seen else None,
            shown.get("by_queue"),
            tables.queues(study) if seen else None,
        ),
        certainty=blocks(
            say.history(study),
            shown.get("history"),
            shared.history(study.agreement) if "history" in shown else None,
            tables.worst(study),
        ),
        headings={
            "picture": "The funnel, and how it changes",
            "before_after": "Check by check",
            "gains": "By gshare and by queue",
            "certainty": "How sure: against what really ran",
        },
    )


def _weights(study: Study, shown: dict[str, Block]) -> Part:
    caption = f"What the weights of queues are made of, {number(study.n_weighed)} brokerages"
    table = tables.composition(study.composition, "composition", caption)
    return Part(
        name="weights",
        title="What orders the queues that are left",
        verdict=say.weights(study),
        picture=blocks(shown.get("composition")),
        before_after=blocks(table if "composition" in shown else None),
        headings={"picture": "The picture, by gshare", "before_after": "Factor by factor"},
    )


def _settings(study: Study, shown: dict[str, Block]) -> Part:
    return Part(
        name="settings",
        title="Which settings matter",
        verdict=say.settings(study),
        picture=blocks(shown.get("settings")),
        before_after=blocks(
            *(shared.near(study.settings), shared.far(study.settings))
            if "settings" in shown
            else ()
        ),
        headings={"before_after": "Key by key"},
    )


def _rules(study: Study, shown: dict[str, Block]) -> Part:
    return Part(
        name="rules",
        title=f"{study.rule_sets.current.capitalize()} against {study.rule_sets.other} rules",
        verdict=say.rules(study),
        picture=blocks(shown.get("rule_sets")),
        before_after=blocks(shared.rule_sets(study.rule_sets) if "rule_sets" in shown else None),
        certainty=blocks(shared.switches(study.rule_sets)),
        headings={"before_after": "Change by change", "certainty": "Which difference it is"},
    )


def _nuclei(study: Study, shown: dict[str, Block]) -> Part:
    found = study.nuclei
    if found is None:
        return Part(name="nuclei", title="The choice of the nucleus", verdict=say.nuclei(study))
    caption = "What the weights of nuclei are made of"
    composition = tables.composition(
        found.composition, "nucleus_composition", caption, say.NUCLEUS_FACTORS
    )
    return Part(
        name="nuclei",
        title="The choice of the nucleus",
        verdict=say.nuclei(study),
        picture=blocks(shown.get("nuclei")),
        before_after=blocks(
            tables_nuclei.nucleus_checks(found), composition if found.composition.height else None
        ),
        certainty=blocks(tables_nuclei.nucleus_tasks(found)),
        headings={"before_after": "Check by check", "certainty": "Tasks, data locality, history"},
    )


def _facts(study: Study) -> tuple[Fact, ...]:
    """Return what the report knows about how it was made; the runner adds the rest."""
    inputs = study.inputs
    instants = (
        f"{inputs.jobs.instants.height} instants, rounded down to {inputs.every or 'nothing'}"
    )
    window = f"brokerages {say.days(study)}, UTC; {instants}"
    return facts_of(inputs.archive, inputs.jobs.config, inputs.rules, window=window)


def numbers(study: Study) -> dict[str, Any]:
    """Return every number of the page under a stable name."""
    found = study.nuclei
    return {
        "n_tasks": study.n_tasks,
        "n_tasks_in_period": study.inputs.n_tasks,
        "n_brokerages": study.n_brokerages,
        "n_pairs": study.n_pairs,
        "n_weighed": study.n_weighed,
        **listed_rows(_frames(study)),
        "settings_skipped": study.settings.skipped,
        "rule_sets": study.rule_sets.numbers(),
        "nuclei": None
        if found is None
        else {"n_tasks": found.decisions.tasks.height, "n_pairs": found.decisions.nuclei.height},
    }


def _frames(study: Study) -> dict[str, pl.DataFrame]:
    """Return the frames behind the page."""
    found = study.nuclei
    names = ("by_check", "by_time", "by_gshare", "by_queue", "stuck", "stuck_by_gshare", "agreement",
             "against", "composition", "composition_by_gshare", "worst")  # fmt: skip
    frames = {name: getattr(study, name) for name in names}
    frames |= {
        "settings": study.settings.keys,
        "curves": study.settings.curves,
        **study.rule_sets.frames(),
    }
    if found is not None:
        parts = ("by_check", "outcomes", "locality", "composition", "history")
        frames |= {f"nucleus_{name}": getattr(found, name) for name in parts}
    return frames
