"""Bound what jobs use from what similar earlier tasks did, updated by the task's own finished jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from math import log
from typing import Any, Self

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.estimator import Ordered, Predicted, codes, order
from brokerlab.estimators.hierarchy import kernels
from brokerlab.estimators.hierarchy.prior import FIRST, Beliefs, fitted, sampled, sums_of
from brokerlab.estimators.records import Quantity, check_quantity, checked
from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.results import Result, Shows


class Hierarchy(Ordered, Result):
    r"""Estimate memory or walltime per task, with few or many of its jobs seen.

    The logarithm of what job j of task t at queue q uses is

    .. math:: y_j = \mu_t + x_j^T \beta_t + \gamma_{tq} + \epsilon_j, \quad
              \epsilon_j \sim N(0, \sigma_t^2)

    with x the logarithms of cores, events, input (and core power for walltime), normal-inverse-gamma
    priors of :math:`(\mu_t, \beta_t), \sigma_t^2` and normal ones of :math:`\gamma_{tq}`. ``fit`` finds
    the priors of largest marginal likelihood over earlier tasks, and what to expect of a task from its
    kind and request. Every finished job updates the posterior exactly. So ten scouts at one queue say
    much of their task and little of other queues, and the scale says how little.

    Bounds are location + scale x quantile of scores. Scores are those that calibration tasks had at
    decisions of the same class (nothing seen; the task; fewer than 20 jobs of its queue; more), counting
    as 50 jobs, those of the task's latest 512 jobs, and those of the queue's latest 128, each
    counting 4 jobs: the more was seen, the less a bound rests on the model. The task's and the queue's own
    are kept as they were missed, and not divided by the residual deviation believed in at the time.

    A killed job's score is the highest of the calibration tasks, at least, and it enters the model with
    what jobs that reach so far use on average. Scouts enter the model, their scores are left out: they
    are no sample of the jobs that follow. Jobs whose queue is not known count as those of one more queue.

    Args:
        quantity: ``"memory"`` or ``"walltime"``.

    Source: own; conjugate updates: Gelman et al., Bayesian Data Analysis (2013), chapters 14 and 15;
    tasks as units of calibration: Dunn, Wasserman, Ramdas, JASA 118 (2023) 2491,
    doi:10.1080/01621459.2022.2060112.
    """

    shows = Shows(
        about="what jobs of earlier tasks did, and these say of the next, one row per number believed",
        columns="name, mean, sd_between_tasks",
        keys=("name",),
        next=(
            ".fit(records)",
            ".conformalize(records)",
            ".predict(records, levels=(0.95,))",
            ".update(records)",
        ),
    )

    name = "hierarchy"

    def __init__(self, quantity: Quantity) -> None:
        check_quantity(quantity)
        self.quantity = quantity
        self._start(FIRST[quantity].mean.size)

    def _start(self, d: int) -> None:
        self.beliefs = FIRST[self.quantity]
        self.levels = Levels.unknown(self.quantity)
        self.atoms = own_atoms(self.beliefs)
        self.seen = State(d)

    def fit(self, records: Any) -> Self:
        """Learn from the finished jobs of earlier tasks; forgets what was learnt and seen before.

        Of a task at most 300 jobs count, and of tasks at most 2000, both spread evenly; killed jobs are left out. Without a finished
        job it is an InsufficientDataError.
        """
        frame = checked(records).filter(~pl.col("censored"), pl.col("ended_s").is_not_null())
        if frame.is_empty():
            raise InsufficientDataError("records: no finished job to fit the hierarchy on")
        self._start(self.beliefs.mean.size)
        frame = sampled(frame).sort("jeditaskid", maintain_order=True)
        first = frame.unique("jeditaskid", keep="first", maintain_order=True)
        (task, _), (pair, _) = codes(frame, "jeditaskid"), codes(frame, "jeditaskid", "queue")
        logs, origin = (
            logarithms(frame, self.quantity),
            np.full((first.height, self.seen.d - 1), np.nan),
        )
        first_known(logs, task, origin)
        x = design(logs, task, origin)
        y = np.log(frame["used"].to_numpy())
        apart = y - x[:, 1:] @ self.beliefs.mean[1:]
        level = np.bincount(task, apart) / np.bincount(task)
        self.levels, expected = Levels.fit(first, level, self.quantity)
        self.beliefs = fitted(sums_of(task, pair, x, y - expected[task]), self.beliefs)
        self.atoms = own_atoms(self.beliefs)
        return self

    def conformalize(self, records: Any) -> Self:
        """Take the scores of other tasks than those of ``fit``, as they are replayed.

        Scouts are seen, but their scores do not count: jobs that follow scouts are what is to be bounded. Nor do those of jobs
        without an end.
        """
        frame = checked(records)
        self.atoms = own_atoms(self.beliefs)
        task, decided = self._walk(deepcopy(self.seen), frame, order(frame), (0.5,))
        counts = frame.select(~pl.col("is_scout") & pl.col("ended_s").is_not_null()).to_series()
        self.atoms = mixed_atoms(self.atoms, task, decided.kind, decided.score, counts.to_numpy())
        return self

    def state(self) -> dict[str, Any]:
        """Return everything learnt and seen: arrays, a scikit-learn model and plain values."""
        beliefs = {name: getattr(self.beliefs, name) for name in Beliefs.__annotations__}
        return {
            "quantity": self.quantity,
            "beliefs": beliefs,
            "level": {"mean": self.levels.mean, "model": self.levels.model},
            "atoms": self.atoms,
            "seen": self.seen.kept(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return an estimator of what :meth:`state` returned; a KeyError, TypeError or ValueError where it is no such state."""
        made = cls(state["quantity"])
        made.beliefs = Beliefs(**state["beliefs"])
        made.levels = Levels(**state["level"])
        made.atoms = np.asarray(state["atoms"], dtype=np.float64)
        _check_form(made.beliefs, made.atoms, FIRST[made.quantity].mean.size)
        made.seen = State.of_kept(made.beliefs.mean.size, state["seen"])
        return made

    def prior(self) -> kernels.Prior:
        """Return what the compiled steps need of the beliefs."""
        variance = self.beliefs.residual_sd**2
        return kernels.Prior(
            mean=self.beliefs.mean,
            precision=variance / self.beliefs.sd**2,
            queue=self.beliefs.queue_sd**2 / variance,
            shape=self.beliefs.shape,
            rate=self.beliefs.shape * variance,
            atoms=self.atoms,
        )

    def update(self, records: Any) -> Self:
        """See finished jobs, in the order of their ends; those without an end are not seen."""
        frame = checked(records).filter(pl.col("ended_s").is_not_null())
        ends = np.lexsort((frame["pandaid"].to_numpy(), frame["ended_s"].to_numpy()))
        self._walk(self.seen, frame, ends, ())
        return self

    def bound_events(
        self, frame: pl.DataFrame, events: IntArray, levels: tuple[float, ...]
    ) -> Predicted:
        """Bound jobs.

        A task is met by its first job, in the order of decision, that is predicted or seen: what is expected
        of the task then stays what it is.
        """
        _, decided = self._walk(self.seen, frame, events, levels)
        values = np.exp(decided.bounds)
        return Predicted(
            frame["pandaid"].to_numpy(), decided.seen, levels, values[:, 1:], values[:, 0]
        )

    def _walk(
        self, state: State, frame: pl.DataFrame, events: IntArray, levels: tuple[float, ...]
    ) -> tuple[IntArray, kernels.Decided]:
        """Go through decisions (~row) and ends (row) of checked records; the state then has seen these ends.

        Tasks and pairs are numbered, new ones with what to expect. Returned are the numbers of the tasks, and what was foreseen.
        """
        task, pair = state.numbers(frame, self.levels.expect)
        known = logarithms(frame, self.quantity)
        first_known(known, task, state.origin)
        jobs = kernels.Jobs(
            task=task,
            pair=pair,
            x=design(known, task, state.origin),
            y=np.log(frame["used"].to_numpy()) - state.level[task],
            killed=frame["censored"].to_numpy(),
            scout=frame["is_scout"].to_numpy(),
        )
        n = frame.height
        seen, kind = np.zeros((2, n), dtype=np.int64)
        decided = kernels.Decided(np.zeros((n, len(levels) + 1)), seen, np.zeros(n), kind)
        asked = np.array([0.5, *levels])
        kernels.walk(events, jobs, state.known, state.scores, self.prior(), asked, decided)
        decided.bounds[:] += state.level[task, None]
        return task, decided

    def frame(self) -> pl.DataFrame:
        """Return what is believed of a task on the scale of logarithms: ``name, mean, sd_between_tasks``.

        The level, then the slope of each feature.
        """
        mean, sd = self.beliefs.mean, self.beliefs.sd
        names = ["level", *(f"slope {number}" for number in range(1, mean.size))]
        return pl.DataFrame({"name": names, "mean": mean, "sd_between_tasks": sd})

    def headline(self) -> str:
        """Return what it says, in a line."""
        fitted = "fitted" if self.beliefs is not FIRST[self.quantity] else "not fitted"
        return f"estimator of {self.quantity} per task, {fitted}"


def _check_form(beliefs: Beliefs, atoms: FloatArray, d: int) -> None:
    """Hold what was read to its form: compiled steps follow it without looking."""
    sizes = (beliefs.queue_sd, beliefs.residual_sd, beliefs.shape)
    right = (
        beliefs.mean.shape == beliefs.sd.shape == (d,)
        and all(isinstance(each, float) for each in sizes)
        and atoms.ndim == 2
        and atoms.shape[0] == kernels.CLASSES
        and atoms.shape[1] > 0
    )
    if not right:
        raise ValueError("beliefs or scores are of another form")


FEATURES: dict[Quantity, tuple[str, ...]] = {
    "memory": ("cores", "events", "input_mb"),
    "walltime": ("cores", "events", "input_mb", "corepower"),
}


def logarithms(records: pl.DataFrame, quantity: Quantity) -> FloatArray:
    """Return the (n, d - 1) logarithms of the features; NaN where not known, infinite or not above 0."""
    given = [records[name].to_numpy().astype(np.float64) for name in FEATURES[quantity]]
    known = np.column_stack(given)
    positive = np.isfinite(known) & (known > 0)
    return np.log(known, out=np.full_like(known, np.nan), where=positive)


def first_known(known: FloatArray, task: IntArray, origin: FloatArray) -> None:
    """Fill, in place, what is not known of origins with what is known first of a job of the task."""
    news = np.isfinite(known) & np.isnan(origin[task])
    for feature in np.flatnonzero(news.any(axis=0)):
        rows = np.flatnonzero(news[:, feature])
        tasks, first = np.unique(task[rows], return_index=True)
        origin[tasks, feature] = known[rows[first], feature]


def design(known: FloatArray, task: IntArray, origin: FloatArray) -> FloatArray:
    """Return the (n, d) rows of the linear model."""
    apart = known - origin[task]
    return np.column_stack([np.ones(len(known)), np.where(np.isfinite(apart), apart, 0.0)])


FIRST_LEVEL: dict[Quantity, float] = {"memory": log(2000), "walltime": log(3600)}  # MB, s
FEWEST_TASKS = 5  # below, the mean of the tasks is all that is learnt
_REQUEST = pl.col("requested")
ALPHAS = np.logspace(-2, 3, 11)


class Levels:
    """A ridge regression of tasks' levels on their kind and on the logarithm of their request."""

    def __init__(self, mean: float, model: Any = None) -> None:
        self.mean = mean  # of a task of which nothing is known
        self.model = model  # fitted pipeline for what is known beyond; None: nothing

    @classmethod
    def unknown(cls, quantity: Quantity) -> Levels:
        """Return what is expected before any task was seen: 2000 MB, or an hour."""
        return cls(FIRST_LEVEL[quantity])

    @classmethod
    def fit(
        cls, tasks: pl.DataFrame, level: FloatArray, quantity: Quantity
    ) -> tuple[Levels, FloatArray]:
        """Learn from tasks."""
        mean, known = float(level.mean()), _known(tasks)
        if level.size == 1:
            return cls(mean), np.full(1, FIRST_LEVEL[quantity])
        if level.size < FEWEST_TASKS or not any(known):
            return cls(mean), (level.sum() - level) / (level.size - 1)
        from sklearn.feature_extraction import DictVectorizer
        from sklearn.linear_model import RidgeCV
        from sklearn.model_selection import KFold, cross_val_predict
        from sklearn.pipeline import make_pipeline

        model = make_pipeline(DictVectorizer(sparse=False), RidgeCV(ALPHAS))
        apart = level - mean
        parts = KFold(min(10, level.size), shuffle=True, random_state=0)
        others = cross_val_predict(model, known, apart, cv=parts)
        return cls(mean, model.fit(known, apart)), mean + others

    def expect(self, tasks: pl.DataFrame) -> FloatArray:
        """Return the (t,) levels to expect of tasks; rows as for :meth:`fit`."""
        if self.model is None or not tasks.height:
            return np.full(tasks.height, self.mean)
        return np.asarray(self.mean + self.model.predict(_known(tasks)))


def _known(tasks: pl.DataFrame) -> list[dict[str, Any]]:
    """Return what is known of tasks; the size of the request counts beside that there is one.

    A request of 0 or less, or without a limit, is none.
    """
    asked = pl.when((_REQUEST > 0) & _REQUEST.is_finite()).then(_REQUEST.log())
    rows = tasks.select("kind", asked).rows()
    return [
        {
            **({} if kind is None else {"kind": kind}),
            **({} if asked is None else {"asked": 1.0, "request": asked - log(2000)}),
        }
        for kind, asked in rows
    ]


Pair = tuple[int, str | None]


@dataclass
class State:
    """Numbers of the tasks and of their queues, and what was seen of each."""

    d: int  # features of the model
    tasks: dict[int, int] = field(default_factory=dict)  # task to its number
    pairs: dict[Pair, int] = field(default_factory=dict)  # task and queue to their number
    # (t,) ln expected of a task as it was met
    level: FloatArray = field(default_factory=lambda: np.empty(0))

    # (t, d - 1) ln features of the task's first job that told each; NaN: none did
    origin: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.origin = np.empty((0, self.d - 1))
        self.known, self.scores = _empty(0, 0, self.d)

    def kept(self) -> dict[str, Any]:
        """Return everything as arrays and plain values, without the room for more."""
        t, p = len(self.tasks), len(self.pairs)
        arrays = {
            **self.known._asdict(),
            **{f"score_{k}": v for k, v in self.scores._asdict().items()},
        }
        return {
            "tasks": list(self.tasks),
            "pair_tasks": [task for task, _ in self.pairs],
            "pair_queues": [queue for _, queue in self.pairs],
            "level": self.level,
            "origin": self.origin,
            **{name: each[: p if "pair" in name else t] for name, each in arrays.items()},
        }

    @classmethod
    def of_kept(cls, d: int, kept: Mapping[str, Any]) -> State:
        """Return the state of what :meth:`kept` returned."""
        pairs = zip(kept["pair_tasks"], kept["pair_queues"], strict=True)
        state = cls(
            d,
            {task: number for number, task in enumerate(kept["tasks"])},
            {pair: number for number, pair in enumerate(pairs)},
            np.array(kept["level"]),
        )
        state.origin = np.array(kept["origin"])
        state.known = kernels.Known(*(np.array(kept[name]) for name in kernels.Known._fields))
        state.scores = kernels.Scores(
            *(np.array(kept[f"score_{name}"]) for name in kernels.Scores._fields)
        )
        _check_seen(state, len(kept["tasks"]), len(kept["pair_tasks"]))
        return state

    def numbers(
        self, records: pl.DataFrame, expect: Callable[[pl.DataFrame], FloatArray]
    ) -> tuple[IntArray, IntArray]:
        """Return the numbers of the task and of the pair of each row; what is new is numbered."""
        by = ["jeditaskid", "queue"]
        met = records.select(by).with_row_index("row").group_by(by, maintain_order=True).agg("row")
        keys = list(met.select(by).iter_rows())
        rows, counts = met["row"].explode().to_numpy(), met["row"].list.len().to_numpy()
        first: dict[int, int] = {}
        for (task, _), row in zip(keys, np.cumsum(counts) - counts, strict=True):
            if task not in self.tasks:
                first.setdefault(task, int(rows[row]))
        if first:
            self.level = np.concatenate([self.level, expect(records[list(first.values())])])
            untold = np.full((len(first), self.d - 1), np.nan)
            self.origin = np.concatenate([self.origin, untold])
        for task in first:
            self.tasks[task] = len(self.tasks)
        pairs = [self.pairs.setdefault(key, len(self.pairs)) for key in keys]
        self._reserve()
        task, pair = np.empty((2, records.height), dtype=np.int64)
        task[rows] = np.repeat([self.tasks[each] for each, _ in keys], counts)
        pair[rows] = np.repeat(pairs, counts)
        return task, pair

    def _reserve(self) -> None:
        """Make room for every number, twice as much as needed where it is short."""
        old = (self.known, self.scores)
        tasks, pairs = old[0].jobs.size, old[0].pair_count.size
        if tasks >= len(self.tasks) and pairs >= len(self.pairs):
            return
        new = _empty(_room(tasks, len(self.tasks)), _room(pairs, len(self.pairs)), self.d)
        for before, after in zip(old, new, strict=True):
            for seen, kept in zip(before, after, strict=True):
                kept[: len(seen)] = seen
        self.known, self.scores = new


def _room(have: int, need: int) -> int:
    """Return what is needed the first time, and twice as much when that was short."""
    return have if have >= need else 2 * need if have else need


def _check_seen(state: State, tasks: int, pairs: int) -> None:
    """Hold arrays that were read to the form of those that are made; counts are not negative."""
    known, scores = _empty(tasks, pairs, state.d)
    made = (np.empty(tasks), np.empty((tasks, state.d - 1)), *known, *scores)
    result = (state.level, state.origin, *state.known, *state.scores)
    counts = (
        *(state.known.jobs, state.known.finished, state.known.pair_count),
        *(state.scores.task_count, state.scores.pair_count),
    )
    alike = all(
        a.shape == b.shape and a.dtype == b.dtype for a, b in zip(made, result, strict=True)
    )
    met_once = (len(state.tasks), len(state.pairs)) == (tasks, pairs)
    if not (alike and met_once and all((count >= 0).all() for count in counts)):
        raise ValueError("what was seen of tasks and queues is of another form")


def _empty(tasks: int, pairs: int, d: int) -> tuple[kernels.Known, kernels.Scores]:
    known = kernels.Known(
        jobs=np.zeros(tasks, dtype=np.int64),
        finished=np.zeros(tasks, dtype=np.int64),
        xx=np.zeros((tasks, d, d)),
        xy=np.zeros((tasks, d)),
        yy=np.zeros(tasks),
        coefficients=np.zeros((tasks, d)),
        covariance=np.zeros((tasks, d, d)),
        variance=np.zeros(tasks),
        fresh=np.zeros(tasks, dtype=np.bool_),
        pair_count=np.zeros(pairs, dtype=np.int64),
        pair_x=np.zeros((pairs, d)),
        pair_y=np.zeros(pairs),
    )
    scores = kernels.Scores(  # zeros, so that what is saved does not depend on what memory held
        task=np.zeros((tasks, kernels.TASK_WINDOW)),
        task_sorted=np.zeros((tasks, kernels.TASK_WINDOW)),
        task_count=np.zeros(tasks, dtype=np.int64),
        pair=np.zeros((pairs, kernels.PAIR_WINDOW)),
        pair_sorted=np.zeros((pairs, kernels.PAIR_WINDOW)),
        pair_count=np.zeros(pairs, dtype=np.int64),
    )
    return known, scores


ATOMS = 400
JOBS_SEEN = (0, 10, 10, 30)  # of the task, typically, at decisions of each class
OWN_TASKS = 3.0  # calibration tasks that weigh as much as the model's own distribution


def own_atoms(beliefs: Beliefs) -> FloatArray:
    """Return the (classes, atoms) quantiles of the model's own distribution: Student's t."""
    from scipy.stats import t

    levels = (np.arange(ATOMS) + 0.5) / ATOMS
    return np.array([t(2 * beliefs.shape + seen).ppf(levels) for seen in JOBS_SEEN])


def mixed_atoms(
    own: FloatArray, task: IntArray, kind: IntArray, score: FloatArray, used: BoolArray
) -> FloatArray:
    """Mix the model's own scores with those of calibration tasks."""
    mixed = own.copy()
    levels = (np.arange(ATOMS) + 0.5) / ATOMS
    for each in range(kernels.CLASSES):
        rows = used & (kind == each)
        if not rows.any():
            continue
        _, place, count = np.unique(task[rows], return_inverse=True, return_counts=True)
        values = np.concatenate([own[each], score[rows]])
        weights = np.concatenate([np.full(ATOMS, OWN_TASKS / ATOMS), 1 / count[place]])
        mixed[each] = np.quantile(values, levels, weights=weights, method="inverted_cdf")
    return mixed
