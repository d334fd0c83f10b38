"""The decision table of timeouts as an ordered tuple of rules (docs/rules/waiting.md 2)."""

from __future__ import annotations

import narwhals.stable.v2 as nw

from brokerlab.lifecycle.timeouts.code_rules import code_rules
from brokerlab.lifecycle.timeouts.rule import (
    ACTIVE_TABLE,
    DEFINED_TABLE,
    USERS,
    TimeoutRule,
    col,
    fixed,
    true,
)
from brokerlab.lifecycle.timeouts.rules import TimeoutRules
from brokerlab.lifecycle.timeouts.settings import Limits
from brokerlab.units import DAY_S, HOUR_S

URGENT = 800  # priority from which a job is urgent
MUST_STAY = 2  # ``relocationflag`` of a job that may not move


def timeout_rules(
    rules: TimeoutRules, limits: Limits, *, least_transferring_s: int = 0
) -> tuple[TimeoutRule, ...]:
    """Return the rules of a rule set in the chapter's order."""
    return (
        *_waiting(rules, limits),
        *_queued(rules),
        *_running(rules, limits),
        *_ending(rules, limits, least_transferring_s),
        *(code_rules(limits) if rules.code_only_rules else ()),
    )


def everywhere(rules: TimeoutRules) -> nw.Expr:
    """Return where a queue is exempt from every rule."""
    if rules.exemption_mode == "document":
        return col("queue_paused") | col("queue_stays")
    return true(value=False)


def _staying(rules: TimeoutRules) -> nw.Expr:
    """Return where a queue keeps its activated and starting jobs."""
    return everywhere(rules) if rules.exemption_mode == "document" else col("queue_stays")


def _jedi(rules: TimeoutRules, *labels: str) -> nw.Expr:
    """Return whether a job is of these labels and under JEDI, where the rule set asks."""
    if not rules.label_limits:
        return true()
    return col("prodsourcelabel").is_in(labels) & (col("lockedby") == "jedi")


def _urgent() -> nw.Expr:
    return (col("currentpriority") >= URGENT).fill_null(value=False)


def _waiting(rules: TimeoutRules, limits: Limits) -> tuple[TimeoutRule, ...]:
    """Return rules 1 to 4: before activation."""
    exempt = everywhere(rules)
    table = DEFINED_TABLE if rules.assigned_whole_table else ("assigned",)
    return (
        TimeoutRule(
            number=1, name="pending", action="kill", statuses=("pending",),
            **fixed("creationtime", HOUR_S), condition=true(), exempt=exempt,
        ),
        TimeoutRule(
            number=2, name="defined", action="reassign", statuses=("defined",),
            **fixed("modificationtime", limits.defined_s),
            condition=_jedi(rules, "managed", "test"), exempt=exempt, keys=("TIMEOUT_defined",),
        ),
        TimeoutRule(
            number=3, name="assigned", action="reassign", statuses=table,
            **fixed("modificationtime", 12 * HOUR_S), condition=_jedi(rules, "managed"), exempt=exempt,
        ),
        TimeoutRule(
            number=4, name="throttled", action="kill", statuses=("throttled",),
            **fixed("creationtime", 7 * DAY_S), condition=true(), exempt=exempt,
        ),
    )  # fmt: skip


def _queued(rules: TimeoutRules) -> tuple[TimeoutRule, ...]:
    """Return rules 5 to 7: activated and starting."""
    may_move = _jedi(rules, "managed")
    if rules.label_limits:
        may_move = may_move & (nw.coalesce(col("relocationflag"), nw.lit(0)) != MUST_STAY)
    exempt = _staying(rules)
    return (
        TimeoutRule(
            number=5, name="activated", action="reassign", statuses=("activated",),
            **fixed("modificationtime", 2 * DAY_S), condition=may_move, exempt=exempt,
        ),
        TimeoutRule(
            number=6, name="starting", action="reassign", statuses=("starting",),
            **fixed("statechangetime", 2 * DAY_S), condition=may_move, exempt=exempt,
        ),
        _inactive_queue(rules),
    )  # fmt: skip


def _inactive_queue(rules: TimeoutRules) -> TimeoutRule:
    """Return rule 7; in two steps the second one takes a job by either of its times (section 2.3)."""
    modified, changed = col("modificationtime_us"), col("statechangetime_us")
    own = nw.when(col("jobstatus") == "activated").then(modified).otherwise(changed)
    condition = _urgent()
    if rules.label_limits:
        # a null type or flag is no match here, other than in rules 5 and 6
        condition = condition & _jedi(rules, "managed") & (col("processingtype") != "pmerge")
        condition = condition & (col("relocationflag") != MUST_STAY)
    wait = fixed("modificationtime", 4 * HOUR_S)
    wait |= {"reference": "modificationtime (starting: statechangetime)", "since": own}
    opens = None
    if rules.inactive_queue_two_steps:
        either = nw.min_horizontal(modified, changed)
        wait |= {"reference": "modificationtime or statechangetime", "since": either}
        opens = own
    return TimeoutRule(
        number=7, name="inactive_queue", action="reassign", statuses=("activated", "starting"),
        **wait, condition=condition, where=col("queue_idle"), exempt=_staying(rules), opens=opens,
    )  # fmt: skip


def _running(rules: TimeoutRules, limits: Limits) -> tuple[TimeoutRule, ...]:
    """Return rules 8 to 11: on the node."""
    exempt = everywhere(rules)
    half_hour = HOUR_S // 2
    since, statuses = (
        ("creationtime", ACTIVE_TABLE)
        if rules.running_since_creation
        else ("starttime", ("running",))
    )
    running = TimeoutRule(
        number=9, name="running", action="kill", statuses=statuses,
        **fixed(since, 21 * DAY_S), condition=true(), exempt=exempt,
    )  # fmt: skip
    found = [
        TimeoutRule(
            number=8, name="sent", action="fail", statuses=("sent",),
            **fixed("modificationtime", half_hour), condition=true(), exempt=exempt,
            second_s=_second(rules, half_hour),
        ),
        running,
    ]  # fmt: skip
    if rules.second_look:
        found.append(
            TimeoutRule(
                number=9, name="running", action="fail", statuses=statuses,
                **fixed(since, 21 * DAY_S), condition=true(), exempt=exempt,
                second_s=_second(rules, 21 * DAY_S),
            )
        )  # fmt: skip
    return (*found, *_heartbeats(rules, limits))


def _second(rules: TimeoutRules, limit_s: int) -> nw.Expr | None:
    return nw.lit(limit_s) if rules.second_look else None


def _heartbeats(rules: TimeoutRules, limits: Limits) -> tuple[TimeoutRule, ...]:
    """Return rules 10 and 11 (section 2.1)."""
    further = ("stagein", "stageout") if rules.heartbeat_stages else ()
    statuses = ("running", "starting", *further)
    exempt = everywhere(rules)
    if rules.exemption_mode == "production":
        exempt = col("queue_paused")
        if not rules.heartbeat_two_checks:
            exempt = exempt & ~col("prodsourcelabel").is_in(USERS).fill_null(value=False)
    silence = fixed("modificationtime", min(limits.heartbeat_s.values()))
    silence |= {"limit_s": col("heartbeat_s")}
    keys = ("HEARTBEAT_TIMEOUT_<workflow>",)
    found = [
        TimeoutRule(
            number=10, name="heartbeat", action="fail", statuses=statuses, **silence,
            condition=true(), exempt=exempt, keys=keys,
            second_s=col("heartbeat_s") if rules.second_look else None,
        )
    ]  # fmt: skip
    if rules.heartbeat_two_checks:
        found.append(
            TimeoutRule(
                number=10, name="heartbeat", action="fail", statuses=statuses,
                **fixed("modificationtime", limits.heartbeat_s["analysis"]),
                condition=col("prodsourcelabel").is_in(USERS), exempt=everywhere(rules), keys=keys,
                second_s=_second(rules, HOUR_S),
            )
        )  # fmt: skip
    if not rules.transferring_heartbeat_users:
        found.append(
            TimeoutRule(
                number=11, name="heartbeat_transferring", action="fail", statuses=("transferring",),
                **silence, condition=col("jobsubstatus") != "", where=col("heartbeat_own"), exempt=everywhere(rules), keys=keys,
                second_s=col("heartbeat_s") if rules.second_look else None,
            )
        )  # fmt: skip
    return tuple(found)


def _ending(rules: TimeoutRules, limits: Limits, least_s: int) -> tuple[TimeoutRule, ...]:
    """Return rules 12 to 15: after the payload."""
    exempt = everywhere(rules)
    urgent = _urgent() if rules.holding_hi_from_800 else col("currentpriority") > URGENT
    low = true() if rules.holding_lo_any_priority else ~_urgent()
    either = "modificationtime or endtime"
    hi, lo = fixed(either, 3 * HOUR_S), fixed(either, limits.holding_s)
    return (
        TimeoutRule(
            number=12, name="holding_hi", action="fail", statuses=("holding",), **hi,
            condition=urgent, exempt=exempt, second_s=_second(rules, 3 * HOUR_S),
        ),
        TimeoutRule(
            number=13, name="holding_lo", action="fail", statuses=("holding",), **lo,
            condition=low, exempt=exempt, keys=("TIMEOUT_holding",),
            second_s=_second(rules, limits.holding_s),
        ),
        *_transferring(rules, least_s),
    )  # fmt: skip


def _transferring(rules: TimeoutRules, least_s: int) -> tuple[TimeoutRule, ...]:
    """Return rules 14 and 15."""
    high = _urgent()
    limits: tuple[nw.Expr, nw.Expr] = (col("transtimehi_s"), col("transtimelo_s"))
    wait = fixed("endtime, else starttime", least_s)
    if rules.transferring_fixed_limits:
        high = high & (col("prodsourcelabel") != "user").fill_null(value=True)
        limits = (nw.lit(2 * DAY_S), nw.lit(6 * DAY_S))
        wait = fixed("endtime", 2 * DAY_S)
    chosen = zip((14, 15), ("hi", "lo"), limits, (high, ~high), strict=True)
    return tuple(
        TimeoutRule(
            number=number, name=f"transferring_{name}", action="fail", statuses=("transferring",),
            **(wait | {"limit_s": limit}), condition=condition, exempt=everywhere(rules),
        )
        for number, name, limit, condition in chosen
    )  # fmt: skip
