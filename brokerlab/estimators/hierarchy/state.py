"""What an online estimator has seen, growing with the tasks and queues that it meets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from brokerlab.estimators.hierarchy import kernels
from brokerlab.numerics import FloatArray, IntArray

Pair = tuple[int, str | None]


@dataclass
class State:
    """Numbers of the tasks and of their queues, and what was seen of each.

    Attributes:
        d: Features of the model.
        tasks: Task to its number.
        pairs: Task and queue to their number.
        level: (t,) what was expected of each task when it was met, on the scale of logarithms.
        origin: (t, d - 1) logarithms of the features of each task's first job.
    """

    d: int
    tasks: dict[int, int] = field(default_factory=dict)
    pairs: dict[Pair, int] = field(default_factory=dict)
    level: FloatArray = field(default_factory=lambda: np.empty(0))

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
            kept["level"],
        )
        state.origin = kept["origin"]
        state.known = kernels.Known(*(kept[name] for name in kernels.Known._fields))
        state.scores = kernels.Scores(*(kept[f"score_{name}"] for name in kernels.Scores._fields))
        return state

    def new_tasks(self, records: pl.DataFrame) -> pl.DataFrame:
        """Return the first row of each task that was not met before."""
        return records.filter(~pl.col("jeditaskid").is_in(list(self.tasks))).unique(
            "jeditaskid", keep="first", maintain_order=True
        )

    def meet(
        self, records: pl.DataFrame, new: pl.DataFrame, level: FloatArray, origin: FloatArray
    ) -> None:
        """Number what is met for the first time; ``level`` and ``origin`` are of the rows of ``new``."""
        for task in new["jeditaskid"].to_list():
            self.tasks[task] = len(self.tasks)
        self.level = np.concatenate([self.level, level])
        self.origin = np.concatenate([self.origin, origin])
        met = records.select("jeditaskid", "queue").unique(maintain_order=True)
        for pair in met.iter_rows():
            self.pairs.setdefault(pair, len(self.pairs))
        self._reserve()

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

    def numbers(self, records: pl.DataFrame) -> tuple[IntArray, IntArray]:
        """Return the numbers of the task and of the pair of each row; all were met."""
        tasks = records["jeditaskid"].to_numpy()
        distinct, place = np.unique(tasks, return_inverse=True)
        task = np.array([self.tasks[each] for each in distinct.tolist()], dtype=np.int64)[place]
        keys = records.select("jeditaskid", "queue").with_row_index("row")
        met = keys.group_by("jeditaskid", "queue", maintain_order=True).agg("row")
        pair = np.empty(len(tasks), dtype=np.int64)
        found = [self.pairs[each] for each in met.select("jeditaskid", "queue").iter_rows()]
        counts = met["row"].list.len().to_numpy()
        pair[met["row"].explode().to_numpy()] = np.repeat(np.array(found, dtype=np.int64), counts)
        return task, pair


def _room(have: int, need: int) -> int:
    """Return what is needed the first time, and twice as much when that was short."""
    return have if have >= need else 2 * need if have else need


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
    scores = kernels.Scores(
        task=np.empty((tasks, kernels.TASK_WINDOW)),
        task_sorted=np.empty((tasks, kernels.TASK_WINDOW)),
        task_count=np.zeros(tasks, dtype=np.int64),
        pair=np.empty((pairs, kernels.PAIR_WINDOW)),
        pair_sorted=np.empty((pairs, kernels.PAIR_WINDOW)),
        pair_count=np.zeros(pairs, dtype=np.int64),
    )
    return known, scores
