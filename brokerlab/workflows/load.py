"""The load of a batch queue: its contract, and jobs of an archive as such a load."""

from __future__ import annotations

from typing import Any

import dataframely as dy
import polars as pl

from brokerlab.archive.contracts._columns import f64, i64, text
from brokerlab.errors import DataError
from brokerlab.frames import prepared

_SHOWN = 5


class BatchJobs(dy.Schema):
    """Jobs of a batch queue."""

    job_id = text("job", required=True)
    submit_s = f64("when it is submitted", "s", required=True)
    run_s = f64("how long it lasts if nothing ends it", "s", required=True)
    requested_s = f64("its limit; it is killed then", "s", required=True)
    hosts = i64("hosts that it holds", "hosts", required=True)


def checked_jobs(jobs: Any, hosts: int) -> pl.DataFrame:
    """Hold jobs to the contract and to the machine.

    Args:
        jobs: One row per job with the columns of `BatchJobs`; None: no jobs.
        hosts: Hosts of the machine.

    Returns:
        The columns of the contract, rows in the given order.

    Raises:
        SchemaError: Missing columns, other types, nulls.
        DataError: Ids that come twice; values that no job can have; jobs wider than the machine. All at once.
    """
    table = prepared({} if jobs is None else {"jobs": jobs}, {"jobs": BatchJobs})["jobs"]
    wrong = {
        "job_id": (pl.col("job_id").is_duplicated(), "each only once"),
        "submit_s": (~pl.col("submit_s").is_finite(), "a number"),
        "run_s": (~(pl.col("run_s").is_finite() & (pl.col("run_s") >= 0)), "0 or more"),
        "requested_s": (
            ~(pl.col("requested_s").is_finite() & (pl.col("requested_s") >= 0)),
            "0 or more",
        ),
        "hosts": (~pl.col("hosts").is_between(1, hosts), f"1 to the {hosts} of the machine"),
    }
    problems = []
    for column, (test, allowed) in wrong.items():
        bad = table.filter(test)
        if len(bad):
            shown = ", ".join(
                f"{row['job_id']}: {row[column]}" for row in bad.head(_SHOWN).iter_rows(named=True)
            )
            problems.append(f"jobs.{column}: {len(bad)} rows ({shown}); allowed: {allowed}")
    if problems:
        raise DataError("; ".join(problems) + ". Mend or leave out those rows.")
    return table
