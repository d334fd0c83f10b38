"""Write an archive folder so that there is never half an archive.

New data files get names made of their own content; the only switch is the replacement of
``manifest.json``. Whatever a killed run left behind is not named there, hence not read, and is
removed at the next commit.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Literal, Self

import polars as pl

from brokerlab.archive import contracts, schema
from brokerlab.archive import manifest as manifests
from brokerlab.archive.contracts import STORED, fitted, polars_schema, required_columns
from brokerlab.archive.manifest import DataFile, Manifest, Source
from brokerlab.errors import ConfigError, DataError, SchemaError, writing
from brokerlab.lazy import Later

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = Later("pyarrow")

ROW_GROUP = 131_072
"""Rows per Parquet row group: fixed, so that equal rows give equal bytes."""

_PARTIAL = ".partial-"
_LOCK = ".lock"
_FIRST = ".first-run"
"""Marks a folder whose first run has not ended, so that its tables may be swept without a manifest."""


class ArchiveWriter:
    """Write tables into an archive folder; nothing counts before ``commit``.

    Args:
        path: The archive folder; made if absent.
        synthetic: True for generated jobs; kept in the manifest, never mixed with real ones.
        note: Free text for the manifest.
        created: Time of creation for the manifest, ISO text; by default now, and empty for a
            synthetic archive, which has to be the same bytes every time.
        mode: ``append`` adds to what is there, ``replace`` drops it at the commit, ``new``
            refuses a folder that already holds an archive.

    Raises:
        DataError: The folder cannot be made, is no archive but holds tables, holds an archive that
            must not be mixed with or replaced by this one or lacks files of its manifest, or another
            process is writing it.
        ConfigError: Unknown mode.

    Example:
        >>> import tempfile, polars as pl
        >>> with tempfile.TemporaryDirectory() as folder, ArchiveWriter(folder) as writer:
        ...     writer.write("resource_types", pl.DataFrame({"resource_name": ["SCORE"]}))
        ...     writer.commit().counts
        {'resource_types': 1}
    """

    def __init__(
        self,
        path: str | Path,
        *,
        synthetic: bool = False,
        note: str = "",
        created: str | None = None,
        mode: Literal["append", "replace", "new"] = "append",
    ) -> None:
        if mode not in ("append", "replace", "new"):
            raise ConfigError(f"mode '{mode}': allowed: append, replace, new")
        self.path = Path(path)
        self._synthetic = synthetic
        self._note = note
        self._created = created
        self._mode = mode
        self._lock: IO[bytes] | None = None
        self.base = Manifest()
        """What this writer started from; empty for a new archive."""
        self._tables: dict[str, list[DataFile]] = {}
        self._truth: dict[str, list[DataFile]] = {}
        self._written: list[Path] = []
        self._taken: set[Path] = set()
        self._open = False

    def __enter__(self) -> Self:
        _claim(self.path)
        self._lock = _lock(self.path / _LOCK)
        try:
            self._start()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._open:  # not committed: leave no rubbish
            live = self.base.files()
            with contextlib.suppress(
                DataError
            ):  # an interrupt came when the new manifest was in place
                live = [*live, *manifests.read(self.path).files()]
            paths = {self.path / file.path for file in live}
            for file in self._written:
                if file not in paths:
                    file.unlink(missing_ok=True)
            _sweep_partial(self.path)
            _sweep_empty(self.path)
            (self.path / _FIRST).unlink(missing_ok=True)
        self._close()

    def write(self, table: str, frame: pl.DataFrame | pa.Table, *, trusted: bool = False) -> None:
        """Add rows to a table as new Parquet parts; jobs go to one folder per day.

        Args:
            table: Name of a canonical table.
            frame: Rows; extra columns are kept.
            trusted: Skip the check of values and keys; types and names are still made to fit.

        Raises:
            SchemaError: The rows are no frame of the two kinds, or break the table's contract.
        """
        if isinstance(frame, pl.DataFrame):
            given = frame
        elif isinstance(frame, pa.Table):
            given = pl.DataFrame(pl.from_arrow(frame))
        else:
            raise SchemaError(
                f"{table}: rows are a {type(frame).__name__}; allowed: a Polars DataFrame or an Arrow table; "
                "convert them, or ingest them with archive.ingest"
            )
        if trusted and (missing := {*required_columns(table)} - {*given.columns}):
            raise DataError(f"{table}: required columns are missing: {', '.join(sorted(missing))}")
        rows = fitted(table, given) if trusted else schema.validate(table, given)
        for folder, part in _partitions(table, rows):
            self._tables.setdefault(table, []).append(
                self._store(folder, part, polars_schema(table))
            )

    def write_truth(self, name: str, frame: pl.DataFrame) -> None:
        """Keep a table of the truth beside a synthetic archive; any columns.

        Args:
            name: A plain name, e.g. ``tasks``.
            frame: Rows.

        Raises:
            DataError: The archive is not synthetic.
            ConfigError: The name is not a plain identifier.
        """
        if not self._synthetic:
            raise DataError("only a synthetic archive knows the truth")
        if not name.isidentifier():
            raise ConfigError(f"truth '{name}': allowed: letters, digits, underscore")
        self._truth.setdefault(name, []).append(self._store(f"truth/{name}", frame))

    def live(self, table: str) -> list[DataFile]:
        """Return the files the table would have if committed now.

        Raises:
            DataError: One of those that were there before has changed since it was written.
        """
        files = list(self._tables.get(table, []))
        before = set(self.base.tables.get(table, ()))
        manifests.check(self.path, [file for file in files if file in before])
        return files

    def scan(self, table: str, file: DataFile) -> pl.LazyFrame:
        """Return the rows of a file of the table, with all columns of its contract."""
        return contracts.scan(self.path / file.path, table)

    def remove(self, table: str, rows: pl.Expr) -> None:
        """Take rows out of the table; files that have some are written again, those without a column that is asked about have none."""
        changed = []
        for file in self.live(table):
            before = self.scan(table, file)
            if not {*rows.meta.root_names()} <= {*before.collect_schema()}:
                continue
            left = before.filter(~rows).collect(engine="streaming")
            if len(left) < file.rows:
                changed.append(file)
                self.write(table, left, trusted=True)
        self.drop(table, changed)

    def drop(self, table: str, files: Iterable[DataFile]) -> None:
        """Leave files of a table out at the commit, because their rows were written again."""
        gone = {file.path for file in files}
        self._tables[table] = [f for f in self._tables.get(table, []) if f.path not in gone]

    def scratch(self) -> Path:
        """Return a folder for staging that is removed at the end, whatever happens."""
        self._require_open()
        folder = self.path / f"{_PARTIAL}{os.getpid()}-staging"
        folder.mkdir(exist_ok=True)
        return folder

    def commit(self, *, sources: Iterable[Source | str] = ()) -> Manifest:
        """Make the written rows the archive, at once; ``sources`` are appended to those of the manifest, which is returned."""
        self._require_open()
        added = tuple(s if isinstance(s, Source) else Source(name=s) for s in sources)
        keep = () if self._mode == "replace" else self.base.sources
        now = "" if self._synthetic else datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        new = Manifest(
            created=now if self._created is None else self._created,
            sources=(*keep, *added),
            tables={name: tuple(files) for name, files in self._tables.items() if files},
            truth={name: tuple(files) for name, files in self._truth.items() if files},
            synthetic=self._synthetic,
            note=self._note or self.base.note,
        )
        with writing(self.path):
            _switch(self.path, new)
        self._open = False
        before = [] if self._mode == "replace" else self.base.files()
        self.base = new
        _sweep(self.path, [*new.files(), *before])
        return new

    def _start(self) -> None:
        """Load what is there and refuse what must not be mixed."""
        exists = (self.path / manifests.NAME).exists()
        if exists and self._mode == "new":
            raise DataError(f"{self.path}: holds an archive already; choose another folder")
        if exists:
            self.base = manifests.read(self.path)
        else:
            (self.path / _FIRST).touch()
        if exists and self.base.synthetic != self._synthetic and self.base.files():
            raise DataError(
                f"{self.path}: holds {'synthetic' if self.base.synthetic else 'real'} jobs, "
                f"{'synthetic' if self._synthetic else 'real'} ones were to be written; "
                "real and synthetic jobs are never mixed: choose another folder"
            )
        if self._mode != "replace":  # replacing, equal content may take its old name again
            # a commit sweeps what the manifest does not name
            manifests.check_files(self.path, self.base.files())
            self._taken = {self.path / file.path for file in self.base.files()}
            self._tables = {name: list(files) for name, files in self.base.tables.items()}
            self._truth = {name: list(files) for name, files in self.base.truth.items()}
        self._open = True

    def _require_open(self) -> None:
        if not self._open:
            raise ConfigError(
                "ArchiveWriter: use it as 'with ArchiveWriter(...) as w', commit once"
            )

    def _store(self, folder: str, frame: pl.DataFrame, known: Iterable[str] = ()) -> DataFile:
        """Write one Parquet file under a name made of its content; known columns that are all null are left out."""
        self._require_open()
        target = self.path / folder
        partial = target / f"{_PARTIAL}{os.getpid()}-{len(self._written)}"
        self._written.append(partial)
        with writing(target):
            target.mkdir(parents=True, exist_ok=True)
            null = [name for name in known if frame[name].null_count() == len(frame)]
            # level 1 takes half the time of the usual one, for files as large
            frame.drop(null).write_parquet(
                partial, compression="zstd", compression_level=1, row_group_size=ROW_GROUP
            )
            with partial.open("rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").hexdigest()
                os.fsync(opened.fileno())
            final = self._free_name(target, digest)
            size = partial.stat().st_size
            partial.replace(final)
        self._written.append(final)
        first, last = _window(frame)
        return DataFile(
            path=final.relative_to(self.path).as_posix(),
            rows=len(frame),
            bytes=size,
            sha256=digest,
            columns=hashlib.sha256(repr(list(frame.schema.items())).encode()).hexdigest()[:12],
            first=first,
            last=last,
        )

    def _free_name(self, target: Path, digest: str) -> Path:
        """Return a name not used by a live file or one of this run."""
        name = target / f"part-{digest[:16]}.parquet"
        copy = 1
        while name in self._taken:  # the same rows written twice on purpose
            name = target / f"part-{digest[:16]}-{copy}.parquet"
            copy += 1
        self._taken.add(name)
        return name

    def _close(self) -> None:
        """Give the folder free for other writers."""
        self._open = False
        if self._lock is not None:
            self._lock.close()


def _claim(folder: Path) -> None:
    """Make the folder; refuse tables of others in it, which a commit would sweep away."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ours = (folder / manifests.NAME).exists() or (folder / _FIRST).exists()
        foreign = [] if ours else [n for n in (*STORED, "truth") if (folder / n).exists()]
    except OSError as error:
        raise DataError(
            f"{folder}: cannot be used as an archive ({error.strerror}); choose another folder"
        ) from error
    if foreign:
        raise DataError(
            f"{folder}: holds {', '.join(foreign[:3])} but no {manifests.NAME}; if it was an archive, "
            "restore that file from a copy, else choose another folder"
        )


def _lock(path: Path) -> IO[bytes]:
    """Take the folder for this process; the lock dies with it."""
    handle = path.open("ab")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        handle.close()
        raise DataError(
            f"{path.parent}: another process is writing this archive; wait for it"
        ) from error
    return handle


def _partitions(table: str, frame: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Split jobs by day of ``modificationtime``; other tables stay whole."""
    if frame.is_empty():
        return
    if table != "jobs":
        yield table, frame
        return
    days = frame.select(pl.col("modificationtime").dt.date().alias("day")).with_row_index("row")
    rows = days.group_by("day").agg("row").sort("day")
    for day, own in zip(rows["day"], rows["row"], strict=True):  # one part in memory at a time
        yield f"jobs/day={day.isoformat()}", frame if len(rows) == 1 else frame[own]


def _window(frame: pl.DataFrame) -> tuple[str, str]:
    """Return the earliest and latest ``modificationtime`` as ISO text."""
    if frame.schema.get("modificationtime") != pl.Datetime("us"):
        return "", ""
    column = frame["modificationtime"].drop_nulls()
    ends: list[Any] = [] if column.is_empty() else [column.min(), column.max()]
    return (ends[0].isoformat(), ends[1].isoformat()) if ends else ("", "")


def _switch(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest in one step, safe against a power cut."""
    partial = folder / f"{_PARTIAL}{os.getpid()}-manifest"
    with partial.open("w", encoding="utf-8") as handle:
        handle.write(manifest.to_json())
        handle.flush()
        os.fsync(handle.fileno())
    partial.replace(folder / manifests.NAME)
    (folder / _FIRST).unlink(missing_ok=True)
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _sweep_partial(folder: Path) -> None:
    """Remove what interrupted runs left at the top of the folder."""
    for partial in folder.glob(f"{_PARTIAL}*"):
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)


def _sweep(folder: Path, files: Iterable[DataFile]) -> None:
    """Remove all other data files of tables, and folders left empty.

    Those that the commit before left stay until the next one: who opened the archive then, such as a long report, finishes on
    what it opened.
    """
    live = {folder / file.path for file in files}
    _sweep_partial(folder)
    for place in [folder / name for name in (*STORED, "truth")]:
        for file in [*place.rglob("part-*.parquet"), *place.rglob(f"{_PARTIAL}*")]:
            if file not in live:
                file.unlink(missing_ok=True)
    _sweep_empty(folder)


def _sweep_empty(folder: Path) -> None:
    """Remove folders of tables that hold nothing: without a manifest, they would be taken for those of others."""
    for place in [folder / name for name in (*STORED, "truth")]:
        inner = sorted((p for p in place.rglob("*") if p.is_dir()), reverse=True)
        for empty in [*inner, place]:
            with contextlib.suppress(OSError):  # not empty, or not there
                empty.rmdir()
