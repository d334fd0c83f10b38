"""Windows that lie inside each other, taken apart into periods that follow each other.

A transfer matrix of the last week lies inside that of the last 14 days; the difference is what the week
before delivered.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.brokerage.inputs.frames import Schema, read
from brokerlab.calibrate.network_curve.evidence import Evidence, Span, of_periods
from brokerlab.errors import InsufficientDataError
from brokerlab.units import MB
from brokerlab.words import days_of

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

TIME = pl.Datetime("us")
TRANSFERS: Schema = {
    "src_site": pl.String,
    "dst_site": pl.String,
    "from_date": TIME,
    "to_date": TIME,
    "bytes_xs": pl.Int64,
}
Part = tuple[Span, Span | None]
"""A period as a window and the window to take off it, null = none."""
SHORTEST = 0.4
"""A period shorter than this part of the shortest chosen one would be noise beside it [1]."""


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
    table = read(
        "transfers", nw.from_native(transfers).lazy().collect("polars").to_native(), TRANSFERS
    ).drop_nulls()
    windows = table.select("from_date", "to_date").unique().rows()
    parts = chain([(first, last) for first, last in windows if first < last])
    if not parts:
        raise InsufficientDataError("transfers: no window with a beginning before its end")
    rates = table.select("src_site", "dst_site").unique().sort("src_site", "dst_site")
    negative = 0
    names = []
    for window, inner in parts:
        name, frame, below = _period(table, window, inner)
        negative += below
        names.append(name)
        rates = rates.join(frame, on=["src_site", "dst_site"], how="left")
    return of_periods(
        rates.rename({"src_site": "src", "dst_site": "dst"}),
        names,
        facts={"n_windows": len(windows), "n_periods": len(parts), "n_negative": negative},
        ends=[_span(part) for part in parts],
    )


def chain(windows: list[Span]) -> list[Part]:
    """Take windows apart into periods that do not overlap, oldest first.

    Example:
        >>> day = lambda d: datetime(2026, 3, d)
        >>> [(w[0].day, i[0].day if i else w[1].day) for w, i in chain([(day(8), day(15)), (day(1), day(15))])]
        [(1, 8), (8, 15)]
    """
    families: dict[datetime, list[Span]] = {}
    for window in sorted(set(windows), key=lambda w: w[0], reverse=True):
        families.setdefault(window[1], []).append(window)
    ordered = sorted(families.values(), key=lambda f: (f[0][1] - f[-1][0], f[0][1]), reverse=True)
    chosen: list[Part] = []
    for family in ordered:
        parts = [(w, family[i - 1] if i else None) for i, w in enumerate(family)]
        chosen += [part for part in parts if _fits(part, chosen)]
    return sorted(chosen, key=lambda part: part[0][0])


def _span(part: Part) -> Span:
    window, inner = part
    return window[0], inner[0] if inner else window[1]


def _fits(part: Part, chosen: list[Part]) -> bool:
    """Tell whether a period overlaps none of those chosen and is not much shorter."""
    first, last = _span(part)
    spans = [_span(other) for other in chosen]
    apart = all(last <= begin or end <= first for begin, end in spans)
    return apart and all((last - first) >= SHORTEST * (end - begin) for begin, end in spans[:1])


def _period(table: pl.DataFrame, window: Span, inner: Span | None) -> tuple[str, pl.DataFrame, int]:
    """Return the name of a period, the rates of its links, and how many differences are negative."""
    key = ["src_site", "dst_site"]
    first, last = _span((window, inner))

    def moved(span: Span, name: str) -> pl.DataFrame:
        rows = table.filter(from_date=span[0], to_date=span[1])
        return rows.group_by(key).agg(pl.col("bytes_xs").sum().alias(name))

    frame = moved(window, "moved")
    if inner is not None:
        frame = frame.join(moved(inner, "inside"), on=key, how="left").with_columns(
            moved=pl.col("moved") - pl.col("inside").fill_null(0)
        )
    below = frame.filter(pl.col("moved") < 0).height
    name = days_of(first, last)
    seconds = (last - first).total_seconds()
    rate = pl.col("moved").cast(pl.Float64) / pl.lit(MB * seconds)
    rates = frame.filter(pl.col("moved") > 0).select(*key, rate.alias(name))
    return name, rates, below
