"""Is a bound kept in every group of jobs that is large enough to tell?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, nearest
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.trust.judged import judged

STRATA: tuple[str | tuple[str, ...], ...] = (
    "jeditaskid",
    "queue",
    "cores",
    ("jeditaskid", "queue", "cores"),
)
LEAST = 200  # jobs that a stratum must have to be judged
_ALL = "all"
_JOINED = " / "
_UNKNOWN = "unknown"
_STEPS = {0: "0", 1: "1 to 4", 5: "5 to 9", 10: "10 to 99", 100: "100 and more"}
_NAMES = ("jeditaskid", "kind", "queue", "cores", "is_scout", "seen")


def coverage_by(
    records: Any,
    predicted: Predicted,
    level: float,
    *,
    by: Sequence[str | tuple[str, ...]] = STRATA,
    least: int = LEAST,
    confidence: float = 0.95,
) -> pl.DataFrame:
    """Compare the coverage of every stratum with what chance allows at the level asked for.

    The number of kept bounds among n is binomial with that level, if jobs miss their bounds independently;
    its exact central interval is given. Jobs of a task share what a model gets wrong: misses then come
    together, and even a right model leaves the interval more often.

    All jobs first, then by ``stratum_by`` in the order of ``by`` and by ``stratum``: ``stratum_by,
    stratum, n`` (jobs judged), ``missed, coverage``, ``lo, hi`` (interval of the coverage at the
    level), ``p`` (exact central test of the level: so far out on either side), ``inside``,
    ``verdict`` (``inside``, ``misses too often``, ``misses too rarely``), ``unsaid`` (jobs not judged:
    the bound is infinite, or they were killed below it).

    ``by`` are columns, each alone or several together: ``jeditaskid, kind, queue, cores, is_scout`` and ``seen`` (finished jobs of the
    task known at the decision, in steps); strata smaller than ``least`` are left out.

    Source: calibration.md 3 (real scouts are no random sample).
    """
    groups = [(each,) if isinstance(each, str) else tuple(each) for each in by]
    wrong = [
        f"by: '{name}': {nearest(name, _NAMES)}" for g in groups for name in g if name not in _NAMES
    ]
    if wrong:
        raise ConfigError("; ".join(wrong))
    frame = judged(records, predicted, level).with_columns(_step())
    parts = [
        frame.group_by(stratum_by=pl.lit(_JOINED.join(names) or _ALL), stratum=_label(names))
        .agg(
            n=pl.col("missed").count().cast(pl.Int64),
            missed=pl.col("missed").sum().cast(pl.Int64),
            unsaid=pl.col("missed").null_count().cast(pl.Int64),
        )
        .filter(pl.col("n") >= max(least, 1))
        .sort("stratum")
        for names in [(), *groups]
    ]
    return against_level(pl.concat(parts), level, confidence).select(
        *("stratum_by", "stratum", "n", "missed", "coverage", "lo", "hi", "p", "inside"),
        *("verdict", "unsaid"),
    )


def against_level(counts: pl.DataFrame, level: float, confidence: float) -> pl.DataFrame:
    """Add ``coverage, lo, hi, p, inside, verdict`` to a frame of ``n`` (at least 1) and ``missed``."""
    from scipy import stats

    n = counts["n"].to_numpy()
    kept = n - counts["missed"].to_numpy()
    lo, hi = stats.binom.interval(confidence, n, level)
    tail = np.minimum(stats.binom.cdf(kept, n, level), stats.binom.sf(kept - 1, n, level))
    verdict = (
        pl.when(pl.col("kept") < pl.col("lo")).then(pl.lit("misses too often"))
        .when(pl.col("kept") > pl.col("hi")).then(pl.lit("misses too rarely"))
        .otherwise(pl.lit("inside"))
    )  # fmt: skip
    frame = counts.with_columns(kept=pl.Series(kept), lo=pl.Series(lo), hi=pl.Series(hi))
    frame = frame.with_columns(verdict=verdict, p=pl.Series(np.minimum(2 * tail, 1.0)))
    return frame.with_columns(
        coverage=pl.col("kept") / pl.col("n"),
        lo=pl.col("lo") / pl.col("n"),
        hi=pl.col("hi") / pl.col("n"),
        inside=pl.col("verdict") == "inside",
    ).drop("kept")


def _step() -> pl.Expr:
    """Return the step of the number of jobs seen, in words."""
    step = pl.lit(_STEPS[0])
    for start, words in _STEPS.items():
        step = pl.when(pl.col("seen") >= start).then(pl.lit(words)).otherwise(step)
    return step.alias("seen")


def _label(names: tuple[str, ...]) -> pl.Expr:
    """Name the stratum of a job."""
    if not names:
        return pl.lit(_ALL)
    parts = [pl.col(name).cast(pl.String).fill_null(_UNKNOWN) for name in names]
    return pl.concat_str(parts, separator=_JOINED)
