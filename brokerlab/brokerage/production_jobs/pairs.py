"""(task, queue) pairs in the engine: the cross product, the facts joined to it, the checks evaluated on it.

A *side* is a table of facts by a number of the task and a number of the queue; one whole-number key joins it.
Checks name the columns they read, so only the sides that are read are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from brokerlab.brokerage.check import Check
from brokerlab.numerics import IntArray

UIntArray = npt.NDArray[np.uint32]
ToEngine = Callable[[pl.DataFrame], Any]
"""Puts a Polars frame into an engine: returns what narwhals accepts."""


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

    def columns(self) -> list[str]:
        """Return the names of the facts."""
        return list(self.missing)


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


def paired(facts: Facts, columns: Iterable[str], into: ToEngine | None = None) -> nw.LazyFrame[Any]:
    """Return the candidate pairs with the columns asked for.

    Args:
        facts: The facts.
        columns: Columns of tasks, queues and sides.
        into: Puts frames into an engine; null: Polars, where facts are looked up by position, which costs a
            fraction of a join.

    Returns:
        ``t, q`` and the columns, lazy; in Polars sorted by t, q.
    """
    wanted = set(columns) - {"t", "q"}
    sides = [side for side in facts.sides if wanted & set(side.missing)]
    pairs = matched(facts)
    if into is None:
        return nw.from_native(_looked_up(facts, pairs, wanted, sides)).lazy()
    keys_t = {side.task_key for side in sides} | {"t"}
    keys_q = {side.queue_key for side in sides} | {"q"}
    tasks = facts.tasks.select(sorted((wanted | keys_t) & set(facts.tasks.columns)))
    queues = facts.queues.select(sorted((wanted | keys_q) & set(facts.queues.columns)))
    joined = _lazy(into, pairs).join(_lazy(into, tasks), on="t").join(_lazy(into, queues), on="q")
    for side in sides:
        joined = _joined(joined, side, wanted, into)
    return joined.select("t", "q", *sorted(wanted))


def matched(facts: Facts) -> pl.DataFrame:
    """Return ``t, q`` of the candidates, sorted."""
    listed = facts.listed["t"].unique()
    free = facts.tasks.filter(~pl.col("t").is_in(listed.implode())).select("t", "t_version")
    every = facts.queues.filter("q_candidate").select("q", "q_version")
    if pl.concat([every["q_version"], free["t_version"].rename("q_version")]).n_unique() > 1:
        pairs = free.join(every, left_on="t_version", right_on="q_version").select("t", "q")
    else:
        pairs = free.select("t").join(every.select("q"), how="cross", maintain_order="left_right")
        if not len(listed):
            return pairs
    return pl.concat([pairs, facts.listed.select("t", "q")]).sort("t", "q")


def _lazy(into: ToEngine, frame: pl.DataFrame) -> nw.LazyFrame[Any]:
    lazy: nw.LazyFrame[Any] = nw.from_native(into(frame)).lazy()
    return lazy


def _joined(
    pairs: nw.LazyFrame[Any], side: Side, wanted: set[str], into: ToEngine
) -> nw.LazyFrame[Any]:
    """Add the facts of a side; what has no row gets the value of ``missing``."""
    facts = {name: value for name, value in side.missing.items() if name in wanted}
    before = pairs.collect_schema().names()
    keys = [side.task_key, side.queue_key]
    joined = pairs.join(_lazy(into, side.rows.select(*keys, *facts)), on=keys, how="left")
    filled = [
        nw.col(name) if value is None else nw.col(name).fill_null(value)
        for name, value in facts.items()
    ]
    return joined.select(*before, *filled)


def _looked_up(
    facts: Facts, pairs: pl.DataFrame, wanted: set[str], sides: Sequence[Side]
) -> pl.DataFrame:
    """Return the pairs with their columns, each taken from its table by position."""
    task = _positions(facts.tasks["t"], pairs["t"])
    queue = _positions(facts.queues["q"], pairs["q"])
    parts = [pairs]
    for frame, rows in ((facts.tasks, task), (facts.queues, queue)):
        names = sorted(wanted & set(frame.columns))
        if names:
            parts.append(frame.select(names)[pl.Series(rows)])
    for side in sides:
        of_task, of_queue = facts.tasks[side.task_key], facts.queues[side.queue_key]
        names = [name for name in side.missing if name in wanted]
        rows = _side_rows(side, of_task.to_numpy(), of_queue.to_numpy(), task, queue)
        parts.append(_with_missing(side, names)[pl.Series(rows)])
    return solid(pl.concat(parts, how="horizontal"))


def solid(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with every value written out.

    Polars keeps a column of one repeated value as a scalar, and divides by a scalar by multiplying with its
    reciprocal: off by a bit, and then a batch of tasks would differ from one task alone.
    """
    return pl.DataFrame(frame.get_columns())


def _positions(keys: pl.Series, wanted: pl.Series) -> UIntArray:
    """Return at which position of ``keys`` (distinct, not negative) each value stands."""
    places = np.zeros(int(keys.max() or 0) + 1, dtype=np.uint32)  # type: ignore[arg-type]
    places[keys.to_numpy()] = np.arange(len(keys), dtype=np.uint32)
    found: UIntArray = places[wanted.to_numpy()]
    return found


def _side_rows(
    side: Side, of_task: IntArray, of_queue: IntArray, task: UIntArray, queue: UIntArray
) -> UIntArray:
    """Return the row of a side for each pair; the row after the last one where it has none."""
    keys = side.rows[side.task_key].to_numpy(), side.rows[side.queue_key].to_numpy()
    height, width = (int(key.max()) + 1 if len(key) else 0 for key in keys)
    # one line and one column more stand for keys that no row has
    line = np.where((of_task >= 0) & (of_task < height), of_task, height) * (width + 1)
    column = np.where((of_queue >= 0) & (of_queue < width), of_queue, width)
    rows = np.full((height + 1) * (width + 1), side.rows.height, dtype=np.uint32)
    rows[keys[0] * (width + 1) + keys[1]] = np.arange(side.rows.height, dtype=np.uint32)
    found: UIntArray = rows[line[task] + column[queue]]
    return found


def _with_missing(side: Side, names: Sequence[str]) -> pl.DataFrame:
    """Return the facts of a side and, as its last row, what holds where there is no row."""
    kept = side.rows.select(names)
    last = pl.DataFrame({name: [side.missing[name]] for name in names}, schema=kept.schema)
    filled = [
        pl.col(name).fill_null(side.missing[name])
        for name in names
        if side.missing[name] is not None
    ]
    return pl.concat([kept.with_columns(filled), last])


def evaluated(facts: Facts, checks: Sequence[Check], into: ToEngine | None = None) -> pl.DataFrame:
    """Return which checks skip which pairs.

    Args:
        facts: The facts.
        checks: As many as :data:`.recipe.MOST_CHECKS` at most, in order.
        into: Puts frames into an engine, see :func:`paired`.

    Returns:
        ``t, q, failed``: bit i of ``failed`` (i64) is set where check i says skip; sorted by t, q.
    """
    inputs = {name for check in checks for name in check.inputs}
    pairs = paired(facts, inputs, into)
    bits = [
        nw.when(check.skip.fill_null(value=False)).then(nw.lit(1 << bit)).otherwise(nw.lit(0))
        for bit, check in enumerate(checks)
    ]
    failed = bits[0]
    for bit in bits[1:]:
        failed = failed + bit
    frame: pl.DataFrame = (
        pairs.select("t", "q", failed=failed.cast(nw.Int64())).collect("polars").to_native()
    )
    return frame if into is None else frame.sort("t", "q")
