"""Intervals whose unit of chance is the task, user, day or queue: what is of one unit rises and falls together.

`clustered` is the one call for totals and ratios over frames (`shares` for several parts of one whole); the rest are its
pieces and the exact intervals of shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from brokerlab.lazy import Later
from brokerlab.numerics import FloatArray, IntArray

special = Later("scipy.special")


def t_factor(n_tasks: float, confidence: float) -> float:
    """Return the two-sided Student factor for ``n_tasks`` clusters; infinite below two."""
    if n_tasks < 2:
        return float("inf")
    return float(special.stdtrit(n_tasks - 1, (1 + confidence) / 2))


def exact_share(
    hits: npt.ArrayLike, of: npt.ArrayLike, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of exact intervals of shares of independent trials, which need not be whole; 0 and 1 of what is NaN.

    Source: Clopper and Pearson, Biometrika 26 (1934) 404, doi:10.1093/biomet/26.4.404.

    Example:
        >>> [float(end.round(3)) for end in exact_share(0, 10, 0.95)]
        [0.0, 0.308]
    """
    tail, n_hits, n = (1 - confidence) / 2, np.asarray(hits, float), np.asarray(of, float)
    low = special.betaincinv(n_hits, n - n_hits + 1, tail)
    high = special.betaincinv(n_hits + 1, n - n_hits, 1 - tail)
    no, every = (n_hits <= 0) | np.isnan(low), (n_hits >= n) | np.isnan(high)
    return np.where(no, 0.0, low), np.where(every, 1.0, high)


def ratio_variance(
    num2: FloatArray, num_den: FloatArray, den2: float, den: float, ratio: FloatArray, n_tasks: int
) -> FloatArray:
    r"""Variance of a ratio of totals when whole tasks are the sampling unit.

    .. math:: v = \frac{T}{T-1} \frac{\sum_t (y_t - r x_t)^2}{(\sum_t x_t)^2}

    Source: Cochran, Sampling Techniques, 3rd edition (1977), section 6.3.
    """
    if n_tasks < 2 or den <= 0:
        return np.full(np.shape(ratio), np.inf)
    residual = np.maximum(num2 - 2 * ratio * num_den + ratio**2 * den2, 0.0)
    return np.asarray(n_tasks / (n_tasks - 1) * residual / den**2)


@dataclass(frozen=True)
class ShareSums:
    """Sums over tasks from which the share of jobs exceeding and its interval follow.

    y is a task's exceeding jobs, x its scored jobs; arrays hold one entry per setting.
    """

    n_tasks: int  # T
    y: FloatArray  # (n,) sums of y, y², y³
    y2: FloatArray
    y3: FloatArray
    yx: FloatArray  # (n,) sums of the products
    y2x: FloatArray
    yx2: FloatArray
    x: float  # sums of x, x², x³
    x2: float
    x3: float

    @classmethod
    def of(cls, exceed: FloatArray, jobs: FloatArray) -> ShareSums:
        """Sum (n_tasks, n) exceeding and (n_tasks,) scored jobs."""
        y, x = exceed, jobs
        y2 = y**2
        return cls(
            n_tasks=x.size,
            y=y.sum(axis=0),
            y2=y2.sum(axis=0),
            y3=(y2 * y).sum(axis=0),
            yx=x @ y,
            y2x=x @ y2,
            yx2=x**2 @ y,
            x=float(x.sum()),
            x2=float((x**2).sum()),
            x3=float((x**3).sum()),
        )

    def __add__(self, other: ShareSums) -> ShareSums:
        """Join the tasks of two disjoint sets."""
        return ShareSums(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def interval(self, confidence: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the share with lower and upper bound, (n,) each: see :func:`share_interval`."""
        share = self.y / self.x
        variance = ratio_variance(self.y2, self.yx, self.x2, self.x, share, self.n_tasks)
        r = share
        third = self.y3 - 3 * r * self.y2x + 3 * r**2 * self.yx2 - r**3 * self.x3
        second = np.maximum(self.y2 - 2 * r * self.yx + r**2 * self.x2, 0.0)
        with np.errstate(all="ignore"):
            skewness = np.sqrt(self.n_tasks) * third / second**1.5
        low, high = share_interval(
            share, variance, self.x, self.n_tasks, confidence, skewness=np.nan_to_num(skewness)
        )
        return share, low, high


def share_interval(
    share: FloatArray,
    variance: FloatArray,
    n_jobs: float,
    n_tasks: int,
    confidence: float,
    *,
    skewness: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Interval of a share of jobs, exact-binomial with the number of independent jobs that the tasks allow.

    The number of effective jobs is ``r (1-r) / variance``, shrunk by the squared ratio of the normal to
    the Student factor, at most ``n_jobs``. A share of exactly 0 or 1 has no spread to measure: every task
    then counts as one independent job, so that the bound stays honest. Where few tasks carry most of
    the share, the upper bound is raised to Hall's, which takes the skewness out: a limit that is met by
    the bound alone must not rest on the bad tasks not having been drawn.

    Source: Korn and Graubard, Survey Methodology 24 (1998) 193; :func:`exact_share`; Hall, J. R.
    Statist. Soc. B 54 (1992) 221.
    """
    factor = t_factor(n_tasks, confidence)
    with np.errstate(all="ignore"):
        effective = share * (1 - share) / variance
        effective *= (special.ndtri((1 + confidence) / 2) / factor) ** 2
        flat = (share <= 0) | (share >= 1) | ~np.isfinite(effective)
        effective = np.where(flat, n_tasks, np.minimum(effective, n_jobs))
        low, high = exact_share(share * effective, effective, confidence)
        if skewness is not None:
            hall = share - np.sqrt(variance) * _unskew(-factor, skewness, n_tasks)
            high = np.fmax(high, np.where(flat, 0.0, np.clip(hall, 0.0, 1.0)))
    return low, high


def _unskew(y: float, skewness: FloatArray, n: int) -> FloatArray:
    """Invert Hall's cubic transformation of a studentised mean of n skewed values."""
    root = np.sqrt(n)
    inner = np.cbrt(1 + skewness * (y / root - skewness / (6 * n)))
    return np.where(np.abs(skewness) < 1e-6, y, 3 * root / skewness * (inner - 1))


def bootstrap_weights(
    n_tasks: int, *, n_boot: int, seed: int, cells: int = 4_000_000
) -> Iterator[npt.NDArray[np.float64]]:
    """Yield how often each task is drawn, replicate by replicate, in blocks that fit in memory.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapters 6 and 13.
    """
    rng = np.random.default_rng(seed)
    block = max(1, cells // max(n_tasks, 1))
    for first in range(0, n_boot, block):
        size = min(block, n_boot - first)
        drawn: IntArray = rng.integers(n_tasks, size=(size, n_tasks))
        drawn += np.arange(size)[:, None] * n_tasks
        counts = np.bincount(drawn.ravel(), minlength=size * n_tasks)
        yield counts.reshape(size, n_tasks).astype(np.float64)


def bootstrap_totals(totals: FloatArray, *, n_boot: int, seed: int) -> FloatArray:
    """Return the column totals of every bootstrap replicate over tasks."""
    blocks = [
        weights @ totals for weights in bootstrap_weights(len(totals), n_boot=n_boot, seed=seed)
    ]
    return np.concatenate(blocks)


def percentile_interval(
    replicates: FloatArray, confidence: float, *, n_tasks: int
) -> tuple[FloatArray, FloatArray]:
    """Return the expanded bootstrap percentile interval of each column; NaN replicates are left out.

    A sample of few spreads less than what it was drawn from, so the plain interval is too narrow: with ten
    normal values it holds 90 % instead of 95 %. The tails are therefore taken where the Student interval
    would end, with the variance of n-1.

    Source: Hesterberg, The American Statistician 69 (2015) 371, doi:10.1080/00031305.2015.1089789, section 4.3.
    """
    wide = t_factor(n_tasks, confidence) * np.sqrt(n_tasks / (n_tasks - 1))
    tail = 100 * float(special.ndtr(-wide))
    unknown = np.isnan(replicates)
    if unknown.all(axis=0).any():
        replicates = np.where(unknown.all(axis=0), 0.0, replicates)
    percentile = np.nanpercentile if unknown.any() else np.percentile  # which takes half as long
    low, high = percentile(replicates, [tail, 100 - tail], axis=0)
    return low, high


ENDS = ("", "_lo", "_hi")
"""What follows the name of a quantity: the estimate, its lower and its upper end."""
CONFIDENCE = 0.95  # nominal level of every interval that is not asked for another one
N_BOOT = 2000  # replicates where nothing else is asked for
LEAST_SPREAD = 0.2
"""Smallest standard error of a replicate, as a part of the sample's: replicates without spread would reach to infinity."""
MEASURED = {15: 0.91, 50: 0.94, 200: 0.95, 800: 0.95}
"""Units to coverage of nominal 95 % intervals of :func:`studentise`, measured by ``python -m benchmarks.truth``."""


MEASURED_POOLED = {50: 0.80, 200: 0.86, 800: 0.90}
"""The same of :func:`percentile_interval` for ratios pooled over the jobs of all units, which a few giants carry."""


def measured_coverage(
    n_units: int, confidence: float = CONFIDENCE, measured: Mapping[int, float] = MEASURED
) -> float | None:
    """Return what intervals covered with about as many units; null at levels not measured."""
    nearest = min(measured, key=lambda n: abs(np.log(n / max(n_units, 1))))
    return measured[nearest] if confidence == CONFIDENCE else None


def pooled_coverage(n_units: int, confidence: float = CONFIDENCE) -> float | None:
    """Return what intervals of pooled amounts covered with about as many units; null at levels not measured."""
    return measured_coverage(n_units, confidence, MEASURED_POOLED)


def studentise(
    values: FloatArray,
    weights: FloatArray,
    *,
    confidence: float = CONFIDENCE,
    n_boot: int = N_BOOT,
    seed: int = 1,
    share: bool = False,
) -> tuple[float, float, float]:
    """Return a weighted mean over units with its bootstrap-t interval.

    The mean is linearised (a ratio of two totals) in the sample and in every replicate. With few units the tails are
    taken further out than the nominal level says, by as much as coverage on a superpopulation of synthetic tasks asked for.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), section 12.5; Hall, Annals of Statistics 16
    (1988) 927, doi:10.1214/aos/1176350933.
    """
    n = values.size
    v, a = weights, weights * values
    mean = float(a.sum() / v.sum())
    tail = (1 - confidence) / 2 * _tail_part(n)
    spread = _spread(float((a**2).sum()), float(a @ v), float(v @ v), mean, float(v.sum()), n)
    if n < 2 or spread == 0:
        edge = 1 - tail ** (1 / n) if share else 0.0
        return (
            mean,
            max(mean - edge, 0.0) if share else mean,
            min(mean + edge, 1.0) if share else mean,
        )
    columns = np.column_stack([a, v, a**2, a * v, v**2])
    again = bootstrap_totals(columns, n_boot=n_boot, seed=seed)
    means = again[:, 0] / again[:, 1]
    spreads = _spread(again[:, 2], again[:, 3], again[:, 4], means, again[:, 1], n)
    t = (means - mean) / np.maximum(spreads, LEAST_SPREAD * spread)
    low_t, high_t = np.quantile(t, [tail, 1 - tail])
    low, high = mean - high_t * spread, mean - low_t * spread
    return mean, float(max(low, 0.0) if share else low), float(min(high, 1.0) if share else high)


def _tail_part(n_units: int) -> float:
    """Return which part of the nominal tails is used, so that the measured coverage comes near the nominal one."""
    return float(max(0.3, 0.85 - 2.6 / np.sqrt(n_units)))


def _spread(a2: Any, av: Any, v2: Any, mean: Any, v: Any, n: int) -> Any:
    """Return the linearised standard error of a ratio of totals over n units."""
    square = np.maximum(a2 - 2 * mean * av + mean**2 * v2, 0.0)
    return np.sqrt(square * n / max(n - 1, 1)) / v


CELLS = 4_000_000  # sums by unit, or replicate, and group and measure that are drawn again at once
Sums = Mapping[str, FloatArray]  # sums by measure, one entry per group, or per replicate and group
Formula = str | tuple[str, str] | Callable[[Sums], FloatArray]
"""A measure's total, a ratio of two totals, or what follows from the totals of all measures."""


def clustered(
    frame: pl.DataFrame,
    formulas: Mapping[str, Formula],
    *,
    unit: str,
    by: Sequence[str] = (),
    measures: Sequence[str] = (),
    units: Sequence[Any] | pl.Series | None = None,
    n_boot: int = N_BOOT,
    seed: int = 1,
    confidence: float = CONFIDENCE,
) -> pl.DataFrame:
    """Return totals, ratios of totals, or anything that follows from totals, with intervals over whole units.

    What is of one task (user, day, queue) rises and falls together, so whole units are drawn again. The same seed
    gives the same draws to every call with as many units: differences between calls are paired. ``measures`` are columns that
    only functions read; ``units`` are all there are, also those without a row (None: those of each group). A few giants carry
    what is pooled: these intervals cover less than their level, `pooled_coverage` says how much (88 % with 8 tasks, too).

    One row per group, sorted: ``by``; for each formula ``name, name_lo, name_hi`` (Float64; null where it is not
    defined, null ends with fewer than two units); ``resampled`` (the unit's column), ``n_units``.
    """
    named = [
        n for f in formulas.values() if not callable(f) for n in ([f] if isinstance(f, str) else f)
    ]
    names = list(dict.fromkeys([*named, *measures]))
    per_unit = summed(frame, [*by, unit], names)
    groups = _groups(per_unit, by)
    if units is None:
        drawn = [([group], group[1][unit]) for group in groups]
    else:
        # groups that have all units in common are drawn together, as many as fit in memory
        every = pl.Series(unit, units, dtype=per_unit.schema[unit])
        step = max(1, CELLS // max(max(len(every), n_boot) * len(names), 1))
        drawn = [(groups[i : i + step], every) for i in range(0, len(groups), step)]
    rows = []
    for some, members in drawn:
        cells = _cells([group for _, group in some], unit, members, names)
        totals = cells.sum(axis=0).reshape(len(some), len(names))
        enough = n_boot and len(members) > 1
        again = bootstrap_totals(cells, n_boot=n_boot, seed=seed) if enough else None
        for place, (key, _) in enumerate(some):
            own = None if again is None else again[:, place * len(names) : (place + 1) * len(names)]
            result = _estimates(totals[place], own, len(members), names, formulas, confidence)
            about = dict(zip(by, key, strict=True)) | {"resampled": unit, "n_units": len(members)}
            rows.append(about | result)
    ends = [f"{name}{end}" for name in formulas for end in ENDS]
    schema: dict[str, Any] = {name: frame.schema[name] for name in by} | dict.fromkeys(
        ends, pl.Float64
    )
    return pl.DataFrame(rows, schema=schema | {"resampled": pl.String, "n_units": pl.Int64})


def shares(
    frame: pl.DataFrame,
    parts: Sequence[str],
    whole: str,
    *,
    unit: str,
    by: Sequence[str] = (),
    n_boot: int = N_BOOT,
    seed: int = 1,
) -> pl.DataFrame:
    """Divide several totals by one, as :func:`clustered`, one row per part.

    One row per group and part, groups sorted, parts in the given order: ``by``, ``part``, ``total``, ``whole``
    (sums), ``share, share_lo, share_hi``, ``resampled``, ``n_units``; no row without a group.
    """
    floats = dict.fromkeys(("total", "whole", "share", "share_lo", "share_hi"), pl.Float64)
    schema: dict[str, Any] = {name: frame.schema[name] for name in by} | {"part": pl.String}
    schema |= floats | {"resampled": pl.String, "n_units": pl.Int64}
    if frame.is_empty() or not parts:
        return pl.DataFrame(schema=schema)
    formulas: dict[str, Formula] = {"whole": whole}
    for i, part in enumerate(parts):
        formulas |= {f"share{i}": (part, whole), f"total{i}": part}
    wide = clustered(frame, formulas, unit=unit, by=by, n_boot=n_boot, seed=seed)
    rows = [
        {name: row[name] for name in (*by, "whole", "resampled", "n_units")}
        | {"part": part, "total": row[f"total{i}"]}
        | {f"share{end}": row[f"share{i}{end}"] for end in ENDS}
        for row in wide.iter_rows(named=True)
        for i, part in enumerate(parts)
    ]
    return pl.DataFrame(rows, schema=schema)


def summed(frame: pl.DataFrame, keys: Sequence[str], columns: Sequence[str]) -> pl.DataFrame:
    """Sum columns by group, bit for bit the same in any order of the rows."""
    names = list(dict.fromkeys(columns))
    rows = frame.select(*keys, pl.col(names).cast(pl.Float64)).sort(*keys, *names)
    sums, starts = sums_of(rows, keys, names)
    result = rows.select(keys)[starts] if rows.height else rows.select(keys)
    return result.hstack([pl.Series(name, sums[:, i]) for i, name in enumerate(names)])


def sums_of(
    rows: pl.DataFrame, keys: Sequence[str], columns: Sequence[str]
) -> tuple[FloatArray, IntArray]:
    """Sum columns of rows that are sorted by their keys, one after the other."""
    numbers = rows.select(columns).to_numpy().astype(np.float64).reshape(rows.height, len(columns))
    if not rows.height:
        return numbers, np.empty(0, dtype=np.int64)
    number = rows.select(pl.struct(keys).rle_id()).to_series().to_numpy()
    starts = np.flatnonzero(np.diff(number, prepend=-1)).astype(np.int64)
    return np.add.reduceat(numbers, starts, axis=0), starts


def _groups(
    per_unit: pl.DataFrame, by: Sequence[str]
) -> list[tuple[tuple[object, ...], pl.DataFrame]]:
    """Return the groups in order; one group where none is asked for."""
    if not by:
        return [((), per_unit)]
    result = per_unit.partition_by(*by, as_dict=True, include_key=True)
    return sorted(
        result.items(), key=lambda item: tuple((part is not None, part) for part in item[0])
    )


def _cells(
    groups: Sequence[pl.DataFrame], unit: str, members: pl.Series, names: Sequence[str]
) -> FloatArray:
    """Return (n_units, n_groups times n_names) sums of groups with the same units, 0 where a unit has no row."""
    row = {member: place for place, member in enumerate(members)}
    cells = np.zeros((len(members), len(groups) * len(names)))
    for place, group in enumerate(groups):
        columns = slice(place * len(names), (place + 1) * len(names))
        cells[[row[one] for one in group[unit]], columns] = group.select(names).to_numpy()
    return cells


def _estimates(
    totals: FloatArray,
    again: FloatArray | None,
    n_units: int,
    names: Sequence[str],
    formulas: Mapping[str, Formula],
    confidence: float,
) -> dict[str, float | None]:
    """Return every formula of one group with its ends, from its totals and those of the replicates."""
    result: dict[str, float | None] = {}
    with np.errstate(invalid="ignore", divide="ignore"):
        for name, formula in formulas.items():
            value = float(_applied(formula, dict(zip(names, totals, strict=True))))
            low = high = np.nan
            if again is not None and np.isfinite(value):
                drawn = _applied(formula, dict(zip(names, again.T, strict=True)))
                drawn = np.where(np.isfinite(drawn), drawn, np.nan)[:, None]
                ends = percentile_interval(drawn, confidence, n_tasks=n_units)
                low, high = float(ends[0][0]), float(ends[1][0])
            for key, number in ((name, value), (f"{name}_lo", low), (f"{name}_hi", high)):
                result[key] = number if np.isfinite(number) else None
    return result


def _applied(formula: Formula, sums: Mapping[str, Any]) -> Any:
    if isinstance(formula, str):
        return sums[formula]
    if isinstance(formula, tuple):
        top, bottom = (np.asarray(sums[name]) for name in formula)
        return np.where(bottom > 0, top / bottom, np.nan)
    return formula(sums)
