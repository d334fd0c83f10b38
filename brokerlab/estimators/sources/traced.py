"""Records from traces of workflow runs (Nextflow)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl

from brokerlab.errors import DataError
from brokerlab.estimators.records import Quantity
from brokerlab.estimators.sources.source import Source, check_choices, sift
from brokerlab.frames import prepared
from brokerlab.units import MB


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
        "queue": pl.lit(None, dtype=pl.String),
        "cores": pl.col("cpus").fill_null(1).clip(lower_bound=1),
        "events": pl.lit(None, dtype=pl.Int64),
        "input_mb": pl.when(pl.col("rchar") > 0).then(pl.col("rchar") / MB),
        "corepower": pl.lit(None, dtype=pl.Float64),
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
