"""What a translation reads: quantities, tasks, queues and settings of an archive, or what records hold of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.archive.store import Archive, open_archive
from brokerlab.calibrate.inputs import config_at, window_of
from brokerlab.calibrate.sample import with_creation
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.estimators.records import checked
from brokerlab.gdpconfig import Config
from brokerlab.scouts import ScoutRules, job_quantities
from brokerlab.scouts.kills import MEMORY_CODES, WALLTIME_CODES
from brokerlab.scouts.quantities import DEFAULT_COREPOWER, LONG_JOB_S
from brokerlab.units import KB

Span = tuple[datetime, datetime]
"""First instant, and the first one after it [UTC]."""
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (all times are UTC without zone)
RECORDS_ONLY = (
    "Records do not hold the base memory and base walltime of the tasks: they are taken as 0.",
    "The settings that acted are not known: the catalogue's defaults stand for the current ones.",
)


@dataclass(frozen=True)
class History:
    """The tables of one translation.

    Attributes:
        quantities: Of the finished jobs.
        tasks: Those that are looked at.
        queues: Null: none known.
        jobs: With the failed ones.
        window: First and last creation of a task; null: records, which carry no settings.
        config: The settings that act.
        digest: Of the archive; null: none.
        synthetic: It was generated.
        notes: What was inferred, in sentences.
    """

    quantities: pl.DataFrame
    tasks: pl.DataFrame
    queues: pl.DataFrame | None
    jobs: Any
    window: Span | None
    config: Config
    digest: str | None = None
    synthetic: bool = False
    notes: tuple[str, ...] = ()


def of_archive(
    archive: Archive | str | Path,
    *,
    rules: ScoutRules,
    span: Span | None = None,
) -> History:
    """Read an archive.

    Args:
        archive: An archive, or its folder.
        rules: Of the scouts' quantities.
        span: When the tasks that are looked at were created; null: all of them.

    Raises:
        ConfigError: The span does not end after it begins.
        InsufficientDataError: No task with finished jobs was created in it, or no creation time is known.
    """
    opened = archive if isinstance(archive, Archive) else open_archive(archive)
    queues = opened.queues if opened.has("queues") else None
    found = job_quantities(opened.jobs, opened.files, opened.tasks, opened.datasets, queues, rules=rules)  # fmt: skip
    tasks = _created_in(opened.tasks.pl(), found, span)
    window = window_of(tasks)
    return History(
        quantities=found,
        tasks=tasks.drop("created_at"),
        queues=None if queues is None else queues.pl(),
        jobs=opened.jobs,
        window=window,
        config=config_at(opened, window[1]),
        digest=opened.digest,
        synthetic=opened.synthetic,
    )


def _created_in(tasks: pl.DataFrame, quantities: pl.DataFrame, span: Span | None) -> pl.DataFrame:
    """Return the tasks with finished jobs that were created in a span, with ``created_at``."""
    dated = with_creation(tasks, quantities)
    if span is None:
        return dated
    if not span[0] < span[1]:
        raise ConfigError(f"span={span}: needed are a first instant and a later one that is out")
    inside = dated.filter(pl.col("created_at").is_between(*span, closed="left"))
    if inside.is_empty():
        raise InsufficientDataError(
            f"no task with finished jobs was created from {span[0]} to {span[1]}"
        )
    return inside


def of_records(records: Any, parameter: str, rules: ScoutRules) -> History:
    """Lay records out as the tables of a back-test.

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
    return History(
        quantities=_quantities(
            rows.filter(~pl.col("censored") & pl.col("ended_s").is_not_null()), rules
        ),
        tasks=tasks.with_columns(baseramcount=pl.lit(0), basewalltime=pl.lit(0)),
        queues=None,
        jobs=jobs.filter(pl.col("jobstatus") == "failed"),
        window=None,
        config=Config.empty(),
        notes=RECORDS_ONLY,
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
