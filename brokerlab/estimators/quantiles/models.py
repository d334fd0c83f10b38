"""Fit three quantiles of a job's use, by boosted trees or by lines, and make a distribution of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cache
from statistics import NormalDist
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.quantiles.features import CATEGORIES
from brokerlab.numerics import BoolArray, FloatArray, IntArray

TREES = 100  # per knot
BINS = 255  # of a column, the most that boosting has
ROWS_AT_ONCE = 250_000  # what is predicted for is copied
PENALTY = 1e-4  # of a line's absolute slopes: picks one of several sets of slopes that fit alike
TOLD_APART = 12  # kinds, and queues, by lines
FEW_ROWS = 50_000  # are predicted for by one thread


@dataclass(frozen=True)
class Sample:
    """Rows of a fit."""

    x: FloatArray  # (n, p) as `features.Known` has them
    y: FloatArray  # (n,) ln use against the anchor
    weight: FloatArray  # (n,) how much each counts; the mean is 1
    task: IntArray  # (n,) numbers of the tasks
    censored: BoolArray  # (n,) killed: at least that much
    reached: FloatArray  # (n,) share of its group that uses at most what a killed one had used

    def weighted(self, level: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return x, y and weights for a quantile, killed jobs redistributed."""
        rows = redistribute(self.y, self.censored, self.reached, self.weight, level)
        return self.x[rows.row], rows.value, rows.weight

    def apart(self) -> Apart:
        """Return how far knots may be from each other, after the quantiles of all jobs together."""
        overall = [_quantile(*self.weighted(level)[1:], level) for level in KNOTS]
        return Apart.of(np.array(overall), learnt=np.unique(self.task).size >= INDEPENDENT)


class Model(Protocol):
    """Three fitted quantiles."""

    def quantiles(self, x: FloatArray) -> FloatArray:
        """Return the (n, 3) quantiles of ln use against the anchor, at `KNOTS`."""
        ...

    def state(self) -> dict[str, Any]:
        """Return arrays and scikit-learn models."""
        ...


@dataclass(frozen=True)
class Trees:
    """Histogram gradient boosting with the quantile loss, one model per knot."""

    models: Sequence[Any]  # of scikit-learn
    used: BoolArray  # (p,) columns that the models were fitted to
    edges: Sequence[FloatArray]  # of each of these: `bin_edges`
    apart: Apart  # how far knots may be from each other

    @classmethod
    def fit(cls, sample: Sample, *, seed: int) -> Self:
        """Fit trees of at most 15 leaves; no early stopping, so rows are not held back."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        used = usable(sample.x, sample.task)
        used[-1] = True  # a model needs a column, also one that does not vary
        n_categories = np.count_nonzero(used[: len(CATEGORIES)])  # they come first
        columns = sample.x[:, used]
        edges = [
            np.empty(0) if place < n_categories else bin_edges(column, sample.weight)
            for place, column in enumerate(columns.T)
        ]
        binned = replace(sample, x=columns_in_bins(columns, edges))
        models = []
        for level in KNOTS:
            x, y, weight = binned.weighted(level)
            model = HistGradientBoostingRegressor(
                loss="quantile",
                quantile=level,
                learning_rate=0.08,
                max_iter=TREES,
                max_leaf_nodes=15,
                min_samples_leaf=40,
                categorical_features=list(range(n_categories)) or None,
                early_stopping=False,
                random_state=seed,
            )
            with _one_thread():
                models.append(model.fit(x, y, sample_weight=weight))
        return cls(models, used, edges, sample.apart())

    def quantiles(self, x: FloatArray) -> FloatArray:
        """Return the (n, 3) quantiles."""
        result = np.empty((len(x), len(KNOTS)))
        for start in range(0, len(x), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            values = columns_in_bins(x[part][:, self.used], self.edges)
            with _one_thread() if len(values) < FEW_ROWS else nullcontext():
                for knot, model in enumerate(self.models):
                    result[part, knot] = model.predict(values)
        return self.apart.rearranged(result)

    def state(self) -> dict[str, Any]:
        """Return the three models."""
        return {
            "models": list(self.models),
            "used": self.used,
            "edges": list(self.edges),
            "apart": asdict(self.apart),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return what :meth:`state` was made of."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        models, used, edges = list(state["models"]), state["used"], list(state["edges"])
        if (
            len(models) != len(KNOTS)
            or len(edges) != np.count_nonzero(used)
            or not all(map(_are_edges, edges))
            or any(
                type(model) is not HistGradientBoostingRegressor
                or model.n_features_in_ != len(edges)
                for model in models
            )
        ):
            raise ValueError("no boosted models of these columns")
        return cls(models, used, edges, Apart(**state["apart"]))


def bin_edges(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the upper edges of at most 255 bins of like weight, but for the last one; none where there are no more values than bins.

    They are those of scikit-learn, which sorts a column anew for each of them where rows have weights. Where an edge lies
    between equal values, a bin may be empty; trees split it in the middle, those of scikit-learn between the values beside it.

    Source: Hyndman and Fan, The American Statistician 50 (1996) 361, definition 2.
    """
    order = np.argsort(values)
    order = order[~np.isnan(values[order]) & (weight[order] > 0)]
    ascending = values[order]
    if np.unique(ascending).size <= BINS:
        return np.empty(0)
    reached = np.cumsum(weight[order])
    asked = np.linspace(0, 100, BINS + 1)[1:-1] / 100 * reached[-1]
    place = np.searchsorted(reached, asked)
    above = place + (reached[place] - asked <= np.finfo(float).eps)
    edges: FloatArray = np.unique((ascending[place] + ascending[above]) / 2)
    return edges


def _are_edges(edges: Any) -> bool:
    """Tell whether something that was saved may come from `bin_edges`."""
    right: bool = edges.dtype == float and edges.ndim == 1 and edges.size < BINS
    return right and not np.isnan(edges).any() and bool((edges[1:] > edges[:-1]).all())


def columns_in_bins(x: FloatArray, edges: Sequence[FloatArray]) -> FloatArray:
    """Return (n, p) columns, those with edges as the numbers of their bins."""
    result = x.copy()
    for column, of in zip(result.T, edges, strict=True):
        if of.size:
            there = ~np.isnan(column)
            column[there] = np.searchsorted(of, column[there])
    return result


@dataclass(frozen=True)
class Lines:
    """Linear quantile regression, one line per knot.

    Not known values count as 0, and a column says that they are not known; kinds and queues are told apart
    if they are among the most common. A line does not go on beyond the range of what it was fitted to.
    """

    ranges: FloatArray  # (4, q) mean, sd (0: not used), smallest, largest of each column that `_columns` makes
    slopes: FloatArray  # (3, q) per standard deviation
    intercepts: FloatArray  # (3,) one per knot
    apart: Apart  # how far knots may be from each other

    @classmethod
    def fit(cls, sample: Sample, *, seed: int) -> Self:  # noqa: ARG003 - as trees are fitted
        """Solve three linear programmes."""
        made = _columns(sample.x)
        sd = np.where(usable(made, sample.task), made.std(axis=0), 0.0)
        ranges = np.array([made.mean(axis=0), sd, made.min(axis=0), made.max(axis=0)])
        scaled = replace(sample, x=_scale(made, ranges))
        slopes, intercepts = [], []
        for level in KNOTS:
            line = fit_line(*scaled.weighted(level), level)
            slopes.append(line[1:])
            intercepts.append(line[0])
        return cls(ranges, np.array(slopes), np.array(intercepts), sample.apart())

    def quantiles(self, x: FloatArray) -> FloatArray:
        """Return the (n, 3) quantiles."""
        result = np.empty((len(x), len(KNOTS)))
        for start in range(0, len(x), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            scaled = _scale(_columns(x[part]), self.ranges)
            # row by row: a matrix product rounds otherwise for one job than for many
            result[part] = np.einsum("ij,kj->ik", scaled, self.slopes) + self.intercepts
        return self.apart.rearranged(result)

    def state(self) -> dict[str, Any]:
        """Return the arrays."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return what :meth:`state` was made of."""
        return cls(**{**state, "apart": Apart(**state["apart"])})


def fit_line(x: FloatArray, y: FloatArray, weight: FloatArray, level: float) -> FloatArray:
    r"""Return intercept and slopes (1 + q,) of a quantile: of least weighted loss and `PENALTY`.

    They are the multipliers of the dual programme, which has a row per slope instead of one per job:

    .. math:: \max_a \sum_i a_i y_i, \quad \sum_i a_i = 0, \quad
              \Big|\sum_i a_i x_{ij}\Big| \le penalty \sum_i w_i, \quad (level - 1) w_i \le a_i \le level \, w_i

    Source: Koenker, Bassett, Econometrica 46 (1978) 33, doi:10.2307/1913643.
    """
    from scipy.optimize import linprog

    used = np.flatnonzero(x.any(axis=0))
    rows = np.vstack([np.ones(len(x)), x[:, used].T])
    most = np.full(len(rows), PENALTY * weight.sum())
    most[0] = 0.0
    ends = np.concatenate([np.outer(weight, [level - 1, level]), np.outer(most, [-1, 1])])
    solved = linprog(
        np.concatenate([-y, np.zeros(len(rows))]),
        A_eq=np.hstack([rows, -np.eye(len(rows))]),
        b_eq=np.zeros(len(rows)),
        bounds=ends,
        method="highs-ds",
    )
    if solved.x is None:
        raise InsufficientDataError(f"no line fits these jobs: {solved.message}")
    result = np.zeros(1 + x.shape[1])
    result[[0, *(1 + used)]] = -solved.eqlin.marginals
    return result


def _columns(x: FloatArray) -> FloatArray:
    """Return numbers, flags of what is not known, and flags of the categories that are told apart."""
    numbers = x[:, len(CATEGORIES) :]
    missing = np.isnan(numbers)
    flags = [
        x[:, column] == code for column in range(len(CATEGORIES)) for code in range(TOLD_APART)
    ]
    return np.column_stack([np.where(missing, 0.0, numbers), missing, *flags]).astype(np.float64)


def _scale(columns: FloatArray, ranges: FloatArray) -> FloatArray:
    """Return columns in standard deviations, kept in their range; 0 where a column is not used."""
    mean, sd, low, high = ranges
    used = sd > 0
    inside = np.clip(columns, low, high)
    return np.where(used, (inside - mean) / np.where(used, sd, 1.0), 0.0)


def _quantile(values: FloatArray, weights: FloatArray, level: float) -> float:
    return float(np.quantile(values, level, weights=weights, method="inverted_cdf"))


def _one_thread() -> AbstractContextManager[object]:
    """Leave boosting one thread: its short steps wait for each other, on a busy machine ten times their work."""
    limited: AbstractContextManager[object] = _threads().limit(limits=1, user_api="openmp")
    return limited


@cache
def _threads() -> Any:
    """Look once for the libraries that have threads; scikit-learn has loaded its own by then."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


KNOTS = (0.5, 0.8, 0.95)  # levels that the models are fitted at
NARROWEST = 0.01
"""Least difference of logarithms at neighbouring knots: requests are hardly told apart below a percent."""
NARROWER = 0.1
"""Least share of the difference that all jobs together have: models are surer of themselves than they should be."""

_Z = np.array([NormalDist().inv_cdf(level) for level in KNOTS])


def normal_score(level: float) -> float:
    """Return the standard normal quantile of a level."""
    return NormalDist().inv_cdf(level)


@dataclass(frozen=True)
class Apart:
    """How far neighbouring knots may be from each other."""

    least: FloatArray  # (2,) differences of logarithms at least
    most: FloatArray  # (2,) at most

    @classmethod
    def of(cls, overall: FloatArray, *, learnt: bool) -> Self:
        """Return the limits from the quantiles of all jobs."""
        gaps = np.maximum(NARROWEST, np.diff(overall))
        if not learnt:
            return cls(gaps, gaps)
        return cls(np.maximum(NARROWEST, NARROWER * gaps), np.full(gaps.size, np.inf))

    def rearranged(self, quantiles: FloatArray) -> FloatArray:
        """Return fitted (n, 3) quantiles in ascending order, neighbours apart as they may be.

        Source: Chernozhukov, Fernández-Val, Galichon, Econometrica 78 (2010) 1093, doi:10.3982/ECTA7880,
        on sorting quantiles that cross.
        """
        ordered = np.sort(quantiles, axis=1)
        gaps = np.clip(np.diff(ordered, axis=1), self.least, self.most)
        return np.cumsum(np.column_stack([ordered[:, 0], gaps]), axis=1)


def value_at(quantiles: FloatArray, z: FloatArray) -> FloatArray:
    """Return the value at a normal score."""
    low, middle, high = quantiles.T
    first, last = (middle - low) / (_Z[1] - _Z[0]), (high - middle) / (_Z[2] - _Z[1])
    result: FloatArray = np.where(
        z <= _Z[1], low + first * (z - _Z[0]), middle + last * (z - _Z[1])
    )
    return result


def score_of(quantiles: FloatArray, value: FloatArray) -> FloatArray:
    """Return the normal score of a value: the inverse of :func:`value_at`."""
    low, middle, high = quantiles.T
    first, last = (_Z[1] - _Z[0]) / (middle - low), (_Z[2] - _Z[1]) / (high - middle)
    result: FloatArray = np.where(
        value <= middle, _Z[0] + first * (value - low), _Z[1] + last * (value - middle)
    )
    return result


INDEPENDENT = 30.0
LEAST_TASKS = 10
"""How the use hangs on a column may differ from task to task; that is seen once a task."""


def independent_values(x: FloatArray, task: IntArray) -> FloatArray:
    r"""Return how many independent values the rows of a few tasks are worth, column by column.

    .. math:: \frac{K}{\rho + (1 - \rho) K / n}

    with K tasks, n rows and :math:`\rho` the share of a column's variance that lies between tasks: what is the same
    for all jobs of a task was seen K times, however many jobs there are.

    Source: the design effect of cluster samples, Kish, Survey Sampling (1965),
    ISBN 0-471-10949-5.
    """
    size = np.bincount(task).astype(np.float64)
    filled = np.where(np.isnan(x), _means(x), x)
    between, within = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for column in range(x.shape[1]):
        values = filled[:, column]
        mean = np.bincount(task, values) / size
        within[column] = (np.bincount(task, (values - mean[task]) ** 2) / size).mean()
        between[column] = mean.var()
    total = between + within
    rho = np.divide(between, total, out=np.ones_like(total), where=total > 0)
    worth = size.size / (rho + (1 - rho) * size.size / task.size)
    return np.where(total > 0, worth, 0.0)


def usable(x: FloatArray, task: IntArray) -> BoolArray:
    """Return the columns worth :data:`INDEPENDENT` values or more; none where there are few tasks.

    Two or three tasks differ in everything, and each hangs on a column in its own way: a model that is told
    so learns them by heart, and is sure of what it never saw.
    """
    result: BoolArray = independent_values(x, task) >= INDEPENDENT
    return result & (np.unique(task).size >= LEAST_TASKS)


def _means(x: FloatArray) -> FloatArray:
    there = ~np.isnan(x)
    sums = np.where(there, x, 0.0).sum(axis=0)
    means: FloatArray = sums / np.maximum(there.sum(axis=0), 1)
    return means


LEAST = 30  # jobs of a group, one of them not killed, for a curve of its own
BEYOND = (
    3.0  # how far above all others the part of a killed job is put that lies above the quantile
)


class Weighted(NamedTuple):
    """Rows of a weighted quantile regression."""

    row: IntArray  # (m,) rows of the input; a killed job may be there twice
    value: FloatArray  # (m,) what they are counted with
    weight: FloatArray  # (m,) how much


def reached(value: FloatArray, censored: BoolArray, group: IntArray) -> FloatArray:
    """Return the probability that a job of its group uses at most what a killed one had used."""
    result = np.full(value.size, np.nan)
    if not censored.any():
        return result
    everyone = _curve(value, censored)
    size = np.bincount(group)
    finished = np.bincount(group, ~censored)
    for each in np.unique(group[censored]):
        rows = np.flatnonzero(group == each)
        own = size[each] >= LEAST and finished[each] > 0
        times, shares = _curve(value[rows], censored[rows]) if own else everyone
        killed = rows[censored[rows]]
        place = np.searchsorted(times, value[killed], side="right")
        result[killed] = np.concatenate(([0.0], shares))[place]
    return result


def redistribute(
    value: FloatArray, censored: BoolArray, known: FloatArray, weight: FloatArray, level: float
) -> Weighted:
    """Move the part of each killed job that lies above a quantile to where it is surely above.

    A job killed at c counts (level - F(c)) / (1 - F(c)) at c and the rest beyond all others, if
    F(c) is below the level; else it counts at c, being above the quantile there already.

    Source: Wang and Wang, JASA 104 (2009) 1117, doi:10.1198/jasa.2009.tm08230.
    """
    rows = np.arange(value.size)
    split = np.flatnonzero(censored & (known < level))
    stays = np.ones(value.size)
    stays[split] = (level - known[split]) / (1 - known[split])
    beyond = value.max() + BEYOND if value.size else 0.0
    return Weighted(
        np.concatenate([rows, split]),
        np.concatenate([value, np.full(split.size, beyond)]),
        np.concatenate([weight * stays, weight[split] * (1 - stays[split])]),
    )


def _curve(value: FloatArray, censored: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the values at which jobs finished, ascending, and the share that uses at most each."""
    if censored.all():
        return np.empty(0), np.empty(0)
    from statsmodels.duration.survfunc import SurvfuncRight

    curve = SurvfuncRight(value, (~censored).astype(np.int64))
    return np.asarray(curve.surv_times), 1 - np.asarray(curve.surv_prob)
