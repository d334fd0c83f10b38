"""The decision table of timeouts as an ordered tuple of rules (docs/rules/waiting.md 2)."""

from __future__ import annotations

from functools import lru_cache

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts.jobs import NOT_ACTIVATED
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts.facts import ANALYSIS, PRODUCTION, TRANSFERRING_DAYS, Limits
from brokerlab.lifecycle.timeouts.rule import (
    ACTIVE_TABLE,
    USERS,
    Action,
    TimeoutRule,
    TimeoutRules,
    col,
    fixed,
    true,
)
from brokerlab.units import DAY_S, HOUR_S

URGENT = 800  # priority from which a job is urgent
MUST_STAY = 2  # ``relocationflag`` of a job that may not move


@lru_cache(maxsize=64)  # made of many small expressions
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
    table = NOT_ACTIVATED if rules.assigned_whole_table else ("assigned",)
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
    result = [
        TimeoutRule(
            number=8, name="sent", action="fail", statuses=("sent",),
            **fixed("modificationtime", half_hour), condition=true(), exempt=exempt,
            second_s=_second(rules, half_hour),
        ),
        running,
    ]  # fmt: skip
    if rules.second_look:
        result.append(
            TimeoutRule(
                number=9, name="running", action="fail", statuses=statuses,
                **fixed(since, 21 * DAY_S), condition=true(), exempt=exempt,
                second_s=_second(rules, 21 * DAY_S),
            )
        )  # fmt: skip
    return (*result, *_heartbeats(rules, limits))


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
    result = [
        TimeoutRule(
            number=10, name="heartbeat", action="fail", statuses=statuses, **silence,
            condition=true(), exempt=exempt, keys=keys,
            second_s=col("heartbeat_s") if rules.second_look else None,
        )
    ]  # fmt: skip
    if rules.heartbeat_two_checks:
        result.append(
            TimeoutRule(
                number=10, name="heartbeat", action="fail", statuses=statuses,
                **fixed("modificationtime", limits.heartbeat_s["analysis"]),
                condition=col("prodsourcelabel").is_in(USERS), exempt=everywhere(rules), keys=keys,
                second_s=_second(rules, HOUR_S),
            )
        )  # fmt: skip
    if not rules.transferring_heartbeat_users:
        result.append(
            TimeoutRule(
                number=11, name="heartbeat_transferring", action="fail", statuses=("transferring",),
                **silence, condition=col("jobsubstatus") != "", where=col("heartbeat_own"), exempt=everywhere(rules), keys=keys,
                second_s=col("heartbeat_s") if rules.second_look else None,
            )
        )  # fmt: skip
    return tuple(result)


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


def decision_table(
    *,
    rules: TimeoutRules | str | None = None,
    config: Config | None = None,
    workflow: str = PRODUCTION,
) -> pl.DataFrame:
    """Return the rules of a rule set in order, with the limits that a configuration sets.

    Args:
        rules: The rule set; ``document`` by default.
        config: The configuration at an instant; defaults only by default.
        workflow: Whose heartbeat limit to tell; one without a limit has that of ``production``.

    Returns:
        ``number, rule, action, statuses`` (list), ``reference``, ``limit_h`` (of a queue that sets none itself),
        ``keys`` (list of gdpconfig keys), ``second_look`` (whether the job is looked at again), ``source``.

    Source: docs/rules/waiting.md 2.

    Example:
        >>> decision_table().select("rule", "action", "limit_h").head(3).rows()
        [('pending', 'kill', 1.0), ('defined', 'reassign', 4.0), ('assigned', 'reassign', 12.0)]
    """
    chosen = TimeoutRules.of(rules)
    settings = config if config is not None else Config.empty()
    limits = Limits.of(settings, {workflow} - {PRODUCTION, ANALYSIS})
    silence = limits.heartbeat_s.get(workflow, limits.heartbeat_s[PRODUCTION])
    days = {f"{name}_s": int(value * DAY_S) for name, value in TRANSFERRING_DAYS.items()}
    queue = nw.from_native(pl.DataFrame({"heartbeat_s": silence, **days}))

    def row(rule: TimeoutRule) -> dict[str, object]:
        limit = queue.select(limit=rule.limit_s)["limit"].item()
        return {
            "number": rule.number,
            "rule": rule.name,
            "action": rule.action,
            "statuses": list(rule.statuses),
            "reference": rule.reference,
            "limit_h": limit / HOUR_S,
            "keys": list(rule.keys),
            "second_look": rule.second_s is not None,
            "source": rule.source,
        }

    schema = {"keys": pl.List(pl.String)}
    return pl.DataFrame(
        [row(rule) for rule in timeout_rules(chosen, limits)], schema_overrides=schema
    )


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
        _rule(18, "defined_7d", "kill", NOT_ACTIVATED, (since, week), true()),
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
