"""What the rules read of a job and its queue, in one row per job."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import polars as pl

from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts.rule import SECOND, TIMES, USERS, TimeoutRules
from brokerlab.lifecycle.timeouts.settings import ANALYSIS, PRODUCTION, Limits
from brokerlab.matching.catchall import has_flag
from brokerlab.times import time_of
from brokerlab.units import DAY_S, HOUR_S

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
    silent = microseconds_of(at) - pl.col("laststart").cast(pl.Int64) > IDLE_S * SECOND
    return started.with_columns(
        **heartbeat(rules, limits),
        queue_idle=silent.fill_null(value=False) | pl.col("queue_down"),
        output_report=pl.col("pandaid").is_in(reported),
    )
