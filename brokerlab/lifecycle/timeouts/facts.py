"""What the rules read: contracts of the tables, keys of gdpconfig, and the facts of a job and its queue in one row.

Columns are those of the archive; what a missing value means here stands beside their names.

Source: docs/rules/waiting.md 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import dataframely as dy
import polars as pl

from brokerlab.archive import contracts as archive
from brokerlab.archive.contracts._columns import NOT_ALLOWED, declared, f64, i64, kept, text
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts.rule import TIMES, USERS, TimeoutRules
from brokerlab.matching.catchall import has_flag
from brokerlab.times import time_of
from brokerlab.units import DAY_S, HOUR_S, SECOND_US

_job = partial(kept, archive.TABLES["jobs"])
_count = partial(kept, archive.TABLES["job_stats"])
_change = partial(kept, archive.TABLES["job_status_log"])
_COUNTED = {
    **_count(computingsite=NOT_ALLOWED, gshare=NOT_ALLOWED, jobstatus=NOT_ALLOWED),
    **_count(njobs=NOT_ALLOWED, workqueue_id="none"),
}
_NEVER = "never matches"

_ALL = declared(
    __name__,
    {
        "jobs": (
            "Jobs as they are at the instant; those that are over never match, but rule out section 3.",
            {
                **_job(pandaid=NOT_ALLOWED, jeditaskid="not a JEDI job"),
                "jobdefinitionid": i64("group of jobs of one task, queue and type"),
                **_job(jobstatus=_NEVER, creationtime=_NEVER, modificationtime=_NEVER),
                **_job(statechangetime=_NEVER, starttime="not started", endtime="not ended"),
                **_job(currentpriority="below 800", prodsourcelabel="not recorded"),
                **_job(processingtype=None, workinggroup=None, produsername=None),
                **_job(gshare="none: no fast rebrokerage", computingsite="unknown queue"),
                **_job(lockedby="not under JEDI"),
                "relocationflag": i64("2 = must stay", null="0; rule inactive_queue: no match"),
                **_job(jobsubstatus="no stage-out of its own; empty likewise"),
                **_job(transformation=None, eventservice="ordinary"),
            },
        ),
        "queues": (
            "Queues as they are at the instant; of several rows of one the latest counts.",
            {
                **kept(archive.TABLES["queues"], panda_queue=NOT_ALLOWED, status="unknown"),
                **kept(archive.TABLES["queues"], ts="before all others"),
                "catchall": text("comma list; disableReassign", null="none"),
                "workflow": text("pull_ups, push...", null="the default one"),
                "transtimehi": f64(
                    "limit of transferring, priority 800 and more", "days", null="2"
                ),
                "transtimelo": f64("limit of transferring, below 800", "days", null="6"),
            },
        ),
        "site_data": (
            "The row of each queue with flag ``production`` and hours = 3.",
            {
                "computingsite": text("queue", required=True),
                **kept(archive.TABLES["site_data"], laststart="does not count as inactive"),
            },
        ),
        "status_log": (
            "Changes of job status.",
            _change(pandaid=NOT_ALLOWED, jobstatus=NOT_ALLOWED, modificationtime=NOT_ALLOWED),
        ),
        "output_reports": (
            "Jobs with an output report still to be worked on.",
            _job(pandaid=NOT_ALLOWED),
        ),
        "share_job_stats": ("Number of jobs by queue, share and status.", _COUNTED),
        "share_job_stats_at": (
            "The same at many instants.",
            {**_COUNTED, "snapshot": i64("number of the instant", required=True)},
        ),
        "slots": (
            "Queues with slots set by hand (``Harvester_Slots``).",
            kept(archive.TABLES["slots"], pandaqueuename=NOT_ALLOWED),
        ),
        "resource_work_queues": (
            "Work queues that stand for a resource.",
            _count(workqueue_id=NOT_ALLOWED),
        ),
    },
)


def _some(*names: str) -> dict[str, type[dy.Schema]]:
    return {name: _ALL[name] for name in names}


TABLES = _some("jobs", "queues", "site_data", "status_log", "output_reports")
"""What the timeout rules read."""
FAST_TABLES = _some("jobs", "queues", "share_job_stats", "slots", "resource_work_queues")
"""What fast rebrokerage reads."""
AT_INSTANTS = {"share_job_stats": _ALL["share_job_stats_at"]}
"""What it reads instead where it is asked at many instants."""


HEARTBEAT = "HEARTBEAT_TIMEOUT_<workflow>"
ANALY_TIMEOUT = "ANALY_TIMEOUT[_<workinggroup>]"
RATIO = "FAST_REBRO_THRESHOLD_NQNR_RATIO"
FRACTION = "FAST_REBRO_THRESHOLD_NQUEUE_FRAC"
NQUEUE = "FAST_REBRO_THRESHOLD_NQUEUE_<gshare>"
PRODUCTION, ANALYSIS = "production", "analysis"


def number(config: Config, key: str) -> float:
    """Return a number of which 0 means the default (docs/rules/waiting.md 1, "0/undef")."""
    value: float = config.get(key) or Config.empty().get(key)
    return value


@dataclass(frozen=True)
class Limits:
    """Limits of the timeouts."""

    defined_s: int  # TIMEOUT_defined [s]
    holding_s: int  # TIMEOUT_holding [s]
    # workflow to its limit [s]; ``production`` and ``analysis`` always, others where they are defined
    heartbeat_s: Mapping[str, int] = field(hash=False)
    own: frozenset[str]  # workflows whose limit is set, not a default

    @classmethod
    def of(cls, config: Config, workflows: Iterable[str]) -> Limits:
        """Look the limits up (docs/rules/waiting.md 1)."""
        heartbeat, own = {}, set()
        for workflow in (PRODUCTION, ANALYSIS, *sorted(set(workflows))):
            result = config.found(HEARTBEAT, workflow=workflow)
            if result.value is not None:
                heartbeat[workflow] = result.value * HOUR_S
            if result.entry is not None:
                own.add(workflow)
        return cls(
            defined_s=int(number(config, "TIMEOUT_defined") * HOUR_S),
            holding_s=int(number(config, "TIMEOUT_holding") * HOUR_S),
            heartbeat_s=heartbeat,
            own=frozenset(own),
        )

    @property
    def further(self) -> tuple[str, ...]:
        """Workflows with a limit, besides the two that always have one."""
        return tuple(name for name in self.heartbeat_s if name not in (PRODUCTION, ANALYSIS))


def analysis_limit_s(config: Config, workinggroup: str | None) -> int:
    """Return after how long waiting analysis jobs are brokered again [s]; a group's limit of 0 is none."""
    general: int = config.get(ANALY_TIMEOUT, workinggroup=None)
    own = config.get(ANALY_TIMEOUT, workinggroup=workinggroup) if workinggroup else 0
    return (own or general) * HOUR_S


def share_threshold(config: Config, gshare: str) -> tuple[float, bool]:
    """Return the least queued jobs of a share at a queue [jobs], and whether that is for reporting only."""
    result = config.found(NQUEUE, gshare=gshare)
    stored = result.value if result.entry is not None else None
    least: float = stored or Config.empty().get(NQUEUE, gshare=gshare)
    return least, not stored


IDLE_S = 2 * HOUR_S  # A queue without a start for longer is idle [s]
DOWN = ("offline", "test")  # statuses of queues that count as idle
TRANSFERRING_DAYS = {"transtimehi": 2.0, "transtimelo": 6.0}
"""Limits of queues that set none [days]."""

Tables = Mapping[str, pl.DataFrame]


def microseconds_of(at: datetime) -> int:
    """Return an instant as microseconds since 1970."""
    return int(pl.Series([time_of(at, "at")], dtype=pl.Datetime("us")).cast(pl.Int64).item())


def limits_of(queues: pl.DataFrame, rules: TimeoutRules, config: Config) -> Limits:
    """Look the limits up for the workflows of queues (section 2.1)."""
    asked = queues
    if rules.heartbeat_two_checks:
        asked = queues.filter(pl.col("status") == "online")
    return Limits.of(config, asked["workflow"].drop_nulls().unique().to_list())


def queue_facts(queues: pl.DataFrame) -> pl.DataFrame:
    """Return what the rules read of a queue.

    ``computingsite, queue_status, workflow, queue_paused, queue_stays`` (disableReassign), ``queue_down`` (offline
    or test), ``transtimehi_s, transtimelo_s``.
    """
    texts = queues["catchall"].to_list()
    stays = {text: has_flag(text, "disableReassign") for text in set(texts)}
    return queues.select(
        pl.col("panda_queue").alias("computingsite"),
        pl.col("status").alias("queue_status"),
        "workflow",
        queue_paused=(pl.col("status") == "paused").fill_null(value=False),
        queue_stays=pl.Series([stays[text] for text in texts], dtype=pl.Boolean),
        queue_down=pl.col("status").is_in(DOWN).fill_null(value=False),
        **{
            f"{name}_s": (_known(name).fill_null(days) * DAY_S).cast(pl.Int64)
            for name, days in TRANSFERRING_DAYS.items()
        },
    )


def _known(name: str) -> pl.Expr:
    """Return a number; NaN and infinities say nothing."""
    return pl.when(pl.col(name).is_finite()).then(pl.col(name))


def with_queues(jobs: pl.DataFrame, queues: pl.DataFrame) -> pl.DataFrame:
    """Add the facts of each job's queue; an unknown queue is not exempt and has the limits of one that sets none."""
    flags = ("queue_paused", "queue_stays", "queue_down")
    return jobs.join(queue_facts(queues), on="computingsite", how="left").with_columns(
        *(pl.col(name).fill_null(value=False) for name in flags),
        *(
            pl.col(f"{name}_s").fill_null(int(days * DAY_S))
            for name, days in TRANSFERRING_DAYS.items()
        ),
    )


def heartbeat(rules: TimeoutRules, limits: Limits) -> dict[str, pl.Expr]:
    """Return ``heartbeat_s``, the limit of a job's workflow [s], and ``heartbeat_own``, whether that was set for it.

    With two checks ``heartbeat_s`` is that of the check of queues, null where there is none; that of users is apart.

    Source: docs/rules/waiting.md 2.1.
    """
    workflow = pl.col("workflow")
    if rules.heartbeat_two_checks:
        # once there is a further key, workflows that have these very names belong to no check of queues
        unnamed = workflow.is_null() | ~workflow.is_in((PRODUCTION, ANALYSIS))
        general = unnamed if limits.further else pl.lit(value=True)
        own_key = pl.when(workflow.is_in(limits.further)).then(workflow)
        chosen: pl.Expr = own_key.when(general).then(pl.lit(PRODUCTION))
    else:
        user = pl.col("prodsourcelabel").is_in(USERS)
        known = workflow.is_in(list(limits.heartbeat_s))
        chosen = (
            pl.when(user)
            .then(pl.lit(ANALYSIS))
            .when(known)
            .then(workflow)
            .otherwise(pl.lit(PRODUCTION))
        )
    seconds = chosen.replace_strict(limits.heartbeat_s, default=None, return_dtype=pl.Int64)
    own = chosen.is_in(list(limits.own)).fill_null(value=False)
    return {"heartbeat_s": seconds, "heartbeat_own": own}


def job_flags(jobs: pl.DataFrame) -> pl.DataFrame:
    """Add the times as whole microseconds and whether the payload is a build."""
    return jobs.with_columns(
        *(pl.col(name).cast(pl.Int64).alias(f"{name}_us") for name in TIMES),
        is_build=pl.col("transformation").str.contains("build", literal=True),
    )


def facts(tables: Tables, *, at: datetime, rules: TimeoutRules, limits: Limits) -> pl.DataFrame:
    """Return everything that the rules read at an instant.

    The jobs with ``<time>_us``, the facts of their queues, ``queue_idle``, ``heartbeat_s, heartbeat_own``,
    ``is_build, output_report``.
    """
    reported = tables["output_reports"]["pandaid"].to_list()
    known = with_queues(job_flags(tables["jobs"]), tables["queues"])
    started = known.join(tables["site_data"], on="computingsite", how="left")
    silent = microseconds_of(at) - pl.col("laststart").cast(pl.Int64) > IDLE_S * SECOND_US
    return started.with_columns(
        **heartbeat(rules, limits),
        queue_idle=silent.fill_null(value=False) | pl.col("queue_down"),
        output_report=pl.col("pandaid").is_in(reported),
    )
