"""The rules that only the deployed code has (docs/rules/waiting.md 2.2)."""

from __future__ import annotations

import narwhals.stable.v2 as nw

from brokerlab.lifecycle.timeouts.rule import (
    ACTIVE_TABLE,
    DEFINED_TABLE,
    USERS,
    Action,
    TimeoutRule,
    col,
    fixed,
    true,
)
from brokerlab.lifecycle.timeouts.settings import Limits
from brokerlab.units import DAY_S, HOUR_S

SOURCE = "docs/rules/waiting.md 2.2"
ES_MERGE = 2
CO_JUMBO = 5
ES_PRIORITY = 900  # event service jobs of this priority and more are killed after a day


def _rule(
    number: int,
    name: str,
    action: Action,
    statuses: tuple[str, ...],
    wait: tuple[str, int],
    condition: nw.Expr,
    *,
    keys: tuple[str, ...] = (),
    second_s: int | None = None,
    where: nw.Expr | None = None,
) -> TimeoutRule:
    return TimeoutRule(
        number=number,
        name=f"x_{name}",
        action=action,
        statuses=statuses,
        **fixed(*wait),
        condition=condition,
        where=true() if where is None else where,
        exempt=true(value=False),
        source=SOURCE,
        keys=keys,
        second_s=None if second_s is None else nw.lit(second_s),
    )


def code_rules(limits: Limits) -> tuple[TimeoutRule, ...]:
    """Return the rules whose names begin with ``x_``; no queue is exempt from them."""
    user, kind = col("prodsourcelabel").is_in(USERS), col("eventservice")
    changed_since = col("statechangetime_us") != col("modificationtime_us")
    silence = limits.heartbeat_s["analysis"]
    urgent_es = kind.is_in((1, CO_JUMBO)) & (col("currentpriority") >= ES_PRIORITY)
    es_day = urgent_es.fill_null(value=False) | (kind == ES_MERGE)
    build = (col("prodsourcelabel") == "panda") & col("is_build")
    late_build = build.fill_null(value=False) | col("lockedby").is_null()
    defined = ("TIMEOUT_defined",)
    week, since = 7 * DAY_S, "creationtime"
    return (
        _rule(
            16, "holding_user", "fail", ("holding",), ("modificationtime or endtime", 3 * HOUR_S),
            user & changed_since, where=~col("output_report"), second_s=3 * HOUR_S,
        ),
        _rule(
            17, "transferring_user", "fail", ("transferring",), ("modificationtime", silence),
            user, keys=("HEARTBEAT_TIMEOUT_<workflow>",), second_s=HOUR_S,
        ),
        _rule(18, "defined_7d", "kill", DEFINED_TABLE, (since, week), true()),
        _rule(19, "activated_7d", "kill", ("activated",), (since, week), true()),
        _rule(
            20, "analysis_7d", "kill", ACTIVE_TABLE, ("modificationtime", week),
            col("prodsourcelabel").is_in(("test", *USERS)),
        ),
        _rule(
            21, "waiting", "kill", ("waiting",), (since, HOUR_S),
            nw.coalesce(kind, nw.lit(0)) != CO_JUMBO,
        ),
        _rule(22, "es_waiting", "kill", ("waiting",), (since, HOUR_S // 6), kind == ES_MERGE),
        _rule(
            23, "es_24h", "kill", ("running", "starting"), ("statechangetime", DAY_S), es_day,
        ),
        _rule(
            24, "build", "kill", ("defined",), (since, limits.defined_s), late_build, keys=defined
        ),
    )  # fmt: skip
