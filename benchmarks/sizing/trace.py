"""Traces of workflow runs, reduced to the task types that can be sized."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from benchmarks.sizing.contracts import Runs
from benchmarks.sizing.sizer import History
from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.sources import read_runs
from brokerlab.frames import prepared
from brokerlab.numerics import FloatArray, IntArray

MINIMUM_RUNS = 34  # ten runs of history when 30 % are
HISTORY_SHARE = 0.3

Order = int | Literal["submit"]


@dataclass(frozen=True)
class TaskType:
    """The runs of one task type, in the order of the trace.

    Attributes:
        process: Its name.
        submit: (n,) time of submission [ms].
        input_b, request_b: (n,) known at submission [bytes]; see :class:`sizer.History`.
        rss_b, peak_rss_b: (n,) the two truths [bytes].
        runtime_ms: (n,) duration [ms].
        tags: (n,) names of the runs, empty where none.
    """

    process: str
    submit: IntArray
    input_b: FloatArray
    request_b: FloatArray
    rss_b: FloatArray
    peak_rss_b: FloatArray
    runtime_ms: FloatArray
    tags: tuple[str, ...]

    def truth(self, name: str) -> FloatArray:
        """Return the memory that a run is judged by: ``rss`` or ``peak_rss`` [bytes]."""
        return self.peak_rss_b if name == "peak_rss" else self.rss_b

    def history(self, rows: IntArray, truth: FloatArray, usual_gbh: float) -> History:
        """Return what a method may learn from these rows."""
        return History(
            input_b=self.input_b[rows],
            request_b=self.request_b[rows],
            memory_b=truth[rows],
            runtime_s=self.runtime_ms[rows] / 1000,
            tags=tuple(self.tags[row] for row in rows.tolist()),
            usual_gbh=usual_gbh,
        )

    def split(self, order: Order) -> tuple[IntArray, IntArray]:
        """Return rows of the history and of the arrivals: 30 % and 70 % of the runs.

        Args:
            order: A seed: the first ceil(0.7 n) of one random permutation arrive, in its order.
                ``"submit"``: the earliest 30 % are the history, the others arrive as submitted.

        Source: sizing.md, section 2 and 5c.
        """
        n_arrivals = math.ceil((1 - HISTORY_SHARE) * self.submit.size)
        if order == "submit":
            rows = np.argsort(self.submit, kind="stable")
            cut = self.submit.size - n_arrivals
            return rows[:cut], rows[cut:]
        rows = np.random.RandomState(order).permutation(self.submit.size)
        return rows[n_arrivals:], rows[:n_arrivals]


@dataclass(frozen=True)
class Trace:
    """A trace, reduced to what is sized.

    Attributes:
        name: Of the workflow.
        types: In order of first appearance.
        left_out: ``process, runs, reason``: one row per task type that is not sized.
    """

    name: str
    types: tuple[TaskType, ...]
    left_out: pl.DataFrame

    @property
    def n_runs(self) -> int:
        """Return the number of runs of the types kept."""
        return sum(each.submit.size for each in self.types)


def trace_of(runs: Any, *, name: str) -> Trace:
    """Keep the task types of a frame of runs that can be sized.

    Runs without measured memory are left out first; then task types with fewer than 34 runs; then
    those with a run too short to be measured.

    Args:
        runs: Columns as in :class:`contracts.Runs`; other columns are ignored.
        name: Of the workflow.

    Raises:
        SchemaError: A column has a wrong type, or ``process`` or ``submit`` is null.
        InsufficientDataError: No task type is left.

    Source: sizing.md, section 1.
    """
    frame = prepared({"runs": runs}, {"runs": Runs})["runs"].filter(pl.col("rss") > 0)
    types, left_out = [], []
    for (process,), group in frame.group_by("process", maintain_order=True):
        short = int((group["realtime"].fill_null(0) == 0).sum())
        if group.height < MINIMUM_RUNS:
            left_out.append((process, group.height, f"fewer than {MINIMUM_RUNS} runs"))
        elif short:
            left_out.append((process, group.height, f"{short} runs too short to be measured"))
        else:
            types.append(_task_type(str(process), group))
    if not types:
        raise InsufficientDataError(
            f"trace '{name}': none of its {len(left_out)} task types has {MINIMUM_RUNS} measured runs"
        )
    schema = {"process": pl.String, "runs": pl.Int64, "reason": pl.String}
    return Trace(name, tuple(types), pl.DataFrame(left_out, schema=schema, orient="row"))


def read_trace(path: Path | str, *, name: str | None = None) -> Trace:
    """Read a Nextflow trace (CSV, also gzip) and keep the task types that can be sized.

    Args:
        path: The file; ``-`` means null.
        name: Of the workflow; by default what follows ``trace_`` in the file's name.

    Raises:
        DataError: The file is not there or no CSV.
        SchemaError, InsufficientDataError: See :func:`trace_of`.

    Source: sizing.md, section 1.
    """
    frame = read_runs(path)
    return trace_of(frame, name=name or Path(path).name.split(".")[0].removeprefix("trace_"))


def _task_type(process: str, group: pl.DataFrame) -> TaskType:
    def column(name: str, missing: float) -> FloatArray:
        return group[name].cast(pl.Float64).fill_null(missing).to_numpy()

    peak = group["peak_rss"].fill_null(group["rss"]).cast(pl.Float64)
    return TaskType(
        process=process,
        submit=group["submit"].to_numpy(),
        input_b=column("rchar", 0.0),
        request_b=column("memory", math.nan),
        rss_b=column("rss", math.nan),
        peak_rss_b=peak.to_numpy(),
        runtime_ms=column("realtime", math.nan),
        tags=tuple(group["tag"].fill_null("").to_list()),
    )
