"""Screen the keys, ask whether the simulation is right, and calibrate if it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.archive.store import Archive, open_archive
from brokerlab.brokerage.replay.plan import time_of
from brokerlab.calibrate import simulate
from brokerlab.calibrate.thresholds import (
    KEYS,
    QUANTITIES,
    Calibration,
    Limits,
    Options,
    Period,
    WhatIf,
    calibrate,
    screen_by_value,
    threshold_of,
)
from brokerlab.calibrate.thresholds.check import too_short
from brokerlab.calibrate.thresholds.grid import GridWhatIf, of_archive
from brokerlab.calibrate.thresholds.keys import HOLDS
from brokerlab.calibrate.thresholds.screening import summed
from brokerlab.calibrate.thresholds.settings import Space
from brokerlab.errors import ConfigError, DataError, InsufficientDataError, nearest
from brokerlab.report.replays.odd import noted

FEWEST_REPLICATES = 100


@dataclass(frozen=True)
class Study:
    """What the page is made of.

    Attributes:
        archive: The archive.
        calibration: What was found.
        space: All keys that were screened, with their values.
        curves: The screen value by value, see :func:`.thresholds.screen_by_value`.
        screened: Period of the screen.
        n_boot: Bootstrap replicates.
        odd: What was odd in the settings, each said once.
        stage: What is simulated: ``jobs`` or ``analysis``.
    """

    archive: Archive
    calibration: Calibration
    space: Space
    curves: pl.DataFrame
    screened: Period
    n_boot: int
    odd: tuple[str, ...]
    stage: str = "jobs"


@dataclass(frozen=True)
class Believed:
    """What two checks of the simulation say: of the queues alone, and of queues and brokerage together.

    Attributes:
        ok: Both passed.
        sentence: The one that failed, or the last.
    """

    ok: bool
    sentence: str


def check(
    *,
    keys: Sequence[str],
    calibration_start: str,
    proof_start: str,
    end: str,
    screen_days: float,
    points: int,
    objective: str,
    limits: Mapping[str, float | str],
    relevant: float,
    alpha: float,
    replications: int,
    most_replications: int,
    trials: int,
    n_boot: int,
    seed: int,
    workers: int,
    stage: str = "jobs",
) -> None:
    """Refuse impossible parameters before anything is loaded, all at once; they are those of the notebook.

    Raises:
        ConfigError: Every parameter that is wrong, with what is allowed.
    """
    told = []
    for known in keys:
        told += _problem(threshold_of, known)
    for name, text in (
        ("calibration_start", calibration_start),
        ("proof_start", proof_start),
        ("end", end),
    ):
        told += _problem(time_of, text or None, name)
    told += _problem(limits_of, limits)
    names = [quantity.name for quantity in QUANTITIES]
    for name, value, ok, allowed in (
        ("screen_days", screen_days, screen_days > 0, "above 0"),
        ("points", points, points >= 2, "2 or more"),
        ("objective", objective, objective in names, nearest(objective, names)),
        ("relevant", relevant, 0 <= relevant < 1, "a part of the current value from 0, below 1"),
        ("alpha", alpha, 0 < alpha < 1, "a rate between 0 and 1"),
        ("replications", replications, 2 <= replications <= most_replications, "2 or more, at most most_replications"),
        ("trials", trials, trials >= 0, "0 or more"),
        ("n_boot", n_boot, n_boot >= FEWEST_REPLICATES, f"{FEWEST_REPLICATES} or more"),
        ("seed", seed, seed >= 0, "0 or more"),
        ("workers", workers, workers >= 1, "1 or more"),
        ("stage", stage, stage in HOLDS, nearest(stage, HOLDS)),
    ):  # fmt: skip
        if not ok:
            told.append(f"{name}={value!r}: must be {allowed}")
    if told:
        raise ConfigError("; ".join(told))


def _problem(judge: Any, *given: Any) -> list[str]:
    try:
        judge(*given)
    except ConfigError as problem:
        return [str(problem)]
    return []


def limits_of(given: Mapping[str, float | str]) -> Limits:
    """Return the limits with some of them set; ``none`` lifts one.

    Raises:
        ConfigError: An unknown name, or a limit that makes no sense.
    """
    known = [entry.name for entry in fields(Limits)]
    wrong = [
        f"limits: unknown '{name}': {nearest(name, known)}" for name in given if name not in known
    ]
    if wrong:
        raise ConfigError("; ".join(wrong))
    values: dict[str, Any] = {
        name: None if value == "none" else value for name, value in given.items()
    }
    words = [f"limits: {name}={value!r}: a number, or none" for name, value in values.items() if name != "on" and isinstance(value, str)]  # fmt: skip
    if words:
        raise ConfigError("; ".join(words))
    return Limits(**values)


def study(
    archive: str | Path,
    *,
    created_at: datetime,
    keys: Sequence[str] = (),
    calibration_start: str = "",
    proof_start: str = "",
    end: str = "",
    screen_days: float = 7.0,
    points: int = 5,
    objective: str = "turnaround_h",
    limits: Mapping[str, float | str] | None = None,
    relevant: float = 0.01,
    alpha: float = 0.05,
    replications: int = 4,
    most_replications: int = 12,
    trials: int = 12,
    n_boot: int = 2000,
    seed: int = 1,
    store: str = "",
    workers: int = 1,
    stage: str = "jobs",
    what_if: WhatIf | None = None,
    validation: Believed | None = None,
) -> Study:
    """Screen, validate and calibrate.

    Args:
        archive: Archive folder.
        created_at: Time of the proposal, UTC without zone.
        keys: Keys; none: all thresholds.
        calibration_start: The choice is made from here on, ISO 8601, UTC; empty: from the first day that has a day before it.
        proof_start: The choice ends and the proof begins; empty: half way to the end.
        end: The proof ends; empty: with the archive.
        screen_days: Days at the end of the calibration period that are screened [days].
        points: Values per key, the current one not counted.
        objective: What is to be small.
        limits: What may get worse, by names of ``thresholds.Limits``.
        relevant: Smallest reduction that is worth a change, as a part of the current value.
        alpha: Rate of false proposals.
        replications: Simulations of every setting.
        most_replications: Of a setting at most.
        trials: Of the search over several keys.
        n_boot: Bootstrap replicates.
        seed: Of simulations, bootstrap and search.
        store: Folder for results of simulations; empty: none.
        workers: Processes at most.
        stage: What is simulated: ``jobs`` (production) or ``analysis``.
        what_if: Another simulation; null: the grid simulator.
        validation: Whether it is to be believed; null: it is found out.

    Raises:
        ConfigError: Parameters that make no sense.
        DataError: The archive lacks jobs, tasks or queues.
        InsufficientDataError: It is too short for the periods.
    """
    opened = open_archive(archive)
    missing = [name for name in ("jobs", "tasks", "queues") if not opened.has(name)]
    if missing or opened.manifest.window is None:
        raise DataError(f"{opened.path}: lacks {', '.join(missing) or 'times'}; ingest a source that holds them")  # fmt: skip
    held = limits_of(limits or {})
    early, late = periods_of(opened, calibration_start, proof_start, end)
    short = too_short(opened, (early, late))
    if short:
        raise InsufficientDataError("; ".join(short))
    shown = Period(max(early.start, early.end - timedelta(days=screen_days)), early.end)
    names = list(keys) or KEYS["key"].to_list()
    options = Options(
        keys=names, points=points, objective=objective, limits={n: v for n, v in vars(held).items() if n != "on"},
        limit_on=held.on, relevant=relevant, alpha=alpha, replications=replications, most_replications=most_replications,
        trials=trials, n_boot=n_boot, seed=seed, workers=workers,
    )  # fmt: skip
    simulation = what_if or of_archive(opened, (early, late), stage=stage)
    with noted() as odd:
        space, curves, reasons = screen_by_value(opened, names, period=shown, points=points)
        found = calibrate(
            opened, options, calibration=early, proof=late, created_at=created_at, config=space.config, store=store or None,
            what_if=simulation, validation=validation or (lambda: believed(opened, early, simulation)),
            screened=summed(space, curves, reasons, HOLDS[stage]),
        )  # fmt: skip
    return Study(opened, found, space, curves, shown, n_boot, tuple(dict.fromkeys(odd)), stage)


def periods_of(
    archive: Archive, calibration_start: str, proof_start: str, end: str
) -> tuple[Period, Period]:
    """Return the periods asked for, or both halves of the archive, its first day left to fill the queues.

    Raises:
        ConfigError: They are empty or in the wrong order.
    """
    made = archive.scan("jobs").select(first=pl.col("creationtime").min(), last=pl.col("creationtime").max()).collect()  # fmt: skip
    first, last = made.row(0)
    start = time_of(calibration_start or None, "calibration_start") or _day(first) + timedelta(
        days=1
    )
    over = time_of(end or None, "end") or _day(last)
    middle = time_of(proof_start or None, "proof_start") or _day(start + (over - start) / 2)
    if not start < middle < over:
        raise ConfigError(
            f"calibration_start={start}, proof_start={middle}, end={over}: must follow each other; the archive has jobs made "
            f"from {first} to {last}"
        )
    return Period(start, middle), Period(middle, over)


def _day(at: datetime) -> datetime:
    """Return midnight before a time."""
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def believed(archive: Archive, period: Period, simulation: WhatIf) -> Believed:
    """Ask whether the simulation gives back a period: first with every job at its own queue, which is cheap.

    Args:
        archive: The archive.
        period: Of the choice.
        simulation: The grid simulator; of any other only its queues are asked.
    """
    queues = simulate.validate(simulate.of_archive(archive, *period))
    if not queues.ok or not isinstance(simulation, GridWhatIf):
        return Believed(ok=queues.ok, sentence=queues.sentence)
    both = simulation.validate(period)
    return Believed(ok=both.ok, sentence=both.sentence)
