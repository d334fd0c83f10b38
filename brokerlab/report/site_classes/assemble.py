"""Put the page of the site classes report together and write the files of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.report.content import Block, Fact, Made, Page, Part, blocks
from brokerlab.report.outputs import digests_of, facts_of, listed_rows, write_results, write_tables
from brokerlab.report.site_classes import pictures, rating, tables, tables_more
from brokerlab.report.site_classes import sentences as say
from brokerlab.report.site_classes.study import Study

REPORT = "site-classes"
QUESTION = "Which queues count as fast, and how much does that hang on the percentile ranks and the hour limits?"


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
    large = {"rated": study.rows}
    if study.tasks is not None:
        large |= {"rated_tasks": study.tasks.rows}
    write_tables(folder / "tables", _frames(study), large)
    inputs = study.inputs
    digests = digests_of(inputs.archive, inputs.config, inputs.rules)
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
        parts=(
            _queues(study, shown),
            _limits(study, shown),
            _waits(study, shown),
            _rules(study, shown),
            _tasks(study, shown),
            _shares(study, shown),
        ),
        cannot_tell=say.cannot_tell(study),
        archive=inputs.archive.path.as_posix(),
        window=f"instants of {say.days(study)} (UTC)",
        synthetic=inputs.archive.synthetic,
        made=Made(facts=_facts(study)),
    )


def _queues(study: Study, shown: dict[str, Block]) -> Part:
    some = study.n_rated > 0
    return Part(
        name="queues",
        title="Which queues are fast, and for how long",
        verdict=say.queues(study),
        picture=blocks(shown.get("strip")),
        before_after=blocks(tables.classes(study), tables.queues(study)) if some else (),
        gains=blocks(shown.get("slots")),
        certainty=blocks(say.missing(study), tables.missing(study)),
        headings={
            "picture": "Classes over time",
            "before_after": "Class by class, queue by queue",
            "gains": "Where analysis runs",
            "certainty": "Queues without data",
        },
    )


def _limits(study: Study, shown: dict[str, Block]) -> Part:
    some = study.n_rated > 0
    return Part(
        name="limits",
        title="What the percentiles and the hours do",
        verdict=say.limits(study),
        picture=blocks(shown.get("what_if")),
        before_after=blocks(tables.what_if(study)) if some else (),
        certainty=blocks(shown.get("limits"), tables.binding(study)) if some else (),
        headings={
            "picture": "What other numbers would move",
            "before_after": "Number by number",
            "certainty": "What sets the limits",
        },
    )


def _waits(study: Study, shown: dict[str, Block]) -> Part:
    some = study.waits.by_class.height > 0
    return Part(
        name="waits",
        title="What a class says about the next jobs",
        verdict=say.waits(study),
        picture=blocks(shown.get("waits")),
        before_after=blocks(tables.waits(study)) if some else (),
        certainty=blocks(shown.get("means"), tables.bands(study)) if study.n_rated else (),
        headings={
            "picture": "How long jobs waited",
            "before_after": "Class by class",
            "certainty": "How sure: the mean wait against its upper limit",
        },
    )


def _rules(study: Study, shown: dict[str, Block]) -> Part:
    found = study.rule_sets
    some = study.n_rated > 0
    return Part(
        name="rules",
        title=f"{found.current.capitalize()} against {found.other} rules",
        verdict=say.rules(study),
        picture=blocks(shown.get("switches")),
        before_after=blocks(tables_more.matrix(study)) if some else (),
        certainty=blocks(tables_more.switches(study)) if some else (),
        headings={
            "picture": "Difference by difference",
            "before_after": "Class against class",
            "certainty": "Which difference it is",
        },
    )


def _tasks(study: Study, shown: dict[str, Block]) -> Part:
    found = study.tasks
    return Part(
        name="tasks",
        title="Classes of tasks, and what users occupy",
        verdict=say.tasks(study),
        picture=blocks(shown.get("tasks")),
        before_after=() if found is None else (tables_more.gshares(found),),
        gains=() if found is None else (tables_more.users(found),),
        headings={
            "picture": "Tasks over time",
            "before_after": "Share by share",
            "gains": "User by user",
        },
    )


def _shares(study: Study, shown: dict[str, Block]) -> Part:
    found = study.targets
    return Part(
        name="shares",
        title="Shares against their targets",
        verdict=say.shares(study),
        picture=blocks(shown.get("targets")),
        before_after=() if found is None else (tables_more.targets(found),),
        headings={"picture": "Shares over time", "before_after": "Share by share"},
    )


def _facts(study: Study) -> tuple[Fact, ...]:
    """Return what the report knows about how it was made; the runner adds the rest."""
    inputs = study.inputs
    window = f"{say.days(study)}, UTC; {study.n_instants} instants, every {inputs.every}"
    return facts_of(inputs.archive, inputs.config, inputs.rules, window=window)


def numbers(study: Study) -> dict[str, Any]:
    """Return every number of the page under a stable name."""
    found = study.tasks
    return {
        "n_queues": study.n_queues,
        "n_instants": study.n_instants,
        "n_cells": study.rows.height,
        "n_rated": study.n_rated,
        "rated": {name: study.rated(name) for name in rating.CLASSES},
        "n_sample": study.inputs.n_sample,
        "n_jobs": study.inputs.made.height,
        "limits": study.limits,
        **listed_rows(_frames(study)),
        "rule_sets": {"current": study.rule_sets.current, "other": study.rule_sets.other},
        "tasks": None
        if found is None
        else {"n_tasks": found.n_tasks, "thresholds": found.thresholds},
    }


def _frames(study: Study) -> dict[str, pl.DataFrame]:
    """Return the frames behind the page."""
    rules, waits = study.rule_sets, study.waits
    frames = {
        "overall": study.overall,
        "by_queue": study.by_queue,
        "spells": study.spells,
        "percentiles": study.percentiles,
        "what_if": study.what_if.curves,
        "binding": study.what_if.binding,
        "rule_matrix": rules.matrix,
        "rule_totals": rules.totals,
        "rule_switches": rules.switches,
        "waits_by_class": waits.by_class,
        "waits_beyond": waits.beyond,
        "waits_above": waits.above,
        "limit_bands": waits.bands,
        "queue_waits": waits.queues,
        "slots_over_time": study.slots,
    }
    if study.tasks is not None:
        some = ("by_class", "by_gshare", "by_user", "users", "over_time", "other")
        frames |= {f"tasks_{name}": getattr(study.tasks, name) for name in some}
    if study.targets is not None:
        names = ("leaves", "above", "over_time", "hs")
        frames |= {f"shares_{name}": getattr(study.targets, name) for name in names}
    return frames
