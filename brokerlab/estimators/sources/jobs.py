"""What canonical jobs say of memory and walltime, and why some of them say nothing."""

from __future__ import annotations

import polars as pl

from brokerlab.archive.contracts.jobs import ENDED
from brokerlab.estimators.records import Quantity
from brokerlab.estimators.sources.source import At
from brokerlab.scouts.kills import kill_cause
from brokerlab.scouts.quantities import core_count, has_scout_mark
from brokerlab.units import KB, MB

NEEDED = (
    *("pandaid", "jeditaskid", "computingsite", "jobstatus", "piloterrorcode", "processingtype"),
    *("actualcorecount", "corecount", "jobmetrics", "specialhandling", "nevents"),
    *("inputfilebytes", "maxpss", "minramcount", "maxcpucount", "maxwalltime"),
    *("creationtime", "starttime", "endtime"),
)
"""Columns of the canonical jobs that the expressions here read."""

MERGE = "pmerge"
"""Processing type of merge jobs of a task: their memory and time are not those of its payload."""
MERGE_REASON = "merge job"


def positive(name: str) -> pl.Expr:
    """Return a column as a float; null where it is 0 or below: PanDA's way of saying that nothing is known."""
    value = pl.col(name).cast(pl.Float64)
    return pl.when(value > 0).then(value)


def cores() -> pl.Expr:
    """Return the cores of a job, at least 1."""
    return core_count().clip(lower_bound=1).cast(pl.Int64)


def sent(quantity: Quantity) -> pl.Expr:
    """Return the limit that the job was given [MB of the whole job, or s]; null: none."""
    if quantity == "memory":
        return positive("minramcount")
    return pl.coalesce(positive("maxwalltime"), positive("maxcpucount"))


def wall_s() -> pl.Expr:
    """Return how long the job ran [s]; null where start or end is not known."""
    span = pl.col("endtime") - pl.col("starttime")
    return _of_microseconds(span.dt.total_microseconds())


def recorded(quantity: Quantity) -> pl.Expr:
    """Return what was measured [MB of the whole job, or s]; null where nothing was."""
    if quantity == "memory":
        return positive("maxpss") / KB
    return pl.when(wall_s() > 0).then(wall_s())


def killed(quantity: Quantity) -> pl.Expr:
    """Tell whether the job failed because it came to the limit of this quantity."""
    return ((pl.col("jobstatus") == "failed") & (kill_cause() == quantity)).fill_null(value=False)


def seconds(time: pl.Expr) -> pl.Expr:
    """Return a time as seconds since 1970."""
    return _of_microseconds(time.dt.epoch("us"))


def _of_microseconds(microseconds: pl.Expr) -> pl.Expr:
    """Return seconds, exact where they are whole: a column divided by 1e6 is off by the last bit."""
    return microseconds // 1_000_000 + microseconds % 1_000_000 / 1e6


def reasons(quantity: Quantity, at: At) -> dict[str, pl.Expr]:
    """Return why a job says nothing of a quantity, the first reason first; see :func:`source.sift`."""
    failed = (pl.col("jobstatus") == "failed") & ~killed(quantity)
    measured = recorded(quantity).is_not_null()
    word = "memory" if quantity == "memory" else "duration"
    result = {
        MERGE_REASON: pl.col("processingtype") == MERGE,
        f"failed, and no {word} recorded": failed & ~measured,
        f"failed, though not at the limit of {quantity}": failed,
        "jobstatus is {}": ~pl.col("jobstatus").is_in(ENDED),
        "no start or end recorded": wall_s().is_null(),
        "ended before it started": wall_s() < 0,
        f"no {word} recorded": ~measured & ~(killed(quantity) & sent(quantity).is_not_null()),
    }
    if at == "submit":  # a start before the creation is a clock that is wrong
        result["ended before it was created"] = pl.col("endtime") < pl.col("creationtime")
    return result


def columns(quantity: Quantity, at: At) -> dict[str, pl.Expr]:
    """Return the columns of the records that follow from the job alone."""
    own_limit = pl.when(killed(quantity)).then(sent(quantity))
    decided = pl.col("creationtime") if at == "submit" else pl.col("starttime")
    return {
        "pandaid": pl.col("pandaid"),
        "jeditaskid": pl.col("jeditaskid"),
        "queue": pl.col("computingsite"),
        "cores": cores(),
        "events": pl.when(pl.col("nevents") > 0).then("nevents").cast(pl.Int64),
        "input_mb": positive("inputfilebytes") / MB,
        "sent": sent(quantity),
        "is_scout": has_scout_mark(),
        "decided_s": seconds(decided),
        "ended_s": seconds(pl.col("endtime")),
        "used": pl.coalesce(recorded(quantity), own_limit),
        "censored": killed(quantity),
        "wall_s": wall_s(),
    }
