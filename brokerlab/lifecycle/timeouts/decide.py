"""Which live jobs are failed, killed or sent back to brokerage at an instant, and by which rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts.jobs import NOT_ACTIVATED
from brokerlab.frames import latest, prepared
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts.catalogue import timeout_rules
from brokerlab.lifecycle.timeouts.facts import (
    DOWN,
    TABLES,
    analysis_limit_s,
    facts,
    limits_of,
    microseconds_of,
)
from brokerlab.lifecycle.timeouts.rule import PRECEDENCE, QUEUED, USERS, TimeoutRule, TimeoutRules
from brokerlab.results import Result, Shows
from brokerlab.times import time_of
from brokerlab.units import HOUR_S, SECOND_US

JOB = ("pandaid", "jeditaskid", "computingsite", "jobstatus")
SCHEMA: dict[str, Any] = {
    **dict.fromkeys(JOB[:2], pl.Int64),
    **dict.fromkeys(JOB[2:], pl.String),
    "number": pl.Int64,
    **dict.fromkeys(["rule", "action", "reference"], pl.String),
    "since": pl.Datetime("us"),
    **dict.fromkeys(["age_h", "limit_h"], pl.Float64),
}
"""Columns of what fires; one row per job, rule and action."""


@dataclass(frozen=True, repr=False)
class Timeouts(Result):
    """What the timeout rules decide at an instant.

    Attributes:
        fired: One row per job, rule and action: ``pandaid, jeditaskid, computingsite, jobstatus, number, rule, action,
            reference`` (what the age counts from), ``since``, ``age_h``, ``limit_h``; sorted by job and number.
        spared: Rows of the same form that were too old, but are spared by the second look.
        at: The instant.
        rules: The rule set.
        config_digest: Digest of the configuration.
    """

    shows = Shows(
        about="timeouts that fire at an instant, one row per job, rule and action",
        columns="pandaid, computingsite, jobstatus, rule, action, age_h [h], limit_h [h]",
        keys=("pandaid", "rule", "action"),
        next=(".by_job()", "lifecycle.waiting(archive)"),
    )

    fired: pl.DataFrame
    spared: pl.DataFrame
    at: datetime
    rules: TimeoutRules
    config_digest: str

    def by_job(self) -> pl.DataFrame:
        """Return one row per job: every rule that fires, the first, and the action that counts.

        Returns:
            ``pandaid, rules`` (list, in order), ``first_rule``, ``action`` (fail before kill before reassign),
            ``action_rule`` (the first with that action); sorted by job.
        """
        place = pl.col("action").replace_strict(
            {name: index for index, name in enumerate(PRECEDENCE)}, return_dtype=pl.Int64
        )
        order = self.fired.with_columns(place=place).sort("pandaid", "number", "place")
        strongest = order.sort("pandaid", "place", "number").group_by(
            "pandaid", maintain_order=True
        )
        actions = strongest.agg(pl.col("action").first(), action_rule=pl.col("rule").first())
        result = order.group_by("pandaid", maintain_order=True).agg(
            rules=pl.col("rule").unique(maintain_order=True), first_rule=pl.col("rule").first()
        )
        return result.join(actions, on="pandaid", how="left", maintain_order="left")


def decide(
    tables: Mapping[str, Any],
    *,
    at: datetime | str,
    rules: TimeoutRules | str | None = None,
    config: Config | None = None,
) -> Timeouts:
    """Say which live jobs are timed out at an instant.

    Args:
        tables: ``jobs, queues, site_data, status_log, output_reports`` as in
            :mod:`brokerlab.lifecycle.timeouts.facts`; an absent table is empty, an absent column null.
        at: The instant, UTC without zone. Ages equal to a limit do not fire, nor do times to come.
        rules: The rule set; ``document`` by default.
        config: The configuration at the instant; defaults only by default.

    Returns:
        What fires, and what is spared.

    Raises:
        SchemaError: Tables or columns do not hold to the contracts.
        ConfigError: ``at`` has a zone.

    Source: docs/rules/waiting.md 2 and 3.

    Example:
        >>> jobs = pl.DataFrame(
        ...     {"pandaid": [1], "jobstatus": ["sent"], "modificationtime": [datetime(2026, 3, 1, 11)]}
        ... )
        >>> found = decide({"jobs": jobs}, at=datetime(2026, 3, 1, 12)).fired
        >>> found.select("pandaid", "rule", "action", "age_h", "limit_h").rows()
        [(1, 'sent', 'fail', 1.0, 0.5)]
    """
    moment, chosen = time_of(at, "at"), TimeoutRules.of(rules)
    settings = (config if config is not None else Config.empty()).at(moment)
    held = prepared(tables, TABLES)
    held["queues"] = latest(held["queues"])
    limits = limits_of(held["queues"], chosen, settings)
    known = facts(held, at=moment, rules=chosen, limits=limits)
    result = judged(known, timeout_rules(chosen, limits), at=moment)
    parts = [result.filter("acts")]
    if chosen.analysis_rebrokerage:
        parts.append(analysis_rebrokerage(held, at=moment, config=settings))
    return Timeouts(
        _in_order(pl.concat(parts, how="diagonal")),
        _in_order(result.filter(~pl.col("acts"))),
        moment,
        chosen,
        settings.digest,
    )


def judged(known: pl.DataFrame, order: Sequence[TimeoutRule], *, at: datetime) -> pl.DataFrame:
    """Evaluate rules on the facts, those of statuses that some job has; see :func:`judging`."""
    there = {*known["jobstatus"].unique()}
    asked = [rule for rule in order if not there.isdisjoint(rule.statuses)]
    return judging(known.lazy().with_columns(now_us=microseconds_of(at)), asked).collect()


def judging(known: pl.LazyFrame, order: Sequence[TimeoutRule]) -> pl.LazyFrame:
    """Return a plan that evaluates rules on the facts, at ``now_us`` [us since 1970].

    The columns of ``SCHEMA`` and ``acts``, whether the second look agrees: one row per job and rule that is too old.
    """
    jobs, now = nw.from_native(known), nw.col("now_us")
    parts = [_empty().lazy()]
    for rule in order:
        frame = jobs.filter(rule.selects)
        if rule.opens is not None:
            # some job's own time opens the rule for its queue (section 2.3)
            opener = (rule.opens + rule.limit_s * SECOND_US < now).fill_null(value=False)
            frame = frame.filter(opener.max().over("computingsite"))
        late = frame.with_columns(since_us=rule.since, limit_s=rule.limit_s, due_us=rule.due_us)
        late = late.filter(nw.col("due_us") < now)
        judged = late.with_columns(
            acts=(rule.agrees_us < now).fill_null(value=False) & ~rule.spares
        )
        parts.append(_rows(judged.to_native(), rule))
    return pl.concat(parts)


def _rows(late: pl.LazyFrame, rule: TimeoutRule) -> pl.LazyFrame:
    hours = pl.lit(HOUR_S, dtype=pl.Float64)
    return late.select(
        *JOB,
        number=pl.lit(rule.number, dtype=pl.Int64),
        rule=pl.lit(rule.name),
        action=pl.lit(str(rule.action)),
        reference=pl.lit(rule.reference),
        since=pl.col("since_us").cast(pl.Datetime("us")),
        age_h=(pl.col("now_us") - pl.col("since_us")) / (hours * SECOND_US),
        limit_h=pl.col("limit_s") / hours,
        acts="acts",
    )


def _empty() -> pl.DataFrame:
    return pl.DataFrame(schema={**SCHEMA, "acts": pl.Boolean})


def _in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows in order; of two rules of one name and action that fire the one with the lower limit."""
    order = ["pandaid", "number", "action", "limit_h"]
    kept = rows.select(*SCHEMA).sort(order)
    return kept.unique(["pandaid", "rule", "action"], keep="first", maintain_order=True)


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
    waited = now - pl.col("since").cast(pl.Int64) >= pl.col("limit_s") * SECOND_US
    on = [*PLACE, "produsername"]
    checked = known.join(alive, on=on, how="left", nulls_equal=True)
    moving = checked.filter(down | (waited & pl.col("alive").is_null()))
    first = moving.sort(*PLACE, "since", "limit_s").unique([*PLACE], keep="first")
    moved = jobs.filter(status.is_in(QUEUED)).join(first, on=[*PLACE], nulls_equal=True)
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
        age_h=(now - pl.col("since").cast(pl.Int64)) / (hours * SECOND_US),
        limit_h=pl.col("limit_s") / hours,
    )


def _groups(own: pl.DataFrame, log: pl.DataFrame, now: int) -> pl.DataFrame:
    """Return the groups that wait for long enough to be looked at, with the time they wait since, ``since``.

    Jobs before activation count where no activated or starting group of their set does; one that was activated
    lately, or of which the log knows nothing, is none.
    """
    status, old = pl.col("jobstatus"), now - YOUNGEST_S * SECOND_US
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
    recent = now - pl.col("statechangetime").cast(pl.Int64) < YOUNGEST_S * SECOND_US
    shown = jobs.filter(recent & ~pl.col("jobstatus").is_in(NOT_ACTIVATED + NO_SIGN))
    return shown.select(*PLACE, "produsername").unique().with_columns(alive=True)
