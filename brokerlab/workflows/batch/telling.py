"""What became of the jobs of a batch queue."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.workflows.batch.held import STATUS, US, Simulation, record
from brokerlab.workflows.batch.state import (
    FINISHED,
    KILLED,
    N_BACKGROUND,
    N_LOGGED,
    RELEASED,
    RUNNING,
)

_STARTED = (RUNNING, FINISHED, KILLED, RELEASED)


def changes(sim: Simulation) -> list[tuple[int, str]]:
    """Return what happened to jobs submitted by hand since this was last asked."""
    log = sim.state.log[sim.told : sim.state.counters[N_LOGGED]].tolist()
    sim.told += len(log)
    return [(entry // 2, ("started", "ended")[entry % 2]) for entry in log]


def status(sim: Simulation, number: int) -> str:
    """Return what a job is now: one of `STATUS`."""
    return STATUS[int(record(sim, number)["status"])]


def started(sim: Simulation, number: int) -> float | None:
    """Return when a job started [s]; None where it did not."""
    job = record(sim, number)
    return int(job["start"]) / US if job["status"] in _STARTED else None


def ended(sim: Simulation, number: int) -> float | None:
    """Return when a job ended or was cancelled [s]; None where it did not."""
    job = record(sim, number)
    return int(job["end"]) / US if job["status"] >= FINISHED else None


def results(sim: Simulation) -> pl.DataFrame:
    """Return the background's jobs as they are now.

    One row per job, in the order of submission: ``job_id, submit_s, run_s, requested_s, hosts, start_s, end_s,
    wait_s`` [s; null where it has not come to that], ``killed`` (at its limit).
    """
    jobs = sim.state.jobs[: sim.state.counters[N_BACKGROUND]]
    status = jobs["status"]
    seconds = {
        f"{name}_s": jobs[field] / US
        for name, field in (
            ("submit", "submit"),
            ("run", "run"),
            ("requested", "request"),
            ("start", "start"),
            ("end", "end"),
        )
    }
    did_start, did_end = pl.Series(np.isin(status, _STARTED)), pl.Series(status >= FINISHED)
    return pl.DataFrame(
        {
            "job_id": sim.job_ids,
            **{name: seconds[name] for name in ("submit_s", "run_s", "requested_s")},
            "hosts": jobs["hosts"],
            "start_s": pl.Series(seconds["start_s"]).set(~did_start, None),
            "end_s": pl.Series(seconds["end_s"]).set(~did_end, None),
        }
    ).with_columns(
        wait_s=pl.Series((jobs["start"] - jobs["submit"]) / US).set(~did_start, None),
        killed=pl.Series(status == KILLED),
    )
