"""What a source gives: records, and what became of every row that was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, get_args

import polars as pl

from brokerlab.errors import ConfigError, InsufficientDataError, nearest
from brokerlab.estimators.records import Quantity, checked
from brokerlab.results import Result, Shows

At = Literal["submit", "start"]

KEPT = "kept"
_COUNTS = {"reason": pl.String(), "rows": pl.Int64()}


@dataclass(frozen=True, repr=False)
class Source(Result):
    """Records of one quantity, and what became of every row that was read.

    Attributes:
        quantity: ``memory`` [MB of the whole job] or ``walltime`` [s].
        records: Columns and order of :func:`brokerlab.estimators.records.checked`.
        counts: ``reason, rows``: ``kept``, then why the others were left out, most rows first; the
            sum of ``rows`` is the number of rows read.
        notes: What was inferred and not read, in sentences.
    """

    shows = Shows(
        about="what jobs used, one row per job",
        columns="pandaid, jeditaskid, queue, cores, requested, used, is_scout, censored",
        keys=("pandaid",),
        next=("estimators.Hierarchy(quantity)", ".counts", ".notes"),
    )

    quantity: Quantity
    records: pl.DataFrame
    counts: pl.DataFrame
    notes: tuple[str, ...]

    def between(self, start: datetime | None, end: datetime | None) -> Source:
        """Keep the tasks whose first job is decided in a window."""
        if start is None and end is None:
            return self
        low, high = (
            each.replace(tzinfo=UTC).timestamp() if each else None for each in (start, end)
        )
        first = pl.col("decided_s").min().over("jeditaskid")
        inside = pl.lit(value=True) if low is None else first >= low
        records = self.records.filter(inside if high is None else inside & (first < high))
        if records.is_empty():
            raise InsufficientDataError(
                f"no task begins in the window; all {self.records['jeditaskid'].n_unique()} begin outside"
            )
        left_out = _counts({"task begins outside the window": self.records.height - records.height})
        others = pl.concat([self.counts.filter(pl.col("reason") != KEPT), left_out])
        others = others.sort("rows", "reason", descending=[True, False])
        counts = pl.concat([_counts({KEPT: records.height}), others])
        return replace(self, records=records, counts=counts)


def check_choices(quantity: str, at: str) -> None:
    """Refuse a quantity or a moment that does not exist."""
    allowed = {"quantity": (quantity, get_args(Quantity)), "at": (at, get_args(At))}
    wrong = [
        f"{name} = '{value}': {nearest(value, known)}"
        for name, (value, known) in allowed.items()
        if value not in known
    ]
    if wrong:
        raise ConfigError("; ".join(wrong))


def sift(
    rows: pl.LazyFrame,
    reasons: Mapping[str, pl.Expr],
    columns: Mapping[str, pl.Expr],
    *,
    quantity: Quantity,
    refused: int = 0,
    notes: tuple[str, ...] = (),
) -> Source:
    """Keep the rows that none of the reasons speaks against, and count the others by the first that does."""
    problem = pl.coalesce(
        [
            pl.when(where.fill_null(value=False)).then(
                pl.format(reason, "jobstatus") if "{}" in reason else pl.lit(reason)
            )
            for reason, where in reasons.items()
        ]
    )
    judged = rows.with_columns(problem.alias("reason"))
    left = judged.filter(pl.col("reason").is_not_null()).group_by("reason")
    counted = left.agg(rows=pl.len().cast(pl.Int64)).collect(engine="streaming")
    kept = judged.filter(pl.col("reason").is_null()).select(**columns).collect(engine="streaming")
    unread = _counts({"could not be read": refused} if refused else {})
    others = pl.concat([counted, unread]).sort("rows", "reason", descending=[True, False])
    if kept.is_empty():
        why = ", ".join(f"{reason}: {n}" for reason, n in others.iter_rows())
        raise InsufficientDataError(
            f"records of {quantity}: none of {others['rows'].sum()} rows can be used; left out: {why or 'no row'}"
        )
    counts = pl.concat([_counts({KEPT: kept.height}), others])
    return Source(quantity, checked(kept), counts, notes)


def _counts(rows: Mapping[str, int]) -> pl.DataFrame:
    return pl.DataFrame(list(rows.items()), schema=_COUNTS, orient="row")
