"""Classes of analysis tasks: S, A, B and C by their user's usage and by progress.

Source: docs/rules/classes.md 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dataframely as dy
import polars as pl

from brokerlab.errors import SchemaError
from brokerlab.frames import prepared
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.classification.instants import At, Instants
from brokerlab.lifecycle.classification.levels import quotient
from brokerlab.lifecycle.classification.rules import ClassRules
from brokerlab.lifecycle.classification.settings import class_settings
from brokerlab.lifecycle.classification.wait_stats import PROBE_USER, USER, USER_ANALYSIS
from brokerlab.results import Result, Shows
from brokerlab.units import DAY_S

S, A, B, C = 2, 1, 0, -1
NAMES = {S: "S", A: "A", B: "B", C: "C"}
EXPRESS_ANALYSIS = "Express Analysis"
STATUSES = ("scouting", "scouted", "running", "pending", "throttled")
"""Tasks in these statuses are rated."""
AGE_S = 30 * DAY_S  # tasks changed within this time are rated [s]
SHARE_PROGRESS_PCT = 90  # progress from which the page makes a task of User Analysis S [%]
_US = 1_000_000


class Tasks(dy.Schema):
    """Tasks as they are at a snapshot."""

    snapshot = dy.Int64(nullable=True)
    jeditaskid = dy.Int64(nullable=False)
    username = dy.String(nullable=True)
    gshare = dy.String(nullable=True)
    tasktype = dy.String(nullable=True)
    prodsourcelabel = dy.String(nullable=True)
    status = dy.String(nullable=True)
    modificationtime = dy.Datetime(nullable=True, time_unit="us")


class TaskProgress(dy.Schema):
    """Files of the master datasets of type input or pseudo_input, and the jobs on them."""

    snapshot = dy.Int64(nullable=True)
    jeditaskid = dy.Int64(nullable=False)
    nfiles = dy.Int64(nullable=True)
    nfilesfinished = dy.Int64(nullable=True)
    nfilesfailed = dy.Int64(nullable=True)
    njobs = dy.Int64(nullable=True)


class Usage(dy.Schema):
    """What users occupy: :attr:`UserUsage.users`."""

    snapshot = dy.Int64(nullable=True)
    produsername = dy.String(nullable=True)
    slots_hi = dy.Int64(nullable=True)
    slots_mid = dy.Int64(nullable=True)
    rem_slots_a = dy.Float64(nullable=True)
    rem_slots_b = dy.Float64(nullable=True)


CONTRACTS: dict[str, type[dy.Schema]] = {
    "tasks": Tasks,
    "task_progress": TaskProgress,
    "usage": Usage,
}
_PROGRESS = ("nfiles", "nfilesfinished", "nfilesfailed", "njobs")


@dataclass(frozen=True, repr=False)
class TaskClasses(Result):
    """Classes of tasks.

    Attributes:
        classes: One row per snapshot and task that is rated, sorted: ``snapshot, at, jeditaskid, username, gshare,
            nfiles, nfilesfinished, nfilesfailed, pct_finished, pct_failed`` [%], ``n_rem`` (jobs), ``class_before``
            (before progress and share), ``class`` (2 S, 1 A, 0 B, -1 C; null: not evaluated), ``class_name``,
            ``reason`` (``express``, ``progress``, ``usage``, ``no_usage``), ``to_express`` (the task is S and is to
            move from User Analysis to Express Analysis).
        rules: Name and digest of the rule set.
        config_digest: Digest of the configuration.
    """

    shows = Shows(
        about="classes of tasks, one row per snapshot and task",
        keys=("snapshot", "jeditaskid"),
        next=('brokerage.replay(archive, stage="analysis")',),
    )

    classes: pl.DataFrame
    rules: str
    config_digest: str


def task_classes(
    tasks: Any,
    task_progress: Any | None = None,
    usage: Any | None = None,
    *,
    at: At,
    config: Config | None = None,
    rules: ClassRules | str | None = None,
) -> TaskClasses:
    """Rate the active tasks of users.

    ``tasks``: ``jeditaskid, username, gshare, tasktype, prodsourcelabel, status, modificationtime``; with ``snapshot`` the state at
    that instant, without it the state at all of them. ``task_progress``: ``jeditaskid, nfiles, nfilesfinished, nfilesfailed``
    (files), ``njobs`` (jobs), perhaps ``snapshot``; tasks without a row, and nulls, have 0. ``usage``: `UserUsage.users`; without
    ``snapshot`` it holds at all instants, ``produsername`` is compared with ``username``.

    Rated are tasks of type anal in status scouting, scouted, running, pending or throttled, changed in the last 30 days. A column
    that is missing or of another type is a SchemaError, a key with an impossible value a ConfigError, bad instants a DataError.

    Source: docs/rules/classes.md 5; switches task_rules, threshold_inclusive, express_is_s, missing_usage; keys of
    gdpconfig component analy_eval.
    """
    rules = ClassRules.of(rules)
    config = Config.empty() if config is None else config
    instants = Instants.of(at)
    given = {"tasks": tasks, "task_progress": task_progress, "usage": usage}
    tables = prepared({name: t for name, t in given.items() if t is not None}, CONTRACTS)
    when = pl.DataFrame(instants.columns(pl.int_range(len(instants), eager=True).to_numpy()))
    chosen = _with(when, tables["tasks"], []).filter(
        (pl.col("tasktype") == "anal")
        & (pl.col("prodsourcelabel") == USER)
        & pl.col("status").is_in(STATUSES)
        & (pl.col("username") != PROBE_USER)
        & (pl.col("modificationtime").cast(pl.Int64) > pl.col("at").cast(pl.Int64) - AGE_S * _US)
    )
    known = _with(chosen, tables["task_progress"], ["jeditaskid"])
    used = tables["usage"].rename({"produsername": "username"})
    columns = (
        ["slots_hi", "slots_mid"] if rules.task_rules == "share" else ["rem_slots_a", "rem_slots_b"]
    )
    _check_usage(used, columns)
    rated = _with(known, used.with_columns(has_usage=pl.lit(1)), ["username"])
    rated = rated.join(class_settings(config, rules, when), on="snapshot", how="left")
    return TaskClasses(_classify(rated, rules), rules.digest, config.digest)


def _with(rows: pl.DataFrame, table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Join a table that may hold for one snapshot or for all."""
    if table["snapshot"].null_count() == 0:
        return rows.join(table, on=["snapshot", *keys], how="left" if keys else "inner")
    table = table.drop("snapshot")
    return rows.join(table, on=keys, how="left") if keys else rows.join(table, how="cross")


def _check_usage(usage: pl.DataFrame, columns: list[str]) -> None:
    """Refuse usage without the numbers that the rules compare."""
    lacking = [f"usage.{name}: nulls" for name in columns if usage[name].null_count()]
    if lacking:
        raise SchemaError(f"{'; '.join(lacking)}: give the users of user_usage")


def _usage_class(rules: ClassRules) -> pl.Expr:
    """Return the class by what the user occupies."""
    if rules.task_rules == "share":
        hi = pl.col("slots_hi").fill_null(0)
        both = hi + pl.col("slots_mid").fill_null(0)
        a, b = pl.col("threshold_a") - hi, pl.col("threshold_b") - both
    else:
        a, b = pl.col("rem_slots_a").fill_null(float("inf")), pl.col("rem_slots_b").fill_null(0.0)
    fits_a, fits_b = (a >= 0, b >= 0) if rules.threshold_inclusive else (a > 0, b > 0)
    return pl.when(fits_a).then(A).when(fits_b).then(B).otherwise(C)


def _boosted(rules: ClassRules) -> pl.Expr:
    """Whether progress makes a task S."""
    done = pl.col("pct_finished")
    if rules.task_rules == "share":
        return (pl.col("gshare") == USER_ANALYSIS) & (done >= SHARE_PROGRESS_PCT)
    few = {
        name: (done >= pl.col(f"progress_{name}"))
        & (pl.col("n_rem") > 0)
        & (pl.col("n_rem") <= pl.col(f"max_rem_jobs_{name}"))
        for name in ("a", "b")
    }
    before = pl.col("class_before")
    return ((before == A) & few["a"]) | ((before == B) & few["b"])


def _classify(rows: pl.DataFrame, rules: ClassRules) -> pl.DataFrame:
    """Rate every row."""
    files, some = pl.col("nfiles"), pl.col("nfiles") > 0
    left = pl.max_horizontal(files - pl.col("nfilesfinished") - pl.col("nfilesfailed"), 0)
    n_rem = pl.when(some).then(pl.col("njobs") * left // files).otherwise(0)
    known = rows.with_columns(pl.col(_PROGRESS).fill_null(0))
    part = {
        f"pct_{name}": quotient(known[f"nfiles{name}"] * 100, known["nfiles"]).fill_null(0.0)
        for name in ("finished", "failed")
    }
    before = _usage_class(rules).cast(pl.Int64)
    rated = known.with_columns(**part, n_rem=n_rem, class_before=before)
    boosted = rated.with_columns(boosted=_boosted(rules).fill_null(value=False))
    express = (pl.col("gshare") == EXPRESS_ANALYSIS).fill_null(value=False) & rules.express_is_s
    used = pl.col("has_usage").is_not_null() | (rules.missing_usage == "zero")
    evaluated, best = used | express, express | pl.col("boosted")
    value = pl.when(evaluated).then(pl.when(best).then(S).otherwise("class_before")).cast(pl.Int64)
    reason = (
        pl.when(~evaluated)
        .then(pl.lit("no_usage"))
        .when(express)
        .then(pl.lit("express"))
        .when("boosted")
        .then(pl.lit("progress"))
        .otherwise(pl.lit("usage"))
    )
    moves = used & pl.col("boosted") & (pl.col("gshare") == USER_ANALYSIS)
    named = boosted.with_columns(
        value.alias("class"), reason=reason, to_express=moves.fill_null(value=False)
    )
    return (
        named.with_columns(
            pl.when(used).then("class_before"),
            class_name=pl.col("class").replace_strict(NAMES, return_dtype=pl.String),
        )
        .select(
            *["snapshot", "at", "jeditaskid", "username", "gshare"],
            *["nfiles", "nfilesfinished", "nfilesfailed", "pct_finished", "pct_failed", "n_rem"],
            *["class_before", "class", "class_name", "reason", "to_express"],
        )
        .sort("snapshot", "jeditaskid")
    )
