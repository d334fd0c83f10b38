"""Records of jobs laid out as what a back-test reads."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl

from brokerlab.calibrate.percentiles.history import Inputs, history_of
from brokerlab.errors import ConfigError
from brokerlab.estimators.records import checked
from brokerlab.gdpconfig import Config
from brokerlab.scouts import ScoutRules
from brokerlab.scouts.kills import MEMORY_CODES, WALLTIME_CODES
from brokerlab.scouts.quantities import DEFAULT_COREPOWER, LONG_JOB_S
from brokerlab.units import KB

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (all times are UTC without zone)
"""What the clock of records begins with."""
RECORDS_ONLY = (
    "Records do not hold the base memory and base walltime of the tasks: they are taken as 0.",
    "The settings that acted are not known: the catalogue's defaults stand for the current ones.",
)
"""What is inferred where records are read."""


def of_records(records: Any, parameter: str, rules: ScoutRules) -> Inputs:
    """Lay records out as the tables of a back-test; they carry no settings, so that no window of theirs is known.

    Args:
        records: As for estimators: of memory for ``ramcount``, of walltime for ``cputime``. Censored ones are
            failed jobs that were killed at the limit of that quantity.
        parameter: Which.
        rules: For the CPU efficiency that acts by default.

    Raises:
        ConfigError: A parameter that records say nothing of.
        SchemaError: Columns missing.
        DataError: Values that cannot be.
    """
    if parameter not in ("ramcount", "cputime"):
        raise ConfigError(f"parameter='{parameter}': records are of ramcount or cputime")
    memory = parameter == "ramcount"
    rows = checked(records).with_columns(
        creationtime=_at("decided_s"),
        endtime=_at("ended_s"),
        used_kb=pl.col("used") * KB if memory else pl.lit(None, pl.Float64),
        run_s=(pl.col("wall_s") if memory else pl.col("used")).round().cast(pl.Int64),
    )
    jobs = rows.select(
        *("pandaid", "jeditaskid", "creationtime", "endtime"),
        starttime=pl.col("endtime") - pl.duration(seconds="run_s"),
        jobstatus=pl.when("censored").then(pl.lit("failed")).otherwise(pl.lit("finished")),
        piloterrorcode=pl.lit(MEMORY_CODES[0] if memory else WALLTIME_CODES[0]),
        actualcorecount="cores",
        maxpss=pl.col("used_kb").ceil().cast(pl.Int64),
        computingsite="queue",
        specialhandling=pl.when("is_scout").then(pl.lit("sj")),
    )
    tasks = rows.group_by("jeditaskid", maintain_order=True).agg(
        processingtype=pl.col("kind").first()
    )
    finished = rows.filter(~pl.col("censored") & pl.col("ended_s").is_not_null())
    failed = jobs.filter(pl.col("jobstatus") == "failed")
    return Inputs(
        archive=None,
        tasks=tasks.with_columns(baseramcount=pl.lit(0), basewalltime=pl.lit(0)),
        history=history_of(_quantities(finished, rules), failed),
        queues=None,
        window=None,
        rules=rules,
        config=Config.empty(),
    )


def _at(name: str) -> pl.Expr:
    return pl.lit(EPOCH) + pl.duration(microseconds=(pl.col(name) * 1e6).round().cast(pl.Int64))


def _quantities(rows: pl.DataFrame, rules: ScoutRules) -> pl.DataFrame:
    """Return what scouts would say of finished jobs: scouts.md 3.2, 5.1, 5.2; events of 0 are not known."""
    cores = pl.col("cores").cast(pl.Float64)
    events = pl.when(pl.col("events") > 0).then("events")
    power = pl.when(pl.col("corepower") > 0).then("corepower").otherwise(DEFAULT_COREPOWER)
    share = rules.default_cpu_efficiency / 100
    run_s, inclusive = pl.col("run_s"), rules.long_job_inclusive
    long = run_s >= LONG_JOB_S if inclusive else run_s > LONG_JOB_S
    return rows.select(
        *("jeditaskid", "pandaid", "is_scout", "creationtime", "endtime", "input_mb"),
        corepower=power,
        computingsite="queue",
        cores=cores,
        duration_s="run_s",
        starttime=pl.col("endtime") - pl.duration(seconds="run_s"),
        finish_time="endtime",
        n_events=events,
        ram_kb=(pl.col("used_kb") / cores).ceil(),
        ram_per_core=pl.lit(value=True),
        maxpss_kb=pl.col("used_kb").ceil(),
        cputime_hs06s=pl.col("run_s") * power * cores * share / events,
        cputime_eligible=events.is_not_null() & ((events >= 10 * cores) | long),
    )
