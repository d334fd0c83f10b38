"""Predict every job of a log at its submission, knowing only jobs that had finished by then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.estimators.walltime.contracts import LoggedJobs
from brokerlab.estimators.walltime.predictor import Job, Predictor
from brokerlab.frames import doubled, prepared


def usable_jobs(jobs: Any) -> pl.DataFrame:
    """Keep the jobs that ran with a request, in the order of submission.

    Args:
        jobs: Columns as in :class:`contracts.LoggedJobs`, such as `brokerlab.workflows.swf.read` gives
            them; other columns are ignored.

    Returns:
        Columns of the contract and ``job`` (row in the given order, from 0); ``run_s`` is cut at the
        request: a longer one was stopped there or should have been. ``end_s`` is when the job ended.

    Raises:
        SchemaError: A column has a wrong type.
        InsufficientDataError: No job is left.

    Source: sizing.md, section 8.
    """
    frame = prepared({"jobs": jobs}, {"jobs": LoggedJobs})["jobs"].with_row_index("job")
    positive = [pl.col(name) > 0 for name in ("run_s", "requested_s")]
    end_s = pl.col("submit_s") + pl.col("wait_s") + pl.col("run_s")
    hosts = pl.col("hosts_requested").fill_null(1).clip(lower_bound=1)
    kept = frame.with_columns(hosts).drop_nulls().with_columns(end_s=end_s)
    kept = kept.filter(*positive, pl.col("wait_s") >= 0, pl.col("end_s") > pl.col("submit_s"))
    if kept.is_empty():
        raise InsufficientDataError(
            f"jobs: none of {frame.height} has a user, submission, wait, run time and request;"
            " all are needed"
        )
    return kept.sort("submit_s", maintain_order=True).with_columns(
        pl.col("job").cast(pl.Int64),
        run_s=pl.min_horizontal("run_s", "requested_s"),
    )


def predict_log(jobs: Any, predictors: Sequence[Predictor]) -> pl.DataFrame:
    """Let predictors predict, and see, every job of a log.

    At each submission they have seen exactly the jobs that ended at or before it, and know which jobs
    started before it and still run, all in the order of these instants.

    Args:
        jobs: As for :func:`usable_jobs`.
        predictors: Fresh ones; they learn.

    Returns:
        ``job, user, submit_s, requested_s, run_s`` and one column per name of the predictors [s], each
        at least 0 and at most the request; sorted by submission.

    Raises:
        ConfigError: Two predictions have one name, or there is none.
        SchemaError, InsufficientDataError: See :func:`usable_jobs`.

    Source: sizing.md, section 8.
    """
    names = [name for each in predictors for name in each.names]
    twice = doubled(names)
    if twice or not names:
        raise ConfigError(
            f"predictions named alike: {', '.join(twice)}" if twice else "no predictor is given"
        )
    frame = usable_jobs(jobs)
    run_s = frame["run_s"].to_numpy()
    happens_s, is_start, row_of = _events(frame)
    known = zip(
        *(frame[name] for name in ("job", "user", "submit_s", "requested_s", "hosts_requested")),
        strict=True,
    )
    submitted = [Job(*each) for each in known]
    predicted = np.empty((len(submitted), len(names)))
    seen = 0
    for row, job in enumerate(submitted):
        # a job that starts at this very instant has not run yet, and may be this one
        while (happens_s[seen], is_start[seen]) < (job.submit_s, True):
            other = submitted[row_of[seen]]
            for each in predictors:
                if is_start[seen]:
                    each.begin(other, happens_s[seen])
                else:
                    each.see(other, float(run_s[row_of[seen]]))
            seen += 1
        predicted[row] = [value for each in predictors for value in each.predict(job)]
    limit = frame["requested_s"].to_numpy()[:, None]
    return frame.select("job", "user", "submit_s", "requested_s", "run_s").hstack(
        pl.DataFrame(np.clip(predicted, 0, limit), schema=names, orient="row")
    )


def _events(frame: pl.DataFrame) -> tuple[list[float], list[bool], list[int]]:
    """Return when jobs start and end, in this order: the instant [s], which of both, the job's row.

    At one instant ends come first.
    """
    n = frame.height
    happens_s = np.concatenate([frame["submit_s"] + frame["wait_s"], frame["end_s"]])
    is_start = np.arange(2 * n) < n
    order = np.lexsort((is_start, happens_s))
    return happens_s[order].tolist(), is_start[order].tolist(), (order % n).tolist()
