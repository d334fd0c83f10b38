"""Refuse what cannot be calibrated before anything is simulated, all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from brokerlab.brokerage.replay.plan import time_of
from brokerlab.calibrate.thresholds.choice import Limits
from brokerlab.calibrate.thresholds.intervals import MIN_TASKS
from brokerlab.calibrate.thresholds.outcomes import QUANTITIES, Period, WhatIf
from brokerlab.calibrate.thresholds.settings import FEWEST_VALUES, Space, space_of
from brokerlab.calibrate.thresholds.sweep import Replications
from brokerlab.errors import ConfigError, InsufficientDataError, nearest
from brokerlab.gdpconfig import Config

if TYPE_CHECKING:
    from brokerlab.archive import Archive

FEWEST_REPLICATES = 100


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a calibration is asked for; see :func:`.calibration.calibrate`."""

    keys: tuple[str, ...]
    points: int
    grids: Mapping[str, Sequence[Any]]
    calibration: tuple[datetime | str, datetime | str]
    proof: tuple[datetime | str, datetime | str]
    objective: str
    limits: Limits
    relevant: float
    alpha: float
    replications: Replications
    trials: int
    rounds: int
    most_keys: int
    propose: str
    n_boot: int
    seed: int
    workers: int
    config: Config | None
    shares: Sequence[str] | None


def checked(
    archive: Archive | None, asked: Asked, *, what_if: WhatIf | None, validate: bool
) -> tuple[tuple[Period, Period], Space]:
    """Return the periods and the keys with their values.

    Raises:
        ConfigError: Everything that cannot be.
        InsufficientDataError: Nothing but that the archive is too short for the periods.
    """
    told = [*_arguments(asked), *asked.limits.problems(), *asked.replications.problems()]
    if archive is None and (what_if is None or asked.config is None):
        told.append("without an archive, what_if and config are needed")
    if what_if is None and not validate:
        told.append("validate=False: only for a simulation of your own (what_if)")
    periods, problems = _periods(asked)
    told += problems
    space = None
    try:
        space = space_of(
            _config(archive, asked, periods), asked.keys, shares=_shares(archive, asked), grids=asked.grids, points=asked.points
        )  # fmt: skip
    except ConfigError as problem:
        told.append(str(problem))
    short = [] if archive is None or periods is None else too_short(archive, periods)
    if told or periods is None or space is None:
        raise ConfigError("; ".join([*told, *short]))
    if short:
        raise InsufficientDataError("; ".join(short))
    return periods, space


def _arguments(asked: Asked) -> list[str]:
    """Say which numbers and names cannot be."""
    names = [quantity.name for quantity in QUANTITIES]
    rules = (
        ("objective", asked.objective, asked.objective in names, nearest(asked.objective, names)),
        ("relevant", asked.relevant, 0 <= asked.relevant < 1, "a part of the current value from 0, below 1"),
        ("alpha", asked.alpha, 0 < asked.alpha < 1, "a rate between 0 and 1"),
        ("points", asked.points, asked.points >= FEWEST_VALUES, f"{FEWEST_VALUES} or more"),
        ("trials", asked.trials, asked.trials >= 0, "0 or more"),
        ("rounds", asked.rounds, asked.rounds >= 0, "0 or more"),
        ("most_keys", asked.most_keys, asked.most_keys >= 1, "1 or more"),
        ("propose", asked.propose, asked.propose in ("together", "each"), "together or each"),
        ("n_boot", asked.n_boot, asked.n_boot >= FEWEST_REPLICATES, f"{FEWEST_REPLICATES} or more"),
        ("seed", asked.seed, asked.seed >= 0, "0 or more"),
        ("workers", asked.workers, asked.workers >= 1, "1 or more"),
    )  # fmt: skip
    return [f"{name}={value!r}: {allowed}" for name, value, ok, allowed in rules if not ok]


def _periods(asked: Asked) -> tuple[tuple[Period, Period] | None, list[str]]:
    """Return both periods, or what is wrong with them."""
    told, found = [], []
    for name, given in (("calibration", asked.calibration), ("proof", asked.proof)):
        try:
            start, end = (time_of(at, name) for at in given)
        except (ConfigError, ValueError) as problem:
            told.append(str(problem))
            continue
        if start is None or end is None or start >= end:
            told.append(f"{name}: from {start} to {end} is no period: end it after its start")
        else:
            found.append(Period(start, end))
    if len(found) < 2:
        return None, told
    if found[1].start < found[0].end:
        told.append(f"proof: begins {found[1].start}, before the calibration period ends ({found[0].end}): prove on what was not looked at")  # fmt: skip
    return (found[0], found[1]), told


def _config(archive: Archive | None, asked: Asked, periods: tuple[Period, Period] | None) -> Config:
    """Return the configuration that acts at the end of the calibration period."""
    config = asked.config
    if config is None:
        known = archive is not None and archive.has("gdpconfig")
        config = Config.from_frame(archive.scan("gdpconfig").collect()) if archive is not None and known else Config.empty()  # fmt: skip
    return config.at(periods[0].end) if periods is not None and config.has_history else config


def _shares(archive: Archive | None, asked: Asked) -> list[str]:
    """Return the global shares that patterns stand for."""
    if asked.shares is not None:
        return sorted(set(asked.shares))
    if archive is None or not archive.has("tasks"):
        return []
    tasks = archive.scan("tasks")
    if "gshare" not in tasks.collect_schema().names():
        return []
    return tasks.select(pl.col("gshare").drop_nulls().unique().sort()).collect()["gshare"].to_list()


def too_short(archive: Archive, periods: tuple[Period, Period]) -> list[str]:
    """Say for which period an archive has too few tasks with jobs.

    Args:
        archive: The archive.
        periods: Calibration and proof.
    """
    window = archive.manifest.window
    if not archive.has("jobs") or window is None:
        return [f"{archive.path}: has no jobs; ingest a source that holds them"]
    told = []
    first = pl.col("creationtime").min()
    made = archive.scan("jobs").filter(pl.col("jeditaskid").is_not_null()).group_by("jeditaskid").agg(at=first).collect()["at"]  # fmt: skip
    for name, period in zip(("calibration", "proof"), periods, strict=True):
        n = int(made.is_between(*period, closed="left").sum())
        if n < MIN_TASKS:
            told.append(
                f"{archive.path}: {n} tasks begin in the {name} period ({period.start} to {period.end}), {MIN_TASKS} are "
                f"needed; the archive has jobs from {window[0]} to {window[1]}"
            )
    return told


def digest_of(what_if: WhatIf) -> str:
    """Return what a simulation's results depend on besides settings, seed and period.

    Raises:
        ConfigError: It does not say; then its results cannot be kept.
    """
    found = getattr(what_if, "digest", None)
    if not isinstance(found, str) or not found:
        raise ConfigError(
            "store: the simulation has no attribute `digest`, so that kept results could be of another one; give it one, or "
            "leave store out"
        )
    return found


__all__ = ["Asked", "checked", "digest_of", "too_short"]
