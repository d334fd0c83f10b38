"""Open an archive folder: lazy tables for Polars and DuckDB, SQL, a summary.

Nothing is read before it is asked for, so a folder may be far larger than memory.
"""

import difflib
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from brokerlab.archive import manifest as manifests
from brokerlab.archive import parquet
from brokerlab.archive.contracts import STORED, TABLES, contract, polars_schema
from brokerlab.archive.manifest import DataFile, Manifest
from brokerlab.archive.summary import Summary, summarise
from brokerlab.archive.writer import ArchiveWriter
from brokerlab.errors import ConfigError, DataError, MissingTableError, nearest

__all__ = ["Archive", "ArchiveWriter", "open_archive"]

_PARQUET_END = b"PAR1"
_READING = (
    duckdb.StatementType.SELECT,
    duckdb.StatementType.EXPLAIN,
    duckdb.StatementType.MULTI,  # a pivot
)


LARGE = ("jobs", "files", "job_status_log")
"""Tables that Spark reads where there is a session; all others fit on one machine."""


def open_archive(path: str | Path, *, spark: Any = None) -> "Archive":
    """Open an archive folder for reading.

    Only the manifest is read and the sizes of the files it names are checked; a row is read when a
    table is used.

    Args:
        path: The archive folder; with ``spark`` one that every worker sees under this path.
        spark: A ``SparkSession``: ``archive.jobs``, ``.files`` and ``.job_status_log`` are its DataFrames then, and what is
            carried by chunks of tasks (``scouts``, ``calibrate.backtest``, ``replay.map_tasks``) runs there. Its workers need brokerlab.

    Returns:
        The archive.

    Raises:
        DataError: No manifest, a damaged one, one of a newer schema, or a file it names is
            missing, truncated or changed.

    Example:
        >>> import tempfile, polars as pl
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
    problems = [p for file in manifest.files() if (p := _problem(folder, file))]
    if problems:
        shown = "\n".join(problems[:5])
        raise DataError(
            f"{folder}: {len(problems)} data file(s) do not fit the manifest; ingest the sources "
            f"again or restore a copy\n{shown}"
        )
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


class Archive:
    """An archive folder, opened for reading; made by ``brokerlab.archive.open``.

    Tables are attributes: ``archive.jobs`` is a lazy DuckDB relation. ``archive.scan("jobs")`` is
    the same table as a Polars LazyFrame. Times are UTC without zone.
    """

    def __init__(self, path: Path, manifest: Manifest, spark: Any = None) -> None:
        self.path = path
        self.manifest = manifest
        self.spark = spark

    @property
    def tables(self) -> list[str]:
        """Names of the canonical tables that are present, in the chapter's order."""
        return [name for name in TABLES if self.has(name)]

    @property
    def digest(self) -> str:
        """Digest of the content; equal content, equal digest."""
        return self.manifest.digest

    @property
    def synthetic(self) -> bool:
        """Whether the jobs were generated."""
        return self.manifest.synthetic

    def has(self, table: str) -> bool:
        """Return whether the table is present (``quarantine`` counts as a table).

        Raises:
            SchemaError: No canonical table has this name.
        """
        contract(table)
        return bool(self.manifest.tables.get(table))

    def paths(self, table: str) -> list[Path]:
        """Return the Parquet files of a table, e.g. for Spark.

        Raises:
            MissingTableError: The table is not in this archive.
        """
        return [self.path / file.path for file in self._files(table)]

    def scan(self, table: str) -> pl.LazyFrame:
        """Return a table as a Polars LazyFrame.

        Raises:
            MissingTableError: The table is not in this archive.
        """
        groups: dict[str, list[Path]] = {}
        for file in self._files(table):
            groups.setdefault(file.columns, []).append(self.path / file.path)
        parts = [parquet.lazy(group) for group in groups.values()]
        return parts[0] if len(parts) == 1 else pl.concat(parts, how="diagonal_relaxed")

    def relation(self, table: str) -> Any:
        """Return a table as a lazy DuckDB relation; jobs, files and their log of a Spark session as its DataFrames.

        Raises:
            MissingTableError: The table is not in this archive.
        """
        self._files(table)
        if self.spark is not None and table in LARGE:
            paths = [str(path.absolute()) for path in self.paths(table)]
            return self.spark.read.option("mergeSchema", "true").parquet(*paths)
        return self._connection.table(table)

    def sql(self, text: str, params: Mapping[str, Any] | None = None) -> duckdb.DuckDBPyRelation:
        """Run a DuckDB query over the tables as views.

        Args:
            text: One statement that reads (select, from, describe, explain...); values as
                ``$name``.
            params: The values.

        Returns:
            A relation; ``.pl()`` makes it a Polars frame.

        Raises:
            DataError: DuckDB refuses the query (its message is included), or it is not exactly
                one statement that reads.
            MissingTableError: A canonical table is not in this archive.
        """
        try:
            kinds = [statement.type for statement in self._connection.extract_statements(text)]
            if len(kinds) != 1 or kinds[0] not in _READING:
                found = ", ".join(kind.name.lower() for kind in kinds) or "none"
                raise DataError(f"query: {found}; allowed: one statement that reads, e.g. select")
            return self._connection.sql(text, params=dict(params) if params else None)
        except duckdb.CatalogException as error:
            asked = re.search(r"Table with name (\w+) does not exist", str(error))
            if asked and asked[1] in STORED:
                self._files(asked[1])  # says what there is
            raise DataError(f"query: {error} (tables: {', '.join(self.tables)})") from error
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
        return parquet.lazy([self.path / file.path for file in files]).collect()

    def summary(self) -> Summary:
        """Count rows, tasks and queues, the time window and the shares of job status."""
        return summarise(self.path.name, self.manifest, self.sql)

    def verify(self) -> None:
        """Read every file and compare its digest with the manifest.

        Raises:
            DataError: A file has changed since it was written.
        """
        import hashlib

        changed = []
        for file in self.manifest.files():
            with (self.path / file.path).open("rb") as handle:
                if hashlib.file_digest(handle, "sha256").hexdigest() != file.sha256:
                    changed.append(file.path)
        if changed:
            raise DataError(
                f"{self.path}: {len(changed)} file(s) changed since they were written, e.g. "
                f"{changed[0]}; ingest the sources again or restore a copy"
            )

    def __getattr__(self, name: str) -> Any:
        if name in STORED:
            return self.relation(name)
        close = difflib.get_close_matches(name, STORED, n=1)
        hint = f"; {nearest(name, STORED)}" if close else ""
        raise AttributeError(f"an archive has no '{name}'{hint}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.tables]

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} {rows:,}" for name, rows in self.manifest.counts.items())
        kind = "synthetic archive" if self.synthetic else "archive"
        return f"<{kind} {self.path}: {counts or 'empty'}>"

    def _files(self, table: str) -> tuple[DataFile, ...]:
        """Return the live files of a table or say what there is."""
        if not self.has(table):
            raise MissingTableError(
                f"{self.path}: has no table '{table}'; there is: "
                f"{', '.join(self.tables) or 'nothing'}; ingest a source that holds it"
            )
        return self.manifest.tables[table]

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        """One in-memory DuckDB with a view per table; spills to the system's temporary folder."""
        spill = Path(tempfile.gettempdir()) / "brokerlab-duckdb"
        connection = duckdb.connect(
            config={
                "TimeZone": "UTC",
                "temp_directory": str(spill),
                "autoinstall_known_extensions": "false",
            }
        )
        for name in STORED:
            if self.has(name):
                mixed = len({file.columns for file in self._files(name)}) > 1
                names = [parquet.literal(path) for path in self.paths(name)]
                rows = connection.read_parquet(names, hive_partitioning=False, union_by_name=mixed)
                rows.create_view(name)
        return connection


def empty(table: str) -> pl.DataFrame:
    """Return a canonical table without rows.

    Raises:
        SchemaError: There is no such table.
    """
    return pl.DataFrame(schema=polars_schema(table))


def _problem(folder: Path, file: DataFile) -> str | None:
    """Say what is wrong with a live file, by its size and its last bytes."""
    path = folder / file.path
    if not path.is_file():
        return f"{file.path}: missing"
    size = path.stat().st_size
    if size != file.bytes:
        return f"{file.path}: {size} bytes, the manifest says {file.bytes} (truncated or changed)"
    with path.open("rb") as handle:
        handle.seek(-len(_PARQUET_END), 2)
        if handle.read() != _PARQUET_END:
            return f"{file.path}: does not end like a Parquet file (changed)"
    return None
