"""Quantile regression behind the interface of every estimator, with conformal levels whose units are tasks."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.estimators.estimator import Ordered, Past, Predicted, codes, order
from brokerlab.estimators.quantiles.features import FEATURES, Known, Reader
from brokerlab.estimators.quantiles.models import (
    Lines,
    Model,
    Sample,
    Trees,
    normal_score,
    reached,
    score_of,
    usable,
    value_at,
)
from brokerlab.estimators.records import Quantity, Records, check_quantity, checked
from brokerlab.frames import prepared
from brokerlab.numerics import BoolArray, FloatArray, IntArray

Holds = Literal["a new task", "these tasks", "not calibrated", "no bound"]

LEAST_TASKS = 20  # 19 are the fewest that can hold 95 % on a new one
OWN_TASKS = 40  # of a group that is calibrated apart: with fewer, one task decides about 95 %
OWN_JOBS = 100  # likewise where all groups together have too few tasks
MOST_KEPT = 20_000  # scores of a group; more are thinned, never downwards
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Scores:
    """Scores of one group."""

    score: FloatArray  # ascending; infinite for killed jobs
    reached: FloatArray  # share up to each: of the mean task, of fewer than 20 of the worst one
    tasks: int
    jobs: int

    @classmethod
    def of(cls, score: FloatArray, task: IntArray) -> Self:
        """Sort scores; each job counts 1 / jobs of its task."""
        _, place, count = np.unique(task, return_inverse=True, return_counts=True)
        order = np.argsort(score, kind="stable")
        if count.size < LEAST_TASKS:
            share = _least_share(score[order], place[order], count)
        else:
            share = np.cumsum(1 / (count[place] * count.size)[order])
        kept = np.arange(score.size)
        if score.size > MOST_KEPT:
            grid = np.arange(1, MOST_KEPT + 1) / MOST_KEPT
            kept = np.unique(np.minimum(np.searchsorted(share, grid - _ROUNDING), score.size - 1))
        return cls(score[order[kept]], share[kept], count.size, score.size)

    @property
    def enough(self) -> bool:
        """Tell whether there are tasks enough for bounds that hold on a new one."""
        return self.tasks >= LEAST_TASKS

    def at(self, level: float) -> tuple[float, Holds]:
        """Return the least score that the level is reached with, one unit more being above all others.

        Units are tasks where there are enough of them, else jobs. The largest score stands for levels that
        so many tasks cannot hold, infinity for those that so many jobs cannot.
        """
        jobs_can = level * (self.jobs + 1) / self.jobs <= 1 + _ROUNDING
        units = self.tasks if self.enough else self.jobs
        need = level * (units + 1) / units
        if not jobs_can:
            return float("inf"), "no bound"
        place = int(np.searchsorted(self.reached, need - _ROUNDING))
        holds: Holds = "a new task" if self.enough and need <= 1 + _ROUNDING else "these tasks"
        return float(self.score[min(place, self.score.size - 1)]), holds


def _least_share(score: FloatArray, task: IntArray, count: IntArray) -> FloatArray:
    """Return the share up to each of the ascending scores in the task where it is least."""
    least = np.ones(score.size)
    for each, n in enumerate(count):
        np.minimum(least, np.cumsum(task == each) / n, out=least)
    return least


class Calibration:
    r"""Normal scores at which bounds hold their levels, by group.

    With K tasks of :math:`n_k` jobs the score of a level is the least s with

    .. math:: \sum_k \frac{1}{K + 1} \frac{1}{n_k} \#\{i : s_{ki} \le s\} \ge level

    which bounds a job of a new, exchangeable task with at least that probability, however alike the jobs
    of a task are, up to the level K / (K + 1); above it the largest score is taken. A group with fewer
    than 40 tasks takes all groups together. Are these fewer than 20, the score is such that the level was
    held in each of them: that promises nothing for a new task, see :meth:`table`. With every job a
    task of its own this is split conformal prediction.

    Source: Lee, Barber, Willett, Distribution-free inference with hierarchical data (2023),
    arXiv:2306.06342; scores by the fitted distribution: Chernozhukov, Wüthrich, Zhu, PNAS 118
    (2021) e2107794118, doi:10.1073/pnas.2107794118.
    """

    def __init__(self, groups: Mapping[str, Scores], together: Scores | None) -> None:
        self.groups = dict(groups)
        self.together = together

    @classmethod
    def of(cls, score: FloatArray, task: IntArray, names: Sequence[str], group: IntArray) -> Self:
        """Keep the scores of calibration jobs."""
        if not score.size:
            return cls({}, None)
        result = {
            names[each]: Scores.of(score[group == each], task[group == each])
            for each in np.unique(group).tolist()
        }
        return cls(result, Scores.of(score, task))

    @property
    def enough(self) -> bool:
        """Tell whether there are tasks enough for bounds that hold on a new one."""
        return self.together is not None and self.together.enough

    def score(self, group: str, level: float) -> tuple[float, Holds]:
        """Return the normal score of a level in a group, and for what it holds."""
        if self.together is None:
            return normal_score(level), "not calibrated"
        own, everyone = self.groups.get(group), self.together
        if own is None or (own.tasks < OWN_TASKS and (everyone.enough or own.jobs < OWN_JOBS)):
            return everyone.at(level)
        return own.at(level)

    def scores(self, names: Sequence[str], group: IntArray, level: float) -> FloatArray:
        """Return the (n,) normal scores of a level for jobs of these groups, by their place in the names."""
        return np.array([self.score(name, level)[0] for name in names])[group]

    def table(self, levels: Sequence[float]) -> pl.DataFrame:
        """Say for what the bounds hold.

        One row per group and level: ``group`` (null: all others), ``level, tasks, jobs, score, holds_for``.
        """
        everyone = self.together
        rows = []
        for name in [*self.groups, None]:
            of = everyone if name is None else self.groups[name]
            for level in levels:
                score, holds = self.score(name or "", level)
                counts = (of.tasks, of.jobs) if of else (0, 0)
                rows.append((name, level, *counts, score, holds))
        columns = ("group", "level", "tasks", "jobs", "score", "holds_for")
        types = (pl.String, pl.Float64, pl.Int64, pl.Int64, pl.Float64, pl.String)
        return pl.DataFrame(rows, schema=dict(zip(columns, types, strict=True)), orient="row")

    def state(self) -> dict[str, Any]:
        """Return plain values."""
        groups = {name: asdict(each) for name, each in self.groups.items()}
        return {"groups": groups, "together": asdict(self.together) if self.together else None}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return what :meth:`state` was made of."""
        together = state["together"]
        groups = {name: _scores(each) for name, each in state["groups"].items()}
        return cls(groups, _scores(together) if together else None)


def _scores(state: Mapping[str, Any]) -> Scores:
    if not 0 < state["score"].size == state["reached"].size:
        raise ValueError("scores of a calibration without shares")
    return Scores(state["score"], state["reached"], int(state["tasks"]), int(state["jobs"]))


SEEN_CLASSES = ("none seen", "1 to 9 seen", "10 to 99 seen", "100 or more seen")
"""Groups that are calibrated apart, by the jobs of the task that were seen."""
_LEAST_SEEN = (0, 1, 10, 100)
LARGEST_LOG = 690.0  # its exponential is still a number
_NOTHING = Calibration({}, None)


class QuantileRegression(Ordered):
    """What both estimators share; see :class:`QuantileBoosting`."""

    name: str
    MOST_ROWS: ClassVar[int]
    MODEL: ClassVar[type[Trees | Lines]]

    def __init__(self, quantity: Quantity, *, capped: bool = False, seed: int = 0) -> None:
        check_quantity(quantity)
        self.quantity = quantity
        self.capped = capped
        self.seed = seed
        self.calibration = _NOTHING
        self._reader: Reader | None = None
        self._model: Model | None = None
        self.learnt = False
        self._past = Past()

    @property
    def features(self) -> tuple[str, ...]:
        """What is read of a job."""
        return FEATURES

    def fit(self, records: Any) -> Self:
        """Learn from the finished jobs of earlier tasks; forgets what was learnt and seen before.

        Every job enters with what was known when it was decided. Tasks count the same, however many jobs
        they have; of a task no more are drawn than are needed for the rows that are fitted.
        """
        frame = checked(records)
        ended = frame["ended_s"].is_not_null()
        finished = frame.filter(ended)
        if finished.filter(~pl.col("censored")).is_empty():
            raise InsufficientDataError(
                f"records: no finished job, so {self.name} cannot be fitted"
            )
        self.calibration = _NOTHING
        self._past.clear()
        self._reader = Reader.fit(finished, self.quantity)
        known = self._reader.read(frame, order(frame), apart=finished)
        sample = self._sample(frame, known, ended.to_numpy())
        self.learnt = bool(usable(sample.x, sample.task).any())
        self._model = self.MODEL.fit(sample, seed=self.seed)
        return self

    def _sample(self, frame: pl.DataFrame, known: Known, ended: BoolArray) -> Sample:
        """Draw rows task by task, and tell of killed jobs what share uses less."""
        rng = np.random.default_rng(self.seed)
        rows = np.flatnonzero(ended)
        rows = _spread(rows, frame["jeditaskid"].to_numpy(), self.MOST_ROWS, rng)
        part = frame[rows]
        task, _ = codes(part, "jeditaskid")
        weight = 1 / np.bincount(task)[task]
        y = np.log(part["used"].to_numpy()) - known.anchor[rows]
        killed = part["censored"].to_numpy()
        return Sample(
            x=known.x[rows],
            y=y,
            weight=weight / weight.mean(),
            task=task,
            censored=killed,
            reached=reached(y, killed, codes(part, "kind")[0]),
        )

    def conformalize(self, records: Any) -> Self:
        """Calibrate on finished jobs of other tasks than those of ``fit``, as they are replayed.

        Groups are how many jobs of the task were seen. A killed job is above every bound. Scouts are
        seen, but do not count where other jobs do: those that follow scouts are to be bounded.
        """
        frame = checked(records)
        known, quantiles = self._known(frame, order(frame))
        counts = frame["ended_s"].is_not_null().to_numpy()
        scout = frame["is_scout"].to_numpy()
        if (counts & ~scout).any():
            counts = counts & ~scout
        score = score_of(quantiles, np.log(frame["used"].to_numpy()) - known.anchor)
        score[frame["censored"].to_numpy()] = np.inf
        task = frame["jeditaskid"].to_numpy()[counts]
        self.calibration = Calibration.of(score[counts], task, SEEN_CLASSES, _groups(known)[counts])
        return self

    def update(self, records: Any) -> Self:
        """See finished jobs: what later jobs of their tasks are told of them. The models stay."""
        self._past.add(checked(records))
        return self

    def bound_events(
        self, frame: pl.DataFrame, events: IntArray, levels: tuple[float, ...]
    ) -> Predicted:
        """Bound jobs; see :meth:`Ordered.bound_events`."""
        known, quantiles = self._known(frame, events)
        groups = _groups(known)
        scores = [self.calibration.scores(SEEN_CLASSES, groups, level) for level in levels]
        bounds = np.column_stack(
            [_exponential(value_at(quantiles, score) + known.anchor) for score in scores]
        )
        if not (self.learnt or self.calibration.enough):
            bounds[:] = np.inf
        point = _exponential(quantiles[:, 0] + known.anchor)
        if self.capped:
            asked_for = frame["requested"].fill_null(np.inf).to_numpy()
            limit = np.where(asked_for > 0, asked_for, np.inf)
            bounds, point = np.minimum(bounds, limit[:, None]), np.minimum(point, limit)
        return Predicted(frame["pandaid"].to_numpy(), known.seen, levels, bounds, point)

    def _known(self, frame: pl.DataFrame, events: IntArray) -> tuple[Known, FloatArray]:
        """Return what is known of each row, with the jobs seen before, and the fitted quantiles."""
        if self._reader is None or self._model is None:
            raise ConfigError(f"{self.name}: call fit first, or load a model that was saved")
        together, walked, past = self._past.before(frame, events, others=False)
        all_known = self._reader.read(together, walked)
        known = Known(all_known.x[past:], all_known.anchor[past:], all_known.seen[past:])
        return known, self._model.quantiles(known.x)

    def state(self) -> dict[str, Any]:
        """Return everything learnt and seen; see :class:`saving.Saveable`."""
        if self._reader is None or self._model is None:
            raise ConfigError(f"{self.name}: call fit first, there is nothing to save")
        packed, seen = io.BytesIO(), self._past.frame()
        (pl.DataFrame() if seen is None else seen).write_ipc(packed)
        return {
            "quantity": self.quantity,
            "capped": self.capped,
            "seed": self.seed,
            "learnt": self.learnt,
            "reader": self._reader.state(),
            "model": self._model.state(),
            "calibration": self.calibration.state(),
            "seen": np.frombuffer(packed.getvalue(), dtype=np.uint8),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return what :meth:`state` was made of."""
        made = cls(state["quantity"], capped=bool(state["capped"]), seed=int(state["seed"]))
        made._reader = Reader.from_state(state["reader"])
        made.learnt = bool(state["learnt"])
        made._model = cls.MODEL.from_state(state["model"])
        made.calibration = Calibration.from_state(state["calibration"])
        seen = pl.read_ipc(io.BytesIO(state["seen"].tobytes()))
        made._past.add(prepared({"seen": seen}, {"seen": Records})["seen"])
        return made


class QuantileBoosting(QuantileRegression):
    """Estimate three quantiles of a job's use by boosted trees, and bounds at any level from them.

    Trees are fitted to the logarithm of the use against an anchor (what the task's finished jobs used, else
    what was requested) at the levels 0.5, 0.8 and 0.95; `models.value_at` makes a distribution of them. The
    normal score of a job's use in its distribution is what ``conformalize`` calibrates, once for all
    levels, see :class:`Calibration`; bounds therefore never cross. At most 100,000 rows are
    fitted. From fewer than ten tasks nothing is learnt of which jobs differ (`learnt`): the median is the anchor's, and
    there is no bound unless 20 tasks or more calibrate it. Not refitted online: ``update`` tells later jobs what has finished.

    MAPIE 1.6 gives one-sided bounds by two-sided ones of twice the risk, knows no tasks and no killed
    jobs; where each job is a task of its own our levels are those of its ``SplitConformalRegressor``.
    Killed jobs are redistributed in the fit, see `models.redistribute`, and above every bound in the scores.

    Example:
        >>> QuantileBoosting("memory").name
        'quantile boosting'

    Source: quantile loss: Koenker, Bassett, Econometrica 46 (1978) 33, doi:10.2307/1913643; conformal:
    Romano, Patterson, Candès, NeurIPS 2019, arXiv:1905.03222, with scores as told above.
    """

    name = "quantile boosting"
    MOST_ROWS = 100_000
    MODEL = Trees


class LinearQuantiles(QuantileRegression):
    """Estimate three quantiles of a job's use by linear quantile regression; else as :class:`QuantileBoosting`.

    At most 2,500 rows are fitted: the linear programmes grow faster than their rows.
    """

    name = "linear quantiles"
    MOST_ROWS = 2_500
    MODEL = Lines


def _exponential(logs: FloatArray) -> FloatArray:
    """Return what logarithms stand for; only an infinite one is infinite."""
    finite = np.exp(np.clip(logs, -LARGEST_LOG, LARGEST_LOG))
    return np.where(np.isposinf(logs), np.inf, finite)


def _groups(known: Known) -> IntArray:
    """Return the place of each job in :data:`SEEN_CLASSES`."""
    return np.searchsorted(_LEAST_SEEN, known.seen, side="right").astype(np.int64) - 1


def _spread(rows: IntArray, task: IntArray, most: int, rng: np.random.Generator) -> IntArray:
    """Draw at most this many rows, from each task at random and as evenly as their sizes allow."""
    if rows.size <= most:
        return rows
    shuffled = rng.permutation(rows)
    _, place = np.unique(task[shuffled], return_inverse=True)
    by_task = np.argsort(place, kind="stable")
    size = np.bincount(place)
    rank = np.empty(rows.size, dtype=np.int64)
    rank[by_task] = np.arange(rows.size) - np.repeat(np.cumsum(size) - size, size)
    return np.sort(shuffled[np.lexsort((np.arange(rows.size), rank))[:most]])
