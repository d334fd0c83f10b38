"""Put the page of the walltime-estimator report together and write the files of a run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.estimators.card import Card
from brokerlab.estimators.walltime.power import PowerStudy
from brokerlab.report.content import Block, Fact, Made, Page, Part, Table, Verdict, blocks
from brokerlab.report.estimates import CLOCKS, saved
from brokerlab.report.estimates import tables as shared_tables
from brokerlab.report.estimates.trust import table as trust_table
from brokerlab.report.outputs import listed_rows, write_results, write_tables
from brokerlab.report.walltime_estimator import logs_sentences as of_logs
from brokerlab.report.walltime_estimator import logs_tables as log_tables
from brokerlab.report.walltime_estimator import pictures, power_tables, settings_tables
from brokerlab.report.walltime_estimator import power_sentences as of_power
from brokerlab.report.walltime_estimator import settings_sentences as of_settings
from brokerlab.report.walltime_estimator import tasks_sentences as of_tasks
from brokerlab.report.walltime_estimator import tasks_tables as task_tables
from brokerlab.report.walltime_estimator.logs import LogStudy
from brokerlab.report.walltime_estimator.model import blocks_of, keep
from brokerlab.report.walltime_estimator.settings import Settings, write_proposals
from brokerlab.report.walltime_estimator.study import Study
from brokerlab.report.walltime_estimator.tasks import CHEAPEST, OURS, TaskStudy
from brokerlab.words import thin

REPORT = "walltime-estimator"
MOST_STRATA = 8
"""Rows of a table of strata."""
QUESTION = "How long does the next job run, and which rule or model should say so?"


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
    kept = None
    if study.tasks:
        kept = keep(next(iter(study.tasks.values())), folder)
    write_proposals(study.settings, folder)
    page = assemble(study, folder / "charts", kept=kept)
    shown = frames(study)
    write_tables(folder / "tables", shown, {})
    return write_results(folder, page, {**numbers(study), **listed_rows(shown)}, digests(study))


def frames(study: Study) -> dict[str, pl.DataFrame]:
    """Return the frames behind the page."""
    found: dict[str, pl.DataFrame] = {}
    if study.logs is not None:
        found["logs"] = study.logs.table
        found["logs_strata"] = study.logs.strata
        found["logs_campaigns"] = study.logs.campaigns
    for part, tried in study.tasks.items():
        found[f"{part}_points"] = tried.points
        for at, each in tried.trials.items():
            found[f"{part}_{at}"] = each.comparison.table
            found[f"{part}_{at}_tasks"] = each.comparison.tasks
            found[f"{part}_{at}_paired"] = each.comparison.paired
            found[f"{part}_{at}_by_known"] = each.comparison.by_scouts
            found[f"{part}_{at}_at_deployed"] = each.at_deployed
            found[f"{part}_{at}_curves"] = each.curves
            found[f"{part}_{at}_strata"] = tried.doubts[at].strata
    if study.power is not None:
        for name in ("slopes", "shares", "gain", "queues"):
            found[f"power_{name}"] = getattr(study.power, name)
        if study.power.drift is not None:
            found["power_sites"] = study.power.drift.by_site
    return found


def numbers(study: Study) -> dict[str, Any]:
    """Return the numbers that stand in sentences only."""
    found: dict[str, Any] = {}
    if study.settings.found:
        found["settings"] = {name: each.to_dict() for name, each in study.settings.found.items()}
    if study.power is not None:
        drift = study.power.drift
        found["power"] = {
            "inside": study.power.inside,
            "analysis": study.power.analysis,
            "drift": None
            if drift is None
            else {key: getattr(drift, key) for key in ("left_out", "ln_sd", "moved", "moved_lo", "moved_hi")},
        }  # fmt: skip
    return found


def digests(study: Study) -> dict[str, str]:
    """Return the digest of the archive."""
    archive = study.inputs.archive
    return {} if archive is None else {"archive": archive.digest}


def assemble(study: Study, charts: Path, *, kept: Card | None = None) -> Page:
    """Draw the charts and put the page together.

    Args:
        study: The study.
        charts: Folder for the charts.
        kept: Card of the model that was saved.
    """
    shown: dict[str, Block] = dict(pictures.draw(study, charts))
    parts = tuple(
        part
        for part in (
            *(_tasks(each, shown) for each in study.tasks.values()),
            _logs(study.logs, shown),
            _power(study.power, shown),
            _settings(study.settings),
            _model(kept),
        )
        if part is not None
    )
    told = [*study.inputs.caveats]
    for each in study.tasks.values():
        told += of_tasks.cannot_tell(each)
    if study.tasks:
        told.append(of_tasks.UNUSED)
    if study.logs is not None:
        told += of_logs.cannot_tell(study.logs)
    if study.power is not None:
        told += of_power.cannot_tell(study.power)
    return Page(
        report=REPORT,
        question=QUESTION,
        verdict=Verdict(kind="finding", sentence=_verdict(study)),
        parts=parts,
        cannot_tell=tuple(thin(sentence) for sentence in told),
        archive=study.inputs.source,
        window="",
        synthetic=study.inputs.synthetic,
        made=Made(facts=_facts(study)),
    )


def _verdict(study: Study) -> str:
    """Answer the question of the page: one sentence per kind of jobs."""
    said = [of_tasks.brief(each) for each in list(study.tasks.values())[:1]]
    if study.logs is not None:
        said.append(of_logs.brief(study.logs))
    if study.power is not None:
        said.append(of_power.worth(study.power))
    return thin(" ".join(filter(None, said)))


def _tasks(found: TaskStudy, shown: dict[str, Block]) -> Part:
    name, trials = found.inputs.name, found.trials
    rules = {
        each.comparison.reference: each.deployed["exceed_task_mean"] for each in trials.values()
    }
    tables = [
        _named(name, table)
        for each in trials.values()
        for table in (shared_tables.overall(each), shared_tables.at_equal_exceed(each, rules))
    ]
    strata = [
        _named(name, shared_tables.strata(
            found.doubts[at].strata, name=f"strata_{at}", level=found.doubts[at].level, most=MOST_STRATA,
            caption=f"Strata whose coverage by the {OURS} is furthest from its level, decided {CLOCKS[at]}",
        ))
        for at in trials
    ]  # fmt: skip
    last = list(trials)[-1]
    return Part(
        name=name,
        title=f"Grid tasks: {found.inputs.said}",
        verdict=of_tasks.verdict(found),
        picture=blocks(shown.get(f"frontier_{name}")),
        before_after=blocks(*tables, task_tables.at_deployed(found)),
        gains=blocks(
            of_tasks.guesses(found), *(task_tables.points(found, at) for at in trials),
            *(_named(name, shared_tables.by_task(each, CHEAPEST)) for each in trials.values()),
        ),
        certainty=blocks(
            of_tasks.certainty(found), shown.get(f"known_{name}"), *of_tasks.doubts(found),
            _named(name, trust_table(found.doubts[last], name=f"trust_{last}")), *strata,
        ),
        headings={
            "before_after": "Every estimator",
            "gains": "As a single guess, and task by task",
            "certainty": "How sure, and where not to trust it",
        },
    )  # fmt: skip


def _named(part: str, table: Table) -> Table:
    """Give a table a name that no other part of the page has."""
    return dataclasses.replace(table, name=f"{part}_{table.name}")


def _settings(found: Settings) -> Part | None:
    if not found.found and not found.missing:
        return None
    return Part(
        name="settings",
        title="What it means for SCOUT_CPUTIME_RANK",
        verdict=of_settings.verdict(found),
        before_after=blocks(*(settings_tables.sides(name, each) for name, each in found.found.items()), *of_settings.details(found)),
        certainty=blocks(*of_settings.certainty(found)),
        headings={"before_after": "The estimator, the nearest setting, and the current one"},
    )  # fmt: skip


def _model(kept: Card | None) -> Part | None:
    if kept is None:
        return None
    return Part(
        name="model",
        title="Model card",
        verdict=Verdict(
            kind="finding",
            subject="saved model",
            sentence=f"The {kept.name} of {kept.quantity}, fitted on all of these tasks, is in {saved.FOLDER}/ with its manifest.",
        ),
        before_after=blocks(*blocks_of(kept)),
        headings={"before_after": "What it is, and for what"},
    )


def _logs(found: LogStudy | None, shown: dict[str, Block]) -> Part | None:
    if found is None:
        return None
    return Part(
        name="logs",
        title="Batch logs",
        verdict=of_logs.verdict(found),
        picture=blocks(shown.get("errors")),
        before_after=blocks(*(log_tables.by_method(found, name) for name in found.logs)),
        gains=blocks(of_logs.worst(found), log_tables.by_stratum(found)),
        certainty=blocks(of_logs.certainty(found), shown.get("misses")),
        headings={"before_after": "Method by method", "gains": "Whose jobs"},
    )


def _power(found: PowerStudy | None, shown: dict[str, Block]) -> Part | None:
    if found is None:
        return None
    return Part(
        name="power",
        title="Core power and sites",
        verdict=of_power.verdict(found),
        picture=blocks(shown.get("power")),
        before_after=blocks(power_tables.slopes(found), power_tables.gain(found)),
        gains=blocks(of_power.meaning(found), power_tables.shares(found)),
        certainty=blocks(*of_power.sites(found)),
        headings={
            "before_after": "Slope, and what it is worth",
            "gains": "What it means for an estimate",
            "certainty": "Inside sites, over months, for analysis jobs",
        },
    )


def _facts(study: Study) -> tuple[Fact, ...]:
    """Return what the report knows about how it was made; the runner adds the rest."""
    return tuple(Fact(label=label, value=value) for label, value in study.inputs.facts.items())
