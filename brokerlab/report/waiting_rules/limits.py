"""What other limits would do: the same waits, judged rule by rule with its own limit shorter and longer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import polars as pl

from brokerlab.numerics import FloatArray
from brokerlab.report.waiting_rules.firing import MEASURES, RULE, prepared
from brokerlab.report.waiting_rules.inputs import HOUR_US, Inputs
from brokerlab.report.waiting_rules.sums import Derived, Draws, Numbers, summed

ALL = "all rules"
"""Name of the line of all rules together, with every limit changed alike."""


def judged(inputs: Inputs) -> dict[float, pl.DataFrame]:
    """Return the firings of the period by scale of the limits, see `firing.prepared`."""
    return {scale: prepared(inputs.read.fired(scale), inputs) for scale in inputs.scales}


def studied(by_scale: Mapping[float, pl.DataFrame], draws: Draws) -> pl.DataFrame:
    """Judge the period with every limit at every scale.

    Args:
        by_scale: Result of `judged`.
        draws: How intervals are made.

    Returns:
        One row per rule and scale, and per scale of all rules together (every job once, by its first rule), sorted:
        ``number, rule, action, scale, limit_h`` (of the most jobs; null where it is none), and with their intervals
        ``jobs``, ``waited_h``, ``after_h`` (waiting ended, at least), ``soon`` (interrupted for nothing),
        ``soon_share``, ``ended``, and their differences to the limits as set, ``more_jobs, more_after_h, more_soon``.
    """
    parts, limit_rows = [], []
    for scale, rows in by_scale.items():
        together = rows.filter("first").with_columns(
            number=pl.lit(0, dtype=pl.Int64), rule=pl.lit(ALL), action=pl.lit("")
        )
        both = pl.concat([together, rows])
        renamed = {name: _at(name, scale) for name in MEASURES}
        parts.append(both.select("unit", *RULE, *MEASURES).rename(renamed))
        limits = rows.group_by(*RULE, "limit_h").len().sort(*RULE, "len", "limit_h")
        limit_rows.append(
            limits.group_by(RULE, maintain_order=True)
            .agg(pl.col("limit_h").last() / scale)
            .with_columns(scale=pl.lit(scale))
        )
    wide = pl.concat(parts, how="diagonal").with_columns(
        pl.col(_at(name, scale)).fill_null(0) for scale in by_scale for name in MEASURES
    )
    names = [_at(name, scale) for scale in by_scale for name in MEASURES]
    sums = summed(wide, RULE, names, draws)
    found = [sums.table(_quantities(scale)).with_columns(scale=pl.lit(scale)) for scale in by_scale]
    usual = (
        pl.concat(limit_rows).sort(*RULE, "scale").unique(RULE, keep="last", maintain_order=True)
    )
    told = pl.concat(found).join(usual.drop("scale"), on=list(RULE), how="left")
    return told.with_columns(limit_h=pl.col("limit_h") * pl.col("scale")).sort(*RULE, "scale")


def _at(name: str, scale: float) -> str:
    return f"{name}@{scale}"


def _quantities(scale: float) -> Derived:
    """Return the quantities of a scale, and their differences to what is set."""

    def of(name: str, at: float = scale) -> str:
        return _at(name, at)

    def more(name: str, unit: float = 1.0) -> Callable[[Numbers], FloatArray]:
        def difference(n: Numbers) -> FloatArray:
            return np.asarray((n[of(name)] - n[of(name, 1.0)]) / unit)

        return difference

    return {
        "jobs": lambda n: n[of("jobs")],
        "waited_h": lambda n: n[of("waited_us")] / HOUR_US,
        "after_h": lambda n: n[of("after_us")] / HOUR_US,
        "soon": lambda n: n[of("soon")],
        "soon_share": lambda n: n[of("soon")] / (n[of("jobs")] - n[of("undecided")]),
        "ended": lambda n: n[of("ended")],
        "more_jobs": more("jobs"),
        "more_after_h": more("after_us", HOUR_US),
        "more_soon": more("soon"),
    }


def cut_off(by_scale: Mapping[float, pl.DataFrame]) -> pl.DataFrame:
    """Count the waits that last to the end of the archive, and what they hide of longer limits.

    Args:
        by_scale: Result of `judged`.

    Returns:
        ``number, rule, scale``, ``n_waiting``: jobs for which the rule has fired at the shortest limit, which still
        wait at the end of the archive and are not yet due at this scale: nobody knows whether they would be.
    """
    waiting = by_scale[min(by_scale)].filter(pl.col("outcome") == "waiting")
    ids = ["pandaid", "number", "rule", "action"]
    parts = []
    for scale, rows in by_scale.items():
        due = rows.select(ids)
        left = waiting.join(due, on=ids, how="anti")
        counted = left.group_by("number", "rule").agg(n_waiting=pl.len().cast(pl.Int64))
        parts.append(counted.with_columns(scale=pl.lit(scale)))
    return pl.concat(parts).sort("number", "rule", "scale")
