"""Small random histories with exactly the columns that the back-test reads."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from brokerlab.calibrate.nearest_setting import Translation, Who
from brokerlab.calibrate.percentiles import Backtest, Inputs, Setting
from brokerlab.calibrate.percentiles.backtest import at_setting
from brokerlab.calibrate.percentiles.backtest import backtest as of_inputs
from brokerlab.calibrate.percentiles.history import JOB_COLUMNS, History, JobHistory, with_creation
from brokerlab.carry import whole
from brokerlab.gdpconfig import Config
from brokerlab.scouts import ScoutRules

T0 = datetime(2026, 1, 1)
NO_JOBS = pl.DataFrame(schema=JOB_COLUMNS)
"""Nothing is known of failed jobs."""
ARCHIVE: Any = SimpleNamespace(
    digest=None, synthetic=False, derived=(), scan=lambda _: pl.LazyFrame({"processingtype": ["x"]})
)
"""Says of the jobs what kind they are, and nothing else."""


def history_of(quantities: pl.DataFrame, jobs: pl.DataFrame) -> History:
    """Return frames as one chunk."""
    return whole(JobHistory(quantities, jobs))


def side(told: Translation, who: Who) -> dict[str, Any]:
    """The row of one side of a translation."""
    return told.table.row(by_predicate=pl.col("who") == who, named=True)


def row_of(tried: Backtest, rank: int, margin_pct: int) -> dict[str, Any]:
    """The row of a back-test of one setting with the current minimum."""
    asked = Setting(rank, margin_pct, tried.current.minimum_mb)
    return at_setting(tried.by_setting, asked).row(0, named=True)


def quantities(
    n_tasks: int = 5,
    n_jobs: int = 40,
    *,
    seed: int = 0,
    marked: bool = True,
    per_core: bool = True,
    spread: float = 0.08,
    task_spread: float = 0.6,
    hours_between: float = 24.0,
) -> pl.DataFrame:
    """Tasks of log-normal memory, time and output; the first ten jobs of each are its scouts."""
    rng = np.random.default_rng(seed)
    rows = n_tasks * n_jobs
    task = np.repeat(np.arange(n_tasks), n_jobs)
    place = np.tile(np.arange(n_jobs), n_tasks)
    cores = np.repeat(rng.choice([1, 4, 8], n_tasks), n_jobs).astype(float)
    level = np.repeat(rng.normal(14.2, task_spread, n_tasks), n_jobs)
    maxpss = np.round(np.exp(level + rng.normal(0, spread, rows)) * cores)
    events = rng.integers(20, 2000, rows)
    duration = np.round(600 + np.exp(rng.normal(7.5, 0.3, rows))).astype(int)
    power = rng.choice([9.5, 10.0, 12.7], rows)
    hs06 = np.maximum(duration - 600, 0) * power * cores * 90 / 100
    output = rng.integers(1_000, 3_000_000, rows) * events
    input_mb = rng.uniform(1, 500, rows)
    creation = [
        T0 + timedelta(hours=hours_between * int(t), seconds=int(p))
        for t, p in zip(task, place, strict=True)
    ]
    start = [
        c + timedelta(seconds=int(w))
        for c, w in zip(creation, rng.integers(60, 9000, rows), strict=True)
    ]
    end = [s + timedelta(seconds=int(d)) for s, d in zip(start, duration, strict=True)]
    ram = np.ceil((maxpss - 100 * 1024) / cores) if per_core else maxpss
    return pl.DataFrame(
        {
            "jeditaskid": task + 100,
            "pandaid": np.arange(rows) + 1,
            "computingsite": rng.choice(["Q1", "Q2", "Q3"], rows).tolist(),
            "cores": cores,
            "duration_s": duration,
            "corepower": power,
            "input_mb": input_mb,
            "n_events": events,
            "is_scout": (place < 10) & marked,
            "creationtime": creation,
            "starttime": start,
            "endtime": end,
            "finish_time": [e + timedelta(seconds=30) for e in end],
            "cputime_hs06s": hs06 / events,
            "cputime_eligible": events >= 10 * cores,
            "ram_kb": ram,
            "ram_per_core": np.full(rows, per_core),
            "outdisk_bytes": np.ceil(output / events),
            "outdisk_per_event": np.full(rows, True),
            "maxpss_kb": maxpss,
            "outputfilebytes": output,
        }
    )


def tasks(n_tasks: int = 5, *, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed + 1)
    return pl.DataFrame(
        {
            "jeditaskid": np.arange(n_tasks) + 100,
            "baseramcount": np.full(n_tasks, 100),
            "basewalltime": np.full(n_tasks, 600),
            "cpuefficiency": np.full(n_tasks, 90),
            "processingtype": rng.choice(["reco", "deriv"], n_tasks).tolist(),
            "gshare": [["MC", "Data", None][i] for i in rng.integers(3, size=n_tasks)],
            "creationdate": [T0 + timedelta(days=int(i)) for i in range(n_tasks)],
        },
        schema_overrides={"gshare": pl.String},
    )


def queues() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "panda_queue": ["Q1", "Q2", "Q3", "Q4"],
            "corecount": [8, 1, 8, None],
            "maxrss": [16000, 2500, None, 0],
            "memory": [None, None, 32000, None],
            "maxtime": [86400, 3600, 0, 172800],
            "corepower": [10.0, 12.0, 9.5, None],
        }
    )


def by_task(tried: Backtest) -> pl.DataFrame:
    """Return the rows of tasks under the current setting."""
    return tried.under([tried.current])


def backtest(
    quantities: pl.DataFrame,
    tasks: pl.DataFrame,
    queues: pl.DataFrame | None = None,
    jobs: pl.DataFrame | None = None,
    **how: Any,
) -> Backtest:
    """Back-test tables as they are given."""
    known = inputs(quantities, tasks)
    read = replace(known, queues=known.queues.clear() if queues is None else queues)
    if jobs is not None:
        read = replace(read, history=history_of(quantities, jobs))
    return of_inputs(read, **how)


def inputs(quantities: pl.DataFrame, tasks: pl.DataFrame, config: Config | None = None) -> Inputs:
    """What a study or a drift reads of them, beside these queues."""
    created = tasks["creationdate"] if "creationdate" in tasks.columns else pl.Series([T0])
    history = history_of(quantities, NO_JOBS)
    return Inputs(
        archive=ARCHIVE,
        tasks=with_creation(tasks, history) if tasks.columns else tasks,
        history=history,
        queues=queues(),
        window=(created.min(), created.max()),
        rules=ScoutRules(),
        config=config or Config.empty(),
    )
