"""Histories of jobs, read once: the spans in which some rule could fire, and what rules would have fired in them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.engines import collect, lazy_of, microseconds
from brokerlab.errors import ConfigError
from brokerlab.frames import latest, prepared
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts import spans
from brokerlab.lifecycle.timeouts.catalogue import URGENT, timeout_rules
from brokerlab.lifecycle.timeouts.contracts import TABLES
from brokerlab.lifecycle.timeouts.facts import (
    IDLE_S,
    heartbeat,
    limits_of,
    microseconds_of,
    with_queues,
)
from brokerlab.lifecycle.timeouts.rule import SECOND, TimeoutRule, TimeoutRules, true
from brokerlab.units import HOUR_S

NEEDS_IDLE = "inactive_queue"  # the rule that asks when jobs last started at a queue
IDLE = {"computingsite": pl.String, "idle_us": pl.Int64, "again_us": pl.Int64}
JOB = ("pandaid", "jeditaskid", "computingsite", "gshare", "prodsourcelabel", "currentpriority")
BAD = ("failed", "cancelled", "closed")  # statuses of jobs that came to nothing
STARTED = ("running", "stagein", "stageout", "holding", "merging", "transferring")
"""Statuses after the start: of a job that came to nothing, nothing was gained by going through them."""


@dataclass(frozen=True)
class Histories:
    """The spans of jobs in which some rule could fire."""

    spans: pl.DataFrame  # one row per span, with the facts of its queue
    idle: pl.DataFrame  # when queues had started nothing for 2 h
    places: pl.DataFrame  # table ``queues`` as it was
    config: Config  # the configuration
    rules: TimeoutRules  # the rule set that is asked where none is named
    now: int  # end of the history [us since 1970]
    least: float = 1.0  # smallest scale of limits that they were read for

    def fired(
        self, scale: float = 1.0, *, rules: TimeoutRules | str | None = None, exempt: bool = True
    ) -> pl.DataFrame:
        """Return the result of :func:`brokerlab.lifecycle.timeouts.would_fire`, asked otherwise.

        Every limit is made ``scale`` times as long, rules are judged one by one. Of other ``rules`` only those that the
        histories were read for see all their jobs. Without ``exempt`` it is as if no queue were exempt from any rule.

        Raises:
            ConfigError: The scale is smaller than any that the histories were read for: they lack shorter waits.
        """
        if not self.least <= scale < math.inf:
            raise ConfigError(
                f"scale={scale}: waits were read for limits of {self.least:g} times their length and more; "
                f"read them again with least={scale}"
            )
        chosen = self.rules if rules is None else TimeoutRules.of(rules)
        limits = limits_of(self.places, chosen, self.config)
        known = self.spans.with_columns(
            **heartbeat(chosen, limits),
            queue_idle=pl.lit(value=True),
            output_report=pl.lit(value=False),
        )
        # lazy: dozens of small steps are planned once, which is most of the work where few jobs wait
        lazy, idle = known.lazy(), self.idle.lazy()
        parts = []
        for rule in _order(self.places, chosen, self.config):
            asked = rule if exempt else replace(rule, exempt=true(value=False))
            parts.append(_firings(lazy, asked.scaled(scale), idle, self.now))
        order = ["pandaid", "number", "action", "fires_us", "limit_h", "enter_us"]
        first = pl.concat(parts).collect().sort(order)
        key = ["pandaid", "rule", "action"]
        return _told(first.unique(key, keep="first", maintain_order=True), self.now)


def histories(
    jobs: Any,
    status_log: Any = None,
    *,
    at: datetime,
    queues: Any = None,
    heartbeats: Any = None,
    rules: TimeoutRules | str | None = None,
    config: Config | None = None,
    least: float = 1.0,
    also: Iterable[TimeoutRules] = (),
) -> Histories:
    """Read histories; arguments and errors are those of :func:`brokerlab.lifecycle.timeouts.would_fire`.

    ``least`` is the smallest scale of limits that will be asked for, ``also`` are other rule sets that will be, limits as they are.
    """
    chosen = TimeoutRules.of(rules)
    settings = (config if config is not None else Config.empty()).at(at)
    places = _places(queues)
    table, log, signs = spans.read(jobs, status_log, heartbeats)
    asked = [rule.scaled(least) for rule in _order(places, chosen, settings)]
    others = [rule for other in also for rule in _order(places, other, settings)]
    result = collect(_late(spans.spans(table, log, signs, at), asked, others))
    known = with_queues(result, places)
    return Histories(
        known, _idle_times(table, known), places, settings, chosen, microseconds_of(at), least
    )


def _order(places: pl.DataFrame, rules: TimeoutRules, config: Config) -> tuple[TimeoutRule, ...]:
    """Return the rules of a rule set."""
    limits = limits_of(places, rules, config)
    return timeout_rules(rules, limits, least_transferring_s=_least_transferring(places))


def _places(queues: Any) -> pl.DataFrame:
    """Return the latest row of each queue."""
    if queues is None:
        return TABLES["queues"].create_empty()
    lazy = lazy_of(queues, "queues")
    names = lazy.collect_schema().names()
    kept = [name for name in TABLES["queues"].column_names() if name in names]
    rows = collect(lazy.select(kept))
    return latest(prepared({"queues": rows}, {"queues": TABLES["queues"]})["queues"])


def _least_transferring(queues: pl.DataFrame) -> int:
    """Return the lowest limit of transferring at any queue [s]."""
    names = pl.DataFrame(
        {"computingsite": [None, *queues["panda_queue"]]},
        schema_overrides={"computingsite": pl.String},
    )
    limits = with_queues(names, queues).select("transtimehi_s", "transtimelo_s")
    return min(int(column.min()) for column in limits.iter_columns())  # type: ignore[arg-type]


def _late(
    history: nw.LazyFrame[Any], order: Sequence[TimeoutRule], others: Sequence[TimeoutRule]
) -> nw.LazyFrame[Any]:
    """Keep the spans in which some rule could fire, whatever the queue; of the others, whatever the job's labels."""
    could = [rule.of_job & _reaches(rule) for rule in order]
    alike = {
        (rule.statuses, rule.reference, rule.least_s, rule.opens is None): rule for rule in others
    }
    could += [nw.col("jobstatus").is_in(rule.statuses) & _reaches(rule) for rule in alike.values()]
    return history.filter(reduce(nw.Expr.__or__, (one.fill_null(value=False) for one in could)))


def _reaches(rule: TimeoutRule) -> nw.Expr:
    """Return where a span lasts beyond the lowest limit of a rule."""
    return rule.since + rule.least_s * SECOND < nw.col("to_us")


def _firings(known: pl.LazyFrame, rule: TimeoutRule, idle: pl.LazyFrame, now: int) -> pl.LazyFrame:
    """Return the firing times of a rule, several for a job with several spans."""
    frame = nw.from_native(known).filter(rule.selects & ~rule.spares)
    judged = frame.with_columns(
        since_us=rule.since, rule_limit_s=rule.limit_s, due_us=rule.due_us, agrees_us=rule.agrees_us
    ).to_native()
    timed = judged.filter(~pl.any_horizontal(pl.col("due_us", "agrees_us").is_null())).with_columns(
        fires_us=pl.max_horizontal("due_us", "agrees_us", "from_us")
    )
    if rule.name == NEEDS_IDLE:
        timed = _when_idle(timed, idle)
    late = timed.filter(pl.col("fires_us") < pl.col("to_us"))
    hours = pl.lit(HOUR_S, dtype=pl.Float64)
    return late.select(
        *JOB,
        "jobstatus",
        number=pl.lit(rule.number, dtype=pl.Int64),
        rule=pl.lit(rule.name),
        action=pl.lit(str(rule.action)),
        reference=pl.lit(rule.reference),
        limit_h=pl.col("rule_limit_s") / hours,
        since_us="since_us",
        enter_us="enter_us",
        fires_us="fires_us",
        live=pl.col("live") & (_ended(rule) == now),
        ended_us=_ended(rule),
        outcome=_outcome(rule, now),
    )


def _ended(rule: TimeoutRule) -> pl.Expr:
    """Return when the wait was over: silence ends with the next sign of life, any other wait with the status."""
    return pl.col("to_us" if rule.reference == "modificationtime" else "leave_us")


def _outcome(rule: TimeoutRule, now: int) -> pl.Expr:
    """Return what became of the wait: ``went_on``, ``came_to_nothing`` or ``waiting``."""
    spoke = _ended(rule) < pl.col("leave_us")
    with_the_job = (pl.col("leave_us") == pl.col("over_us")) | pl.col("jobstatus").is_in(STARTED)
    nothing = (pl.col("final").is_in(BAD) & with_the_job & ~spoke).fill_null(value=False)
    return (
        pl.when(pl.col("live") & (_ended(rule) == now)).then(pl.lit("waiting"))
        .when(nothing).then(pl.lit("came_to_nothing"))
        .otherwise(pl.lit("went_on"))
    )  # fmt: skip


def _idle_times(table: nw.LazyFrame[Any], known: pl.DataFrame) -> pl.DataFrame:
    """Return when the queues of waiting urgent jobs had started nothing for 2 h.

    ``computingsite, idle_us`` (from), ``again_us`` (to; null: to this day).
    """
    waiting = known.filter(
        pl.col("jobstatus").is_in(("activated", "starting")),
        pl.col("currentpriority") >= URGENT,
        ~pl.col("queue_down"),
    )
    names = waiting["computingsite"].drop_nulls().unique().sort()
    if names.is_empty():
        return pl.DataFrame(schema=IDLE)
    started = (
        table.filter(
            nw.col("computingsite").is_in(names.to_list()) & ~nw.col("starttime").is_null()
        )
        .select("computingsite", "starttime")
        .unique()
    )
    following = nw.col("starttime").shift(-1).over("computingsite", order_by="starttime")
    gaps = started.with_columns(again=following).with_columns(
        start_us=microseconds(started, nw.col("starttime")),
        again_us=microseconds(started, nw.col("again")),
    )
    step = IDLE_S * SECOND
    long = nw.col("again_us").is_null() | (nw.col("again_us") - nw.col("start_us") > step)
    result = collect(gaps.filter(long).select("computingsite", "start_us", "again_us"))
    return result.select("computingsite", idle_us=pl.col("start_us") + step, again_us="again_us")


def _when_idle(timed: pl.LazyFrame, idle: pl.LazyFrame) -> pl.LazyFrame:
    """Move firing times to when the queue is down, or has started nothing for long enough."""
    down = timed.filter("queue_down")
    up = timed.filter(~pl.col("queue_down")).join(idle, on="computingsite")
    moved = up.with_columns(fires_us=pl.max_horizontal("fires_us", "idle_us"))
    before = pl.col("again_us").is_null() | (pl.col("fires_us") < pl.col("again_us"))
    return pl.concat([down, moved.filter(before).drop("idle_us", "again_us")])


def _told(first: pl.DataFrame, now: int) -> pl.DataFrame:
    """Turn numbers into times and durations."""
    hours = pl.lit(HOUR_S * SECOND, dtype=pl.Float64)
    fires, time = pl.col("fires_us"), pl.Datetime("us")
    return first.select(
        *JOB,
        *("jobstatus", "number", "rule", "action", "reference"),
        pl.col("since_us").cast(time).alias("since"),
        "limit_h",
        entered=pl.col("enter_us").cast(time),
        fires=fires.cast(time),
        left=pl.when(~pl.col("live")).then(pl.col("ended_us")).cast(time),
        outcome="outcome",
        waited_h=(fires - pl.col("since_us")) / hours,
        spared_h=(pl.min_horizontal("ended_us", pl.lit(now)) - fires) / hours,
    )


def would_fire(
    jobs: Any,
    status_log: Any = None,
    *,
    at: datetime,
    queues: Any = None,
    heartbeats: Any = None,
    rules: TimeoutRules | str | None = None,
    config: Config | None = None,
) -> pl.DataFrame:
    """Say which timeout rule would have fired when for which jobs: the first time of each job and rule.

    The job-sized part is one query of the engine, which leaves the spans that last longer than a limit; rule
    ``inactive_queue`` takes a second one for the times at which a queue started nothing.

    Args:
        jobs: Table ``jobs`` (Polars, DuckDB, Spark). Priority, labels and flags are those of the row.
        status_log: Table ``job_status_log`` of the same engine; jobs without entries, or all of them without the
            table, are read from their times, which know of no status but assigned, activated and running, and of the
            present one of live jobs.
        at: End of the history, UTC without zone.
        queues: Table ``queues``; with ``ts`` the latest row of each queue counts. None: no queue is known.
        heartbeats: ``pandaid, modificationtime`` of the same engine, one row per sign of life. Without it rules about
            heartbeats judge the present status of live jobs alone.
        rules: The rule set; ``document`` by default.
        config: The configuration; what holds at ``at`` is used for the whole history.

    Returns:
        One row per job, rule and action: ``pandaid, jeditaskid, computingsite, gshare, prodsourcelabel,
        currentpriority, jobstatus`` (then), ``number, rule, action, reference, since, limit_h``, ``entered``,
        ``fires`` (the rule fires right after), ``left`` (when the wait ended: with the status, or where silence is
        what counts with the next sign of life; null: it still lasts at ``at``), ``outcome`` (``went_on``;
        ``came_to_nothing``: the job failed or was cancelled or closed with this status, or after it had started;
        ``waiting``: nobody knows), ``waited_h`` from ``since`` to ``fires``, ``spared_h`` from ``fires`` to ``left`` or
        ``at``. Sorted by job and number. Rules are judged one by one: that another one would have taken the job
        before is not asked. Not told are analysis rebrokerage, which looks at groups, and pending output reports.

    Raises:
        SchemaError: Required columns are missing.
        DataError: The tables live in different engines.
        ConfigError: ``at`` has a zone.

    Source: docs/rules/waiting.md 2.

    Example:
        >>> day = datetime(2026, 3, 1)
        >>> jobs = pl.DataFrame(
        ...     {"pandaid": [1], "jobstatus": ["finished"], "creationtime": [day], "activatedtime": [day],
        ...      "starttime": [datetime(2026, 3, 4)], "modificationtime": [datetime(2026, 3, 5)]}
        ... )
        >>> found = would_fire(jobs, at=datetime(2026, 4, 1))
        >>> found.select("rule", "fires", "spared_h").rows()
        [('activated', datetime.datetime(2026, 3, 3, 0, 0), 24.0)]
    """
    read = histories(
        jobs, status_log, at=at, queues=queues, heartbeats=heartbeats, rules=rules, config=config
    )
    return read.fired()
