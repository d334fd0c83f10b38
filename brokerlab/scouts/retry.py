"""The other ways to exhausted: pending for too long, and retries that are refused (docs/rules/exhausted.md 3).

E1 and E3 to E8 are evaluated, in this order, where their inputs exist. E2, E9 and E10 are names for what the
archive cannot show; see :data:`LABELS`.

How much of every task failed is counted on any engine (docs/rules/scouts.md 15).
"""

from __future__ import annotations

from datetime import datetime
from types import MappingProxyType
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.errors import DataError
from brokerlab.gdpconfig import Config
from brokerlab.scouts.checks import Check, Decisions, decided
from brokerlab.scouts.estimate import ScoutResult
from brokerlab.scouts.rules import ScoutRules
from brokerlab.scouts.settings import repeated
from brokerlab.scouts.tables import INPUT_TYPES, narrow, raise_for, small
from brokerlab.times import time_of
from brokerlab.units import HOUR_S

FAILURE_LABELS = ("managed", "user")  # labels of the jobs whose failures count
METRICS = ("num_failed", "single_failure_rate", "failed_hep_score_hour", "failed_hep_score_ratio")

_I, _S, _T = nw.Int64(), nw.String(), nw.Datetime("us")
_JOBS = {"jeditaskid": _I, "jobstatus": _S, "prodsourcelabel": _S, "hs06sec": _I}


def failure_metrics(jobs: Any) -> pl.DataFrame:
    """Compute how much of each task failed.

    One row per task with a job labelled managed or user, sorted by ``jeditaskid``: ``num_failed``,
    ``single_failure_rate`` and ``failed_hep_score_ratio`` (three digits), ``failed_hep_score_hour`` (cut).

    ``jobs`` is of any engine; of ``hs06sec`` [HS06 s] null counts as 0 beside known values. A missing column is a SchemaError.
    """
    problems: list[str] = []
    lazy = narrow(jobs, "jobs", _JOBS, problems)
    raise_for(problems)
    work, failed = nw.col("hs06sec"), nw.col("jobstatus") == "failed"
    done = nw.col("jobstatus").is_in(["failed", "finished"])
    zero, one = nw.lit(0), nw.lit(1)
    counted = lazy.filter(nw.col("prodsourcelabel").is_in(list(FAILURE_LABELS))).select(
        "jeditaskid",
        failed=nw.when(failed).then(one).otherwise(zero),
        done=nw.when(done).then(one).otherwise(zero),
        known=nw.when(~work.is_null()).then(one).otherwise(zero),
        failed_work=nw.coalesce(nw.when(failed).then(work), zero),
        done_work=nw.coalesce(nw.when(done).then(work), zero),
    )
    sums = ["failed", "done", "known", "failed_work", "done_work"]
    totals: pl.DataFrame = (
        counted.group_by("jeditaskid")
        .agg(nw.col(name).sum().cast(_I).alias(name) for name in sums)
        .collect("polars")
        .to_native()
    )
    return _metrics(totals.drop_nulls("jeditaskid").sort("jeditaskid"))


def _metrics(totals: pl.DataFrame) -> pl.DataFrame:
    """Form the rates in Python, whose ``round`` the rule means."""
    rows = []
    for task, failed, done, known, failed_work, done_work in totals.iter_rows():
        rate = round(failed / done, 3) if done else None
        hours = int(failed_work / HOUR_S) if known else None
        ratio = round(failed_work / done_work, 3) if known and done_work else None
        rows.append((task, failed, rate, hours, ratio))
    types = [pl.Int64, pl.Int64, pl.Float64, pl.Int64, pl.Float64]
    names = ["jeditaskid", *METRICS]
    return pl.DataFrame(rows, schema=dict(zip(names, types, strict=True)), orient="row")


PENDING_TIMEOUT_H = 168  # static setting behind ``PENDING_TIMEOUT_<label>`` [h]

LABELS = MappingProxyType(
    {
        "E2": "no site for long, or the user has more than twice the cap queued (ends in E1)",
        "E9": "job generation cannot set up the task, frozentime more than 7 days ago",
        "E10": "task ends incomplete, has the rule UX and the goal is not reached",
    }
)
"""Causes that are known by name only."""

_FILES = {"jeditaskid": _I, "type": _S, "maxattempt": _I}
_TASKS = {
    **dict.fromkeys(["jeditaskid", "parent_tid", "attemptnr"], _I),
    **dict.fromkeys(["status", "prodsourcelabel", "vo"], _S),
    "frozentime": _T,
}
_KEYS = {
    "pending_timeout_h": "PENDING_TIMEOUT_<prodsourcelabel>",
    "task_max_attempt": "TASK_MAX_ATTEMPT_<prodsourcelabel>",
    "max_failed_hours": "MAX_FAILED_HEP_SCORE_HOURS_<prodsourcelabel>",
    "max_failed_rate": "MAX_FAILED_HEP_SCORE_RATE_<prodsourcelabel>",
    "max_failure_rate": "MAX_JOB_FAILURE_RATE_<prodsourcelabel>",
    "job_max_attempt": "JOB_MAX_ATTEMPT_<prodsourcelabel>",
    "least_efficiency_pct": "MIN_CPU_EFFICIENCY_<prodsourcelabel>",
}


class RetryResult(Decisions):
    """The verdict on every task.

    Attributes:
        verdicts: ``jeditaskid``; ``rule`` (E1, E3 to E8) and ``reason_code`` of the first hit, null if
            none; ``action`` ``exhausted``, ``rejected`` (E7: the status stays) or ``none``; ``message``
            left on the task by E1; ``numbers`` JSON of the inputs of the deciding comparison; ``rules``.
        trace: ``jeditaskid, rule, evaluated, fired, why_not``, one row per task and rule.
    """


def retry_rules(rules: ScoutRules) -> tuple[Check, ...]:
    """Return E1 and E3 to E8 in the order in which they are tested."""
    return (
        _pending(),
        _at_least("E3", "task_max_attempt", "attemptnr"),
        _at_least("E4", "max_failed_hours", "failed_hep_score_hour"),
        _at_least("E5", "max_failed_rate", "failed_hep_score_ratio"),
        _at_least("E6", "max_failure_rate", "single_failure_rate"),
        _job_attempts(rules),
        _efficiency(),
    )


def _pending() -> Check:
    return Check(
        "E1",
        "pending_timeout",
        "docs/rules/exhausted.md 3, E1",
        (_KEYS["pending_timeout_h"],),
        ("pending_h", "pending_timeout_h"),
        (
            ("not pending", pl.col("status") != "pending"),
            ("time of the last progress or of the look not known", pl.col("pending_h").is_null()),
            (
                "its parent is running",
                (pl.col("parent_status") == "running").fill_null(value=False),
            ),
            ("not longer than the timeout", ~pl.col("pending_long")),
        ),
    )


def _at_least(name: str, setting: str, measured: str) -> Check:
    """Return a check that hits where a measured value reaches a setting above 0."""
    return Check(
        name,
        setting,
        f"docs/rules/exhausted.md 3, {name}",
        (_KEYS[setting],),
        (measured, setting),
        (
            ("ignored by the operator", pl.col("ignored")),
            ("setting off", ~(pl.col(setting) > 0)),
            ("not known", pl.col(measured).is_null()),
            ("below the setting", ~(pl.col(measured) >= pl.col(setting))),
        ),
    )


def _job_attempts(rules: ScoutRules) -> Check:
    limit, largest = pl.col("job_max_attempt"), pl.col("largest_maxattempt")
    zero = (limit == 0) & pl.lit(rules.zero_attempts_reject)
    return Check(
        "E7",
        "job_max_attempt",
        "docs/rules/exhausted.md 3, E7",
        (_KEYS["job_max_attempt"],),
        ("largest_maxattempt", "job_max_attempt"),
        (
            ("ignored by the operator", pl.col("ignored")),
            ("setting off", ~((limit > 0) | zero)),
            ("not known", largest.is_null() & ~zero),
            ("below the setting", ~((largest >= limit).fill_null(value=False) | zero)),
        ),
    )


def _efficiency() -> Check:
    least, measured = pl.col("least_efficiency_pct"), pl.col("min_cpu_efficiency")
    return Check(
        "E8",
        "min_cpu_efficiency",
        "docs/rules/exhausted.md 3, E8",
        (_KEYS["least_efficiency_pct"],),
        ("min_cpu_efficiency", "least_efficiency_pct"),
        (
            ("ignored by the operator", pl.col("ignored")),
            ("setting off", least.is_null()),
            ("not known", measured.is_null()),
            ("not below the setting", ~(least > measured)),
        ),
    )


def retry_checks(
    tasks: Any,
    jobs: Any,
    *,
    files: Any = None,
    scouts: ScoutResult | None = None,
    config: Config | None = None,
    rules: ScoutRules | str | None = None,
    at: datetime | str | None = None,
    ignore: bool = False,
    pending_timeout_h: float = PENDING_TIMEOUT_H,
) -> RetryResult:
    """Say of every task whether it would go to exhausted, or its retry be rejected, and why.

    Verdicts and trace, sorted by ``jeditaskid``.

    Of ``tasks``, ``attemptnr, status, frozentime, parent_tid`` are read, null ends the check that needs it; of ``jobs`` (any
    engine) what it holds has happened. Not known without ``files`` is E7, without ``scouts`` (made from all finished jobs)
    E8, without ``at`` [UTC] E1; ``ignore``: an operator asks to ignore E3 to E8; ``pending_timeout_h`` [h] counts where
    ``PENDING_TIMEOUT_<label>`` is not set. Rules are those of ``scouts``, else the document's. A missing column is a SchemaError.

    Source: docs/rules/exhausted.md 3.
    """
    rules = ScoutRules.of(rules or (scouts.rules if scouts else None))
    config = config or Config.empty()
    frame = _inputs(small(tasks, "tasks", _TASKS), jobs, files, scouts, config, pending_timeout_h)
    frame = _with_pending(frame, time_of(at, "at")).with_columns(
        ignored=pl.lit(ignore), open=pl.lit(value=True)
    )
    order, traces = retry_rules(rules), []
    for check in order:
        frame = check.run(frame)
        traces.append(frame.select(check.trace()))
    verdicts = _verdicts(frame, decided(order), rules)
    trace = pl.concat(traces).sort("jeditaskid", "rule")
    return RetryResult(verdicts, trace, rules, config.digest)


def _inputs(
    tasks: pl.DataFrame,
    jobs: Any,
    files: Any,
    scouts: ScoutResult | None,
    config: Config,
    pending_timeout_h: float,
) -> pl.DataFrame:
    """Join to every task what failed of it and the settings of its label."""
    efficiency = (
        pl.DataFrame(schema={"jeditaskid": pl.Int64, "min_cpu_efficiency": pl.Int64})
        if scouts is None
        else scouts.parameters.select("jeditaskid", "min_cpu_efficiency")
    )
    twice = tasks.filter(pl.col("jeditaskid").is_duplicated())["jeditaskid"]
    if len(twice):
        raise DataError(repeated("tasks.jeditaskid", twice, "task"))
    parents = tasks.select(parent_tid="jeditaskid", parent_status="status")
    for other in (failure_metrics(jobs), _largest_attempt(files), efficiency):
        tasks = tasks.join(other, on="jeditaskid", how="left")
    tasks = tasks.join(parents, on="parent_tid", how="left").with_columns(
        # a task without parent names itself
        parent_status=pl.when(pl.col("parent_tid") != pl.col("jeditaskid")).then("parent_status")
    )
    scopes = tasks.select("prodsourcelabel", "vo").unique(maintain_order=True)
    rows = [
        {"prodsourcelabel": label, "vo": vo} | _settings(config, label or "", vo, pending_timeout_h)
        for label, vo in scopes.iter_rows()
    ]
    schema = {"prodsourcelabel": pl.String, "vo": pl.String} | dict.fromkeys(_KEYS, pl.Float64)
    settings = pl.DataFrame(rows, schema=schema, orient="row")
    joined = tasks.join(settings, on=["prodsourcelabel", "vo"], how="left", nulls_equal=True)
    return joined.sort("jeditaskid")


def _settings(
    config: Config, label: str, vo: str | None, pending_timeout_h: float
) -> dict[str, Any]:
    """Read the settings of one label; the static one stands behind the pending timeout."""
    result = {name: config.found(key, prodsourcelabel=label, vo=vo) for name, key in _KEYS.items()}
    values = {name: one.value for name, one in result.items()}
    if result["pending_timeout_h"].entry is None:
        values["pending_timeout_h"] = pending_timeout_h
    return values


def _largest_attempt(files: Any) -> pl.DataFrame:
    """Return the largest ``maxattempt`` of the input files of each task."""
    if files is None:
        return pl.DataFrame(schema={"jeditaskid": pl.Int64, "largest_maxattempt": pl.Int64})
    problems: list[str] = []
    lazy = narrow(files, "files", _FILES, problems)
    raise_for(problems)
    largest: pl.DataFrame = (
        lazy.filter(nw.col("type").is_in(INPUT_TYPES))
        .group_by("jeditaskid")
        .agg(nw.col("maxattempt").max().alias("largest_maxattempt"))
        .collect("polars")
        .to_native()
    )
    return largest.drop_nulls("jeditaskid")


def _with_pending(frame: pl.DataFrame, at: datetime | None) -> pl.DataFrame:
    """Derive how long a task has made no progress [h], and whether that is too long."""
    waited_us = (pl.lit(at, dtype=pl.Datetime("us")) - pl.col("frozentime")).dt.total_microseconds()
    hour_us = HOUR_S * 1_000_000
    return frame.with_columns(
        pending_h=waited_us / pl.repeat(hour_us, pl.len(), dtype=pl.Int64),
        pending_long=waited_us > pl.col("pending_timeout_h") * hour_us,
    )


def _verdicts(frame: pl.DataFrame, verdicts: dict[str, pl.Expr], rules: ScoutRules) -> pl.DataFrame:
    """Return the deciding rule of each task with its numbers."""
    since = pl.col("frozentime").dt.to_string("%Y-%m-%d %H:%M:%S")
    return frame.select(
        "jeditaskid",
        rule=verdicts["rule"],
        reason_code=verdicts["reason_code"],
        action=pl.when("E7_fired")
        .then(pl.lit("rejected"))
        .when(verdicts["rule"].is_not_null())
        .then(pl.lit("exhausted"))
        .otherwise(pl.lit("none")),
        message=pl.when("E1_fired").then(pl.lit("timeout while in pending since ") + since),
        numbers=verdicts["numbers"],
        rules=pl.lit(rules.rules),
    )
