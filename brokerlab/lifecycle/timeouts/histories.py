"""Histories of jobs, read once: the spans in which some rule could fire, and what rules would have fired in them.

A span has the job's columns as its row has them, but the status and the times that held then: ``modificationtime``
and ``statechangetime`` are its beginning. Jobs with entries in the status log are read from it, the others from their
times, which tell less (:mod:`brokerlab.lifecycle.states`). Heartbeats divide a span; without them nobody knows
when a job that is over last gave a sign, so its ``modificationtime`` is null where heartbeats count. That of a live
job is the one of its row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.engines import (
    INT,
    TEXT,
    TIME,
    Types,
    collect,
    lazy_of,
    microseconds,
    narrow,
    same_engine,
)
from brokerlab.errors import ConfigError
from brokerlab.frames import latest, prepared
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.states import changed, status_spans
from brokerlab.lifecycle.timeouts.catalogue import URGENT, timeout_rules
from brokerlab.lifecycle.timeouts.facts import (
    IDLE_S,
    TABLES,
    heartbeat,
    limits_of,
    microseconds_of,
    with_queues,
)
from brokerlab.lifecycle.timeouts.rule import TIMES, TimeoutRule, TimeoutRules, true
from brokerlab.units import HOUR_S, SECOND_US

JOBS: Types = {
    **dict.fromkeys(["pandaid", "jeditaskid"], INT),
    "jobstatus": TEXT,
    **dict.fromkeys(["creationtime", "activatedtime", "modificationtime"], TIME),
    **dict.fromkeys(["statechangetime", "starttime", "endtime"], TIME),
    **dict.fromkeys(["currentpriority", "relocationflag", "eventservice"], INT),
    **dict.fromkeys(["prodsourcelabel", "processingtype", "gshare", "computingsite"], TEXT),
    **dict.fromkeys(["lockedby", "jobsubstatus", "transformation"], TEXT),
}
"""Columns of ``jobs`` that are read."""
REQUIRED = ("pandaid", "jobstatus", "creationtime", "modificationtime")
SIGNS: Types = {"pandaid": INT, "modificationtime": TIME}
LOG: Types = {"pandaid": INT, "jobstatus": TEXT, "modificationtime": TIME}
BEATING = ("running", "starting", "stagein", "stageout", "transferring")
"""Statuses in which jobs give signs of life."""
KEEP = (
    *(name for name in JOBS if name not in ("jobstatus", "activatedtime", "statechangetime")),
    *("final", "over"),
)
"""Columns that a span has of its job; ``final`` and ``over`` are the status of the row, and since when."""

Lazy = nw.LazyFrame[Any]


def _narrowed(jobs: Any, status_log: Any, heartbeats: Any) -> tuple[Lazy, Lazy | None, Lazy | None]:
    """Narrow the tables, of any one engine, to what is read."""
    tables = {"jobs": narrow(jobs, "jobs", JOBS, REQUIRED)}
    if status_log is not None:
        tables["job_status_log"] = narrow(status_log, "job_status_log", LOG, tuple(LOG))
    if heartbeats is not None:
        tables["heartbeats"] = narrow(heartbeats, "heartbeats", SIGNS, tuple(SIGNS))
    same_engine(tables)
    own = tables["jobs"].with_columns(final=nw.col("jobstatus"), over=changed())
    return own, tables.get("job_status_log"), tables.get("heartbeats")


def _spans(jobs: Lazy, log: Lazy | None, signs: Lazy | None, until: datetime) -> Lazy:
    """Return the spans up to an instant.

    The columns of jobs as they were, ``live`` (the status of the row), ``enter_us, leave_us`` of the status,
    ``from_us, to_us`` of the part of it without a sign of life [us since 1970], ``<time>_us``, and of the row
    ``final``, its status, ``over_us``, since when.
    """
    result = status_spans(jobs, log, KEEP).with_columns(live=nw.col("leave").is_null())
    end = nw.when(nw.col("live")).then(nw.lit(until)).otherwise(nw.col("leave"))
    dated = result.with_columns(
        leave=nw.min_horizontal(end.cast(TIME), nw.lit(until).cast(TIME)),
        enter=nw.coalesce("enter", "creationtime"),
    ).filter(nw.col("enter") < nw.col("leave"))
    beats = nw.col("status").is_in(BEATING)
    if signs is not None:
        divided = _divide(dated.filter(beats), signs)
        enter, leave = nw.col("enter"), nw.col("leave")
        whole = dated.filter(~beats).with_columns(sign=enter, begin=enter, end=leave)
        dated = nw.concat([whole, divided])
    else:
        own = nw.when(nw.col("live")).then(nw.col("modificationtime"))
        sign = nw.when(beats).then(own).otherwise(nw.col("enter"))
        dated = dated.with_columns(sign=sign, begin=nw.col("enter"), end=nw.col("leave"))
    return _as_jobs(dated)


def _divide(beating: Lazy, signs: Lazy) -> Lazy:
    """Divide spans at signs of life: ``sign`` and ``begin`` are the last one, ``end`` the next."""
    columns = beating.collect_schema().names()
    sign = signs.select("pandaid", sign=nw.col("modificationtime"))
    inside = beating.join(sign, on="pandaid", how="inner")
    inside = inside.filter((nw.col("sign") > nw.col("enter")) & (nw.col("sign") < nw.col("leave")))
    first = beating.with_columns(sign=nw.col("enter")).select(*columns, "sign")
    events = nw.concat([first, inside.select(*columns, "sign")]).unique()
    following = nw.col("sign").shift(-1).over("pandaid", "enter", order_by="sign")
    ended = events.with_columns(following=following)
    end = nw.coalesce("following", "leave")
    return ended.with_columns(begin=nw.col("sign"), end=end).select(
        *columns, "sign", "begin", "end"
    )


def _as_jobs(dated: Lazy) -> Lazy:
    """Give spans the columns of jobs."""
    jobs = dated.with_columns(
        jobstatus=nw.col("status"),
        statechangetime=nw.col("enter"),
        modificationtime=nw.col("sign"),
        is_build=nw.col("transformation").str.contains("build", literal=True),
    )
    return jobs.with_columns(
        *(microseconds(jobs, nw.col(name)).alias(f"{name}_us") for name in TIMES),
        enter_us=microseconds(jobs, nw.col("enter")),
        leave_us=microseconds(jobs, nw.col("leave")),
        from_us=microseconds(jobs, nw.col("begin")),
        to_us=microseconds(jobs, nw.col("end")),
        over_us=microseconds(jobs, nw.col("over")),
    ).drop("sign", "begin", "end", "enter", "leave", "over", "status")


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
        order, there = _order(self.places, chosen, self.config), {*known["jobstatus"].unique()}
        parts = []
        for rule in [one for one in order if not there.isdisjoint(one.statuses)] or order[:1]:
            asked = rule if exempt else replace(rule, exempt=true(value=False))
            parts.append(_firings(lazy, asked.scaled(scale), idle, self.now))
        by = ["pandaid", "number", "action", "fires_us", "limit_h", "enter_us"]
        first = pl.concat(parts).collect().sort(by)
        key = ["pandaid", "rule", "action"]
        return _as_result(first.unique(key, keep="first", maintain_order=True), self.now)


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
    table, log, signs = _narrowed(jobs, status_log, heartbeats)
    asked = [rule.scaled(least) for rule in _order(places, chosen, settings)]
    others = [rule for other in also for rule in _order(places, other, settings)]
    result = collect(_late(_spans(table, log, signs, at), asked, others))
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
    return rule.since + rule.least_s * SECOND_US < nw.col("to_us")


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
    step = IDLE_S * SECOND_US
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


def _as_result(first: pl.DataFrame, now: int) -> pl.DataFrame:
    """Turn numbers into times and durations."""
    hours = pl.lit(HOUR_S * SECOND_US, dtype=pl.Float64)
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
