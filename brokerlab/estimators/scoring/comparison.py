"""One table of all estimators of a quantity: replayed on the same jobs, judged by the same rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.errors import ConfigError, nearest
from brokerlab.estimators.deployed import DEPLOYED
from brokerlab.estimators.estimator import Estimator, Predicted, check_levels
from brokerlab.estimators.records import Quantity, checked
from brokerlab.estimators.scoring import tables
from brokerlab.estimators.scoring.judged import (
    N_BOOT,
    Entry,
    Judge,
    Judged,
    check_said,
    said,
    without_levels,
)
from brokerlab.estimators.scoring.settings import GRID, Curve, at_deployed
from brokerlab.estimators.scoring.tables import offers
from brokerlab.estimators.trust import coverage_by
from brokerlab.frames import doubled
from brokerlab.results import Result, Shows

LEVELS = (0.9, 0.95, 0.99)


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """What every estimator said of the same jobs, judged.

    A rule that says one number at every level has one row, with a null ``level``.

    Attributes:
        quantity: ``memory`` or ``walltime``.
        reference: Name of the deployed rule that others are compared with.
        level: At which estimators with levels are compared.
        counts: ``jobs, left_out`` (scouts), ``killed`` (of the jobs), ``tasks`` of what was judged.
        table: One row per (estimator, level); see :func:`tables.overall`.
        tasks: The same per task, one row per (estimator, level, jeditaskid); see :func:`tables.per_task`.
        by_scouts: By finished jobs of the task that were known; see :func:`tables.by_scouts`.
        paired: Each estimator against the reference; see :func:`tables.paired`.
        at_deployed: Each estimator with levels, at one that exceeds no more often than the reference;
            see `settings.at_deployed`.
        strata: Of estimators with levels: ``estimator, level`` and the columns of
            :func:`trust.coverage_by`, which holds every stratum of enough jobs to the level.
    """

    shows = Shows(
        about="estimators judged on the same jobs, one row per estimator and level",
        keys=("estimator", "level"),
        next=(".paired", ".row(estimator)"),
    )

    quantity: Quantity
    reference: str
    level: float
    counts: dict[str, int]
    table: pl.DataFrame
    tasks: pl.DataFrame
    by_scouts: pl.DataFrame
    paired: pl.DataFrame
    at_deployed: pl.DataFrame
    strata: pl.DataFrame

    def row(self, estimator: str, level: float | None = None) -> dict[str, Any]:
        """Return one row of the table; of an estimator with levels, by default at ``self.level``."""
        mine = self.table.filter(pl.col("estimator") == estimator)
        if mine.is_empty():
            raise ConfigError(
                f"estimator '{estimator}': {nearest(estimator, self.table['estimator'])}"
            )
        wanted = self.level if level is None else level
        result = mine.filter(pl.col("level").is_null() | (pl.col("level") == wanted))
        if result.is_empty():
            raise ConfigError(
                f"{estimator} at level {wanted}: allowed are {mine['level'].to_list()}"
            )
        return result.row(0, named=True)


def compare(
    records: Any,
    estimators: Sequence[Estimator] | Mapping[str, Predicted],
    *,
    quantity: Quantity,
    levels: Sequence[float] = LEVELS,
    level: float = 0.95,
    grid: Sequence[float] = GRID,
    reference: str | None = None,
    settings: Mapping[str, Predicted] | None = None,
    queues: Any = None,
    judge: Judge = "production",
    confidence: float = 0.95,
    n_boot: int = N_BOOT,
    seed: int = 0,
) -> Comparison:
    """Replay every estimator on the same records, and judge what each said.

    Each estimator is replayed once on all records, scouts included: these are seen, not judged.

    Args:
        records: As :class:`records.Records`.
        estimators: Fitted, if they must be; names differ. Or what they said by name, replayed at `all_levels`.
        quantity: Of the records.
        levels: Rows of the table for estimators that have levels.
        level: At which estimators are compared with each other.
        grid: Levels among which one is sought that exceeds no more often than the reference; may be empty.
        reference: Name of the estimator that others are compared with; by default the deployed rule of
            PanDA, which must be among the estimators.
        settings: By name, what the levels of the grid stand for, where it is not the estimator's own bounds.
        queues: Columns as in `tables.Slots`; None: the share of slots in reach is not told.
        judge: ``production``: all jobs but the scouts; ``all``: scouts, too.
        confidence: Of all intervals.
        n_boot: Bootstrap draws over tasks.
        seed: Of the draws.

    Raises:
        SchemaError, DataError: The records, or what an estimator said, cannot be.
        ConfigError: Two estimators of one name, an unknown reference, levels that cannot be.
        InsufficientDataError: No job is to be judged.

    Source: sizing.md, sections 3 and 7.
    """
    frame = checked(records)
    predicted = (
        estimators
        if isinstance(estimators, Mapping)
        else _replay(frame, estimators, all_levels(levels, level, grid))
    )
    judged = Judged.of(frame, quantity, judge)
    chosen = DEPLOYED[quantity] if reference is None else reference
    if chosen not in predicted:
        raise ConfigError(f"reference '{chosen}': {nearest(chosen, predicted)}")
    for name, each in predicted.items():
        check_said(name, each, frame["pandaid"].to_numpy(), all_levels(levels, level, grid))
    settings = {name: (settings or {}).get(name, each) for name, each in predicted.items()}
    shown = all_levels(levels, level, ())
    entries = said(judged, predicted, shown)
    at_level = [each for each in entries if each.level in (None, level)]
    theirs = next(each for each in at_level if each.estimator == chosen)
    drawn: dict[str, Any] = {"confidence": confidence, "n_boot": n_boot, "seed": seed}
    return Comparison(
        quantity=quantity,
        reference=chosen,
        level=level,
        counts={
            "jobs": judged.rows.size,
            "left_out": frame.height - judged.rows.size,
            "killed": int(judged.censored.sum()),
            "tasks": judged.tasks.size,
        },
        table=tables.overall(
            entries, confidence, None if queues is None else offers(queues, quantity)
        ),
        tasks=tables.per_task(at_level),
        by_scouts=tables.by_scouts(at_level, confidence),
        paired=tables.paired(at_level, theirs, **drawn),
        at_deployed=at_deployed(_curves(settings, theirs, grid), **drawn),
        strata=_strata(frame[judged.rows], predicted, at_level, confidence),
    )


def all_levels(
    levels: Sequence[float] = LEVELS, level: float = 0.95, grid: Sequence[float] = GRID
) -> tuple[float, ...]:
    """Return all levels that a comparison needs predictions at, ascending."""
    return check_levels(sorted({float(each) for each in (*levels, level, *grid)}))


def _replay(
    frame: pl.DataFrame, estimators: Sequence[Estimator], levels: tuple[float, ...]
) -> dict[str, Predicted]:
    if twice := doubled([each.name for each in estimators]):
        raise ConfigError(
            f"estimators named alike: {', '.join(twice)}; give each a name of its own"
        )
    return {each.name: each.replay(frame, levels=levels) for each in estimators}


def _curves(
    predicted: Mapping[str, Predicted], theirs: Entry, grid: Sequence[float]
) -> list[Curve]:
    """Sum every estimator with levels at those of the grid, one after the other: a million jobs are large."""
    levels = sorted({float(each) for each in grid})
    return [
        Curve.of(said(theirs.judged, {name: each}, levels), theirs)
        for name, each in predicted.items()
        if levels and name != theirs.estimator and not without_levels(each)
    ]


def _strata(
    frame: pl.DataFrame,
    predicted: Mapping[str, Predicted],
    entries: Sequence[Entry],
    confidence: float,
) -> pl.DataFrame:
    """Hold every estimator with levels to its level, stratum by stratum."""
    frames = [
        coverage_by(frame, predicted[each.estimator], each.level, confidence=confidence).select(
            pl.lit(each.estimator).alias("estimator"), pl.lit(each.level).alias("level"), pl.all()
        )
        for each in entries
        if each.level is not None
    ]
    return pl.concat(frames) if frames else pl.DataFrame()
