"""Run methods over a trace: predict, be scored, see, for every arrival of every task type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from brokerlab.estimators.sizing.scoring import GBH, Score, score
from brokerlab.estimators.sizing.sizer import Run, Sizer
from brokerlab.estimators.sizing.trace import Order, TaskType, Trace
from brokerlab.numerics import FloatArray, IntArray

Truth = Literal["rss", "peak_rss"]


@dataclass(frozen=True)
class Method:
    """A way to size, as it enters a comparison.

    Attributes:
        make: Returns a new sizer; called once per task type.
        truth: What the published comparison scores it on.
    """

    make: Callable[[], Sizer]
    truth: Truth = "rss"


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

    Source: sizing-benchmark.md, sections 2 and 3.
    """
    usual = {each: _usual_gbh(trace, order, each) for each in ("rss", "peak_rss")}
    frames = []
    for task_type in trace.types:
        for name, method in methods.items():
            judged: Truth = method.truth if truth is None else truth
            frames.append(_sized(task_type, name, method, order, judged, usual[judged]))
    return pl.concat(frames)


def _usual_gbh(trace: Trace, order: Order, truth: str) -> float:
    """Return the mean usage of a run of the histories of all task types."""
    usage, runs = 0.0, 0
    for each in trace.types:
        past, _ = each.split(order)
        usage += float(np.dot(each.truth(truth)[past], each.runtime_ms[past]))
        runs += past.size
    return usage / GBH / runs


def _sized(
    task_type: TaskType, name: str, method: Method, order: Order, truth: Truth, usual_gbh: float
) -> pl.DataFrame:
    memory = task_type.truth(truth)
    past, arrivals = task_type.split(order)
    sizer = method.make()
    sizer.start(task_type.history(past, memory, usual_gbh))
    scores = []
    for row in arrivals.tolist():
        run = Run(
            float(task_type.input_b[row]), float(task_type.request_b[row]), task_type.tags[row]
        )
        memory_b, runtime_ms = float(memory[row]), float(task_type.runtime_ms[row])
        scores.append(score(sizer, run, memory_b, runtime_ms))
        sizer.reveal(run, memory_b, runtime_ms / 1000)
    return _frame(task_type, name, arrivals, memory, scores)


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
