"""Analysis jobs that wait too long are brokered again (docs/rules/waiting.md 3)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import polars as pl

from brokerlab.archive.contracts.jobs import NOT_ACTIVATED
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts.facts import DOWN, microseconds_of
from brokerlab.lifecycle.timeouts.rule import QUEUED, SECOND, USERS
from brokerlab.lifecycle.timeouts.settings import analysis_limit_s
from brokerlab.units import HOUR_S

NAME, NUMBER = "analysis_rebrokerage", 25
YOUNGEST_S = 3 * HOUR_S
"""Groups whose reference is not older are not looked at; a change of state within this spares a queue [s]."""
SET = ("jeditaskid", "jobdefinitionid")
PLACE = (*SET, "computingsite")
GROUP = (*PLACE, "produsername", "processingtype", "workinggroup")
NO_SIGN = ("closed", "failed", "starting")
"""A recent change to one of these does not show that the queue works; nor does one before activation."""


def analysis_rebrokerage(
    tables: Mapping[str, pl.DataFrame], *, at: datetime, config: Config
) -> pl.DataFrame:
    """Return the jobs of waiting analysis groups that go back to brokerage (docs/rules/waiting.md 3)."""
    now = microseconds_of(at)
    jobs = tables["jobs"]
    status = pl.col("jobstatus")
    own = jobs.filter(
        pl.col("prodsourcelabel").is_in(USERS) & (pl.col("lockedby") == "jedi")
        & pl.all_horizontal(pl.col(SET).is_not_null())
    )  # fmt: skip
    late = _groups(own, tables["status_log"], now)
    queues = tables["queues"].select(computingsite="panda_queue", queue_status="status")
    known = late.join(queues, on="computingsite").with_columns(
        limit_s=_limits(late["workinggroup"], config)
    )
    alive = _alive(jobs, now)
    down = pl.col("queue_status").is_in(DOWN).fill_null(value=False)
    waited = now - pl.col("since").cast(pl.Int64) >= pl.col("limit_s") * SECOND
    on = [*PLACE, "produsername"]
    checked = known.join(alive, on=on, how="left", nulls_equal=True)
    moving = checked.filter(down | (waited & pl.col("alive").is_null()))
    first = moving.sort(*PLACE, "since", "limit_s").unique([*PLACE], keep="first")
    moved = jobs.filter(status.is_in(QUEUED)).join(first, on=[*PLACE], nulls_equal=True)
    return _rows(moved, now)


def _groups(own: pl.DataFrame, log: pl.DataFrame, now: int) -> pl.DataFrame:
    """Return the groups that wait for long enough to be looked at, with the time they wait since, ``since``.

    Jobs before activation count where no activated or starting group of their set does; one that was activated
    lately, or of which the log knows nothing, is none.
    """
    status, old = pl.col("jobstatus"), now - YOUNGEST_S * SECOND
    active = own.filter(status.is_in(("activated", "starting")))
    lowest = active.group_by(GROUP).agg(pl.col("pandaid").min())
    activated = log.filter(status == "activated").group_by("pandaid")
    since = activated.agg(since=pl.col("modificationtime").max())
    begun = lowest.join(since, on="pandaid").drop("pandaid")
    begun = begun.filter(pl.col("since").cast(pl.Int64) < old)
    early = own.filter(
        status.is_in(("assigned", "defined")) & (pl.col("creationtime").cast(pl.Int64) < old)
    ).join(begun.select(SET), on=SET, how="anti")
    return pl.concat([begun, early.group_by(GROUP).agg(since=pl.col("creationtime").max())])


def _limits(groups: pl.Series, config: Config) -> pl.Expr:
    """Return the limit of each working group [s]."""
    limits = {name: analysis_limit_s(config, name) for name in groups.unique().to_list()}
    return pl.col("workinggroup").replace_strict(
        limits, default=analysis_limit_s(config, None), return_dtype=pl.Int64
    )


def _alive(jobs: pl.DataFrame, now: int) -> pl.DataFrame:
    """Return the sets of jobs at a queue in which something changed lately."""
    recent = now - pl.col("statechangetime").cast(pl.Int64) < YOUNGEST_S * SECOND
    shown = jobs.filter(recent & ~pl.col("jobstatus").is_in(NOT_ACTIVATED + NO_SIGN))
    return shown.select(*PLACE, "produsername").unique().with_columns(alive=True)


def _rows(moved: pl.DataFrame, now: int) -> pl.DataFrame:
    hours = pl.lit(HOUR_S, dtype=pl.Float64)
    return moved.select(
        "pandaid",
        "jeditaskid",
        "computingsite",
        "jobstatus",
        "since",
        number=pl.lit(NUMBER, dtype=pl.Int64),
        rule=pl.lit(NAME),
        action=pl.lit("reassign"),
        reference=pl.lit("activation of the group (not activated: creationtime)"),
        age_h=(now - pl.col("since").cast(pl.Int64)) / (hours * SECOND),
        limit_h=pl.col("limit_s") / hours,
    )
