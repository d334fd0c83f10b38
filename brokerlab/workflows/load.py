"""The load of a batch queue: its contract, and jobs of a log or of an archive as such a load.

Source: workflows.md 1.4 (rule R) and 1.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import dataframely as dy
import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts._columns import f64, i64, text
from brokerlab.errors import ConfigError, DataError, InsufficientDataError, nearest
from brokerlab.frames import prepared
from brokerlab.workflows.swf import SwfLog

LONGEST_S = 1e11
"""Longest time of a queue [s]: 3,000 years; whole seconds are exact up to there, microseconds up to 285 years."""
_SHOWN = 5
_TIMES = ("submit", "start", "end")


class BatchJobs(dy.Schema):
    """Jobs of a batch queue."""

    job_id = text("job", required=True)
    submit_s = f64("when it is submitted", "s", required=True)
    run_s = f64("how long it lasts if nothing ends it", "s", required=True)
    requested_s = f64("its limit; it is killed then", "s", required=True)
    hosts = i64("hosts that it holds", "hosts", required=True)


def check_jobs(jobs: Any, hosts: int) -> pl.DataFrame:
    """Hold jobs to the contract and to the machine."""
    table = prepared({} if jobs is None else {"jobs": jobs}, {"jobs": BatchJobs})["jobs"]
    span = f"0 to {LONGEST_S:g}"
    wrong = {
        "job_id": (pl.col("job_id").is_duplicated(), "each only once"),
        "submit_s": (~pl.col("submit_s").is_between(-LONGEST_S, LONGEST_S), f"{span}, or before"),
        "run_s": (~pl.col("run_s").is_between(0, LONGEST_S), span),
        "requested_s": (~pl.col("requested_s").is_between(0, LONGEST_S), span),
        "hosts": (~pl.col("hosts").is_between(1, hosts), f"1 to the {hosts} of the machine"),
    }
    problems = []
    for column, (test, allowed) in wrong.items():
        bad = table.filter(test)
        if len(bad):
            shown = ", ".join(
                f"{row['job_id']}: {row[column]}" for row in bad.head(_SHOWN).iter_rows(named=True)
            )
            problems.append(f"jobs.{column}: {len(bad)} rows ({shown}); allowed: {allowed}")
    if problems:
        raise DataError("; ".join(problems) + ". Mend or leave out those rows.")
    return table


@dataclass(frozen=True)
class Load:
    """Jobs cleaned by rule R."""

    # in the order of submission: the columns of `BatchJobs`, ``seen_wait_s`` (start - submission as it was,
    # null where unknown or never started), ``seen_start_s``, ``user``, ``queue``, ``status`` (as in the source)
    jobs: pl.DataFrame
    hosts: int  # hosts of the machine
    counts: pl.DataFrame  # one row per rule: ``rule, effect`` ("left out" or "changed"), ``n_rows``
    rows: int  # rows of the source: jobs and those left out together
    # instant of second 0, UTC without zone; None where the source does not say
    zero: datetime | None = None


OVERRUNS = ("extend", "kill")
"""What is done with a job that ran longer than it asked: its request made longer, or the job cut off."""
PANDA = {
    "job_id": "pandaid",
    "submit": "creationtime",
    "start": "starttime",
    "end": "endtime",
    "cores": "actualcorecount",
    "cores_requested": "corecount",
    "request": "maxwalltime",
    "queue": "computingsite",
    "user": "produsername",
    "status": "jobstatus",
}
"""Names that a table of PanDA jobs has for what `of_table` reads."""

_LEFT_OUT = {
    "no_submit": "not known when it was submitted",
    "no_hosts": "neither hosts used nor requested",
    "no_run": "no run time, or a negative one",
    "negative_wait": "started before it was submitted",
    "too_wide": "wider than the machine",
    "partial": "part of a job that has a line for the whole",
}
_CHANGED = {
    "run_0_to_1": "run time 0 made 1 s",
    "request_from_run": "no requested time: taken from the run time, so backfilling is exact beyond reality",
    "overrun": "ran longer than requested",
}


def of_swf(
    log: SwfLog, *, hosts: int | None = None, overrun: str = "extend", partition: int | None = None
) -> Load:
    """Clean a log by rule R (workflows.md 1.4, rule R)."""
    rows = log.jobs if partition is None else log.jobs.filter(pl.col("partition") == partition)
    name = pl.coalesce(pl.col("job").cast(pl.String), pl.format("line {}", "line"))
    again = pl.col("line").cum_count().over("job_id").cast(pl.String)
    whole = pl.col("status").is_in([2, 3, 4]).not_().any().over("job")
    table = rows.select(
        "submit_s",
        "run_s",
        "requested_s",
        "status",
        "user",
        "queue",
        "line",
        job_id=name,
        hosts=pl.when(pl.col("hosts_used") > 0).then("hosts_used").otherwise("hosts_requested"),
        seen_wait_s="wait_s",
        partial=pl.col("status").is_in([2, 3, 4]) & pl.col("job").is_not_null() & whole,
    ).with_columns(
        job_id=pl.when(pl.len().over("job_id") > 1)
        .then(pl.col("job_id") + "/" + again)
        .otherwise("job_id")
    )
    machine = log.hosts if hosts is None else hosts
    return _clean(table.drop("line"), machine, overrun, log.zero)


def of_table(
    jobs: Any,
    *,
    columns: Mapping[str, str] = PANDA,
    hosts: int | None = None,
    cores_per_host: int = 1,
    queue: str | None = None,
    overrun: str = "extend",
) -> Load:
    """Clean a table of jobs that any system wrote, by rule R (workflows.md 1.5)."""
    _check_names(columns, cores_per_host)
    frame = nw.from_native(jobs).lazy()
    absent = sorted(set(columns.values()) - set(frame.collect_schema().names()))
    needed = {columns[name] for name in ("job_id", "submit", "start", "end")}
    if needed & set(absent) or (queue is not None and columns.get("queue") in {None, *absent}):
        raise DataError(f"jobs: no columns {', '.join(absent)}; name them by `columns`")
    if queue is not None:
        frame = frame.filter(nw.col(columns["queue"]) == queue)
    here = {name: column for name, column in columns.items() if column not in absent}
    table: pl.DataFrame = (
        frame.select(**{n: nw.col(c) for n, c in here.items()}).collect("polars").to_native()
    )
    _check_kinds(table, here)
    table = table.with_columns(pl.lit(None).alias(name) for name in PANDA if name not in here)
    table, zero = _in_seconds(table)
    whole = pl.col("cores", "cores_requested").cast(pl.Float64).ceil()
    cores = pl.coalesce(pl.when(whole > 0).then(whole).cast(pl.Int64, strict=False), 1)
    table = table.select(
        pl.col("job_id").cast(pl.String),
        "user",
        "queue",
        "status",
        submit_s="submit",
        run_s=pl.col("end") - pl.col("start"),
        requested_s=_known("request").replace(0, None),
        hosts=(-(-cores // cores_per_host)).cast(pl.Int64),
        seen_wait_s=pl.col("start") - pl.col("submit"),
        partial=pl.lit(value=False),
    )
    return _clean(table, _most_at_once(table) if hosts is None else hosts, overrun, zero)


def of_archive(
    archive: Any, panda_queue: str, *, hosts: int | None = None, cores_per_host: int = 1
) -> Load:
    """Take an archive's jobs at one queue as the load of a batch queue.

    Args:
        archive: An opened archive.
        panda_queue: The queue.
        hosts: Hosts of the machine; None: the most that were in use at once.
        cores_per_host: Cores that make a host.

    Returns:
        As `of_table`; a job waits from its creation on.

    Raises:
        InsufficientDataError: No job ran there.
    """
    return of_table(archive.jobs, hosts=hosts, cores_per_host=cores_per_host, queue=panda_queue)


def _check_names(columns: Mapping[str, str], cores_per_host: int) -> None:
    """Refuse settings of `of_table` that make no sense, all at once."""
    problems = [
        f"columns: unknown '{n}': {nearest(n, PANDA)}"
        for n in sorted(columns.keys() - PANDA.keys())
    ]
    problems += [
        f"columns: '{name}' is needed"
        for name in ("job_id", "submit", "start", "end")
        if name not in columns
    ]
    if cores_per_host < 1:
        problems.append(f"cores_per_host: {cores_per_host}, allowed: 1 or more")
    if problems:
        raise ConfigError("; ".join(problems))


def _check_kinds(table: pl.DataFrame, columns: Mapping[str, str]) -> None:
    """Refuse columns that hold neither times nor numbers, all at once."""
    kinds = {name: kind for name, kind in table.schema.items() if kind != pl.Null}
    numbers = ("cores", "cores_requested", "request")
    problems = [
        f"jobs.{columns[name]} is {kinds[name]}; allowed: numbers"
        for name in numbers
        if name in kinds and not kinds[name].is_numeric()
    ]
    times = {name: kinds[name] for name in _TIMES if name in kinds}
    dated = [isinstance(kind, pl.Datetime) for kind in times.values()]
    if not all(dated) and not all(kind.is_numeric() for kind in times.values()):
        message = ", ".join(f"jobs.{columns[name]} is {kind}" for name, kind in times.items())
        problems.append(f"{message}; allowed: timestamps throughout, or seconds throughout")
    if problems:
        raise DataError("; ".join(problems))


def _known(name: str) -> pl.Expr:
    """Return numbers; null where there is none, or an infinite one."""
    value = pl.col(name).cast(pl.Float64)
    return pl.when(value.is_finite()).then(value)


def _in_seconds(table: pl.DataFrame) -> tuple[pl.DataFrame, datetime | None]:
    """Return the times as seconds from the earliest submission, and that instant."""
    if not table.schema["submit"].is_temporal():
        return table.with_columns(_known(name).alias(name) for name in _TIMES), None
    utc = table.with_columns(pl.col(_TIMES).cast(pl.Datetime("us")))  # of any zone
    zero: Any = utc["submit"].min()
    first = pl.lit(zero, dtype=pl.Datetime("us"))  # null where no row is left
    since = ((pl.col(name) - first).dt.total_microseconds() / pl.lit(1e6) for name in _TIMES)
    return utc.with_columns(since), zero


def _most_at_once(table: pl.DataFrame) -> int:
    """Return the most hosts that were in use at once; what ends frees before what starts takes."""
    ran = table.filter(pl.col("run_s") >= 0, pl.col("seen_wait_s") >= 0)
    start = pl.col("submit_s") + pl.col("seen_wait_s")
    steps = pl.concat(
        [
            ran.select(at=start, by="hosts"),
            ran.select(at=start + pl.col("run_s"), by=-pl.col("hosts")),
        ]
    ).sort("at", "by")
    widest = ran["hosts"].max() or 1  # one of no length is at no instant, and still has to fit
    return int(max(steps["by"].cum_sum().max() or 1, widest))  # type: ignore[arg-type]


def _clean(table: pl.DataFrame, hosts: int | None, overrun: str, zero: datetime | None) -> Load:
    """Apply rule R and count what it did."""
    if overrun not in OVERRUNS:
        raise ConfigError(f"overrun: unknown '{overrun}': {nearest(overrun, OVERRUNS)}")
    if hosts is None or hosts < 1:
        raise ConfigError(
            f"hosts: {hosts}; the log does not say how many it had: give a number from 1"
        )
    out = table.with_columns(rule=_left_out(hosts))
    kept = out.filter(pl.col("rule").is_null())
    if kept.is_empty():
        why = _count_left_out(out["rule"]) or "there is no row"
        raise InsufficientDataError(f"no job is left of {len(table)}: {why}")
    run = pl.max_horizontal("run_s", pl.when(pl.col("run_s") == 0).then(1.0))
    kept = kept.with_columns(run_0_to_1=pl.col("run_s") == 0, run_s=run)
    kept = kept.with_columns(
        request_from_run=(pl.col("requested_s") <= 0) | pl.col("requested_s").is_null(),
        requested_s=pl.when(pl.col("requested_s") > 0).then("requested_s").otherwise("run_s"),
    ).with_columns(overrun=pl.col("run_s") > pl.col("requested_s"))
    counts = pl.DataFrame(
        [(_LEFT_OUT[rule], "left out", out["rule"].eq(rule).sum()) for rule in _LEFT_OUT]
        + [(_CHANGED[rule], "changed", kept[rule].sum()) for rule in _CHANGED],
        schema={"rule": pl.String, "effect": pl.String, "n_rows": pl.Int64},
        orient="row",
    )
    if overrun == "extend":
        kept = kept.with_columns(requested_s=pl.max_horizontal("run_s", "requested_s"))
    else:
        kept = kept.with_columns(run_s=pl.min_horizontal("run_s", "requested_s"))
    names = [*BatchJobs.columns(), "seen_wait_s", "user", "queue", "status"]
    jobs = kept.select(names).sort("submit_s", maintain_order=True)
    jobs = jobs.with_columns(seen_start_s=pl.col("submit_s") + pl.col("seen_wait_s"))
    return Load(jobs, hosts, counts, len(table), zero)


def _left_out(hosts: int) -> pl.Expr:
    """Name the first rule by which a row is left out; null where it stays."""
    tests = {
        "no_submit": pl.col("submit_s").is_null() | (pl.col("submit_s") < 0),
        "no_hosts": (pl.col("hosts") > 0).not_() | pl.col("hosts").is_null(),
        "no_run": pl.col("run_s").is_null() | (pl.col("run_s") < 0),
        "negative_wait": pl.col("seen_wait_s") < 0,
        "too_wide": pl.col("hosts") > hosts,
        "partial": pl.col("partial"),
    }
    return pl.coalesce(pl.when(test).then(pl.lit(rule)) for rule, test in tests.items())


def _count_left_out(rules: pl.Series) -> str:
    """Say how many rows each rule left out."""
    result = dict(rules.drop_nulls().value_counts().sort(rules.name).rows())
    return ", ".join(f"{n} {_LEFT_OUT[rule]}" for rule, n in result.items())
