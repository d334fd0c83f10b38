"""Are the scouts of a task like its other jobs?"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.records import checked
from brokerlab.intervals import CONFIDENCE
from brokerlab.numerics import FloatArray

LEAST = 3  # jobs on each side that a comparison needs
_SCHEMA = {
    "jeditaskid": pl.Int64,
    "n_scouts": pl.Int64,
    "n_others": pl.Int64,
    "exceeds": pl.Float64,
    "lo": pl.Float64,
    "hi": pl.Float64,
    "p": pl.Float64,
}


def scouts_against_rest(records: Any, *, per_core: bool = False) -> pl.DataFrame:
    """Compare the scouts of every task with its other jobs.

    ``exceeds`` is the probability that another job of the task uses more than a scout, ties counted half:
    0.5 if scouts are like the rest. Its interval is that of Brunner and Munzel, which needs no equal spread, but
    is narrow for few scouts (of 95 % intervals about 90 % hold with 3, 94 % with 10). ``p`` is the larger one of their test and that of Mann and
    Whitney, which keeps its level however few they are; where the two groups do not overlap at all, there
    is no interval, and the test is the exact one of Mann and Whitney.

    One row per task with three scouts and three others, sorted: ``jeditaskid, n_scouts, n_others, exceeds, lo, hi, p``,
    ``p_adjusted`` (Holm, over the tasks), ``verdict``: ``alike``, ``scouts use less``, ``scouts use more``.

    Censored jobs are left out; ``per_core`` divides the use by the cores, as the deployed rule does. A wrong alarm in any of the
    tasks has a probability of 5 %. Without a task that has three of each it is an InsufficientDataError.

    Source: calibration.md 3; Brunner and Munzel 2000,
        doi:10.1002/(SICI)1521-4036(200001)42:1<17::AID-BIMJ17>3.0.CO;2-U; Holm 1979,
        Scandinavian Journal of Statistics 6, 65.
    """
    size = pl.col("cores") if per_core else pl.lit(1)
    frame = checked(records).filter(~pl.col("censored")).with_columns(value=pl.col("used") / size)
    rows = [
        (task, *_compare(group["value"].to_numpy(), group["is_scout"].to_numpy()))
        for (task,), group in frame.group_by("jeditaskid", maintain_order=True)
        if min(group["is_scout"].sum(), (~group["is_scout"]).sum()) >= LEAST
    ]
    if not rows:
        raise InsufficientDataError(
            f"records: no task has {LEAST} scouts and {LEAST} other jobs; are the scouts marked?"
        )
    table = pl.DataFrame(rows, schema=_SCHEMA, orient="row").sort("jeditaskid")
    side = pl.when(pl.col("exceeds") > 0.5).then(pl.lit("scouts use less"))
    return table.with_columns(p_adjusted=_holm(table["p"])).with_columns(
        verdict=pl.when(pl.col("p_adjusted") > 1 - CONFIDENCE)
        .then(pl.lit("alike"))
        .otherwise(side.otherwise(pl.lit("scouts use more")))
    )


def _compare(
    value: FloatArray, is_scout: np.ndarray
) -> tuple[int, int, float, float | None, float | None, float]:
    """Return numbers of both, the probability that another job exceeds a scout, interval and p-value."""
    from scipy import stats
    from statsmodels.stats.nonparametric import rank_compare_2indep

    scouts, others = value[is_scout], value[~is_scout]
    apart = others.min() > scouts.max() or others.max() < scouts.min()
    still = np.ptp(others) == 0 and np.ptp(scouts) == 0
    if apart or still:
        exceeds = float((np.sign(others.min() - scouts.min()) + 1) / 2)
        exact = stats.mannwhitneyu(others, scouts, method="exact" if apart else "asymptotic")
        return scouts.size, others.size, exceeds, None, None, float(exact.pvalue) if apart else 1.0
    result = rank_compare_2indep(others, scouts)
    alike = stats.mannwhitneyu(others, scouts).pvalue
    lo, hi = result.conf_int(alpha=1 - CONFIDENCE)
    return (
        scouts.size,
        others.size,
        float(result.prob1),
        max(float(lo), 0.0),
        min(float(hi), 1.0),
        max(float(result.pvalue), float(alike)),
    )


def _holm(p: pl.Series) -> pl.Series:
    """Adjust p-values so that a wrong alarm in any of them is as rare as asked."""
    from statsmodels.stats.multitest import multipletests

    return pl.Series("p_adjusted", multipletests(p.to_numpy(), method="holm")[1])
