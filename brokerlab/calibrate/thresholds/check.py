"""Refuse what cannot be calibrated before anything is simulated, all at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from brokerlab.brokerage.replay.plan import time_of
from brokerlab.calibrate.thresholds.outcomes import Period, WhatIf
from brokerlab.calibrate.thresholds.settings import Space, space_of
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.gdpconfig import Config

if TYPE_CHECKING:
    from brokerlab.archive import Archive

MIN_TASKS = 10
"""Of each period; fewer have no spread to speak of."""
Given = tuple[datetime | str, datetime | str]
"""A period as it is given: from, and before; UTC without zone."""


def checked(
    archive: Archive | None,
    keys: Sequence[str],
    *,
    calibration: Given,
    proof: Given,
    config: Config | None,
    grids: Mapping[str, Iterable[Any]] | None,
    points: int,
    shares: Sequence[str] | None,
) -> tuple[tuple[Period, Period], Space]:
    """Return the periods, and the keys with the values to try.

    Raises:
        ConfigError: Everything that cannot be.
        InsufficientDataError: Nothing but that the archive is too short for the periods.
    """
    periods, problems = _periods(calibration, proof)
    acting = _config(archive, config, periods[0].end if len(periods) == 2 else None)
    names = _shares(archive) if shares is None else sorted(set(shares))
    space = None
    try:
        space = space_of(acting, keys, shares=names, grids=grids, points=points)
    except ConfigError as problem:
        problems.append(str(problem))
    if problems or space is None:
        raise ConfigError("; ".join(problems))
    both = (periods[0], periods[1])
    if archive is not None and (short := too_short(archive, both)):
        raise InsufficientDataError("; ".join(short))
    return both, space


def _periods(calibration: Given, proof: Given) -> tuple[list[Period], list[str]]:
    """Return both periods, or what is wrong with them."""
    problems, periods = [], []
    for name, given in (("calibration", calibration), ("proof", proof)):
        try:
            start, end = (time_of(at, name) for at in given)
        except (ConfigError, ValueError) as problem:
            problems.append(str(problem))
            continue
        if start is None or end is None or start >= end:
            problems.append(f"{name}: from {start} to {end} is no period: end it after its start")
        else:
            periods.append(Period(start, end))
    if len(periods) == 2 and periods[1].start < periods[0].end:
        problems.append(
            f"proof: begins {periods[1].start}, before the calibration period ends ({periods[0].end}): prove on what was "
            "not looked at"
        )
    return periods, problems


def _config(archive: Archive | None, config: Config | None, at: datetime | None) -> Config:
    """Return the configuration that acts at a time; null: the archive's."""
    if config is None and archive is not None and archive.has("gdpconfig"):
        config = Config.from_frame(archive.scan("gdpconfig").collect())
    acting = config or Config.empty()
    return acting.at(at) if at is not None and acting.has_history else acting


def _shares(archive: Archive | None) -> list[str]:
    """Return the global shares that patterns stand for."""
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
                f"{n} tasks begin in the {name} period, {MIN_TASKS} are needed; it is {period.start} to {period.end}, and "
                f"{archive.path} has jobs from {window[0]} to {window[1]}"
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


__all__ = ["checked", "digest_of", "too_short"]
