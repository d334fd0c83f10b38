"""What an online estimator has seen, growing with the tasks and queues that it meets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from brokerlab.estimators.hierarchy import kernels
from brokerlab.estimators.hierarchy.prior import Beliefs
from brokerlab.numerics import BoolArray, FloatArray, IntArray

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
        _check_form(state, len(kept["tasks"]), len(kept["pair_tasks"]))
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


def _check_form(state: State, tasks: int, pairs: int) -> None:
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
