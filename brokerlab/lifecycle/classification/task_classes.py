"""Classes of analysis tasks, S, A, B and C by their user's usage and by progress, and tasks as they were at an instant.

Source: docs/rules/classes.md 1.3 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dataframely as dy
import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts.jobs import ENDED
from brokerlab.engines import INT, TEXT, TIME, Types, collect, last_attempts, narrow, same_engine
from brokerlab.errors import SchemaError
from brokerlab.frames import prepared
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.classification.instants import (
    At,
    Instants,
    place_of_cell,
    quotient,
    with_cells,
)
from brokerlab.lifecycle.classification.rules import ClassRules, class_settings
from brokerlab.lifecycle.classification.wait_stats import PROBE_USER, USER, USER_ANALYSIS
from brokerlab.results import Result, Shows
from brokerlab.units import DAY_S, SECOND_US

S, A, B, C = 2, 1, 0, -1
NAMES = {S: "S", A: "A", B: "B", C: "C"}
EXPRESS_ANALYSIS = "Express Analysis"
STATUSES = ("scouting", "scouted", "running", "pending", "throttled")
"""Tasks in these statuses are rated."""
AGE_S = 30 * DAY_S  # tasks changed within this time are rated [s]
SHARE_PROGRESS_PCT = 90  # progress from which the page makes a task of User Analysis S [%]


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
        & (
            pl.col("modificationtime").cast(pl.Int64)
            > pl.col("at").cast(pl.Int64) - AGE_S * SECOND_US
        )
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


_TASKS: Types = {
    "jeditaskid": INT,
    **dict.fromkeys(["username", "gshare", "tasktype", "prodsourcelabel", "status"], TEXT),
    **dict.fromkeys(["creationdate", "starttime", "endtime"], TIME),
    **dict.fromkeys(["statechangetime", "modificationtime"], TIME),
}
_LOG: Types = {"jeditaskid": INT, "status": TEXT, "modificationtime": TIME}
_FILES: Types = {
    **dict.fromkeys(["jeditaskid", "datasetid", "pandaid", "fileid", "attemptnr"], INT),
    "status": TEXT,
}
_DATASETS: Types = {
    **dict.fromkeys(["jeditaskid", "datasetid", "masterid", "nfiles"], INT),
    "type": TEXT,
}
_JOBS: Types = {"pandaid": INT, **dict.fromkeys(["creationtime", "modificationtime"], TIME)}
INPUT = ("input", "pseudo_input")
_KEPT = ("jeditaskid", "username", "gshare", "tasktype", "prodsourcelabel")


def task_states(tasks: Any, *, status_log: Any | None = None, at: At) -> pl.DataFrame:
    """Say which tasks were active at each instant: the input of ``task_classes``.

    A task's row tells its status from its last change on, before that the status log, entry by entry; a task without
    an entry counts as running from its start (else its creation) on. ``gshare`` is that of the row at all instants.

    One row per instant and task in a status that is rated, sorted: ``snapshot, at, jeditaskid, username, gshare,
    tasktype, prodsourcelabel, status, modificationtime`` (the instant itself where the task changed later).

    ``tasks`` of any engine: ``jeditaskid, username, gshare, tasktype, prodsourcelabel, status, modificationtime``, perhaps
    ``creationdate, starttime, statechangetime``; ``status_log`` of the same engine: ``jeditaskid, status, modificationtime``.
    """
    instants = Instants.of(at)
    required = (*_KEPT, "status", "modificationtime")
    table = narrow(tasks, "tasks", _TASKS, required)
    parts = [_own(table)]
    if status_log is None:
        parts.append(_running(table))
    else:
        log = narrow(status_log, "task_status_log", _LOG, tuple(_LOG))
        same_engine({"tasks": table, "task_status_log": log})
        entered = log.select("jeditaskid").unique()
        parts.append(_running(table.join(entered, on="jeditaskid", how="anti")))
        parts.append(_logged(table, log))
    rows = collect(nw.concat(parts).filter(nw.col("status").is_in(list(STATUSES))))
    when = pl.DataFrame(instants.columns(pl.int_range(len(instants), eager=True).to_numpy()))
    # a task is rated for days: rows are as many as the result has
    result = when.join_where(
        rows.with_columns(pl.col("enter").fill_null(pl.lit(0).cast(pl.Datetime("us")))),
        pl.col("enter") <= pl.col("at"),
        pl.col("leave").is_null() | (pl.col("leave") > pl.col("at")),
    )
    columns = ["snapshot", "at", *_KEPT, "status", "modificationtime"]
    return (
        result.with_columns(modificationtime=pl.min_horizontal("modificationtime", "at"))
        .select(columns)
        .sort("snapshot", "jeditaskid")
    )


def _own(tasks: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Return the status of the rows, from the last change on."""
    since = nw.coalesce("statechangetime", "modificationtime")
    never = nw.lit(None).cast(TIME)
    return tasks.select(*_KEPT, "status", "modificationtime", enter=since, leave=never)


def _running(tasks: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Return the time before the last change, as running."""
    since = nw.coalesce("statechangetime", "modificationtime")
    begun = nw.coalesce("starttime", "creationdate")
    spans = tasks.with_columns(status=nw.lit("running"), enter=begun, leave=since)
    return spans.filter(nw.col("enter") < nw.col("leave")).select(
        *_KEPT, "status", "modificationtime", "enter", "leave"
    )


def _logged(tasks: nw.LazyFrame[Any], log: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Return the entries of the log before the last change, each until the next one."""
    known = log.filter(~nw.col("modificationtime").is_null())
    order = ["modificationtime", "status"]
    entries = known.with_columns(
        following=nw.col("modificationtime").shift(-1).over("jeditaskid", order_by=order)
    ).select("jeditaskid", "following", entry=nw.col("status"), enter=nw.col("modificationtime"))
    joined = tasks.join(entries, on="jeditaskid", how="inner").with_columns(
        since=nw.coalesce("statechangetime", "modificationtime")
    )
    end, following = nw.col("since"), nw.col("following")
    leave = nw.when(following.is_null() | (following > end)).then(end).otherwise(following)
    spans = joined.with_columns(leave=leave, status=nw.col("entry"))
    return spans.filter(nw.col("enter") < nw.col("leave")).select(
        *_KEPT, "status", "modificationtime", "enter", "leave"
    )


def task_progress(states: pl.DataFrame, files: Any, datasets: Any, jobs: Any) -> pl.DataFrame:
    """Count what of each task's input was finished or failed by each instant.

    A file that is finished or failed became so when its job was changed for the last time. Its last attempt counts:
    ``njobs`` leaves out jobs that were tried again by then.

    One row per row of states, sorted: ``snapshot, jeditaskid, nfiles, nfilesfinished, nfilesfailed`` (files of the
    master datasets of type input or pseudo_input), ``njobs`` (distinct jobs on them); 0 where there is none.

    Of one engine: ``files`` with ``jeditaskid, datasetid, pandaid, status``, perhaps ``fileid, attemptnr``, ``datasets`` with ``jeditaskid, datasetid, masterid, type,
    nfiles``, ``jobs`` with ``pandaid, creationtime, modificationtime``.
    """
    wanted = states.select("snapshot", "at", pl.col("jeditaskid").cast(pl.Int64))
    instants = Instants.of(wanted.select("snapshot", "at").unique())
    tables = {
        "files": narrow(files, "files", _FILES, ("jeditaskid", "datasetid", "pandaid", "status")),
        "datasets": narrow(datasets, "datasets", _DATASETS, tuple(_DATASETS)),
        "jobs": narrow(jobs, "jobs", _JOBS, tuple(_JOBS)),
    }
    same_engine(tables)
    masters = tables["datasets"].filter(
        nw.col("masterid").is_null() & nw.col("type").is_in(list(INPUT))
    )
    sizes = collect(
        masters.group_by("jeditaskid").agg(nw.col("nfiles").sum().alias("nfiles"))
    ).with_columns(pl.col("nfiles").cast(pl.Int64))
    events = _events(masters, tables["files"], tables["jobs"], instants)
    rows = pl.DataFrame({"snapshot": instants.snapshots}).with_row_index("place")
    keyed = wanted.join(rows.cast({"place": pl.Int64}), on="snapshot").sort("place", "jeditaskid")
    counted = keyed.join_asof(events, on="place", by="jeditaskid", check_sortedness=False)
    numbers = ["nfiles", "nfilesfinished", "nfilesfailed", "njobs"]
    return (
        counted.join(sizes, on="jeditaskid", how="left")
        .select("snapshot", "jeditaskid", pl.col(numbers).fill_null(0))
        .sort("snapshot", "jeditaskid")
    )


def _events(
    masters: nw.LazyFrame[Any],
    files: nw.LazyFrame[Any],
    jobs: nw.LazyFrame[Any],
    instants: Instants,
) -> pl.DataFrame:
    """Return the running counts of every task: ``jeditaskid, place`` and what is counted from that instant on."""
    names = ["nfilesfinished", "nfilesfailed", "njobs"]
    if not len(instants):
        schema: Any = dict.fromkeys(["jeditaskid", "place", *names], pl.Int64)
        return pl.DataFrame(schema=schema)
    used = files.join(masters.select("jeditaskid", "datasetid"), on=["jeditaskid", "datasetid"])
    timed = last_attempts(used).filter(~nw.col("pandaid").is_null()).join(jobs, on="pandaid")
    done = timed.filter(nw.col("status").is_in(ENDED)).select(
        "jeditaskid", kind=nw.col("status"), time=nw.col("modificationtime")
    )
    begun = (
        timed.select("jeditaskid", "pandaid", "creationtime")
        .unique(subset=["jeditaskid", "pandaid"])
        .select("jeditaskid", kind=nw.lit("job"), time=nw.col("creationtime"))
    )
    placed = nw.concat([done, begun]).filter(nw.col("time") <= nw.lit(instants.last))
    summed = (
        with_cells(placed, instants, "time")
        .group_by("jeditaskid", "kind", "time")
        .agg(nw.len().alias("n"))
    )
    rows = collect(summed).with_columns(pl.col("n").cast(pl.Int64))
    place = pl.Series("place", place_of_cell(rows["time"], instants, null=0))
    kinds = zip(names, ("finished", "failed", "job"), strict=True)
    counts = [
        pl.when(pl.col("kind") == kind).then("n").otherwise(0).sum().alias(name)
        for name, kind in kinds
    ]
    by_place = rows.with_columns(place).group_by("jeditaskid", "place").agg(counts)
    running = by_place.sort("jeditaskid", "place").with_columns(
        pl.col(names).cum_sum().over("jeditaskid")
    )
    return running.sort("place", "jeditaskid")
