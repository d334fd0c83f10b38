"""Put the page of the report on user tasks together and write the files of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.report.analysis_replay import pictures, tables, tables_users
from brokerlab.report.analysis_replay import sentences as say
from brokerlab.report.analysis_replay.study import Study
from brokerlab.report.content import Block, Fact, Made, Page, Part, blocks
from brokerlab.report.outputs import digests_of, facts_of, listed_rows, write_results, write_tables
from brokerlab.report.replays import tables as shared

REPORT = "analysis-replay"
QUESTION = (
    "Which user tasks are held back in this period, where would the others go, and is it fair?"
)
HELD_COUNTS = " All jobs of a brokerage that another value holds back, or lets through, count too."


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
    made = study.decisions
    large = {
        "brokerages": study.rows,
        "decided_queues": made.queues,
        "decided_first_loop": made.first_loop,
        "decided_tasks": made.tasks,
    }
    write_tables(folder / "tables", _frames(study), large)
    inputs = study.inputs
    digests = digests_of(inputs.archive, inputs.replay.config, inputs.rules)
    return write_results(folder, page, numbers(study), digests)


def assemble(study: Study, charts: Path) -> Page:
    """Draw the charts and put the page together.

    Args:
        study: The study.
        charts: Folder for the charts.
    """
    shown: dict[str, Block] = dict(pictures.draw(study, charts))
    makers = (_held, _checks, _stabilizer, _weights, _fairness, _rules, _settings)
    inputs = study.inputs
    return Page(
        report=REPORT,
        question=QUESTION,
        verdict=say.verdict(study),
        parts=tuple(make(study, shown) for make in makers),
        cannot_tell=say.cannot_tell(study),
        archive=inputs.archive.path.as_posix(),
        window=f"brokerages {say.days(study)} (UTC)",
        synthetic=inputs.archive.synthetic,
        made=Made(facts=_facts(study)),
    )


def _held(study: Study, shown: dict[str, Block]) -> Part:
    caption = "Held back by class of the task"
    return Part(
        name="held",
        title="Who is held back, and why",
        verdict=say.held(study),
        picture=blocks(shown.get("held"), shown.get("held_over_time")),
        before_after=blocks(tables.rules(study)),
        gains=blocks(
            shown.get("held_units"),
            tables.units(study),
            tables.levels(study, study.by_class, "task_class", "held_classes", caption),
            tables.levels(study, study.by_gshare, "gshare", "held_gshares", "Held back by gshare"),
        ),
        headings={
            "picture": "The rules, and how they change with time",
            "before_after": "Rule by rule",
            "gains": "By user, class and gshare",
        },
    )


def _checks(study: Study, shown: dict[str, Block]) -> Part:
    seen = study.n_pairs > 0
    return Part(
        name="checks",
        title="What removes queues",
        verdict=say.checks(study),
        picture=blocks(shown.get("loops")),
        before_after=blocks(tables.loops(study) if seen else None),
        gains=blocks(tables.gshares(study)),
        certainty=blocks(
            say.history(study),
            shown.get("history"),
            shared.history(study.agreement) if "history" in shown else None,
        ),
        headings={
            "picture": "Both funnels",
            "before_after": "Check by check",
            "gains": "By gshare",
            "certainty": "How sure: against what really ran",
        },
    )


def _stabilizer(study: Study, shown: dict[str, Block]) -> Part:
    return Part(
        name="stabilizer",
        title="The Analysis Stabilizer",
        verdict=say.stabilizer(study),
        picture=blocks(shown.get("stabilizer")),
        before_after=blocks(tables.stabilizer(study) if "stabilizer" in shown else None),
        headings={"picture": "Limits and what waits", "before_after": "Queue by queue"},
    )


def _weights(study: Study, shown: dict[str, Block]) -> Part:
    seen = "weights" in shown
    return Part(
        name="weights",
        title="Original against new basic weight",
        verdict=say.weights(study),
        picture=blocks(shown.get("weights")),
        before_after=blocks(tables_users.classes(study) if seen else None),
        gains=blocks(
            shown.get("gains"),
            tables_users.queues(study) if "gains" in shown else None,
            tables_users.users(study) if seen else None,
        ),
        headings={"before_after": "What moves"},
    )


def _fairness(study: Study, shown: dict[str, Block]) -> Part:
    return Part(
        name="fairness",
        title="Fairness between users and classes",
        verdict=say.fairness(study),
        picture=blocks(shown.get("fairness")),
        before_after=blocks(tables_users.fairness(study)),
        gains=blocks(shown.get("waits"), tables_users.waits(study)),
        headings={"before_after": "Jain's index", "gains": "Who waits"},
    )


def _rules(study: Study, shown: dict[str, Block]) -> Part:
    found = study.rule_sets
    return Part(
        name="rules",
        title=f"{found.current.capitalize()} against {found.other} rules",
        verdict=say.rules(study),
        picture=blocks(shown.get("rule_sets")),
        before_after=blocks(shared.rule_sets(found) if "rule_sets" in shown else None),
        certainty=blocks(shared.switches(found, shifts=True)),
        headings={"before_after": "Change by change", "certainty": "Which difference it is"},
    )


def _settings(study: Study, shown: dict[str, Block]) -> Part:
    found = study.settings
    laid = (shared.near(found, HELD_COUNTS), shared.far(found)) if "settings" in shown else ()
    return Part(
        name="settings",
        title="Which settings matter",
        verdict=say.settings(study),
        picture=blocks(shown.get("settings")),
        before_after=blocks(*laid),
        headings={"before_after": "Key by key"},
    )


def _facts(study: Study) -> tuple[Fact, ...]:
    """Return what the report knows about how it was made; the runner adds the rest."""
    inputs = study.inputs
    n = inputs.replay.instants.height
    window = f"brokerages {say.days(study)}, UTC; {n} instants, rounded down to {inputs.every or 'nothing'}"
    return facts_of(inputs.archive, inputs.replay.config, inputs.rules, window=window)


def numbers(study: Study) -> dict[str, Any]:
    """Return every number of the page under a stable name."""
    return {
        "n_tasks": study.n_tasks,
        "n_tasks_in_period": study.inputs.n_tasks,
        "n_users": study.n_users,
        "n_brokerages": study.n_brokerages,
        "n_pairs": study.n_pairs,
        "n_weighed_both_ways": study.weights.n_brokerages,
        "wait_known": study.weights.known,
        "weight_lost_by": study.weights.lost_by,
        **listed_rows(_frames(study)),
        "settings_skipped": study.settings.skipped,
        "rule_sets": study.rule_sets.numbers(),
    }


def _frames(study: Study) -> dict[str, pl.DataFrame]:
    """Return the frames behind the page."""
    names = (
        "by_rule", "by_class", "by_gshare", "by_time", "margins", "units", "by_loop", "by_check", "routes", "stuck",
        "stuck_by_gshare", "limits", "limits_by_queue", "users", "indices", "waits", "agreement", "against",
    )  # fmt: skip
    parts = ("ends", "moved", "moved_by_class", "moved_by_gshare", "places", "changes", "queues", "gains",
             "users", "felt", "wait")  # fmt: skip
    return {
        **{name: getattr(study, name) for name in names},
        **{f"weight_{name}": getattr(study.weights, name) for name in parts},
        "settings": study.settings.keys,
        "curves": study.settings.curves,
        **study.rule_sets.frames(),
    }
