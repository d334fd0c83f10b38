"""Look at an archive before it is trusted: coverage, nulls, ranges, keys, outliers, doubled rows, gaps.

DuckDB reads each table column by column and spills to disk, so that ten million jobs need no more
memory than a few columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl

from brokerlab.archive.contracts import STORED, describe, key_columns, version_column
from brokerlab.archive.contracts.jobs import STATUSES
from brokerlab.engines import quoted
from brokerlab.results import Result, Shows
from brokerlab.words import counted

if TYPE_CHECKING:
    import duckdb

    from brokerlab.archive.store import Archive

FAR_TIMES = 100
"""A value so many times the 99th percentile of its column is an outlier."""
FAR_YEARS = 5
"""A time so many years from the median of its column is an outlier."""
GAP_HOURS, GAP_STEPS = 24, 20
"""Nothing for longer than this [h], and than so many mean steps between rows, is a gap."""
MOST_HELD_ROWS = 5_000
"""Of a table that is read once, into memory, whatever its texts: to open files anew takes milliseconds, for each of many queries."""
COUNTED_TOGETHER, TOGETHER = 16, 4
"""Columns that one query counts, and columns whose values are in memory at a time."""
SHOWN = 3
"""Examples of keys."""

EVENTS = {
    "jobs": "creationtime",
    "job_status_log": "modificationtime",
    "tasks": "creationdate",
    "task_status_log": "modificationtime",
    "workers": "submittime",
}
"""Tables in which something always happens, and the time that says when: their gaps are looked for."""
MIXED = "by "
"""Beginning of a unit that differs from row to row: values are not compared."""


@dataclass(frozen=True)
class Join:
    """Columns of a table whose values are to be found in columns of another."""

    table: str
    columns: tuple[str, ...]
    other: str
    other_columns: tuple[str, ...]


def _join(left: str, right: str) -> Join:
    """Read ``table.a,b`` twice; no columns on the right: the same."""
    (table, _, columns), (other, _, others) = left.partition("."), right.partition(".")
    return Join(table, tuple(columns.split(",")), other, tuple((others or columns).split(",")))


JOINS = (
    _join("jobs.jeditaskid", "tasks"),
    _join("jobs.computingsite", "queues.panda_queue"),
    _join("jobs.gshare", "gshares.name"),
    _join("jobs.resource_type", "resource_types.resource_name"),
    _join("tasks.jeditaskid", "jobs"),
    _join("tasks.gshare", "gshares.name"),
    _join("tasks.nucleus", "queues.atlas_site"),
    _join("datasets.jeditaskid", "tasks"),
    _join("files.jeditaskid,datasetid", "datasets"),
    _join("files.pandaid", "jobs"),
    _join("jobs_files.pandaid", "jobs"),
    _join("job_status_log.pandaid", "jobs"),
    _join("job_status_log.computingsite", "queues.panda_queue"),
    _join("task_status_log.jeditaskid", "tasks"),
    _join("task_attempts.jeditaskid", "tasks"),
    _join("queue_endpoints.panda_queue", "queues"),
    _join("queue_endpoints.ddm_endpoint_name", "ddm_endpoints"),
    _join("replicas.ddm_endpoint_name", "ddm_endpoints"),
    _join("replicas.datasetname", "datasets"),
    _join("file_locations.panda_queue", "queues"),
    _join("workers.computingsite", "queues.panda_queue"),
    _join("worker_stats.computingsite", "queues.panda_queue"),
    _join("slots.pandaqueuename", "queues.panda_queue"),
    _join("site_data.site", "queues.panda_queue"),
    _join("network_matrix.src", "queues.atlas_site"),
)
"""Keys that lead from table to table."""


@dataclass(frozen=True)
class Check:
    """A value that cannot be true: the column, the rule in words, and as SQL over a row of the table."""

    table: str
    column: str
    rule: str
    broken: str


CORES = "greatest(coalesce(nullif(actualcorecount, 0), nullif(corecount, 0), 1), 1)"
"""Cores of a job, as SQL."""
CHECKS = (
    Check("jobs", "starttime", "before creationtime", "starttime < creationtime"),
    Check("jobs", "endtime", "before creationtime", "endtime < creationtime"),
    Check(
        "jobs",
        "cpuconsumptiontime",
        "more than 1.5 × run time × cores (and 1 min)",
        f"cpuconsumptiontime > 60 + 1.5 * epoch(endtime - starttime) * {CORES}",
    ),
    Check("jobs", "maxpss", "above maxrss", "maxrss > 0 and maxpss > maxrss"),
    Check(
        "jobs",
        "maxpss",
        "outside 10 MB to 2 TB (unit kB)",
        "maxpss not in (0) and maxpss not between 1e4 and 2e9",
    ),
    Check(
        "jobs",
        "minramcount",
        "outside 10 MB to 2 TB (unit MB)",
        "minramcount not in (0) and minramcount not between 10 and 2e6",
    ),
    Check("jobs", "corecount", "above 1,024 cores", "corecount > 1024"),
    Check(
        "jobs", "jobstatus", "no status of PanDA (in lower case)", f"jobstatus not in {STATUSES}"
    ),
    Check(
        "jobs",
        "jobstatus",
        "finished without endtime",
        "jobstatus = 'finished' and endtime is null",
    ),
    Check(
        "tasks",
        "ramcount",
        "outside 1 MB to 2 TB (unit MB)",
        "ramcount not in (0) and ramcount not between 1 and 2e6",
    ),
    Check("tasks", "starttime", "before creationdate", "starttime < creationdate"),
    Check(
        "queues",
        "corepower",
        "outside 1 to 100 HS06/core",
        "corepower not in (0) and corepower not between 1 and 100",
    ),
)
"""What no row should have; where a whole column is outside its range its unit is mistaken."""

_KINDS: dict[str, Any] = {
    **dict.fromkeys(("rows", "nulls", "zeros", "different", "days", "days_with"), pl.Int64),
    **dict.fromkeys(("keys", "matched_keys", "unused_keys", "null_rows", "matched_rows"), pl.Int64),
    **dict.fromkeys(
        ("least", "p01", "median", "p99", "most", "hours", "longest_gap_h"), pl.Float64
    ),
    **dict.fromkeys(("share", "null_share", "matched_share"), pl.Float64),
    **dict.fromkeys(("first", "last", "start", "end"), pl.Datetime("us")),
    **dict.fromkeys(("unmatched", "examples"), pl.List(pl.String)),
}
"""Columns of the frames that are no texts."""


def _schema(names: str) -> dict[str, Any]:
    return {name: _KINDS.get(name, pl.String) for name in names.split()}


_TABLES = _schema("table rows time first last days days_with longest_gap_h")
_COLUMNS = _schema(
    "table column type unit rows nulls null_share zeros different least p01 median p99 most first last null_means"
)
_JOINS = _schema(
    "table key other rows null_rows matched_rows matched_share keys matched_keys unused_keys unmatched"
)
_OUTLIERS = _schema("table column rule rows share worst unit example")
_DUPLICATES = _schema("table key keys rows examples")
_GAPS = _schema("table column start end hours")
_FAULTS = _schema("table column fault rows share example")


@dataclass(frozen=True, repr=False)
class Profile(Result):
    """What an archive holds, as frames; `frame` lists what should be looked at.

    Attributes:
        name: Name of the archive folder.
        synthetic: Whether the jobs were generated.
        tables: ``table, rows``, its ``time`` column (null: it has none), ``first, last`` [UTC], ``days`` from the first to
            the last, ``days_with`` rows, ``longest_gap_h`` without a row [h].
        columns: ``table, column, type``, ``unit`` (of the contract; null: none, or the column is in no contract), ``rows,
            nulls, null_share`` [1], ``zeros``, ``different`` values (approximate, within some per cent), of numbers ``least,
            most`` and of those with a unit ``p01, median, p99`` [unit], of times ``first, last`` [UTC], ``null_means``.
        joins: ``table, key, other`` (table and columns where the key is to be found), ``rows, null_rows`` (no key, not
            counted as unmatched), ``matched_rows, matched_share`` [1] (of rows with a key), ``keys, matched_keys,
            unused_keys`` (of the other table), ``unmatched`` (the keys with most rows). Null: the other table is not there.
        outliers: ``table, column``, the ``rule`` in words, ``rows, share`` [1] of the rows with a value, the ``worst`` of
            them with its ``unit``, and the key of an ``example``.
        duplicates: ``table, key`` (columns), ``keys`` that stand in several rows, ``rows`` of them, ``examples``.
        gaps: ``table, column, start, end`` [UTC], ``hours``: of the tables of `EVENTS`, nothing for longer than
            `GAP_HOURS` and `GAP_STEPS` mean steps.
    """

    shows = Shows(
        about="what should be looked at in an archive, one thing per row",
        columns="table, column, fault, rows, share [1], example",
        keys=("table", "column", "fault"),
        next=(".tables", ".columns", ".joins", ".outliers", ".duplicates", ".gaps"),
    )

    name: str
    synthetic: bool
    tables: pl.DataFrame
    columns: pl.DataFrame
    joins: pl.DataFrame
    outliers: pl.DataFrame
    duplicates: pl.DataFrame
    gaps: pl.DataFrame

    def frame(self) -> pl.DataFrame:
        """Return what should be looked at, most rows first.

        Returns:
            ``table, column, fault`` (in words), ``rows, share`` [1] (of the rows concerned; null for gaps), ``example``.
            Left out are keys into tables that are not there, and tables without jobs.
        """
        missing = pl.col("rows") - pl.col("null_rows") - pl.col("matched_rows")
        texts = pl.col("unmatched").list.join(", ")
        parts = [
            self.joins.filter(missing > 0).select(
                "table",
                pl.col("key").alias("column"),
                fault=pl.format("not in {}", "other"),
                rows=missing,
                share=1 - pl.col("matched_share"),
                example=texts,
            ),
            self.outliers.select(
                "table",
                "column",
                pl.col("rule").alias("fault"),
                "rows",
                "share",
                pl.format("{}, e.g. row {}", "worst", "example").alias("example"),
            ),
            self.duplicates.join(self.tables.select("table", all="rows"), on="table").select(
                "table",
                pl.col("key").alias("column"),
                fault=pl.lit("key in several rows"),
                rows="rows",
                share=pl.col("rows") / pl.col("all"),
                example=pl.col("examples").list.join(", "),
            ),
            self.gaps.select(
                "table",
                "column",
                fault=pl.format("nothing for {} h", pl.col("hours").round(0).cast(pl.Int64)),
                rows=pl.lit(None, dtype=pl.Int64),
                share=pl.lit(None, dtype=pl.Float64),
                example=pl.col("start").dt.strftime("from %Y-%m-%d %H:%M UTC"),
            ),
        ]
        return pl.concat([part.cast(pl.Schema(_FAULTS)) for part in parts]).sort(
            "rows", descending=True, nulls_last=True, maintain_order=True
        )

    def headline(self) -> str:
        """Return what there is, and how much of it should be looked at."""
        rows = dict(self.tables.select("table", "rows").rows())
        kind = "synthetic archive" if self.synthetic else "archive"
        n = self.frame().height
        look = counted(n, "thing") + " to look at" if n else "nothing odd"
        return f"{kind} {self.name}: {counted(len(rows), 'table')}, {counted(rows.get('jobs', 0), 'job')}; {look}"


def profile(archive: Archive) -> Profile:
    """Look at every table of an archive: coverage, nulls, ranges, joins, outliers, doubled keys, gaps.

    Percentiles are exact. Nothing is judged that is not there: keys into absent tables are null.

    Args:
        archive: The archive.

    Returns:
        The frames; shown are the things to look at.
    """
    counts = archive.manifest.counts
    tables = {name: _Table(archive, name) for name in STORED if counts.get(name)}
    coverages, columns, outliers, duplicates, gaps = [], [], [], [], []
    for table in tables.values():
        result = table.columns()
        columns += result
        outliers += table.outliers(result)
        duplicates += table.duplicates()
        coverage, holes = table.coverage(result)
        coverages.append(coverage)
        gaps += holes
    joins = [row for join in JOINS if join.table in tables for row in _match(tables, join)]
    return Profile(
        name=archive.path.name,
        synthetic=archive.synthetic,
        tables=pl.DataFrame(coverages, schema=_TABLES),
        columns=pl.DataFrame(columns, schema=_COLUMNS),
        joins=pl.DataFrame(joins, schema=_JOINS),
        outliers=pl.DataFrame(outliers, schema=_OUTLIERS),
        duplicates=pl.DataFrame(duplicates, schema=_DUPLICATES),
        gaps=pl.DataFrame(gaps, schema=_GAPS),
    )


class _Table:
    """One table, asked by SQL."""

    def __init__(self, archive: Archive, name: str) -> None:
        self.archive = archive
        self.name = name
        self.count = archive.manifest.counts[name]
        rows = archive.sql(f"from {quoted(name)}")
        self.rows = rows.materialize() if self.count <= MOST_HELD_ROWS else rows
        self.types = dict(archive.scan(name).collect_schema())
        self.about = {row["column"]: row for row in describe(name).iter_rows(named=True)}
        keys = [key for key in key_columns(name) if key in self.types]
        self.keys = keys or list(self.types)[:1]

    def value(self, name: str) -> str:
        """Return a column as SQL; dates, and times with a zone, as times in UTC."""
        kind = self.types[name]
        if kind == pl.Date or getattr(kind, "time_zone", None):
            return f"make_timestamp(epoch_us({quoted(name)}))"
        return quoted(name)

    def columns(self) -> list[dict[str, Any]]:
        """Count and range every column."""
        names = list(self.types)
        made = []
        for i in range(0, len(names), COUNTED_TOGETHER):
            made += self.counted(names[i : i + COUNTED_TOGETHER])
        in_one_unit = [r for r in made if r["unit"] and not r["unit"].startswith(MIXED)]
        measured = [row for row in in_one_unit if row.get("least") is not None]
        for i in range(0, len(measured), TOGETHER):
            self.add_percentiles(measured[i : i + TOGETHER])
        return made

    def counted(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Count and range some columns in one query."""
        wanted = []
        for name in names:
            it, kind = self.value(name), self.types[name]
            wanted += [f"count({it})", f"approx_count_distinct({it})"]
            ranged = kind.is_numeric() or _is_time(kind)
            wanted += [f"min({it})", f"max({it})"] if ranged else ["null", "null"]
            wanted.append(f"count(nullif({it}, 0))" if kind.is_numeric() else "null")
        result = _one(self.rows, ", ".join(wanted))
        made = []
        for i, name in enumerate(names):
            known, different, low, high, not_zero = result[5 * i : 5 * i + 5]
            about = self.about.get(name, {})
            unit = about.get("unit")
            ends = ("first", "last") if _is_time(self.types[name]) else ("least", "most")
            made.append(
                {
                    "table": self.name,
                    "column": name,
                    "type": about.get("type") or str(self.types[name]),
                    "unit": None if unit in ("-", "UTC") else unit,
                    "rows": self.count,
                    "nulls": self.count - known,
                    "null_share": (self.count - known) / self.count,
                    "zeros": None if not_zero is None else known - not_zero,
                    "different": different,
                    "null_means": about.get("null"),
                    **dict(zip(ends, (low, high), strict=True)),
                }
            )
        return made

    def add_percentiles(self, columns: Sequence[dict[str, Any]]) -> None:
        """Add exact percentiles to some columns; these are in memory together."""
        wanted = [f"quantile_disc({quoted(c['column'])}, [0.01, 0.5, 0.99])" for c in columns]
        for row, result in zip(columns, _one(self.rows, ", ".join(wanted)), strict=True):
            row |= dict(zip(("p01", "median", "p99"), result, strict=True))

    def outliers(self, columns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return what no row should have, and what is far from all others."""
        checks = [check for check in CHECKS if check.table == self.name]
        checks = [check for check in checks if check.column in self.types]
        checks += [check for row in columns for check in self._far(row)]
        if not checks:
            return []
        key = quoted(self.keys[0])
        wanted = []
        for check in checks:
            it, rule = self.value(check.column), f"filter ({check.broken})"
            wanted += [f"count(*) {rule}", f"count({it})", f"min({it}) {rule}", f"max({it}) {rule}"]
            wanted += [f"min({key}) {rule}"]
        result = _one(self.rows, ", ".join(wanted))
        units = {row["column"]: row["unit"] for row in columns}
        made = []
        for i, check in enumerate(checks):
            rows, known, low, high, example = result[5 * i : 5 * i + 5]
            if rows:
                worst = low if "before" in check.rule or "outside" in check.rule else high
                made.append(
                    {
                        "table": self.name,
                        "column": check.column,
                        "rule": check.rule,
                        "rows": rows,
                        "share": rows / known,
                        "worst": _text(worst),
                        "unit": units[check.column],
                        "example": _text(example),
                    }
                )
        return made

    def _far(self, row: dict[str, Any]) -> list[Check]:
        """Return the rule of a column by its own values, where some value breaks it."""
        name, most = row["column"], row.get("most")
        it = self.value(name)
        p99 = row.get("p99")
        if p99 is not None and most is not None and most > max(0, FAR_TIMES * p99):  # zeros count
            (high,) = _one(self.rows.filter(f"{it} > 0"), f"quantile_disc({it}, 0.99)")
            rule = f"above {FAR_TIMES} × the 99th percentile of positive values"
            return [Check(self.name, name, rule, f"{it} > {FAR_TIMES * high}")]
        timed = self.name in EVENTS and row.get("first") is not None
        if timed and (near := self._near(row)):
            rule = f"more than {FAR_YEARS} years from the median"
            return [Check(self.name, name, rule, f"not ({near})")]
        return []

    def _near(self, row: dict[str, Any]) -> str:
        """Return the condition that a time is near the median of its column; empty: all are."""
        if row["last"] - row["first"] <= timedelta(days=365 * FAR_YEARS):
            return ""
        it = self.value(row["column"])
        (middle,) = _one(self.rows, f"quantile_disc({it}, 0.5)")
        years = f"interval {FAR_YEARS} year"
        return f"{it} between timestamp '{middle}' - {years} and timestamp '{middle}' + {years}"

    def duplicates(self) -> list[dict[str, Any]]:
        """Return the keys that stand in several rows; null equals null.

        Keys may be long names: only those that share their hash with others are in memory.
        """
        if not key_columns(self.name):
            return []
        keys = ", ".join(map(quoted, self.keys))
        hashed = self.rows.aggregate(f"hash({keys}) as of_several, count(*) as n", f"hash({keys})")
        several = hashed.filter("n > 1").project("of_several").set_alias("several")
        if not several.limit(1).fetchall():
            return []
        alike = self.rows.set_alias("given").join(several, f"hash({keys}) = of_several", how="semi")
        doubled = alike.aggregate(f"{keys}, count(*) as n", keys).filter("n > 1")
        n, rows = _one(doubled, "count(*), sum(n)")
        if not n:
            return []
        shown = doubled.order(f"n desc, {keys}").limit(SHOWN).fetchall()
        return [
            {
                "table": self.name,
                "key": ", ".join(self.keys),
                "keys": n,
                "rows": int(rows),
                "examples": [", ".join(map(_text, row[:-1])) for row in shown],
            }
        ]

    def coverage(
        self, columns: Sequence[dict[str, Any]]
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return when there are rows, and the gaps where something always happens."""
        times = {row["column"]: row for row in columns if row.get("first") is not None}
        wanted = [EVENTS.get(self.name), version_column(self.name), *times]
        time = next((name for name in wanted if name in times), None)
        about = {"table": self.name, "rows": columns[0]["rows"], "time": time}
        if time is None:
            return about, []
        it, near = self.value(time), self._near(times[time])
        rows = self.rows.filter(near or f"{it} is not null")
        # within an hour there is no gap: rows are many, hours are few
        hours = rows.aggregate(
            f"min({it}) as f, max({it}) as l, count(*) as n", f"date_trunc('hour', {it})"
        )
        steps = hours.project(
            "f, l, n, lead(f) over (order by f) as following, epoch(following - l) / 3600 as long"
        )
        n, first, last, days, gap = _one(
            steps, "sum(n), min(f), max(l), count(distinct l::date), max(long)"
        )
        about |= {
            "first": first,
            "last": last,
            "days": (last.date() - first.date()).days + 1,
            "days_with": days,
            "longest_gap_h": gap,
        }
        step = (last - first).total_seconds() / 3600 / max(int(n) - 1, 1)
        least = max(GAP_HOURS, GAP_STEPS * step)
        if self.name not in EVENTS:
            return about, []
        result = steps.filter(f"long > {least}").order("l").project("l, following, long").fetchall()
        where = {"table": self.name, "column": time}
        return about, [
            where | {"start": start, "end": end, "hours": long} for start, end, long in result
        ]


def _match(tables: Mapping[str, _Table], join: Join) -> list[dict[str, Any]]:
    """Count the rows and keys that are found in the other table."""
    table, other = tables[join.table], tables.get(join.other)
    if any(column not in table.types for column in join.columns):
        return []
    about: dict[str, Any] = {
        "table": join.table,
        "key": ", ".join(join.columns),
        "other": f"{join.other}.{', '.join(join.other_columns)}",
    }
    left = _keys(table.rows, join.columns, "a").set_alias("left_keys")
    of_left = "coalesce(sum(left_keys.n), 0)::bigint, count(*)"
    if other is None:
        known, n_keys = _one(left, of_left)
        return [about | {"rows": table.count, "null_rows": table.count - known, "keys": n_keys}]
    right = _keys(other.rows, join.other_columns, "b").set_alias("right_keys")
    (all_keys,) = _one(right, "count(*)")
    numbers = range(len(join.columns))
    both = left.join(right, " and ".join(f"a{i} = b{i}" for i in numbers), how="left")
    of_both = "coalesce(sum(left_keys.n) filter (b0 is not null), 0)::bigint, count(b0)"
    known, n_keys, matched, matched_keys = _one(both, f"{of_left}, {of_both}")
    lost: list[tuple[Any, ...]] = []
    if matched < known:
        keys = ", ".join(f"a{i}" for i in numbers)
        missing = both.filter("b0 is null").order(f"left_keys.n desc, {keys}").limit(SHOWN)
        lost = missing.project(keys).fetchall()
    return [
        about
        | {
            "rows": table.count,
            "null_rows": table.count - known,
            "keys": n_keys,
            "matched_rows": matched,
            "matched_share": matched / known if known else None,
            "matched_keys": matched_keys,
            "unused_keys": all_keys - matched_keys,
            "unmatched": [", ".join(map(_text, row)) for row in lost],
        }
    ]


def _one(rows: duckdb.DuckDBPyRelation, wanted: str) -> tuple[Any, ...]:
    """Return the one row of aggregates over all rows."""
    return rows.aggregate(wanted).fetchall()[0]


def _keys(
    rows: duckdb.DuckDBPyRelation, columns: Sequence[str], prefix: str
) -> duckdb.DuckDBPyRelation:
    """Return the different keys without nulls, as ``prefix0, prefix1...``, and their rows ``n``."""
    names = [quoted(column) for column in columns]
    given = rows.filter(" and ".join(f"{name} is not null" for name in names))
    named = ", ".join(f"{name} as {prefix}{i}" for i, name in enumerate(names))
    return given.aggregate(f"{named}, count(*) as n", ", ".join(names))


def _is_time(kind: pl.DataType) -> bool:
    """Tell whether values are instants or days; lengths of time and clock times are not."""
    return isinstance(kind, pl.Datetime | pl.Date)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return f"{value:,}" if isinstance(value, float) else str(value)
