"""What the weight of a link saw, and what the link delivered afterwards: the outcomes that curves are judged by.

Time is cut into spans; each link is dealt to one of them (`dealt`), so that what is chosen on earlier spans is scored on
links that nothing was chosen by, at a later time. `from_transfers` makes spans of windows that lie inside each other: a
transfer matrix of the last week lies inside that of the last 14 days; the difference is what the week before delivered.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.brokerage.inputs.frames import Schema, read
from brokerlab.errors import InsufficientDataError
from brokerlab.units import MB
from brokerlab.words import days_of

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

Span = tuple[datetime, datetime]
TIME = pl.Datetime("us")
_LINK = {
    **dict.fromkeys(("src", "dst"), pl.String()),
    "group": pl.Int64(),
    "query": pl.String(),
    "span": pl.Int64(),
}
ROWS = pl.Schema(_LINK | dict.fromkeys(("mbps", "mbps_long", "outcome", "closeness"), pl.Float64()))
"""Columns of :attr:`Evidence.rows`."""
QUEUES = pl.Schema(_LINK | dict.fromkeys(("n_queued", "mbps", "closeness", "wait_h"), pl.Float64()))
"""Columns of :attr:`Evidence.queues`."""
TRANSFERS: Schema = {
    **dict.fromkeys(("src_site", "dst_site"), pl.String),
    **dict.fromkeys(("from_date", "to_date"), TIME),
    "bytes_xs": pl.Int64,
}
LOWEST_MBPS = 1.0
"""The lowest edge of the document's curve [MB/s]."""
FEWEST_PERIODS = 3
"""Periods, one after the other, that a choice and later scores need."""
SHORTEST = 0.4
"""A period shorter than this part of the shortest chosen one would be noise beside it [1]."""


@dataclass(frozen=True)
class Evidence:
    """Links as the weight saw them, with what came later.

    Attributes:
        rows: One row per link and instant: ``src, dst``; ``group``, the same number for links that mirror
            each other; ``query``, the links that compete (one destination, one instant); ``span`` (place in
            ``spans``); ``mbps`` [MB/s] as the document's rule selects it, null = none; ``mbps_long``, that of the
            longest window; ``outcome`` [MB/s] later, null = nothing delivered; ``closeness``.
        queues: Links with files waiting: ``n_queued`` [files], ``wait_h``: hours in which the link
            delivers what waits at the rate that was measured; else as ``rows``.
        spans: From when to when, UTC, oldest first; the last outcome lies in the last one.
        labels: Spans in words: days, or windows of one snapshot.
        later_queues: Whether the rate behind ``wait_h`` was measured after the queue.
        facts: Counts and shares found on the way: those of :func:`counts`; what was left out: ``n_local`` links from a site
            to itself, ``n_other_time`` metrics measured at another time than the snapshot, ``n_negative`` links of transfers
            that moved less in a window than in a part of it.
    """

    rows: pl.DataFrame
    queues: pl.DataFrame
    spans: tuple[Span, ...]
    labels: tuple[str, ...]
    later_queues: bool = False
    facts: Mapping[str, float] = field(default_factory=dict)


def from_transfers(transfers: IntoFrame) -> Evidence:
    """Make evidence of matrices of transfers.

    Windows with a common end are subtracted from each other. The chain of the longest span is taken, and
    what fits beside it without overlap.

    Args:
        transfers: ``src_site, dst_site, from_date, to_date`` (UTC), ``bytes_xs`` [B], perhaps ``errors_xs``
            and ``files_xs``; any engine.

    Returns:
        Evidence whose ``mbps`` and ``outcome`` are bytes over the length of a period: the average rate that
        was asked for and delivered, not what the link could have carried.

    Raises:
        InsufficientDataError: Fewer than three periods that do not overlap, or no link in two of them.
        SchemaError: A missing column or a column of another type.
    """
    table = nw.from_native(transfers).lazy().collect("polars").to_native()
    rows = read("transfers", table, TRANSFERS).drop_nulls()
    rows = rows.rename({"src_site": "src", "dst_site": "dst"})
    windows = rows.select("from_date", "to_date").unique().rows()
    periods = chain((first, last) for first, last in windows if first < last)
    if not periods:
        raise InsufficientDataError("transfers: no window with a beginning before its end")
    key = ["src", "dst"]
    rates = rows.select(key).unique().sort(key)
    names = [days_of(begin, end) for begin, end, _ in periods]
    if len(set(names)) < len(names):  # within a day
        names = [f"{begin:%Y-%m-%d %H:%M} to {end:%H:%M}" for begin, end, _ in periods]
    n_negative = 0
    for name, (begin, end, last) in zip(names, periods, strict=True):
        inside, whole = (
            rows.filter(pl.col("to_date") > first, from_date=first, to_date=last)
            .group_by(key)
            .agg(pl.col("bytes_xs").sum())
            for first in (end, begin)  # nothing lies inside where the period ends with its window
        )
        moved = whole.join(inside, on=key, how="left").select(
            *key, moved=pl.col("bytes_xs") - pl.col("bytes_xs_right").fill_null(0)
        )
        n_negative += moved.filter(pl.col("moved") < 0).height
        rate = pl.col("moved").cast(pl.Float64) / pl.lit(MB * (end - begin).total_seconds())
        some = moved.filter(pl.col("moved") > 0).select(*key, rate.alias(name))
        rates = rates.join(some, on=key, how="left")
    return of_periods(
        rates.with_columns(closeness=pl.lit(None, pl.Float64)),
        {name: (begin, end) for name, (begin, end, _) in zip(names, periods, strict=True)},
        facts={"n_windows": len(windows), "n_periods": len(periods), "n_negative": n_negative},
    )


def chain(windows: Iterable[Span]) -> list[tuple[datetime, datetime, datetime]]:
    """Take windows apart into periods that do not overlap, oldest first.

    Returns:
        Of each period its beginning, its end, and the end of the windows that begin there: what they hold differs by the
        period.

    Example:
        >>> day = lambda d: datetime(2026, 3, d)
        >>> [[at.day for at in one] for one in chain([(day(8), day(15)), (day(1), day(15))])]
        [[1, 8, 15], [8, 15, 15]]
    """
    families: dict[datetime, list[datetime]] = {}
    for begin, end in sorted(set(windows), reverse=True):
        families.setdefault(end, []).append(begin)
    longest = sorted(families.items(), key=lambda one: (one[0] - one[1][-1], one[0]), reverse=True)
    chosen: list[tuple[datetime, datetime, datetime]] = []
    for last, begins in longest:
        least = SHORTEST * (chosen[0][1] - chosen[0][0]) if chosen else timedelta()
        chosen += [
            (begin, end, last)
            for begin, end in zip(begins, [last, *begins[:-1]], strict=True)
            if end - begin >= least
            and all(end <= first or then <= begin for first, then, _ in chosen)
        ]
    return sorted(chosen)


def of_periods(
    rates: pl.DataFrame,
    periods: Mapping[str, Span],
    *,
    facts: Mapping[str, float],
    now: str = "",
) -> Evidence:
    """Make evidence of the rates in periods that follow each other without overlap.

    Every pair of neighbours is a span: the weight saw the first period, the outcome lies in the second.

    Args:
        rates: ``src, dst, closeness``, a column [MB/s] per period (null = nothing delivered).
        periods: Name of the column to beginning and end, oldest first.
        facts: Handed on.
        now: Rate when the weight is taken, where that is not the rate in the last period but one.

    Raises:
        InsufficientDataError: Fewer than three periods, or no link with a rate in two neighbouring ones.
    """
    names = list(periods)
    if len(names) < FEWEST_PERIODS:
        raise InsufficientDataError(
            f"{len(names)} period(s) of links that do not overlap, {FEWEST_PERIODS} are needed; two to choose a "
            f"curve on and a later one to score it on, here: {', '.join(names) or 'none'}"
        )
    apart = rates.filter(pl.col("src") != pl.col("dst"))
    grouped = apart.with_columns(group=mirror_groups(apart.select(names)))
    pairs = list(itertools.pairwise(names))
    rows = pl.concat(
        grouped.select(
            "src",
            "dst",
            "group",
            query=pl.format("{} {}", "dst", pl.lit(before)),
            span=pl.lit(span),
            mbps=before,
            mbps_long=before,
            outcome=after,
            closeness="closeness",
        ).cast(ROWS)
        for span, (before, after) in enumerate(pairs)
    )
    if rows.drop_nulls(["outcome", "mbps"]).is_empty():
        raise InsufficientDataError("no link moved anything in two periods that follow each other")
    seen = grouped.with_columns(mbps=now or names[-2])
    return Evidence(
        rows,
        pl.DataFrame(schema=QUEUES),
        tuple((first[0], last[1]) for first, last in itertools.pairwise(periods.values())),
        tuple(" → ".join(pair) for pair in pairs),
        facts={
            **facts,
            "n_local": rates.height - apart.height,
            **counts(seen, active=pl.any_horizontal(pl.col(names).is_not_null())),
        },
    )


def counts(links: pl.DataFrame, *, active: pl.Expr) -> dict[str, float]:
    """Count links, and those that share their numbers with another one.

    Args:
        links: One row per link: ``group``, ``mbps`` when the weight is taken (null: none).
        active: Which links have any number.

    Returns:
        ``n_links``, ``n_with_mbps``, ``n_silent`` without; ``share_at_most_1``: of the throughputs at or below 1 MB/s, the
        lowest edge of the document's curve [1]; ``n_active``, and of these ``n_groups`` distinct and ``n_mirrored``.
    """
    known, sizes = links["mbps"].drop_nulls(), links.filter(active).group_by("group").len()["len"]
    slow = float((known <= LOWEST_MBPS).mean() or 0.0)  # type: ignore[arg-type]  # of booleans
    return {
        "n_links": links.height,
        "n_with_mbps": len(known),
        "n_silent": links.height - len(known),
        "share_at_most_1": slow,
        "n_active": int(sizes.sum()),
        "n_groups": len(sizes),
        "n_mirrored": int(sizes.filter(sizes > 1).sum()),
    }


def mirror_groups(values: pl.DataFrame) -> pl.Series:
    """Number links so that those with the same values share a number.

    Metrics are attached to storages: sites with a common storage show the same values. Such links are one
    observation, not several. A link without any value is a group of its own.

    Args:
        values: One row per link, its numbers; null = none.

    Returns:
        i64, one number per row, from 0.

    Example:
        >>> a, b, c, d = mirror_groups(pl.DataFrame({"x": [1.0, 1.0, None, None], "y": [2.0, 2.0, None, None]}))
        >>> a == b, len({a, c, d})
        (True, 3)
    """
    silent = pl.all_horizontal(pl.all().is_null())
    keyed = values.with_columns(_own=pl.when(silent).then(pl.int_range(pl.len())))
    number = pl.struct(pl.all()).rank("dense") - 1
    return keyed.select(number.cast(pl.Int64).alias("group")).to_series()


def dealt(rows: pl.DataFrame, *, seed: int) -> pl.DataFrame:
    """Deal links at random to the spans, as many to each; mirrored links stay together.

    Args:
        rows: ``group, span`` and others; the spans that occur are dealt to.
        seed: Of the draw.

    Returns:
        The rows of each link in its own span, sorted by span and link, with ``unit``: the number of the link in the draw.

    Example:
        >>> rows = pl.DataFrame({"group": [0, 0, 1, 1, 2, 2, 3, 3], "span": [0, 1] * 4})
        >>> dealt(rows, seed=1)["span"].to_list()
        [0, 0, 1, 1]
    """
    groups, spans = (rows[name].unique().sort() for name in ("group", "span"))
    drawn = np.random.default_rng(seed).permutation(len(groups))
    unit = pl.DataFrame({"group": groups, "unit": drawn})
    given = spans.gather(unit["unit"] % max(len(spans), 1))
    kept = rows.join(unit.with_columns(span=given), on=["group", "span"])
    return kept.sort("span", "unit", *(n for n in ("query", "src", "dst") if n in rows.columns))
