"""(task, queue) pairs in the engine: the cross product, the facts joined to it, the checks evaluated on it.

A *side* is a table of facts by a number of the task and a number of the queue; one whole-number key joins it.
Checks name the columns they read, so only the sides that are read are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.brokerage.check import Check

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


def in_polars(frame: pl.DataFrame) -> pl.LazyFrame:
    """Put a frame into the default engine."""
    return frame.lazy()


def paired(facts: Facts, columns: Iterable[str], into: ToEngine = in_polars) -> nw.LazyFrame[Any]:
    """Return the candidate pairs with the columns asked for.

    Args:
        facts: The facts.
        columns: Columns of tasks, queues and sides.
        into: Puts frames into the engine.

    Returns:
        ``t, q`` and the columns, lazy.
    """
    wanted = set(columns)
    sides = [side for side in facts.sides if wanted & set(side.columns())]
    keys_t = {side.task_key for side in sides}
    keys_q = {side.queue_key for side in sides}
    of_task = [
        name for name in facts.tasks.columns if name in (wanted | keys_t | {"t"}) - {"t_version"}
    ]
    of_queue = [
        name for name in facts.queues.columns if name in (wanted | keys_q | {"q"}) - {"q_version"}
    ]
    lists = facts.listed["t"].unique()
    free = facts.tasks.filter(~pl.col("t").is_in(lists.implode())).select("t_version", *of_task)
    every = facts.queues.filter("q_candidate").select("q_version", *of_queue)
    left, right = _lazy(into, free), _lazy(into, every)
    if facts.queues["q_version"].n_unique() > 1:
        pairs = left.join(right, left_on="t_version", right_on="q_version", how="inner")
    else:
        pairs = left.join(right, how="cross")
    pairs = pairs.select(*of_task, *of_queue)
    if len(lists):
        own = facts.listed.join(facts.tasks.select(of_task), on="t").join(
            facts.queues.select(of_queue), on="q"
        )
        pairs = nw.concat([pairs, _lazy(into, own.select(*of_task, *of_queue))])
    for side in sides:
        pairs = _join(pairs, side, wanted, into)
    return pairs.select("t", "q", *sorted(wanted - {"t", "q"}))


def _lazy(into: ToEngine, frame: pl.DataFrame) -> nw.LazyFrame[Any]:
    return nw.from_native(into(frame)).lazy()


def _join(
    pairs: nw.LazyFrame[Any], side: Side, wanted: set[str], into: ToEngine
) -> nw.LazyFrame[Any]:
    """Add the facts of a side; what has no row gets the value of ``missing``."""
    facts = {name: value for name, value in side.missing.items() if name in wanted}
    largest = side.rows[side.queue_key].max()
    factor = 1 + (int(largest) if isinstance(largest, int) else 0)
    rows = side.rows.select(
        *facts, side_key=pl.col(side.task_key) * factor + pl.col(side.queue_key)
    )
    before = pairs.collect_schema().names()
    task, queue = nw.col(side.task_key), nw.col(side.queue_key)
    within = (task >= 0) & (queue >= 0) & (queue < factor)  # other keys would meet a stranger's
    joined = pairs.with_columns(pair_key=nw.when(within).then(task * factor + queue)).join(
        _lazy(into, rows), left_on="pair_key", right_on="side_key", how="left"
    )
    filled = [
        nw.col(name) if value is None else nw.col(name).fill_null(value)
        for name, value in facts.items()
    ]
    return joined.select(*before, *filled)


def evaluated(facts: Facts, checks: Sequence[Check], into: ToEngine = in_polars) -> pl.DataFrame:
    """Return which checks skip which pairs.

    Args:
        facts: The facts.
        checks: At most 62, in order.
        into: Puts frames into the engine.

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
    return frame.sort("t", "q")
