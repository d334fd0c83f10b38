"""How much of every task failed, from the jobs of any engine (docs/rules/scouts.md 15)."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.scouts.tables import narrow, raise_for
from brokerlab.units import HOUR_S

FAILURE_LABELS = ("managed", "user")  # labels of the jobs whose failures count
METRICS = ("num_failed", "single_failure_rate", "failed_hep_score_hour", "failed_hep_score_ratio")

_I, _S = nw.Int64(), nw.String()
_JOBS = {"jeditaskid": _I, "jobstatus": _S, "prodsourcelabel": _S, "hs06sec": _I}


def failure_metrics(jobs: Any) -> pl.DataFrame:
    """Compute how much of each task failed.

    One row per task with a job labelled managed or user, sorted by ``jeditaskid``: ``num_failed``,
    ``single_failure_rate`` and ``failed_hep_score_ratio`` (three digits), ``failed_hep_score_hour`` (cut).

    ``jobs`` is of any engine; of ``hs06sec`` [HS06 s] null counts as 0 beside known values. A missing column is a SchemaError.
    """
    problems: list[str] = []
    lazy = narrow(jobs, "jobs", _JOBS, problems)
    raise_for(problems)
    work, failed = nw.col("hs06sec"), nw.col("jobstatus") == "failed"
    done = nw.col("jobstatus").is_in(["failed", "finished"])
    zero, one = nw.lit(0), nw.lit(1)
    counted = lazy.filter(nw.col("prodsourcelabel").is_in(list(FAILURE_LABELS))).select(
        "jeditaskid",
        failed=nw.when(failed).then(one).otherwise(zero),
        done=nw.when(done).then(one).otherwise(zero),
        known=nw.when(~work.is_null()).then(one).otherwise(zero),
        failed_work=nw.coalesce(nw.when(failed).then(work), zero),
        done_work=nw.coalesce(nw.when(done).then(work), zero),
    )
    sums = ["failed", "done", "known", "failed_work", "done_work"]
    totals: pl.DataFrame = (
        counted.group_by("jeditaskid")
        .agg(nw.col(name).sum().cast(_I).alias(name) for name in sums)
        .collect("polars")
        .to_native()
    )
    return _metrics(totals.drop_nulls("jeditaskid").sort("jeditaskid"))


def _metrics(totals: pl.DataFrame) -> pl.DataFrame:
    """Form the rates in Python, whose ``round`` the rule means."""
    rows = []
    for task, failed, done, known, failed_work, done_work in totals.iter_rows():
        rate = round(failed / done, 3) if done else None
        hours = int(failed_work / HOUR_S) if known else None
        ratio = round(failed_work / done_work, 3) if known and done_work else None
        rows.append((task, failed, rate, hours, ratio))
    types = [pl.Int64, pl.Int64, pl.Float64, pl.Int64, pl.Float64]
    names = ["jeditaskid", *METRICS]
    return pl.DataFrame(rows, schema=dict(zip(names, types, strict=True)), orient="row")
