"""Usage of global shares against their targets, over time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import polars as pl

from brokerlab.lifecycle.classes.share_usage import TOP
from brokerlab.report.replays.shares import DAY, shares


@dataclass(frozen=True, kw_only=True)
class Targets:
    """Shares against targets.

    Attributes:
        leaves: `shares` by ``gshare``: running over target HS06, summed over the instants (`usage`; 1 is on target).
        above: `shares` by ``gshare`` of the instants at which it is above its target.
        over_time: ``time, gshare, usage`` (running over target of a step).
        hs: ``gshare, running_hs, target_hs, queuing_hs`` (means over the instants) [HS06].
    """

    leaves: pl.DataFrame
    above: pl.DataFrame
    over_time: pl.DataFrame
    hs: pl.DataFrame


def studied(usage: pl.DataFrame | None, step: str, *, n_boot: int, seed: int) -> Targets | None:
    """Sum up what runs and what is to run; None where there is no tree of shares.

    Args:
        usage: `Inputs.share_usage`.
        step: Step of charts over time.
        n_boot: Bootstrap replicates over days.
        seed: Of the bootstrap.
    """
    if usage is None or usage.is_empty():
        return None
    leaves = usage.filter(~pl.col("gshare").str.starts_with(TOP), pl.col("rank") > 0)
    above = (pl.col("running_hs") > pl.col("target_hs")).cast(pl.Int64)
    table = leaves.with_columns(
        day=pl.col("at").dt.date(), usage=pl.col("running_hs"), above=above, instant=pl.lit(1)
    )
    divided = partial(shares, by=["gshare"], unit=DAY, n_boot=n_boot, seed=seed)
    timed = table.group_by("gshare", time=pl.col("at").dt.truncate(step)).agg(
        pl.col("running_hs", "target_hs").sum()
    )
    ratio = pl.when(pl.col("target_hs") > 0).then(pl.col("running_hs") / pl.col("target_hs"))
    means = pl.col("running_hs", "target_hs", "queuing_hs").mean()
    return Targets(
        leaves=divided(table, ["usage"], "target_hs"),
        above=divided(table, ["above"], "instant"),
        over_time=timed.select("time", "gshare", usage=ratio).sort("gshare", "time"),
        hs=table.group_by("gshare").agg(means).sort("gshare"),
    )
