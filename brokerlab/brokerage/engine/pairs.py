"""(task, queue) pairs: the cross product, the facts looked up for it, and plans that are run on other frames again and again.

A *side* is a table of facts by a number of the task and a number of the queue. Only the sides whose columns are asked
for are looked up, by position, which costs a fraction of a join.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from threading import Lock, get_ident
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from brokerlab.brokerage.inputs.frames import run_all
from brokerlab.numerics import IntArray, repeated

UIntArray = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Side:
    """Facts of some (task, queue) pairs.

    Attributes:
        task_key: Whole-number column of the tasks.
        queue_key: Whole-number column of the queues.
        rows: ``task_key, queue_key`` and the facts; one row per pair of keys.
        missing: Fact -> value where there is no row.
    """

    task_key: str
    queue_key: str
    rows: pl.DataFrame
    missing: dict[str, Any]


LazySide: TypeAlias = tuple[Side, pl.LazyFrame]
"""A side without rows, and the plan that makes them."""


@dataclass(frozen=True)
class Facts:
    """All that checks read, before it is paired.

    Attributes:
        tasks: One row per decision, key ``t``.
        queues: One row per queue (and snapshot, where queues have a history), key ``q``.
        listed: ``t, q`` of the tasks whose candidates are a list; other tasks see every candidate.
        sides: Facts of pairs.
    """

    tasks: pl.DataFrame
    queues: pl.DataFrame
    listed: pl.DataFrame
    sides: tuple[Side, ...]

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """The columns of pairs with their types."""
        frames = (self.tasks, self.queues, *(side.rows for side in self.sides))
        return {name: kind for frame in frames for name, kind in frame.schema.items()}

    @property
    def most_places(self) -> int:
        """How many places a task without list sees at most."""
        seen = self.queues.filter("q_candidate")["q_version"].value_counts()["count"]
        return max(seen, default=0)

    @cached_property
    def names(self) -> pl.Series:
        """The names of the queues, as an Enum of those that there are."""
        names = self.queues["panda_queue"]
        return names.cast(pl.Enum(names.unique().sort()))

    def of_tasks(self, tasks: pl.DataFrame) -> Facts:
        """Return the facts of some tasks, ``t``."""
        kept = self.tasks.join(tasks, on="t", how="semi", maintain_order="left")
        return replace(self, tasks=kept, listed=self.listed.join(tasks, on="t", how="semi"))


def matched(facts: Facts) -> pl.DataFrame:
    """Return ``t, q`` of the candidates, sorted by task, then queue."""
    tasks = facts.tasks.select("t", "t_version").sort("t")
    t, versions = tasks["t"].to_numpy(), tasks["t_version"].to_numpy()
    own = facts.listed.select("t", "q").sort("t", "q")
    first, last = (np.searchsorted(own["t"].to_numpy(), t, side) for side in ("left", "right"))
    every = facts.queues.filter("q_candidate").sort("q").partition_by("q_version", as_dict=True)
    of_version = {key: frame["q"].to_numpy() for (key,), frame in every.items()}
    rows_of = {key: np.flatnonzero((versions == key) & (first == last)) for key in of_version}
    n = last - first
    for key, rows in rows_of.items():
        n[rows] = len(of_version[key])
    start = np.cumsum(n) - n
    q = np.empty(n.sum(), dtype=np.int64)
    for key, rows in rows_of.items():
        q[start[rows][:, None] + np.arange(len(of_version[key]))] = of_version[key]
    rows = np.flatnonzero(first < last)
    _, places = repeated(start[rows], n[rows])
    _, listed = repeated(first[rows], n[rows])
    q[places] = own["q"].to_numpy()[listed]
    return pl.DataFrame({"t": np.repeat(t, n), "q": q})


def looked_up(facts: Facts, pairs: pl.DataFrame, wanted: AbstractSet[str]) -> pl.DataFrame:
    """Return the pairs ``t, q`` with those of the wanted columns that there are, each taken from its table by position."""
    wanted = wanted - {"t", "q"}
    task = positions(facts.tasks["t"], pairs["t"])
    queue = positions(facts.queues["q"], pairs["q"])
    parts = [pairs]
    for frame, rows in ((facts.tasks, task), (facts.queues, queue)):
        names = sorted(wanted & set(frame.columns))
        if names:
            parts.append(frame.select(names)[pl.Series(rows)])
    for side in facts.sides:
        names = [name for name in side.missing if name in wanted]
        if names:
            keys = facts.tasks[side.task_key].to_numpy(), facts.queues[side.queue_key].to_numpy()
            kept, numbers = _number(side, *keys)
            parts.append(_with_missing(side, kept, names)[pl.Series(numbers(task, queue))])
    return solid(pl.concat(parts, how="horizontal"))


def solid(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with every value written out.

    Polars keeps a column of one repeated value as a scalar, and divides by a scalar by multiplying with its
    reciprocal: off by a bit, and then a batch of tasks would differ from one task alone.
    """
    return pl.DataFrame(frame.get_columns())


def positions(keys: pl.Series, wanted: pl.Series) -> UIntArray:
    """Return at which position of ``keys`` (distinct, not negative) each value stands."""
    places = np.zeros(int(keys.max() or 0) + 1, dtype=np.uint32)  # type: ignore[arg-type]
    places[keys.to_numpy()] = np.arange(len(keys), dtype=np.uint32)
    result: UIntArray = places[wanted.to_numpy()]
    return result


def _number(
    side: Side, of_task: IntArray, of_queue: IntArray
) -> tuple[pl.DataFrame, Callable[[UIntArray, UIntArray], UIntArray]]:
    """Return the rows of a side that these tasks may have, and a function from positions of pairs to the number of the row.

    It is the one after the last where a pair has none.
    """
    low, high = (int(end(of_task)) if len(of_task) else 0 for end in (np.min, np.max))
    kept = side.rows
    lines, columns = (kept[key].to_numpy() for key in (side.task_key, side.queue_key))
    others = (lines < low) | (lines > high)
    if others.any():
        kept = kept.filter(pl.Series(~others))
        lines, columns = lines[~others], columns[~others]
    width = int(columns.max()) + 1 if len(columns) else 0
    # one column more stands for keys that no row has
    rows = np.full((high - low + 1) * (width + 1), kept.height, dtype=np.uint32)
    rows[(lines - low) * (width + 1) + columns] = np.arange(kept.height, dtype=np.uint32)
    line = (of_task - low) * (width + 1)
    column = np.where((of_queue >= 0) & (of_queue < width), of_queue, width)

    def numbers(task: UIntArray, queue: UIntArray) -> UIntArray:
        result: UIntArray = rows[line[task] + column[queue]]
        return result

    return kept, numbers


def _with_missing(side: Side, rows: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return facts of a side and, as the last row, what holds where there is no row."""
    kept = rows.select(names)
    values = tuple(side.missing[name] for name in names)
    filled = [
        pl.col(name).fill_null(value)
        for name, value in zip(names, values, strict=True)
        if value is not None and kept.get_column(name).null_count()
    ]
    if filled:
        kept = kept.with_columns(filled)
    return pl.concat([kept, _nothing(tuple(kept.schema.items()), values)], rechunk=True)


@lru_cache(maxsize=256)
def _nothing(columns: tuple[tuple[str, pl.DataType], ...], values: tuple[Any, ...]) -> pl.DataFrame:
    row = {name: [value] for (name, _), value in zip(columns, values, strict=True)}
    return pl.DataFrame(row, schema=dict(columns))


PLANS_KEPT = 64
"""Plans of rules that are kept for the next time."""
Frames = Mapping[str, pl.DataFrame]
Lazy = dict[str, pl.LazyFrame]
Maker = Callable[[Lazy], Sequence[pl.LazyFrame]]


@dataclass(frozen=True)
class Plans:
    """Plans by name, and the frames that they read while they run.

    Making the many expressions of a brokerage takes several times as long as running them on a few thousand rows.
    """

    made: dict[str, Sequence[pl.LazyFrame]] = field(default_factory=dict)
    made_of: dict[str, Sequence[Side]] = field(default_factory=dict)
    frames: dict[str, pl.DataFrame] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def __reduce__(self) -> tuple[type[Plans], tuple[()]]:
        """Go to another process without any plan: they are made again there."""
        return type(self), ()

    def run(self, name: str, frames: Frames, make: Maker) -> list[pl.DataFrame]:
        """Run a plan of this name; ``frames`` have the same names, columns and types every time, ``make`` makes it the first time."""
        with self.lock:
            self.frames.update(frames)
            try:
                if name not in self.made:
                    self.made[name] = make({key: self._source(key, frames[key]) for key in frames})
                plans = [*self.made[name]]
                return run_all(plans)
            finally:
                self.frames.clear()

    def frame(
        self, name: str, frames: Frames, make: Callable[[Lazy], pl.LazyFrame]
    ) -> pl.DataFrame:
        """Run a plan of one table; see :meth:`run`."""
        return self.run(name, frames, lambda lazy: [make(lazy)])[0]

    def sides(
        self, name: str, frames: Frames, make: Callable[[Lazy], Sequence[LazySide]]
    ) -> tuple[Side, ...]:
        """Run a plan of several sides; see :meth:`run`."""

        def rows(lazy: Lazy) -> list[pl.LazyFrame]:
            result = make(lazy)
            self.made_of[name] = [side for side, _ in result]
            return [plan for _, plan in result]

        result = self.run(name, frames, rows)
        return tuple(
            replace(side, rows=frame)
            for side, frame in zip(self.made_of[name], result, strict=True)
        )

    def _source(self, name: str, frame: pl.DataFrame) -> pl.LazyFrame:
        # scanned once a run, however often it is read
        return pl.defer(partial(self.frames.__getitem__, name), schema=frame.schema).cache()


def run_again(
    rules: Hashable, frame: pl.DataFrame, make: Callable[[pl.LazyFrame], pl.LazyFrame]
) -> pl.DataFrame:
    """Run a plan on a frame: the one made before in this thread, where it was of the same rules and the same columns."""
    plans = _plans(rules, tuple(frame.schema.items()), get_ident())
    return plans.frame("plan", {"frame": frame}, lambda lazy: make(lazy["frame"]))


@lru_cache(maxsize=PLANS_KEPT)
def _plans(rules: Hashable, schema: tuple[tuple[str, pl.DataType], ...], thread: int) -> Plans:  # noqa: ARG001
    return Plans()
