"""What the weight of a link saw, and what the link delivered afterwards: read from metrics of links and matrices of transfers.

Time is cut into spans; each link is dealt to one of them (`dealt`), so that what is chosen on earlier spans is scored on
links that nothing was chosen by, at a later time. `from_metrics` reads a series of snapshots, or takes a single one apart into
its windows; `from_transfers` makes spans of windows that lie inside each other: a transfer matrix of the last week lies inside
that of the last 14 days; the difference is what the week before delivered. `read_links` reads either from archives or files.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.archive.store import Archive, open_archive
from brokerlab.brokerage.inputs.frames import SNAPSHOT, Schema, read
from brokerlab.brokerage.network_weight import MATRIX, WINDOW, NetworkSettings, link_metrics
from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.rulesets import RuleSetName
from brokerlab.temporary import TemporaryFolder
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
    """Make evidence of matrices of transfers: ``src_site, dst_site, from_date, to_date`` (UTC), ``bytes_xs`` [B]; any engine.

    Windows with a common end are subtracted from each other. The chain of the longest span is taken, and
    what fits beside it without overlap. ``mbps`` and ``outcome`` are bytes over the length of a period: the average rate that
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

    Of each: its beginning, its end, and the end of the windows that begin there: what they hold differs by the period.

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
    rates: pl.DataFrame, periods: Mapping[str, Span], *, facts: Mapping[str, float], now: str = ""
) -> Evidence:
    """Make evidence of the rates in periods that follow each other without overlap.

    Every pair of neighbours is a span: the weight saw the first period, the outcome lies in the second. ``rates`` has ``src,
    dst, closeness`` and a column [MB/s] per period (null = nothing delivered), ``now`` names the rate when the weight is taken,
    where that is not the one in the last period but one.
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
    """Count links (``group``, ``mbps`` when the weight is taken), of the ``active`` ones also those that share their numbers.

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
    """Deal links (``group``) at random to the spans that occur, as many to each; mirrored links stay together.

    The rows of each link in its own span come back, sorted by span and link, with ``unit``: its number in the draw.

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


# --- metrics of links -------------------------------------------------------------------------------------------------


DAY = timedelta(days=1)
"""Step between the instants of a series; what a link later delivered is its average over a day: ``dashb_mbps_1d``."""
QUEUE_AHEAD = timedelta(hours=6)
"""``done_6h`` so much later, or up to an hour more, is what was delivered after the queue was measured."""
DONE_KEY = "Production Output_done_6h"
LENGTHS_H = {"mbps_1w": 168, "mbps_1d": 24, "mbps_1h": 1}
"""Windows of the throughput keys [h], the longest first."""
ROUNDING = 0.006
"""The metrics have two decimals; more than this is no rounding [MB/s]."""
APART = timedelta(hours=12)
"""Measurements of one snapshot lie closer together than this."""
ONE_SNAPSHOT = 0.98
"""Metrics of which this share was measured at one time are a single snapshot [1]."""
FEWEST_INSTANTS = 4
"""Instants that a choice and later scores need: two spans of two."""
MOST_INSTANTS = 28
"""Instants looked at; a longer series is looked at less often."""
MOST_SPANS = 4
"""Spans that a series of instants is cut into: the blocks of the judge."""
NEWEST = pl.coalesce("mbps_1h", "mbps_1d", "mbps_1w")
"""Throughput as the document's rule selects it."""


def from_metrics(network_matrix: IntoFrame) -> Evidence:
    """Make evidence of the metrics of links (``src, dst, key, value, ts``; any engine), of a series of snapshots or a single one.

    Of a series: throughput as the document selects it at an instant, outcome ``dashb_mbps_1d`` a day later, in at most
    four spans of as many instants. Of a single snapshot: see :func:`of_snapshot`.

    Raises:
        InsufficientDataError: A series too short for a choice and later scores, a snapshot without throughput.
        SchemaError: A missing column or a column of another type.

    Source: network-weight.md 1 and 2.
    """
    lazy = nw.from_native(network_matrix).lazy()
    keys = [f"dashb_{name}" for name in LENGTHS_H]
    result = lazy.filter(nw.col("key").is_in(keys), ~nw.col("ts").is_null())
    seen = result.group_by("ts").agg(n=nw.len()).collect("polars").to_native()
    if seen.is_empty():
        raise InsufficientDataError("network_matrix: no link has a throughput")
    seen = seen.with_columns(pl.col("ts").cast(TIME)).sort("n", "ts", descending=[True, False])
    usual = seen["ts"][0]
    near = seen.filter((pl.col("ts") - usual).abs() <= APART)["n"].sum()
    if near >= ONE_SNAPSHOT * seen["n"].sum():
        return of_snapshot(network_matrix, at=usual)
    times = seen["ts"].sort().to_list()
    last = times[-1] - DAY
    step = max(DAY, (last - times[0]) / MOST_INSTANTS)
    instants: list[datetime] = []
    for ts in times:
        if ts <= last and (not instants or ts - instants[-1] >= step):
            instants.append(ts)
    return of_series(network_matrix, instants)


def of_series(network_matrix: IntoFrame, instants: list[datetime]) -> Evidence:
    """Make evidence of metrics at instants and what came a day later; see :func:`from_metrics`."""
    if len(instants) < FEWEST_INSTANTS:
        raise InsufficientDataError(
            f"network_matrix: snapshots at {len(instants)} instants with a day after them, {FEWEST_INSTANTS} are "
            "needed; half to choose a curve on and later ones to score it on"
        )
    now = _facts_at(network_matrix, instants)
    then = _facts_at(network_matrix, [at + DAY for at in instants])
    later = then.select("src", "dst", pl.col("at") - DAY, outcome="mbps_1d")
    parts = np.array_split(np.array(instants), min(MOST_SPANS, len(instants) // 2))
    begins = [part[0] for part in parts]
    spans = tuple(zip(begins, [*begins[1:], instants[-1] + DAY], strict=True))
    number = np.repeat(range(len(parts)), [len(part) for part in parts])
    # links with the same throughputs at every instant are one
    at = now.with_columns(when=pl.col("at").rank("dense").cast(pl.String))
    wide = at.pivot("when", index=["src", "dst"], values=list(LENGTHS_H)).sort("src", "dst")
    groups = wide.select("src", "dst", group=mirror_groups(wide.drop("src", "dst")))
    apart = now.join(later, on=["src", "dst", "at"], how="left").filter(
        pl.col("src") != pl.col("dst")
    )
    staged = apart.join(groups, on=["src", "dst"]).with_columns(
        span=pl.col("at").replace_strict(instants, number),
        mbps=NEWEST,
        mbps_long=pl.coalesce(*LENGTHS_H),
        query=pl.format("{} {}", "dst", "at"),
    )
    links = staged.group_by("src", "dst", "group").agg(
        mbps=pl.col("mbps_long").sort_by("at").drop_nulls().first()
    )
    # the first that is measured so much later, of several the largest
    done = _rows(network_matrix, DONE_KEY).select(
        "src", "dst", at=pl.col("ts") - QUEUE_AHEAD, done="value"
    )
    delivered = staged.sort("at").join_asof(
        done.sort("at", "done", descending=[False, True]),
        on="at",
        by=["src", "dst"],
        strategy="forward",
        tolerance=WINDOW,
        check_sortedness=False,
    )
    return Evidence(
        staged.select(pl.col(name).cast(kind) for name, kind in ROWS.items()),
        _queues(delivered),
        spans,
        tuple(f"{first:%Y-%m-%d} to {last:%Y-%m-%d}" for first, last in spans),
        later_queues=True,
        facts={
            "n_instants": len(instants),
            **counts(links, active=pl.col("mbps").is_not_null()),
            **additivity(now),
        },
    )


def of_snapshot(network_matrix: IntoFrame, *, at: datetime) -> Evidence:
    """Make evidence of one snapshot by taking its windows apart.

    If a day never exceeds seven times the week and an hour never 24 times the day, the numbers are volumes
    over windows that lie inside each other: the six days before the last, the 23 hours before the last, the
    last hour follow each other. Then six days predict 23 hours, and 23 hours the last hour.
    Otherwise the averages stay nested (``n_above_volume`` above 0): what is predicted lies inside the average that
    predicts it.
    """
    table = _rows(network_matrix)
    fresh = table.filter((pl.col("ts") - at).abs() <= APART)
    moment = pl.DataFrame({"snapshot": [0], "at": [None]}, schema={**SNAPSHOT, "at": TIME})
    metrics = link_metrics(fresh, instants=moment).rename({"nucleus": "dst"})
    wide = metrics.drop("snapshot").sort("src", "dst")
    week, day, hour = (at - timedelta(hours=hours) for hours in LENGTHS_H.values())
    facts = {"n_other_time": table.height - fresh.height, **additivity(wide), **hour_after(wide)}
    if facts["n_above_volume"]:
        first, middle = pl.col("mbps_1w"), pl.col("mbps_1d")
        periods = {
            "week": (week, at),
            "last day, inside the week": (day, at),
            "last hour, inside the day": (hour, at),
        }
    else:
        rests = _rest("mbps_1w", "mbps_1d"), _rest("mbps_1d", "mbps_1h")
        first, middle = (pl.when(rest > 0).then(rest) for rest in rests)
        periods = {
            "6 days before the last day": (week, day),
            "23 hours before the last hour": (day, hour),
            "last hour": (hour, at),
        }
    columns = dict(zip(periods, (first, middle, pl.col("mbps_1h")), strict=True))
    rates = wide.select("src", "dst", "closeness", "mbps_1w", **columns)
    made = of_periods(rates, periods, facts=facts, now="mbps_1w")
    groups = made.rows.unique(["src", "dst"], keep="first").select("src", "dst", "group")
    done = fresh.filter(key=DONE_KEY).sort("ts", "value").unique(["src", "dst"], keep="last")
    done = done.select("src", "dst", done="value")  # the newest, then the largest
    waiting = wide.with_columns(query="dst", span=pl.lit(0), mbps=NEWEST)
    delivered = waiting.join(done, on=["src", "dst"]).join(groups, on=["src", "dst"])
    return replace(made, queues=_queues(delivered))


def additivity(wide: pl.DataFrame) -> dict[str, float]:
    """Tell whether averages of throughput are volumes over the length of their windows.

    Then a day is at most seven times the week and an hour at most 24 times the day. ``n_volume_pairs`` compared,
    ``n_above_volume`` that are larger than the volume allows, ``n_as_volume``: all if none is larger, else 0.
    """
    pairs = above = 0
    for long, short in (("mbps_1w", "mbps_1d"), ("mbps_1d", "mbps_1h")):
        ratio = LENGTHS_H[long] / LENGTHS_H[short]
        both = wide.drop_nulls([long, short])
        pairs += both.height
        most = ratio * (pl.col(long) + ROUNDING) + ROUNDING
        above += both.filter(pl.col(short) > most).height
    return {"n_volume_pairs": pairs, "n_above_volume": above, "n_as_volume": 0 if above else pairs}


def hour_after(wide: pl.DataFrame) -> dict[str, float]:
    """Return ``spearman_hour_after``: rank correlation of the last hour with the day's other 23; empty below three links."""
    both = wide.drop_nulls(["mbps_1d", "mbps_1h"])
    if both.height < 3:
        return {}
    correlation = pl.corr(_rest("mbps_1d", "mbps_1h"), "mbps_1h", method="spearman")
    return {"spearman_hour_after": both.select(correlation).item()}


def _rest(long: str, short: str) -> pl.Expr:
    """Return what a window held besides a shorter one inside it [MB/s]; an absent shorter one held nothing."""
    hours, inner = float(LENGTHS_H[long]), float(LENGTHS_H[short])
    volume = pl.col(long) * hours - pl.col(short).fill_null(0.0) * inner
    return (volume / pl.lit(hours - inner)).clip(lower_bound=0.0)


def _rows(network_matrix: IntoFrame, key: str = "") -> pl.DataFrame:
    """Fetch rows with a value and a time; of all keys, or of one."""
    lazy = nw.from_native(network_matrix).lazy()
    if key:
        lazy = lazy.filter(nw.col("key") == key)
    rows = read("network_matrix", lazy.collect("polars").to_native(), MATRIX, {})
    return rows.drop_nulls().filter(pl.col("value").is_not_nan())


def _facts_at(network_matrix: IntoFrame, instants: list[datetime]) -> pl.DataFrame:
    """Return the metrics of links at instants, as the brokerage sees them."""
    lazy = nw.from_native(network_matrix).lazy()
    fresh = reduce(
        lambda a, b: a | b, [(nw.col("ts") > at - WINDOW) & (nw.col("ts") <= at) for at in instants]
    )
    rows = lazy.filter(fresh).collect("polars").to_native()
    moments = pl.DataFrame(
        {"snapshot": range(len(instants)), "at": instants}, schema={**SNAPSHOT, "at": TIME}
    )
    metrics = link_metrics(rows, instants=moments).rename({"nucleus": "dst"})
    return metrics.join(moments, on="snapshot").drop("snapshot").sort("at", "src", "dst")


def _queues(delivered: pl.DataFrame) -> pl.DataFrame:
    """Return links with files waiting (``queued``) and files ``done`` in six hours: see :attr:`.Evidence.queues`."""
    kept = delivered.filter(pl.col("queued") > 0, pl.col("done") > 0).with_columns(
        n_queued="queued", wait_h=pl.col("queued") * 6.0 / pl.col("done")
    )
    return kept.select(pl.col(name).cast(kind) for name, kind in QUEUES.items()).sort(
        "span", "query", "src", "dst"
    )


# --- archives and files -----------------------------------------------------------------------------------------------


METRICS_SQL = """
select src, dst, key, value, ts from network_matrix
where ($start is null or ts >= $start) and ($end is null or ts < $end)
"""
TRANSFERS_SQL = """
select src_site, dst_site, from_date, to_date, bytes_xs from transfers
where ($start is null or from_date >= $start) and ($end is null or to_date <= $end)
"""
SOURCES: dict[str, tuple[str, str, Any, str]] = {
    "metrics": ("network_matrix", METRICS_SQL, from_metrics, "ts"),
    "transfers": ("transfers", TRANSFERS_SQL, from_transfers, "to_date"),
}
"""Name to its table, what is read of it, what makes evidence of that, and the time at whose last one the data end."""
MANIFEST = "manifest.json"


@dataclass(frozen=True, kw_only=True)
class Links:
    """What links showed and what they delivered later.

    Attributes:
        evidence: By source: ``metrics``, ``transfers``; those that can be used.
        refused: Source -> why it cannot be used.
        config: The configuration at the end of the data; empty = the defaults of the catalogue.
        rules: Rule set that weighs links.
        sources: Paths that were read.
        digests: Of what was read, in the same order.
        synthetic: Whether any of it was generated.
        archive: The first path, where it is an archive folder; null: files.
    """

    evidence: Mapping[str, Evidence]
    refused: Mapping[str, str]
    config: Config
    rules: RuleSetName = "document"
    sources: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    synthetic: bool = False
    archive: Archive | None = None

    @property
    def settings(self) -> NetworkSettings:
        """What the configuration says about the formula."""
        return NetworkSettings.of(self.config)

    @property
    def active(self) -> bool:
        """NW_ACTIVE: whether production multiplies by the network weight at all."""
        return bool(self.config.get("NW_ACTIVE", app="jedi", component="jobbroker", vo="atlas"))


def read_links(
    *paths: str | Path,
    start: datetime | None = None,
    end: datetime | None = None,
    rules: RuleSetName = "document",
) -> Links:
    """Read metrics of links and matrices of transfers.

    Args:
        paths: Archive folders; or files or folders of network metrics (JSON, or the flat table) or transfer matrices
            as dumped. Of two that hold the same kind the first usable one counts; the configuration is that of the last.
        start: Metrics from here on, windows of transfers that begin here or later; UTC; null: no bound.
        end: Metrics before it, windows that end here or earlier; null: no bound.
        rules: Rule set that weighs links.

    Raises:
        DataError: A path is not there or cannot be read.
        InsufficientDataError: None of them holds metrics of links or transfers.
    """
    evidence: dict[str, Evidence] = {}
    refused: dict[str, str] = {}
    config, read = Config.empty(), []
    for path in map(Path, paths):
        with ExitStack() as stack:
            opened = _open(path, stack)
            read.append(opened)
            for name, (table, query, make, _) in SOURCES.items():
                if name in evidence or not opened.has(table):
                    continue
                try:
                    evidence[name] = make(opened.sql(query, {"start": start, "end": end}))
                    refused.pop(name, None)
                except InsufficientDataError as problem:
                    refused[name] = str(problem)
            if opened.has("gdpconfig"):
                config = Config.recorded(opened, end or _data_end(opened))
    if not evidence and not refused:
        raise InsufficientDataError(
            "neither metrics of links nor transfers; one of the tables network_matrix and transfers is needed"
        )
    return Links(
        evidence=evidence,
        refused=refused,
        config=config,
        rules=rules,
        sources=tuple(Path(path).as_posix() for path in paths),
        digests=tuple(one.digest for one in read),
        synthetic=any(one.synthetic for one in read),
        archive=read[0] if read[0].path == Path(paths[0]) else None,
    )


def _open(path: Path, stack: ExitStack) -> Archive:
    """Open an archive; files go through the archive's own readers into a folder that is thrown away."""
    if (path / MANIFEST).is_file():
        return open_archive(path)
    if not path.exists():
        raise DataError(f"{path}: there is no such archive, file or folder")
    from brokerlab.archive.ingestion import ingest  # slow to load

    folder = stack.enter_context(TemporaryFolder()) / "archive"
    ingest([path], folder)
    return open_archive(folder)


def _data_end(opened: Archive) -> datetime | None:
    """Return the time of the newest metric, or the end of the last window of transfers."""
    for table, *_, time in SOURCES.values():
        if opened.has(table):
            newest: datetime | None = opened.scan(table).select(pl.col(time).max()).collect().item()
            if newest is not None:
                return newest
    return None
