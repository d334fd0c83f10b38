"""What the weight of a link saw, and what the link delivered afterwards: the outcomes that curves are judged by.

Time is cut into spans; each link is dealt to one of them (`dealt`), so that what is chosen on earlier spans is scored on
links that nothing was chosen by, at a later time.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError

Span = tuple[datetime, datetime]

ROWS = {
    "src": pl.String,
    "dst": pl.String,
    "group": pl.Int64,
    "query": pl.String,
    "span": pl.Int64,
    "mbps": pl.Float64,
    "mbps_long": pl.Float64,
    "outcome": pl.Float64,
    "closeness": pl.Float64,
}
"""Columns of :attr:`Evidence.rows`."""
QUEUES = {
    "src": pl.String,
    "dst": pl.String,
    "group": pl.Int64,
    "query": pl.String,
    "span": pl.Int64,
    "n_queued": pl.Float64,
    "mbps": pl.Float64,
    "closeness": pl.Float64,
    "wait_h": pl.Float64,
}
"""Columns of :attr:`Evidence.queues`."""
LOWEST_MBPS = 1.0
"""The lowest edge of the document's curve [MB/s]."""
FEWEST_PERIODS = 3
"""Periods, one after the other, that a choice and later scores need."""
MOST_SPANS = 4
"""Spans that a series of instants is cut into: the blocks of the judge."""


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


def of_periods(
    rates: pl.DataFrame,
    periods: list[str],
    *,
    facts: Mapping[str, float],
    ends: Sequence[Span],
) -> Evidence:
    """Make evidence of the rates in periods that follow each other without overlap.

    Every pair of neighbours is a span: the weight saw the first period, the outcome lies in the second.

    Args:
        rates: ``src, dst``, a column [MB/s] per period (null = nothing delivered), perhaps ``closeness``, and ``mbps``: when
            the weight is taken, where that is not the rate in the last period but one.
        periods: Names of the columns, oldest first.
        facts: Handed on.
        ends: Beginning and end of each period.

    Raises:
        InsufficientDataError: Fewer than three periods, or no link with a rate in two neighbouring ones.
    """
    if len(periods) < FEWEST_PERIODS:
        raise InsufficientDataError(
            f"{len(periods)} period(s) of links that do not overlap, {FEWEST_PERIODS} are needed; two to choose a "
            f"curve on and a later one to score it on, here: {', '.join(periods) or 'none'}"
        )
    apart = rates.filter(pl.col("src") != pl.col("dst"))
    grouped = apart.with_columns(group=mirror_groups(apart.select(periods)))
    absent = {"closeness": pl.lit(None, dtype=pl.Float64), "mbps": pl.col(periods[-2])}
    grouped = grouped.with_columns(
        **{name: one for name, one in absent.items() if name not in grouped.columns}
    )
    pairs = list(itertools.pairwise(periods))
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
            closeness=pl.col("closeness").cast(pl.Float64),
        )
        for span, (before, after) in enumerate(pairs)
    ).select(pl.col(name).cast(kind) for name, kind in ROWS.items())
    if not rows.filter(pl.col("outcome").is_not_null() & pl.col("mbps").is_not_null()).height:
        raise InsufficientDataError("no link moved anything in two periods that follow each other")
    return Evidence(
        rows,
        pl.DataFrame(schema=QUEUES),
        tuple((first[0], last[1]) for first, last in itertools.pairwise(ends)),
        tuple(" → ".join(pair) for pair in pairs),
        facts={
            **facts,
            "n_local": rates.height - apart.height,
            **counts(grouped, active=pl.any_horizontal(pl.col(periods).is_not_null())),
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
    names = values.columns
    silent = pl.all_horizontal(pl.col(names).is_null())
    own = pl.when(silent).then(pl.int_range(pl.len()))
    keyed = values.with_columns(_own=own)
    return keyed.select(
        (pl.struct(*names, "_own").rank("dense") - 1).cast(pl.Int64).alias("group")
    ).to_series()


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
    drawn = pl.DataFrame(
        {"group": groups, "unit": np.random.default_rng(seed).permutation(len(groups))}
    )
    given = spans.gather(drawn["unit"] % max(len(spans), 1))
    kept = rows.join(drawn.with_columns(span=given), on=["group", "span"])
    return kept.sort("span", "unit", *(n for n in ("query", "src", "dst") if n in rows.columns))
