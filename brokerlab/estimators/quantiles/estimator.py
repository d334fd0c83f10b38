"""Quantile regression behind the interface of every estimator."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, InsufficientDataError, nearest
from brokerlab.estimators.estimator import Ordered, Predicted
from brokerlab.estimators.quantiles import censoring, columns
from brokerlab.estimators.quantiles.calibration import Calibration
from brokerlab.estimators.quantiles.curve import score_of, value_at
from brokerlab.estimators.quantiles.features import FEATURES, Known, Reader
from brokerlab.estimators.quantiles.models import Lines, Model, Sample, Trees
from brokerlab.estimators.records import UNITS, Quantity, Records, checked
from brokerlab.estimators.replaying import Past, codes, order
from brokerlab.frames import prepared
from brokerlab.numerics import BoolArray, FloatArray, IntArray

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
        if quantity not in UNITS:
            raise ConfigError(f"quantity '{quantity}': {nearest(quantity, UNITS)}")
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
        usable = frame["ended_s"].is_not_null()
        finished = frame.filter(usable)
        if finished.filter(~pl.col("censored")).is_empty():
            raise InsufficientDataError(
                f"records: no finished job, so {self.name} cannot be fitted"
            )
        self.calibration = _NOTHING
        self._past.clear()
        self._reader = Reader.fit(finished, self.quantity)
        known = self._reader.read(frame, order(frame), apart=finished)
        sample = self._sample(frame, known, usable.to_numpy())
        self.learnt = bool(columns.usable(sample.x, sample.task).any())
        self._model = self.MODEL.fit(sample, seed=self.seed)
        return self

    def _sample(self, frame: pl.DataFrame, known: Known, usable: BoolArray) -> Sample:
        """Draw rows task by task, and tell of killed jobs what share uses less."""
        rng = np.random.default_rng(self.seed)
        rows = np.flatnonzero(usable)
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
            reached=censoring.reached(y, killed, codes(part, "kind")[0]),
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

    def _predicted(
        self, frame: pl.DataFrame, events: IntArray, levels: tuple[float, ...]
    ) -> Predicted:
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
    what was requested) at the levels 0.5, 0.8 and 0.95; :mod:`curve` makes a distribution of them. The
    normal score of a job's use in its distribution is what ``conformalize`` calibrates, once for all
    levels, see :class:`calibration.Calibration`; bounds therefore never cross. At most 100,000 rows are
    fitted. From fewer than ten tasks nothing is learnt of which jobs differ (`learnt`): the median is the anchor's, and
    there is no bound unless 20 tasks or more calibrate it. Not refitted online: ``update`` tells later jobs what has finished.

    MAPIE 1.6 gives one-sided bounds by two-sided ones of twice the risk, knows no tasks and no killed
    jobs; where each job is a task of its own our levels are those of its ``SplitConformalRegressor``.
    Killed jobs are redistributed in the fit, see :mod:`censoring`, and above every bound in the scores.

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
