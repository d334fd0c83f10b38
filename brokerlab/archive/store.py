"""Open an archive folder: lazy tables for Polars and DuckDB, SQL, a profile.

Nothing is read before it is asked for, so a folder may be far larger than memory.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from brokerlab.archive import approximate
from brokerlab.archive import manifest as manifests
from brokerlab.archive.contracts import STORED, TABLES, contract, polars_schema, scan
from brokerlab.archive.manifest import DataFile, Manifest
from brokerlab.archive.profiling import Profile, profile
from brokerlab.errors import ConfigError, DataError, MissingTableError, nearest
from brokerlab.lazy import Later
from brokerlab.results import Result, Shows
from brokerlab.temporary import lasting

if TYPE_CHECKING:
    import duckdb
else:
    duckdb = Later("duckdb")

_READING = ("SELECT", "MULTI")
"""Kinds of statements that only read; the second is a pivot."""
_GAP = r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"
_EXPLAIN = re.compile(rf"{_GAP}explain\b{_GAP}(?:analy[sz]e\b|verbose\b)?{_GAP}", re.I | re.S)
_OPTIONS = re.compile(r"\([^)]*\)")
_WILD = re.compile(r"[*?\[]")

DUCKDB_MEMORY = "1500MB"
"""What DuckDB may take of the memory, whatever the number of jobs; it spills what is more."""
MOST_ROWS_POLARS = 2_000_000
"""Rows of a table up to which an archive is joined in Polars. Beyond, DuckDB holds less: with 5 million jobs 2.2 instead of 3.8 GB."""
LARGE = ("jobs", "files", "job_status_log")
"""Tables that Spark reads where there is a session; all others fit on one machine."""


def open_archive(path: str | Path, *, spark: Any = None) -> Archive:
    """Open an archive folder for reading.

    Only the manifest is read and the sizes of the files it names are checked; a row is read when a
    table is used.

    Args:
        path: The archive folder; with ``spark`` one that every worker sees under this path.
        spark: A ``SparkSession``: ``archive.jobs``, ``.files`` and ``.job_status_log`` are its DataFrames then, and what is
            carried by chunks of tasks (``scouts``, ``calibrate.backtest``, ``Replay.map``) runs there. Its workers need brokerlab.

    Returns:
        The archive.

    Raises:
        DataError: No manifest, a damaged one, one of a newer schema, or a file it names is
            missing, truncated or changed.

    Example:
        >>> import tempfile, polars as pl
        >>> from brokerlab.archive import ArchiveWriter
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with ArchiveWriter(folder) as writer:
        ...         writer.write("resource_types", pl.DataFrame({"resource_name": ["SCORE"]}))
        ...         _ = writer.commit()
        ...     archive = open_archive(folder)
        ...     archive.sql("select count(*) as n from resource_types").fetchall()
        [(1,)]
    """
    folder = Path(path)
    manifest = manifests.read(folder)
    manifests.check_files(folder, manifest.files())
    return Archive(folder, manifest, spark)


def session(master: str) -> Any:
    """Return the Spark session of a master, e.g. ``local[4]`` or ``spark://host:7077``; its workers need brokerlab.

    Raises:
        ConfigError: pyspark is not installed, or the session cannot be made.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ConfigError("Spark needs pyspark: install the extra 'spark'") from error
    os.environ.setdefault(
        "PYSPARK_PYTHON", sys.executable
    )  # workers on this machine need our packages
    try:
        builder = SparkSession.builder.master(master).appName("brokerlab")
        return builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    except Exception as error:
        raise ConfigError(
            f"Spark master '{master}': no session can be made there: {error}"
        ) from error


class Archive(Result):
    """An archive folder, opened for reading; made by ``brokerlab.archive.open``.

    Tables are attributes: ``archive.jobs`` is a lazy DuckDB relation. ``archive.scan("jobs")`` is
    the same table as a Polars LazyFrame. Times are UTC without zone. ``archive.derive()`` is the same
    archive with stand-ins for some tables that it lacks.

    Attributes:
        path: The folder.
        manifest: What is in it.
        spark: Session that carries large tables; null: this machine.
        derived: Tables that are made from the jobs and are not in the folder; empty unless asked for.
    """

    shows = Shows(
        about="an archive, one row per table",
        keys=("table",),
        rows=40,
        next=(".profile()", '.sql("select ...")', "scouts.estimate(result)"),
    )

    def __init__(
        self, path: Path, manifest: Manifest, spark: Any = None, derived: tuple[str, ...] = ()
    ) -> None:
        self.path = path
        self.manifest = manifest
        self.spark = spark
        self.derived = derived
        self._made: dict[str, pl.DataFrame] = {}

    def derive(self, *tables: str) -> Archive:
        """Return the same archive with stand-ins, made from its jobs, for tables that it lacks.

        They are made when they are read and never written; each row has ``approximate = true``, and ``derived``
        names them. Files and datasets are made together, where the archive has neither.

        Args:
            tables: Some of tasks, datasets, files, queues; none: all of them. What the archive has stays.

        Raises:
            ConfigError: Another table.

        Source:
            archive.md section 14.
        """
        for name in tables:
            if name not in approximate.FROM_JOBS:
                raise ConfigError(f"derive: {name}: {nearest(name, approximate.FROM_JOBS)}")
        absent = {name for name in approximate.FROM_JOBS if not self.manifest.counts.get(name)}
        if not absent >= {"files", "datasets"}:
            absent -= {"files", "datasets"}
        if not self.manifest.counts.get("jobs"):
            absent = set()
        asked = [
            name
            for name in approximate.FROM_JOBS
            if name in absent and (name in {*tables, *self.derived} or not tables)
        ]
        return Archive(self.path, self.manifest, self.spark, tuple(asked))

    @property
    def tables(self) -> list[str]:
        """Names of the canonical tables that are present or derived, in the chapter's order."""
        return [name for name in TABLES if self.has(name)]

    @property
    def digest(self) -> str:
        """Digest of the content; equal content, equal digest. With derived tables it is another one."""
        if not self.derived:
            return self.manifest.digest
        named = f"{self.manifest.digest} derived {' '.join(self.derived)}"
        return hashlib.sha256(named.encode()).hexdigest()

    @property
    def synthetic(self) -> bool:
        """Whether the jobs were generated."""
        return self.manifest.synthetic

    def has(self, table: str) -> bool:
        """Return whether the table is present or derived (``quarantine`` counts as a table).

        Raises:
            SchemaError: No canonical table has this name.
        """
        contract(table)
        return bool(self.manifest.tables.get(table)) or table in self.derived

    def scan(self, table: str) -> pl.LazyFrame:
        """Return a table as a Polars LazyFrame.

        Raises:
            MissingTableError: The table is not in this archive.
        """
        if table in self.derived:
            return approximate.derived(table, self.scan("jobs"))
        groups: dict[str, list[Path]] = {}
        for file in self._files(table):
            groups.setdefault(file.columns, []).append(self.path / file.path)
        parts = [scan(group, table) for group in groups.values()]
        return parts[0] if len(parts) == 1 else pl.concat(parts, how="diagonal_relaxed")

    def relation(self, table: str) -> Any:
        """Return a table as a lazy DuckDB relation; jobs, files and their log of a Spark session as its DataFrames.

        Raises:
            MissingTableError: The table is not in this archive.
        """
        if table in self.derived:
            return self._connection.register(table, self._derived(table)).table(table)
        if self.spark is not None and table in LARGE and self.has(table):
            files = self.manifest.tables[table]  # too large to be read by one process beforehand
            paths = [str((self.path / file.path).absolute()) for file in files]
            rows = self.spark.read.option("mergeSchema", "true").parquet(*paths)
            return rows.selectExpr(*_completed(table, rows.columns, "`", "timestamp_ntz"))
        self._files(table)
        return self._connection.table(table)

    def lazy(self, table: str) -> Any:
        """Return a large table to be read from end to end: lazily in Polars, which takes half of the CPU time of a DuckDB relation; of a Spark session as its DataFrame.

        Raises:
            MissingTableError: The table is not in this archive.
        """
        return self.scan(table) if self.spark is None else self.relation(table)

    def joinable(self, table: str) -> Any:
        """Return a table to be joined and grouped with others of the same engine: lazily in Polars where the archive is small, else as :meth:`relation`.

        Small are archives of at most ``MOST_ROWS_POLARS`` rows a table: DuckDB holds less at once of a large one, but takes
        milliseconds to begin each query.

        Raises:
            MissingTableError: The table is not in this archive.
        """
        small = max(self.manifest.counts.values(), default=0) <= MOST_ROWS_POLARS
        if self.spark is not None or not small:
            return self.relation(table)
        return self._derived(table).lazy() if table in self.derived else self.scan(table)

    def joinable_if_there(self, table: str) -> Any | None:
        """Return a table as :meth:`joinable` does; null where the archive lacks it."""
        return self.joinable(table) if self.has(table) else None

    def sql(
        self, text: str, params: Mapping[str, Any] | None = None, *, outside: bool = False
    ) -> duckdb.DuckDBPyRelation:
        """Run a DuckDB query over the tables as views.

        Args:
            text: One statement that reads (select, from, describe, explain of these...); values as
                ``$name``.
            params: The values.
            outside: Whether the query may read files that are not of the archive, such as
                ``read_csv('mine.csv')``; its result may write itself to a file, others by way
                of a frame (``.pl().write_csv(...)``).

        Returns:
            A relation; ``.pl()`` makes it a Polars frame.

        Raises:
            DataError: DuckDB refuses the query (its message is included), or it is not exactly
                one statement that reads; a file of a table that it names was changed.
            MissingTableError: A canonical table is not in this archive.
        """
        connection = self._open_connection if outside else self._connection
        try:
            kinds = _kinds(connection, text)
            if len(kinds) != 1 or kinds[0].name not in _READING:
                result = ", ".join(kind.name.lower() for kind in kinds) or "none"
                raise DataError(f"query: {result}; allowed: one statement that reads, e.g. select")
            words = set(re.findall(r"\w+", text.lower()))
            manifests.check(self.path, self._live(name for name in STORED if name in words))
            for name in words & {*self.derived}:
                connection.register(name, self._derived(name))
            return connection.sql(text, params=dict(params) if params else None)
        except duckdb.CatalogException as error:
            asked = re.search(r"Table with name (\w+) does not exist", str(error))
            if asked and asked[1] in STORED:
                self._files(asked[1])  # says what there is
            raise DataError(f"query: {error} (tables: {', '.join(self.tables)})") from error
        except duckdb.PermissionException as error:
            raise DataError(
                f"query: {error}; a query reads the archive's tables only, others with outside=True"
            ) from error
        except duckdb.Error as error:
            raise DataError(f"query: {error} (tables: {', '.join(self.tables)})") from error

    def truth(self, name: str) -> pl.DataFrame:
        """Return a table of the truth kept beside a synthetic archive, e.g. ``tasks``.

        Raises:
            DataError: The archive holds no such truth.
        """
        files = self.manifest.truth.get(name)
        if not files:
            known = ", ".join(sorted(self.manifest.truth)) or "none"
            raise DataError(f"{self.path}: no truth '{name}'; there is: {known}")
        manifests.check(self.path, files)
        return scan([self.path / file.path for file in files]).collect()

    def profile(self) -> Profile:
        """Look at every table: coverage, nulls, ranges, joins, outliers, doubled keys and gaps, as frames.

        See :func:`brokerlab.archive.profile`.
        """
        return profile(self)

    def verify(self) -> None:
        """Read every file again and compare its digest with the manifest.

        Raises:
            DataError: A file has changed since it was written; all of them are counted, some named.
        """
        manifests.check(self.path, self.manifest.files(), again=True)

    def __getattr__(self, name: str) -> Any:
        if name in STORED:
            return self.relation(name)
        hint = nearest(name, STORED, "")
        raise AttributeError(f"an archive has no '{name}'{hint and f'; {hint}'}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.tables]

    def frame(self) -> pl.DataFrame:
        """Return one row per table: ``table, rows``; ``quarantine`` among them."""
        counts = self.manifest.counts
        return pl.DataFrame(
            list(counts.items()), schema={"table": pl.String, "rows": pl.Int64}, orient="row"
        )

    def headline(self) -> str:
        """Return where it is, and when its jobs changed last."""
        kind = "synthetic archive" if self.synthetic else "archive"
        window = self.manifest.window
        period = f", {window[0]} to {window[1]} UTC" if window else ""
        n = len(self.manifest.sources)
        derived = f"; derived from jobs: {', '.join(self.derived)}" if self.derived else ""
        return f"{kind} {self.path}{period}, {n} sources, digest {self.digest[:12]}{derived}"

    def _files(self, table: str) -> tuple[DataFile, ...]:
        """Return the live files of a table, unchanged since they were written, or say what there is."""
        if not self.manifest.tables.get(table):
            can_be_made = table in self.derive(*approximate.FROM_JOBS).derived
            made = ", or use archive.derive(), which makes it from the jobs" if can_be_made else ""
            raise MissingTableError(
                f"{self.path}: has no table '{table}'; there is: "
                f"{', '.join(self.tables) or 'nothing'}; ingest a source that holds it{made}"
            )
        manifests.check(self.path, self.manifest.tables[table])
        return self.manifest.tables[table]

    def _derived(self, table: str) -> pl.DataFrame:
        """Make a derived table, once. Large ones need a single machine."""
        if self.spark is not None and table in LARGE:
            raise ConfigError(
                f"{self.path}: {table} are derived on one machine only; ingest the jobs, which writes stand-ins for {table}"
            )
        if table not in self._made:
            self._made[table] = self.scan(table).collect(engine="streaming")
        return self._made[table]

    def _live(self, tables: Iterable[str]) -> list[DataFile]:
        """Return the live files of tables; none of a table that is not there."""
        return [file for name in tables for file in self.manifest.tables.get(name, ())]

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        """One in-memory DuckDB with a view per table, which reads no other files."""
        return self._connected(outside=False)

    @cached_property
    def _open_connection(self) -> duckdb.DuckDBPyConnection:
        """The same for queries that may read other files."""
        return self._connected(outside=True)

    def _connected(self, *, outside: bool) -> duckdb.DuckDBPyConnection:
        """Return an in-memory DuckDB with a view per table; it spills to a temporary folder of its own."""
        connection = duckdb.connect(
            config={
                "TimeZone": "UTC",
                "temp_directory": str(lasting() / "spill"),
                "memory_limit": DUCKDB_MEMORY,
                "enable_external_file_cache": "false",  # the system keeps files at hand as well
                "autoinstall_known_extensions": "false",
                "python_enable_replacements": "false",
            }
        )
        allowed: list[str] = []
        for name in STORED:
            if files := self._live([name]):
                paths = [(self.path / file.path).absolute() for file in files]
                # DuckDB takes every path for a pattern
                names = [_WILD.sub(r"[\g<0>]", str(path)) for path in paths]
                allowed += [*names, *map(str, paths)]
                try:
                    rows = connection.read_parquet(
                        names, hive_partitioning=False, union_by_name=True
                    )
                except duckdb.Error as error:
                    manifests.check(self.path, files)
                    raise DataError(f"{self.path}: {name}: {error}") from error
                columns = ", ".join(_completed(name, rows.columns, '"', "timestamp"))
                query = f"select {columns} from ({rows.sql_query()})"  # noqa: S608
                connection.execute(f"create view {name} as {query}")
        if not outside:
            connection.execute("set allowed_paths = $1", [allowed])
            connection.execute("set enable_external_access = false")
        return connection


_SQL_TYPES = {
    pl.Int32(): "integer",
    pl.Int64(): "bigint",
    pl.Float64(): "double",
    pl.String(): "string",
    pl.Boolean(): "boolean",
}
"""How DuckDB and Spark call the types of contracts, but for times."""


def _completed(table: str, present: list[str], quote: str, time: str) -> list[str]:
    """Write a query's columns: those of the contract, null where no file has them, and then others."""
    own = polars_schema(table)
    quoted = {name: quote + name.replace(quote, 2 * quote) + quote for name in [*own, *present]}
    return [
        column
        if name in present
        else f"cast(null as {_SQL_TYPES.get(own[name], time)}) as {column}"
        for name, column in quoted.items()
    ]


def _kinds(connection: duckdb.DuckDBPyConnection, text: str) -> list[duckdb.StatementType]:
    """Return the kinds of the statements of a query; of one that explains another, the other's."""
    kinds = [statement.type for statement in connection.extract_statements(text)]
    if kinds != [duckdb.StatementType.EXPLAIN]:
        return kinds
    explained = _EXPLAIN.sub("", text, count=1)
    try:
        return [statement.type for statement in connection.extract_statements(explained)]
    except duckdb.Error:  # options in brackets come first
        explained = _OPTIONS.sub("", explained, count=1)
        return [statement.type for statement in connection.extract_statements(explained)]
