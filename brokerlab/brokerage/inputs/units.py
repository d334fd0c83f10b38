"""Unit formulas of tasks and files, one expression each.

Source: production-jobs.md 5.
"""

from __future__ import annotations

import polars as pl

from brokerlab.units import GB, KB, MB

WORK_MARGIN_B = 300 * MB
MILLI = 1000
MOST_B = 2**62

_DISK_FACTORS = {"kB": KB, "MB": MB, "GB": GB}
HS06_UNITS = ("HS06sPerEvent", "HS06sPerEventFixed", "mHS06sPerEvent", "mHS06sPerEventFixed")


def out_bytes() -> pl.Expr:
    """Return the output of a job per event or per MB of input [B]: the unit *starts* with kB, MB or GB, else bytes; null is 0."""
    factor = pl.lit(1, dtype=pl.Int64)
    for prefix, size in _DISK_FACTORS.items():
        starts = pl.col("outdiskunit").fill_null("").str.starts_with(prefix)
        factor = pl.when(starts).then(pl.lit(size, dtype=pl.Int64)).otherwise(factor)
    count = pl.col("outdiskcount").cast(pl.Int64).fill_null(0).clip(lower_bound=0)
    return _bytes(count, factor)


def work_count_bytes() -> pl.Expr:
    """Return ``workdiskcount`` [B], i64; null stays null. The unit *is* kB, MB or GB, else bytes."""
    factor = pl.col("workdiskunit").replace_strict(_DISK_FACTORS, default=1, return_dtype=pl.Int64)
    return _bytes(pl.col("workdiskcount").cast(pl.Int64), factor)


def _bytes(count: pl.Expr, factor: pl.Expr) -> pl.Expr:
    """Return a count of a unit [B]; what whole numbers cannot hold, such as bytes called GB, is the most of them."""
    return count.clip(upper_bound=MOST_B // factor) * factor


def work_bytes(*, adds: bool) -> pl.Expr:
    """Return the working directory [B]: count + 300 MB (``adds``, switch ``workdisk_adds``, J8; null is 0), else the larger."""
    count = work_count_bytes()
    if adds:
        return (count + WORK_MARGIN_B).fill_null(0)
    return pl.max_horizontal(count, pl.lit(WORK_MARGIN_B, dtype=pl.Int64))


def scales_with_events() -> pl.Expr:
    """Return whether ``outdiskcount`` is per event (unit ends in PerEvent), else per MB of input."""
    return pl.col("outdiskunit").fill_null("").str.ends_with("PerEvent")


def hs06() -> pl.Expr:
    """Return whether the wall time comes from HS06 s per event."""
    return pl.col("cputimeunit").is_in(list(HS06_UNITS)).fill_null(value=False)


def cputime_s() -> pl.Expr:
    """Return the CPU time of an event [HS06 s], f64; null where undefined or not in HS06 mode."""
    value = pl.col("cputime").cast(pl.Float64)
    milli = pl.col("cputimeunit").str.starts_with("m")
    # by a column: Polars multiplies with the reciprocal of a number, which differs in the last bit
    scaled = value / pl.when(milli).then(float(MILLI)).otherwise(1.0)
    return pl.when(hs06()).then(scaled)


def nevents() -> pl.Expr:
    """Return the events of a file, i64: range used (at least 1), else ``nevents`` if > 0, else 1."""
    used = (pl.col("endevent") - pl.col("startevent") + 1).clip(lower_bound=1)
    whole = pl.when(pl.col("nevents") > 0).then(pl.col("nevents"))
    return pl.coalesce(used, whole, pl.lit(1)).cast(pl.Int64)


def effective_mb() -> pl.Expr:
    """Return the part of a file's size that its event range takes [MB], in whole bytes; all without range, and 0 B is 1 MB."""
    size = pl.col("fsize").cast(pl.Int64).fill_null(0)
    used = pl.col("endevent") - pl.col("startevent") + 1
    known = pl.col("nevents") > 0
    part = (size * used).cast(pl.Float64) / pl.when(known).then("nevents")
    in_range = used.is_not_null() & known
    effective = pl.when(in_range).then(part.cast(pl.Int64, strict=False)).otherwise(size)
    return pl.when(effective == 0).then(1.0).otherwise(effective / MB)
