"""How far one configured core power per site is from what its nodes have, and how it moves over months."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dataframely as dy
import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.frames import prepared

SHORTEST_S = 10_000
"""Wall time below which the ratio of two whole numbers says little of a core power [s]."""
STEP = 0.01  # relative change from month to month that counts as a step
DEFAULT = 12.0  # core power of sites that have no benchmark [HS06 per core]


class Nodes(dy.Schema):
    """One row per worker node of one site."""

    jobslots = dy.Int64(metadata={"unit": "slots", "meaning": "jobs at a time, at least 1"})
    hs06 = dy.Float64(metadata={"unit": "HS06", "meaning": "of the node with all slots busy"})


class Usage(dy.Schema):
    """One row per site, month and whatever else it was summed by."""

    site = dy.String()
    month = dy.Date(metadata={"meaning": "first day of the month"})
    wall_s = dy.Int64(metadata={"unit": "s", "meaning": "summed over the jobs"})
    normalised_hs06s = dy.Int64(metadata={"unit": "HS06 s", "meaning": "wall times core power"})


@dataclass(frozen=True, kw_only=True)
class Inside:
    """Spread of core power over the slots of a site.

    Attributes:
        nodes: Nodes.
        slots: Slots.
        kinds: Distinct values: nodes of one model and number of slots share theirs.
        mean, sd: Over slots [HS06 per slot].
        ln_sd: Standard deviation of the logarithm: about that of times which one core power leaves.
        least, most: Extremes [HS06 per slot].
        within_tenth: Share of slots within a tenth of the mean.
    """

    nodes: int
    slots: int
    kinds: int
    mean: float
    sd: float
    ln_sd: float
    least: float
    most: float
    within_tenth: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Drift:
    """How configured core powers moved.

    Attributes:
        months: ``site, month, power`` [HS06 per core], ``rows``; by site and month.
        by_site: ``site, months, first, last, steps`` (months that changed by more than 1 %), ``range``
            (largest / smallest - 1), ``is_default`` (12 throughout); the most first.
        left_out: Rows too short to tell.
        ln_sd: Standard deviation between sites of the logarithm of the last core power.
        moved: Share of sites with a step, with its interval ``moved_lo, moved_hi`` (Wilson).
    """

    months: pl.DataFrame
    by_site: pl.DataFrame
    left_out: int
    ln_sd: float
    moved: float
    moved_lo: float
    moved_hi: float


def inside(nodes: Any) -> Inside:
    """Say how core power is spread over the slots of one site.

    All nodes of the site are there, so that there is no interval; another site has other nodes.

    Source: calibration.md 5.
    """
    frame = prepared({"nodes": nodes}, {"nodes": Nodes})["nodes"]
    frame = frame.filter(pl.col("jobslots") > 0, pl.col("hs06") > 0)
    if frame.is_empty():
        raise InsufficientDataError("nodes: none has job slots and an HS06 value above 0")
    weight = frame["jobslots"].to_numpy()
    power = frame["hs06"].to_numpy() / weight
    mean = float(np.average(power, weights=weight))
    logs = np.log(power)
    return Inside(
        nodes=frame.height,
        slots=int(weight.sum()),
        kinds=int(np.unique(np.round(power, 6)).size),
        mean=mean,
        sd=float(np.sqrt(np.average((power - mean) ** 2, weights=weight))),
        ln_sd=float(np.sqrt(np.average((logs - np.average(logs, weights=weight)) ** 2, weights=weight))),
        least=float(power.min()),
        most=float(power.max()),
        within_tenth=float(weight[np.abs(power / mean - 1) <= 0.1].sum() / weight.sum()),
    )  # fmt: skip


def drift(usage: Any) -> Drift:
    """Say how the core power of sites moved from month to month.

    The core power of a site in a month is the sum of normalised over the sum of plain wall time. Rows
    below 10,000 s are left out: both sums are whole numbers. Whether a site counts elapsed time or time of
    all cores does not matter, both sums do the same.

    Source: calibration.md 5; Wilson, JASA 22 (1927) 209, doi:10.2307/2276774.
    """
    from statsmodels.stats.proportion import proportion_confint

    frame = prepared({"usage": usage}, {"usage": Usage})["usage"]
    used = frame.filter(pl.col("wall_s") >= SHORTEST_S, pl.col("normalised_hs06s") > 0)
    if used.is_empty():
        raise InsufficientDataError(
            f"usage: none of {frame.height} rows has {SHORTEST_S} s of wall time"
        )
    months = used.group_by("site", "month").agg(
        pl.col("normalised_hs06s").sum(), pl.col("wall_s").sum(), rows=pl.len()
    )
    months = months.select(
        "site", "month", "rows", power=pl.col("normalised_hs06s") / pl.col("wall_s")
    ).sort("site", "month")
    change = (pl.col("power") / pl.col("power").shift(1).over("site") - 1).abs()
    by_site = months.with_columns(step=(change > STEP).fill_null(value=False)).group_by("site").agg(
        months=pl.len(),
        first=pl.col("power").first(),
        last=pl.col("power").last(),
        steps=pl.col("step").sum(),
        range=pl.col("power").max() / pl.col("power").min() - 1,
        is_default=((pl.col("power") - DEFAULT).abs() < 1e-3).all(),
    )  # fmt: skip
    by_site = by_site.sort("range", "site", descending=[True, False])
    told = by_site.filter(pl.col("months") > 1)
    moved = told.filter(pl.col("steps") > 0).height
    lo, hi = proportion_confint(moved, max(told.height, 1), method="wilson")
    return Drift(
        months=months,
        by_site=by_site,
        left_out=frame.height - used.height,
        ln_sd=float(np.std(np.log(by_site["last"].to_numpy()), ddof=1)) if by_site.height > 1 else 0.0,
        moved=moved / max(told.height, 1),
        moved_lo=float(lo),
        moved_hi=float(hi),
    )  # fmt: skip
