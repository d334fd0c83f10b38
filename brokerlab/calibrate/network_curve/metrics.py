"""Evidence from the metrics of links: a series of snapshots, or a single one taken apart into its windows."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.brokerage.inputs.frames import SNAPSHOT, read
from brokerlab.brokerage.link_metrics import MATRIX, WINDOW_MINUTES, link_metrics
from brokerlab.calibrate.network_curve.evidence import (
    QUEUES,
    ROWS,
    TIME,
    Evidence,
    counts,
    mirror_groups,
    of_periods,
)
from brokerlab.errors import InsufficientDataError

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

DAY = timedelta(days=1)
"""Step between the instants of a series; what a link later delivered is its average over a day: ``dashb_mbps_1d``."""
QUEUE_AHEAD = timedelta(hours=6)
"""``done_6h`` so much later is what was delivered after the queue was measured."""
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
    """Make evidence of the metrics of links: of a series of snapshots if there is one, else of a single one.

    Args:
        network_matrix: ``src, dst, key, value, ts``; any engine.

    Returns:
        Of a series: throughput as the document selects it at an instant, outcome ``dashb_mbps_1d`` a day later, in at most
        four spans of as many instants. Of a single snapshot: see :func:`of_snapshot`.

    Raises:
        InsufficientDataError: A series too short for a choice and later scores, a snapshot without throughput.
        SchemaError: A missing column or a column of another type.

    Source: network-weight.md 1 and 2.
    """
    lazy = nw.from_native(network_matrix).lazy()
    keys = [f"dashb_{name}" for name in LENGTHS_H]
    found = lazy.filter(nw.col("key").is_in(keys), ~nw.col("ts").is_null())
    seen = found.group_by("ts").agg(n=nw.len()).collect("polars").to_native()
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
    ahead = pl.col("ts") - QUEUE_AHEAD
    done = _done(_rows(network_matrix, DONE_KEY).with_columns(ahead), ["src", "dst", "ts"])
    delivered = staged.join(done, left_on=["src", "dst", "at"], right_on=["src", "dst", "ts"])
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

    Args:
        network_matrix: See :func:`from_metrics`.
        at: Of the snapshot; metrics further than 12 hours from it are left out and counted.

    Raises:
        InsufficientDataError: No link has throughputs of two windows.
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
    done = _done(fresh.filter(key=DONE_KEY), ["src", "dst"])
    waiting = wide.with_columns(query="dst", span=pl.lit(0), mbps=NEWEST)
    delivered = waiting.join(done, on=["src", "dst"]).join(groups, on=["src", "dst"])
    return replace(made, queues=_queues(delivered))


def additivity(wide: pl.DataFrame) -> dict[str, float]:
    """Tell whether averages of throughput are volumes over the length of their windows.

    Then a day is at most seven times the week and an hour at most 24 times the day.

    Args:
        wide: ``mbps_1w, mbps_1d, mbps_1h`` [MB/s], one row per link and instant.

    Returns:
        ``n_volume_pairs`` compared, ``n_above_volume`` that are larger than the volume allows, ``n_as_volume``: all that
        were compared if none is larger, else 0.
    """
    pairs = above = 0
    for long, short in (("mbps_1w", "mbps_1d"), ("mbps_1d", "mbps_1h")):
        ratio = LENGTHS_H[long] / LENGTHS_H[short]
        both = wide.drop_nulls([long, short])
        pairs += both.height
        most = ratio * (pl.col(long) + ROUNDING) + ROUNDING
        above += both.filter(pl.col(short) > most).height
    return {
        "n_volume_pairs": pairs,
        "n_above_volume": above,
        "n_as_volume": 0 if above else pairs,
    }


def hour_after(wide: pl.DataFrame) -> dict[str, float]:
    """Return ``spearman_hour_after``: rank correlation of the last hour with the day's other 23 hours; empty below three links."""
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
    age = timedelta(minutes=WINDOW_MINUTES)
    fresh = reduce(
        lambda a, b: a | b, [(nw.col("ts") > at - age) & (nw.col("ts") <= at) for at in instants]
    )
    rows = lazy.filter(fresh).collect("polars").to_native()
    moments = pl.DataFrame(
        {"snapshot": range(len(instants)), "at": instants}, schema={**SNAPSHOT, "at": TIME}
    )
    metrics = link_metrics(rows, instants=moments).rename({"nucleus": "dst"})
    return metrics.join(moments, on="snapshot").drop("snapshot").sort("at", "src", "dst")


def _done(rows: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """Return files ``done`` by key, of several the newest, then the largest."""
    newest = rows.sort("ts", "value").unique(key, keep="last")
    return newest.select(*key, done="value")


def _queues(delivered: pl.DataFrame) -> pl.DataFrame:
    """Return links with files waiting (``queued``) and files ``done`` in six hours: see :attr:`.Evidence.queues`."""
    kept = delivered.filter(pl.col("queued") > 0, pl.col("done") > 0).with_columns(
        n_queued="queued", wait_h=pl.col("queued") * 6.0 / pl.col("done")
    )
    return kept.select(pl.col(name).cast(kind) for name, kind in QUEUES.items()).sort(
        "span", "query", "src", "dst"
    )
