"""Run methods over a trace: predict, be scored, see, for every arrival of every task type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from benchmarks.sizing.scoring import GBH, Score, score
from benchmarks.sizing.sizer import History, Run, Sizer
from benchmarks.sizing.trace import Order, TaskType, Trace
from brokerlab.errors import ConfigError
from brokerlab.numerics import FloatArray, IntArray

Truth = Literal["rss", "peak_rss"]


@dataclass(frozen=True)
class Method:
    """A way to size, as it enters a comparison.

    Attributes:
        make: Returns a new sizer; called once per task type.
        truth: What the published comparison scores it on.
        slow: Whether its results are worth keeping, see :class:`store.Store`. A slow method shares
            nothing with other methods: it may run without them.
    """

    make: Callable[[], Sizer]
    truth: Truth = "rss"
    slow: bool = False

    def judged_by(self, truth: Truth | None) -> Truth:
        """Return the truth that counts; None: that of the published comparison."""
        return self.truth if truth is None else truth


def size(
    trace: Trace,
    methods: Mapping[str, Method],
    *,
    order: Order = "submit",
    truth: Truth | None = "peak_rss",
) -> pl.DataFrame:
    """Size every arriving run of a trace by every method.

    Args:
        trace: The runs.
        methods: Name to method. Within a task type they run in this order.
        order: A seed of the published protocol, or ``"submit"`` for the order of submission.
        truth: ``"peak_rss"`` is what a limit kills at. None: what the published comparison used for
            each method.

    Returns:
        One row per (method, process, arrival), sorted as sized: ``method, process, arrival`` (0, 1, ...),
        ``row`` (of the trace's rows of the type), ``memory_b, first_b, last_b`` [bytes], ``failures``,
        ``runtime_h``, ``waste_gbh, usage_gbh`` [GB h], ``occupied_h``.

    Raises:
        DataError: A method's retry is not larger than what failed.

    Source: sizing.md, sections 2 and 3.
    """
    usual = {each: _usual_gbh(trace, order, each) for each in ("rss", "peak_rss")}
    frames = []
    for task_type in trace.types:
        for name, method in methods.items():
            judged = method.judged_by(truth)
            past, arrivals = task_type.split(order)
            history = task_type.history(past, task_type.truth(judged), usual[judged])
            scores = _scores(task_type, method.make(), history, arrivals, judged)
            frames.append(_frame(task_type, name, arrivals, task_type.truth(judged), scores))
    return pl.concat(frames)


def size_knowing_others(
    trace: Trace, method: Method, *, truth: Truth = "peak_rss", folds: int = 10, seed: int = 0
) -> pl.DataFrame:
    """Size every run of a trace by a method that knows nearly all other runs of its type.

    How far the waste of :func:`size` is above this one, per run, is the price of learning; what is left is
    what the method cannot tell from the features, however long it watches.

    Args:
        trace: The runs.
        method: The method.
        truth: As in :func:`size`.
        folds: Parts per task type; a part is sized from all others and learns nothing on the way.
        seed: Of the drawing of parts, and of the order of the history.

    Returns:
        As :func:`size`, one row per run of the trace.

    Raises:
        ConfigError: Fewer than two parts.
    """
    if folds < 2:
        raise ConfigError(f"folds {folds}: at least 2 parts are needed")
    rng = np.random.default_rng(seed)
    usual = _usual_gbh(trace, "submit", truth)
    frames = []
    for task_type in trace.types:
        rows = rng.permutation(task_type.submit.size)
        for part in np.array_split(rows, folds):
            others = rows[~np.isin(rows, part)]
            history = task_type.history(others, task_type.truth(truth), usual)
            scores = _scores(task_type, method.make(), history, part, truth, learns=False)
            frames.append(_frame(task_type, "knowing others", part, task_type.truth(truth), scores))
    return pl.concat(frames)


def _usual_gbh(trace: Trace, order: Order, truth: str) -> float:
    """Return the mean usage of a run of the histories of all task types."""
    usage, runs = 0.0, 0
    for each in trace.types:
        past, _ = each.split(order)
        usage += float(np.dot(each.truth(truth)[past], each.runtime_ms[past]))
        runs += past.size
    return usage / GBH / runs


def _scores(
    task_type: TaskType,
    sizer: Sizer,
    history: History,
    arrivals: IntArray,
    truth: Truth,
    *,
    learns: bool = True,
) -> list[Score]:
    """Let a method size runs one after the other."""
    memory = task_type.truth(truth)
    sizer.start(history)
    scores = []
    for row in arrivals.tolist():
        run = Run(
            float(task_type.input_b[row]), float(task_type.request_b[row]), task_type.tags[row]
        )
        memory_b, runtime_ms = float(memory[row]), float(task_type.runtime_ms[row])
        scores.append(score(sizer, run, memory_b, runtime_ms))
        if learns:
            sizer.reveal(run, memory_b, runtime_ms / 1000)
    return scores


def _frame(
    task_type: TaskType, name: str, arrivals: IntArray, memory: FloatArray, scores: list[Score]
) -> pl.DataFrame:
    runtime_ms = task_type.runtime_ms[arrivals]
    frame = pl.DataFrame(
        {
            "row": arrivals,
            "memory_b": memory[arrivals],
            "first_b": [each.first_b for each in scores],
            "last_b": [each.last_b for each in scores],
            "failures": [each.failures for each in scores],
            "runtime_h": runtime_ms / 3.6e6,
            "waste_gbh": [each.waste / GBH for each in scores],
            "usage_gbh": memory[arrivals] * runtime_ms / GBH,
        }
    )
    return frame.select(
        pl.lit(name).alias("method"),
        pl.lit(task_type.process).alias("process"),
        pl.int_range(pl.len(), dtype=pl.Int64).alias("arrival"),
        pl.all(),
        occupied_h=(pl.col("failures") + 1) * pl.col("runtime_h"),
    )
