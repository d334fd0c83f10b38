"""Records from logs of batch systems, and from traces of workflow runs (Nextflow)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl

from brokerlab.errors import ConfigError, DataError
from brokerlab.estimators.records import Quantity
from brokerlab.estimators.sources.source import At, Source, check_choices, sift
from brokerlab.frames import prepared
from brokerlab.units import MB


class LoggedJobs(dy.Schema):
    """One row per job, in any order; names are those of `brokerlab.workflows.swf`.

    A job with any other null, or whose run time or request is 0, is left out.
    """

    submit_s = dy.Float64(
        nullable=True, metadata={"unit": "s", "meaning": "submission; ties keep rows' order"}
    )
    wait_s = dy.Float64(
        nullable=True, metadata={"unit": "s", "meaning": "from submission to start"}
    )
    run_s = dy.Float64(nullable=True, metadata={"unit": "s", "meaning": "from start to end"})
    requested_s = dy.Float64(
        nullable=True, metadata={"unit": "s", "meaning": "limit that the user asked for"}
    )
    hosts_requested = dy.Int64(
        nullable=True, metadata={"unit": "hosts", "meaning": "hosts asked for; null or 0: 1"}
    )
    user = dy.Int64(nullable=True, metadata={"meaning": "who submitted it"})


def of_log(jobs: Any, *, at: At = "submit", unknown_wait_s: float | None = None) -> Source:
    """Read how long the jobs of a log ran.

    The task is the user: nothing else in a log says which jobs are alike. A run as long as its request
    or longer was stopped there, or should have been: its time is cut there and ``censored``.

    Records, with ``pandaid`` the row of the log, from 0; ``requested`` and ``sent`` are what the user
    asked for. Counts of the rows left out: those that did not run, or say too little of themselves.

    ``jobs`` as `brokerlab.workflows.swf.read` gives them: ``submit_s, wait_s, run_s, requested_s`` [s], ``hosts_requested, user``. Where
    the log does not know the wait ``unknown_wait_s`` [s] is taken; None: such a job is left out, as nobody can say when its time
    was known.

    Source: sizing.md, section 8; workflows.md 1.4.
    """
    check_choices("walltime", at)
    frame = prepared({"jobs": jobs}, {"jobs": LoggedJobs})["jobs"].with_row_index("row").lazy()
    if unknown_wait_s is not None:
        if not 0 <= unknown_wait_s < float("inf"):
            raise ConfigError(f"unknown_wait_s = {unknown_wait_s}: 0 or more is allowed, or None")
        frame = frame.with_columns(pl.col("wait_s").fill_null(unknown_wait_s))
    start_s = pl.col("submit_s") + pl.col("wait_s")
    end_s, asked_s = start_s + pl.col("run_s"), pl.col("requested_s")
    reasons = {
        "no user": pl.col("user").is_null(),
        "no submission": pl.col("submit_s").is_null(),
        "no wait": ~(pl.col("wait_s") >= 0).fill_null(value=False),
        "did not run": ~(pl.col("run_s") > 0).fill_null(value=False),
        "no request": ~(asked_s > 0).fill_null(value=False),
        "too short for the clock": end_s <= (pl.col("submit_s") if at == "submit" else start_s),
    }
    used_s = pl.min_horizontal("run_s", "requested_s")
    columns = {
        "pandaid": pl.col("row").cast(pl.Int64),
        "jeditaskid": pl.col("user"),
        "cores": pl.col("hosts_requested").fill_null(1).clip(lower_bound=1),
        "requested": asked_s,
        "sent": asked_s,
        "is_scout": pl.lit(value=False),
        "decided_s": pl.col("submit_s") if at == "submit" else start_s,
        "started_s": start_s,
        "ended_s": end_s,
        "used": used_s,
        "censored": pl.col("run_s") >= asked_s,
        "wall_s": used_s,
    }
    return sift(frame, reasons, columns, quantity="walltime")


class TracedRuns(dy.Schema):
    """One row per run of a workflow, in any order; names are those of a Nextflow trace."""

    process = dy.String(metadata={"meaning": "task type"})
    submit = dy.Int64(metadata={"unit": "ms since 1970", "meaning": "submission"})
    complete = dy.Int64(
        nullable=True,
        metadata={"unit": "ms since 1970", "meaning": "end; null: submission and duration"},
    )
    realtime = dy.Int64(
        nullable=True, metadata={"unit": "ms", "meaning": "duration; null or 0: not measured"}
    )
    cpus = dy.Int64(nullable=True, metadata={"unit": "cores", "meaning": "null or 0: 1"})
    peak_rss = dy.Int64(
        nullable=True, metadata={"unit": "bytes", "meaning": "null or 0: not measured"}
    )
    rchar = dy.Int64(nullable=True, metadata={"unit": "bytes", "meaning": "characters read"})
    memory = dy.Int64(
        nullable=True, metadata={"unit": "bytes", "meaning": "the author's request; null: none"}
    )


def of_trace(runs: Any, quantity: Quantity) -> Source:
    """Read what the runs of a workflow used.

    The task is the process; its ``kind`` the last part of its name, such as ``FASTQC``, which other workflows
    share. Memory is the peak, that a limit kills at. A trace holds no request for time. The characters that a run read
    stand for its input.

    Records, with ``pandaid`` the row, from 0, and counts of the rows left out.
    """
    check_choices(quantity, "submit")
    frame = prepared({"runs": runs}, {"runs": TracedRuns})["runs"].with_row_index("row")
    wall_s = pl.col("realtime") / 1000
    used = pl.col("peak_rss") / MB if quantity == "memory" else wall_s
    asked = pl.col("memory") / MB if quantity == "memory" else pl.lit(None, dtype=pl.Float64)
    end_s = pl.coalesce("complete", pl.col("submit") + pl.col("realtime")) / 1000
    reasons = {
        f"no {quantity} recorded": ~(used > 0).fill_null(value=False),
        "no duration recorded": ~(wall_s > 0).fill_null(value=False),
        "ended before it was submitted": end_s < pl.col("submit") / 1000,
    }
    columns = {
        "pandaid": pl.col("row").cast(pl.Int64),
        "jeditaskid": pl.col("process").rank("dense").cast(pl.Int64),
        "kind": pl.col("process").str.split(":").list.last(),
        "cores": pl.col("cpus").fill_null(1).clip(lower_bound=1),
        "input_mb": pl.when(pl.col("rchar") > 0).then(pl.col("rchar") / MB),
        "requested": asked,
        "sent": asked,
        "is_scout": pl.lit(value=False),
        "decided_s": pl.col("submit") / 1000,
        "ended_s": end_s,
        "used": used,
        "censored": pl.lit(value=False),
        "wall_s": wall_s,
    }
    return sift(frame.lazy(), reasons, columns, quantity=quantity)


def read_runs(path: Path | str) -> pl.DataFrame:
    """Read a Nextflow trace (CSV, also gzip); ``-`` means null."""
    try:
        return pl.read_csv(
            path, null_values="-", infer_schema_length=None, schema_overrides={"tag": pl.String}
        )
    except (OSError, pl.exceptions.PolarsError) as error:
        columns = ", ".join(TracedRuns.columns())
        raise DataError(
            f"{path}: {error}; a trace is a CSV file with the columns {columns}"
        ) from error
