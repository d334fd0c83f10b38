"""Where a model should not be trusted: checks of what it expected against what came, each a frame with a verdict in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, DataError, InsufficientDataError, nearest
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.records import checked
from brokerlab.intervals import CONFIDENCE
from brokerlab.numerics import FloatArray

ROUNDING = 1 + 1e-9  # a use that is larger by the last bits of a product is as large


def judged(records: Any, predicted: Predicted, level: float) -> pl.DataFrame:
    """Say of every job whether it kept to its bound.

    The records in the order of their decision, and ``seen, bound, missed``: null where nobody can
    say, as the bound is infinite or the job was killed below it.
    """
    frame, row = matched(records, predicted)
    frame = frame.with_columns(
        seen=pl.Series(predicted.seen[row]), bound=pl.Series(predicted.at(level)[row])
    )
    over = pl.col("used") > pl.col("bound") * ROUNDING
    unsaid = pl.col("bound").is_infinite() | (
        pl.col("censored") & (pl.col("used") * ROUNDING < pl.col("bound"))
    )
    return frame.with_columns(missed=pl.when(~unsaid).then(over))


def matched(records: Any, predicted: Predicted) -> tuple[pl.DataFrame, np.ndarray]:
    """Return records in the order of their decision, and the row of each among the predictions."""
    frame = checked(records)
    wanted = frame["pandaid"].to_numpy()
    if np.array_equal(wanted, predicted.pandaid):
        return frame, np.arange(wanted.size)
    order = np.argsort(predicted.pandaid, kind="stable")
    ids = predicted.pandaid[order]
    place = np.searchsorted(ids, wanted).clip(max=max(ids.size - 1, 0))
    known = ids[place] == wanted if ids.size else np.zeros(wanted.size, bool)
    if not known.all():
        lost = wanted[~known]
        raise DataError(
            f"predicted.pandaid: {lost.size} of {wanted.size} jobs were not predicted, such as"
            f" {', '.join(str(each) for each in lost[:3])}; predict them, or leave them out"
        )
    return frame, order[place]


def places(records: Any, predicted: Predicted, *, seed: int) -> pl.DataFrame:
    """Return the place of every use in the distribution that was expected of it; jobs of which none was told are left out.

    The place is the share of uses expected below it. Bounds tell it up to the next level: inside that
    step it is drawn evenly, so that a right model gives even places from 0 to 1, whatever its levels. Of
    a killed job the place of its limit is found so, and its own drawn evenly from there to 1: were killed
    jobs left out, high places would be missing, and a right model would look wrong.

    ``pandaid, jeditaskid, decided_s, censored, place`` in the order of the decision.

    Source: Dunn and Smyth 1996, Randomized Quantile Residuals, doi:10.1080/10618600.1996.10474708.
    """
    frame, row = matched(records, predicted)
    n_bounds = np.isfinite(predicted.bounds[row]).sum(
        axis=1
    )  # above them an infinite one tells nothing
    some = n_bounds > 0
    frame, row, n_bounds = frame.filter(pl.Series(some)), row[some], n_bounds[some]
    used = frame["used"].to_numpy()
    step = (used[:, None] > predicted.bounds[row] * ROUNDING).sum(axis=1)
    edges: FloatArray = np.array([0.0, *predicted.levels, 1.0])
    drawn, beyond = np.random.default_rng(seed).random((2, used.size))
    upper = np.where(step < n_bounds, edges[step + 1], 1.0)
    place = edges[step] + drawn * (upper - edges[step])
    place += np.where(frame["censored"].to_numpy(), beyond * (1 - place), 0.0)
    kept = ("pandaid", "jeditaskid", "decided_s", "censored")
    return frame.select(*kept, place=pl.Series(place))


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


_TERMS = 20  # of the series of sup |W|, which converges like exp(-k^2)


def largest_deviation(records: Any, predicted: Predicted, level: float) -> pl.DataFrame:
    """Find where the misses are furthest from the number that the level allows.

    ``D = max_k |misses of the first k jobs - k (1 - level)| / sqrt(n level (1 - level))``. With misses that
    are independent and as frequent as asked, D is the largest distance from 0 of a random walk, whose
    limit law is that of Brownian motion. A late D means that misses went wrong all along; an early one
    that they were wrong up to there, and made up for it.

    One row: ``n, missed, statistic`` (D), ``p``, ``after`` (jobs up to there), ``at_s`` (its decision),
    ``missed_before, expected_before, missed_after, expected_after``, ``verdict``: ``as asked`` or
    ``misses too often`` or ``misses too rarely`` up to there.

    Source: Page 1954, doi:10.1093/biomet/41.1-2.100; the law of the largest distance: Feller, An
        Introduction to Probability Theory and Its Applications II, X.5.
    """
    frame = judged(records, predicted, level).drop_nulls("missed")
    if frame.is_empty():
        raise InsufficientDataError(
            "records: no job can be judged; every bound is infinite, or no job is left"
        )
    misses = frame["missed"].cast(pl.Int64).cum_sum().to_numpy()
    n, allowed = misses.size, 1 - level
    apart = misses - allowed * np.arange(1, n + 1)
    k = int(np.argmax(np.abs(apart)))
    statistic = float(abs(apart[k]) / math.sqrt(n * level * allowed))
    p = _p_of_largest(statistic)
    wrong = "misses too often" if apart[k] > 0 else "misses too rarely"
    return pl.DataFrame(
        {
            "n": [n],
            "missed": [int(misses[-1])],
            "statistic": [statistic],
            "p": [p],
            "after": [k + 1],
            "at_s": [frame["decided_s"][k]],
            "missed_before": [int(misses[k])],
            "expected_before": [allowed * (k + 1)],
            "missed_after": [int(misses[-1] - misses[k])],
            "expected_after": [allowed * (n - k - 1)],
            "verdict": [wrong if p <= 1 - CONFIDENCE else "as asked"],
        }
    )


def _p_of_largest(distance: float) -> float:
    """Return P(sup |W| > distance) of Brownian motion W on [0, 1]."""
    if distance < 0.3:  # the series is 0 to seven digits there
        return 1.0
    odd = 2 * np.arange(_TERMS) + 1
    signs = np.where(np.arange(_TERMS) % 2, -1.0, 1.0)
    below = 4 / math.pi * (signs / odd * np.exp(-((math.pi * odd / distance) ** 2) / 8)).sum()
    return float(min(max(1 - below, 0.0), 1.0))


POWERS = tuple((np.arange(20) + 0.5) / 20)
"""Powers of the bets, evenly from 0 to 1: small ones bet on places close to one end."""
_CHUNK = 65_536


def fortune(places: FloatArray) -> FloatArray:
    """Bet on places at either end, job by job, and return the logarithm (base 10) of the fortune.

    Start with 1, put equal parts on the bets ``e p^(e-1)`` and ``e (1-p)^(e-1)`` for powers e from 0 to 1,
    and let each of them run. If the places p are even and independent, the fortune is a martingale: it
    reaches 10^x with probability at most 10^-x, however long one plays and whenever one looks.

    Source: Vovk, Nouretdinov and Gammerman 2003, Testing Exchangeability On-Line, ICML, section 4 (simple
        mixture); Ville's inequality for the bound.
    """
    power = np.array(POWERS)
    tiny = np.finfo(float).tiny
    ends = np.stack([places, 1 - places], axis=1).clip(tiny, 1.0)
    result = np.empty(places.size)
    held = np.zeros(2 * power.size)
    for start in range(0, places.size, _CHUNK):
        logs = np.log(ends[start : start + _CHUNK])[:, :, None]
        gains = (np.log(power) + (power - 1) * logs).reshape(len(logs), -1)
        fortunes = held + np.cumsum(gains, axis=0)
        top = fortunes.max(axis=1)
        mean = np.exp(fortunes - top[:, None]).mean(axis=1)
        result[start : start + _CHUNK] = (top + np.log(mean)) / np.log(10)
        held = fortunes[-1]
    return result


def bet_against(records: Any, predicted: Predicted, *, seed: int = 0) -> pl.DataFrame:
    """Bet against a model in the order of the decisions.

    The place of each use in its expected distribution would be even, and independent of those before, if
    the model were right. Jobs that are decided together share what the model gets wrong of their task: a
    fortune is evidence against the model as a whole, not against the order alone.

    One row: ``n`` (jobs of which any bound was told), ``log10_largest`` (the largest fortune), ``after`` (jobs up to there), ``at_s`` (its
    decision), ``log10_final``, ``p`` (at most this likely for a right model), ``verdict``: ``as
    expected`` or ``not as expected``.

    Source: see :func:`fortune`.
    """
    frame = places(records, predicted, seed=seed)
    if frame["censored"].all():
        raise InsufficientDataError(
            "records: every job was killed at a limit, or no bound of it was told; nothing can be bet on"
        )
    logs = fortune(frame["place"].to_numpy())
    k = int(np.argmax(logs))
    largest = max(float(logs[k]), 0.0)
    p = 10.0**-largest
    return pl.DataFrame(
        {
            "n": [frame.height],
            "log10_largest": [largest],
            "after": [k + 1],
            "at_s": [frame["decided_s"][k]],
            "log10_final": [float(logs[-1])],
            "p": [p],
            "verdict": ["not as expected" if p <= 1 - CONFIDENCE else "as expected"],
        }
    )


LEAST_SCOUTS = 3  # jobs on each side that a comparison needs
_OF_SCOUTS = {
    **dict.fromkeys(("jeditaskid", "n_scouts", "n_others"), pl.Int64),
    **dict.fromkeys(("exceeds", "lo", "hi", "p"), pl.Float64),
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
        (task, *_compare_scouts(group["value"].to_numpy(), group["is_scout"].to_numpy()))
        for (task,), group in frame.group_by("jeditaskid", maintain_order=True)
        if min(group["is_scout"].sum(), (~group["is_scout"]).sum()) >= LEAST_SCOUTS
    ]
    if not rows:
        raise InsufficientDataError(
            f"records: no task has {LEAST_SCOUTS} scouts and {LEAST_SCOUTS} other jobs; are the scouts marked?"
        )
    table = pl.DataFrame(rows, schema=_OF_SCOUTS, orient="row").sort("jeditaskid")
    side = pl.when(pl.col("exceeds") > 0.5).then(pl.lit("scouts use less"))
    return table.with_columns(p_adjusted=_holm(table["p"])).with_columns(
        verdict=pl.when(pl.col("p_adjusted") > 1 - CONFIDENCE)
        .then(pl.lit("alike"))
        .otherwise(side.otherwise(pl.lit("scouts use more")))
    )


def _compare_scouts(
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
    ends = max(float(lo), 0.0), min(float(hi), 1.0)
    p = max(float(result.pvalue), float(alike))
    return scouts.size, others.size, float(result.prob1), *ends, p


def _holm(p: pl.Series) -> pl.Series:
    """Adjust p-values so that a wrong alarm in any of them is as rare as asked."""
    from statsmodels.stats.multitest import multipletests

    return pl.Series("p_adjusted", multipletests(p.to_numpy(), method="holm")[1])


CLASSES = ("kind", "queue", "cores", ("kind", "queue", "cores"))
RANGES = ("events", "input_mb", "corepower", "requested")
ALLOWED = 0.05  # share of jobs outside from which a feature counts as not learnt


def support(learnt: Any, records: Any) -> pl.DataFrame:
    """Compare what is known of jobs with what was known of those that a model learnt from.

    A class (queue, kind, cores) is outside where no job learnt from had it; a number where it is below
    the smallest or above the largest. Nothing known (null) is inside only where it was learnt, too.

    One row per feature: ``feature, learnt_jobs, n, outside, share, lo, hi`` (exact interval of the
    share at 95 %; jobs come in tasks, so it is too narrow), ``learnt_from, learnt_to`` (range; null
    for classes), ``example`` (the most frequent value outside), ``verdict``: ``learnt``, ``partly
    learnt`` (more than allowed are outside), ``not learnt`` (all are).

    Partly learnt is what has more than 5 % of the jobs outside. Without a job on either side it is an InsufficientDataError.
    """
    from statsmodels.stats.proportion import proportion_confint

    old, new = checked(learnt), checked(records)
    if old.is_empty() or new.is_empty():
        raise InsufficientDataError(
            f"support: {old.height} jobs learnt from and {new.height} to be predicted; both are needed"
        )
    rows = [_class(old, new, (c,) if isinstance(c, str) else c) for c in CLASSES]
    rows += [_range(old, new, name) for name in RANGES]
    table = pl.DataFrame(rows, schema=_OF_SUPPORT, orient="row", strict=False)
    pairs = zip(table["outside"].to_list(), table["n"].to_list(), strict=True)
    lo, hi = np.array([proportion_confint(k, n, method="beta") for k, n in pairs]).T
    share = table["outside"] / table["n"]
    return table.with_columns(share=share, lo=pl.Series(lo), hi=pl.Series(hi)).select(
        *("feature", "learnt_jobs", "n", "outside", "share", "lo", "hi"),
        *("learnt_from", "learnt_to", "example"),
        verdict=pl.when(pl.col("outside") == pl.col("n"))
        .then(pl.lit("not learnt"))
        .when(pl.col("share") > ALLOWED)
        .then(pl.lit("partly learnt"))
        .otherwise(pl.lit("learnt")),
    )


_OF_SUPPORT = {
    "feature": pl.String,
    **dict.fromkeys(("learnt_jobs", "n", "outside"), pl.Int64),
    **dict.fromkeys(("learnt_from", "learnt_to"), pl.Float64),
    "example": pl.String,
}
_Row = tuple[str, int, int, int, float | None, float | None, str | None]


def _class(old: pl.DataFrame, new: pl.DataFrame, names: tuple[str, ...]) -> _Row:
    """Count the jobs of a class that was never learnt."""
    known = old.select(names).unique()
    outside = new.select(names).join(known, on=names, how="anti", nulls_equal=True)
    text = pl.concat_str(
        [pl.col(n).cast(pl.String).fill_null("unknown") for n in names], separator=" / "
    )
    example = _usual(outside, text)
    return (" / ".join(names), old.height, new.height, outside.height, None, None, example)


def _range(old: pl.DataFrame, new: pl.DataFrame, name: str) -> _Row:
    """Count the jobs whose number is beyond those learnt."""
    value, known = pl.col(name), old[name].drop_nulls().cast(pl.Float64).to_numpy()
    first, last = (float(known.min()), float(known.max())) if known.size else (None, None)
    beyond = (value < first) | (value > last) if known.size else value.is_not_null()
    unknown = pl.lit(value=old[name].null_count() == 0) & value.is_null()
    outside = new.filter(beyond.fill_null(value=False) | unknown)
    example = _usual(outside, value.cast(pl.String).fill_null("unknown"))
    return (name, old.height, new.height, outside.height, first, last, example)


def _usual(outside: pl.DataFrame, text: pl.Expr) -> str | None:
    """Return the most frequent value, the first of several in the order of the alphabet."""
    if outside.is_empty():
        return None
    counted = outside.select(said=text)["said"].value_counts(sort=False)
    return str(counted.sort("count", "said", descending=[True, False])["said"][0])
