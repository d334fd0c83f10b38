"""Thresholds of an archive in one call: screen the keys, ask whether the simulation is right, calibrate if it is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

from brokerlab.archive.store import Archive
from brokerlab.calibrate import simulation
from brokerlab.calibrate.simulation import Validation
from brokerlab.calibrate.thresholds.calibration import Calibration, calibrate
from brokerlab.calibrate.thresholds.outcomes import GridWhatIf, Period, WhatIf, of_archive
from brokerlab.calibrate.thresholds.screening import screen
from brokerlab.calibrate.thresholds.settings import Options, case_of
from brokerlab.errors import ConfigError, InsufficientDataError, collect_warnings
from brokerlab.gdpconfig import Config
from brokerlab.rulesets import RuleSetName

MIN_TASKS = 10
"""Of each period; fewer have no spread to speak of."""
LEAST_PERIOD = timedelta(days=2)
"""Of each: tasks of the last day are not judged, they may end in it."""
FEWEST_DAYS = 6
"""Both periods, the day before them, and the last day, which may not be whole."""


def study_archive(
    archive: Archive,
    options: Options,
    *,
    created_at: datetime,
    start: datetime | None = None,
    proof_start: datetime | None = None,
    end: datetime | None = None,
    screen_days: float = 4.0,
    stage: str = "jobs",
    rules: RuleSetName = "document",
    store: str | Path | None = None,
    what_if: WhatIf | None = None,
    validation: Validation | None = None,
) -> Calibration:
    """Screen, validate and calibrate.

    Args:
        archive: The archive.
        options: Keys, objective, limits, simulations.
        created_at: Time of the proposal, UTC without zone.
        start: The choice is made from here on; null: from the first day that has a day before it, to fill the queues.
        proof_start: The choice ends and the scored period begins; null: half way to the end.
        end: The scored period ends; null: with the archive's last whole day.
        screen_days: Days at the end of the choice that are screened [days].
        stage: What is simulated: ``jobs`` (production) or ``analysis``.
        rules: Rule set that the screen and the simulations decide by.
        store: Folder for results of simulations; null: none.
        what_if: Another simulation; null: the grid simulator.
        validation: Whether it is to be believed; null: it is found out.

    Raises:
        ConfigError: Periods that do not follow each other.
        MissingTableError: The archive lacks jobs, tasks or queues.
        InsufficientDataError: It is too short for the periods.
    """
    early, late = split_periods(archive, start=start, proof_start=proof_start, end=end)
    for table in ("tasks", "queues"):
        archive.scan(table)  # refused before anything is computed
    if short := too_short(archive, {"calibration": early, "proof": late}):
        raise InsufficientDataError("; ".join(short))
    period = Period(max(early.start, early.end - timedelta(days=screen_days)), early.end)
    simulation = what_if or of_archive(
        archive,
        (early, late),
        stage=stage,
        cycle=options.cycle,
        capacity=options.capacity,
        rules=rules,
    )
    with collect_warnings() as warnings:
        case = case_of(
            Config.recorded(archive, early.end),
            options,
            calibration=early,
            proof=late,
            created_at=created_at,
            shares=shares_of(archive),
            rules=rules,
            archive_digest=archive.digest,
            synthetic=archive.synthetic,
        )
        return calibrate(
            case,
            simulation,
            screen=screen(archive, case.space, period, stage=stage, rules=rules),
            validation=validation or (lambda: believe(archive, early, simulation)),
            store=store,
            warnings=warnings,  # filled as the block ends
        )


def shares_of(archive: Archive) -> list[str]:
    """Return the global shares that patterns stand for."""
    tasks = archive.scan("tasks")
    if "gshare" not in tasks.collect_schema().names():
        return []
    return tasks.select(pl.col("gshare").drop_nulls().unique().sort()).collect()["gshare"].to_list()


def too_short(archive: Archive, periods: Mapping[str, Period]) -> list[str]:
    """Say for which period, by its name, an archive has too few tasks with jobs."""
    window = archive.manifest.window
    if not archive.has("jobs") or window is None:
        return [f"{archive.path}: has no jobs; ingest a source that holds them"]
    jobs = archive.scan("jobs").filter(pl.col("jeditaskid").is_not_null())
    first = jobs.group_by("jeditaskid").agg(at=pl.col("creationtime").min()).collect()["at"]
    problems = []
    for name, period in periods.items():
        n = int(first.is_between(*period, closed="left").sum())
        if n < MIN_TASKS:
            problems.append(
                f"{n} tasks begin in the {name} period, {MIN_TASKS} are needed; it is {period.start} to {period.end}, and "
                f"{archive.path} has jobs from {window[0]} to {window[1]}"
            )
    return problems


def split_periods(
    archive: Archive,
    *,
    start: datetime | None = None,
    proof_start: datetime | None = None,
    end: datetime | None = None,
) -> tuple[Period, Period]:
    """Return the periods asked for, or both halves of the archive, its first day left to fill the queues."""
    made = pl.col("creationtime")
    first, last = archive.scan("jobs").select(made.min(), last=made.max()).collect().row(0)
    if first is None:
        raise InsufficientDataError("no job has a creation time")
    begin = start or _day(first) + timedelta(days=1)
    until = end or _day(last)
    middle = proof_start or _day(begin + (until - begin) / 2)
    given = start is not None or proof_start is not None or end is not None
    if not given and until - begin < 2 * LEAST_PERIOD:
        raise InsufficientDataError(
            f"the archive has too few days, {FEWEST_DAYS} are needed; its jobs were made from {first} to {last}"
        )
    if not begin < middle < until:
        raise ConfigError(
            f"start={begin}, proof_start={middle}, end={until}: must follow each other; the archive has jobs made from "
            f"{first} to {last}"
        )
    return Period(begin, middle), Period(middle, until)


def _day(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def believe(archive: Archive, period: Period, what_if: WhatIf) -> Validation:
    """Ask whether the simulation gives back a period: first with every job at its own queue, which is cheap, then as it is."""
    known = what_if.options["capacity"] if isinstance(what_if, GridWhatIf) else None
    world = simulation.of_archive(
        archive, start=period.start, end=period.end, brokerage="seen", drain="0h", capacity=known
    )
    queues = simulation.validate(world)
    if not queues.ok or not isinstance(what_if, GridWhatIf):
        return queues
    return what_if.validate(period)
