"""The manifest of an archive folder: which files are live, what they hold, where they came from.

``manifest.json`` is the only switch of an archive: a file it does not name does not exist.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from brokerlab.errors import DataError

SCHEMA_VERSION = 2
"""Version of the canonical tables and of the manifest that this brokerlab writes; it reads those of version 1, too, whose files leave out no column."""

NAME = "manifest.json"


@dataclass(frozen=True)
class DataFile:
    """One live Parquet file.

    Attributes:
        path: Relative to the archive folder, with ``/``.
        rows: Rows in the file.
        bytes: Size on disk; a file of another size is refused at opening.
        sha256: Digest of the bytes.
        columns: Short digest of the names and types of its columns, among them those of the contract that
            are all null, which the file leaves out; files of equal ones can be read as one.
        first: Earliest ``modificationtime`` in it, ISO text, empty if the table has none.
        last: Latest one.
    """

    path: str
    rows: int
    bytes: int
    sha256: str
    columns: str
    first: str = ""
    last: str = ""


@dataclass(frozen=True)
class Source:
    """One ingested file and what became of its rows.

    Attributes:
        name: File name as given.
        sha256: Digest of the file; the same file is not read twice.
        format: Reader that was used.
        rows: Rows read, by table.
        accepted: Rows accepted, by table.
        quarantined: Rows refused, by table.
        duplicates: Rows that lost to or equalled another of the same key, by table.
        notes: What the reader converted or inferred, in sentences.
        mapping: Digest of what was said about its columns; empty if nothing.
    """

    name: str
    sha256: str = ""
    format: str = ""
    rows: dict[str, int] = field(default_factory=dict)
    accepted: dict[str, int] = field(default_factory=dict)
    quarantined: dict[str, int] = field(default_factory=dict)
    duplicates: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    mapping: str = ""


@dataclass(frozen=True)
class Manifest:
    """What an archive folder holds.

    Attributes:
        schema_version: Version of the canonical tables.
        created: When it was last committed, ISO text in UTC; empty for synthetic archives.
        sources: Ingested files.
        tables: Live files by table.
        truth: Live files of the truth beside a synthetic archive, by name.
        synthetic: True if no real job is in it.
        note: Free text of the writer.
    """

    schema_version: int = SCHEMA_VERSION
    created: str = ""
    sources: tuple[Source, ...] = ()
    tables: dict[str, tuple[DataFile, ...]] = field(default_factory=dict)
    truth: dict[str, tuple[DataFile, ...]] = field(default_factory=dict)
    synthetic: bool = False
    note: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """Rows by table."""
        return {name: sum(f.rows for f in files) for name, files in self.tables.items()}

    @property
    def window(self) -> tuple[str, str] | None:
        """Earliest and latest ``modificationtime`` of the jobs, ISO text; None without jobs."""
        files = self.tables.get("jobs", ())
        first = [f.first for f in files if f.first]
        return (min(first), max(f.last for f in files)) if first else None

    @property
    def digest(self) -> str:
        """Digest of the content (tables and truth), not of names, dates or sources."""
        lines = [
            f"{kind}/{name}:{f.sha256}:{f.rows}"
            for kind, group in (("table", self.tables), ("truth", self.truth))
            for name, files in group.items()
            for f in files
        ]
        head = f"schema {self.schema_version}"
        return hashlib.sha256("\n".join([head, *sorted(lines)]).encode()).hexdigest()

    def files(self) -> list[DataFile]:
        """Return every live file."""
        groups = [*self.tables.values(), *self.truth.values()]
        return [file for files in groups for file in files]

    def to_json(self) -> str:
        """Write the manifest; derived numbers stand in it for the human reader."""
        derived = {"counts": self.counts, "digest": self.digest, "window": self.window}
        whole = {**asdict(self), **derived}
        return json.dumps({**whole, _SEAL: _seal(whole)}, indent=1, sort_keys=True) + "\n"


_SEAL = "seal"
"""Entry of the manifest with the digest of all others: also of names, paths, periods and whose jobs they are."""


def _seal(raw: dict[str, Any]) -> str:
    """Return the digest of everything else that stands in a manifest."""
    rest = {name: value for name, value in raw.items() if name != _SEAL}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read(folder: Path) -> Manifest:
    """Read the manifest of an archive folder.

    Raises:
        DataError: There is none, it cannot be read, or a newer brokerlab wrote it.
    """
    path = folder / NAME
    if not path.is_file():
        raise DataError(
            f"{folder}: no {NAME}, so this is not an archive; "
            "make one with 'brokerlab ingest' or 'brokerlab synthesise'"
        )
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        version = raw["schema_version"]
    except (ValueError, KeyError, TypeError, OSError, RecursionError) as error:
        raise DataError(
            f"{path}: the manifest cannot be read ({type(error).__name__}: {error}); "
            "restore it from a copy or ingest the sources again"
        ) from error
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise DataError(
            f"{path}: written with archive schema {version}, this brokerlab reads up to "
            f"{SCHEMA_VERSION}; install a newer brokerlab"
        )
    try:
        return _from_raw(raw)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(
            f"{path}: the manifest is damaged ({type(error).__name__}: {error}); "
            "restore it from a copy or ingest the sources again"
        ) from error


_PARQUET_END = b"PAR1"
_checked: dict[tuple[str, int, int, int], str] = {}
"""Digests of the files that this process has read, by path, size, time of change [ns] and inode."""


def check(folder: Path, files: Iterable[DataFile], *, again: bool = False) -> None:
    """Compare the digests of files with the manifest and refuse changed ones; a file is read once a process, or ``again``."""
    changed = [
        file.path for file in files if _digest(folder / file.path, again=again) != file.sha256
    ]
    if changed:
        shown = ", ".join(changed[:5])
        raise DataError(
            f"{folder}: {len(changed)} file(s) changed since they were written: {shown}"
            f"{', ...' if len(changed) > 5 else ''}; ingest the sources again or restore a copy"
        )


def check_files(folder: Path, files: Iterable[DataFile]) -> None:
    """Hold files to the manifest by their size and last bytes, without reading them."""
    problems = [problem for file in files if (problem := _problem(folder, file))]
    if problems:
        shown = "\n".join(problems[:5])
        raise DataError(
            f"{folder}: {len(problems)} data file(s) do not fit the manifest; ingest the sources "
            f"again or restore a copy\n{shown}"
        )


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


def _digest(path: Path, *, again: bool) -> str:
    """Return the digest of a file as it is now; empty if it cannot be read."""
    try:
        stat = path.stat()
        identity = (str(path.absolute()), stat.st_size, stat.st_mtime_ns, stat.st_ino)
        if again or identity not in _checked:
            with path.open("rb") as handle:
                _checked[identity] = hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError:
        return ""
    return _checked[identity]


def _from_raw(raw: dict[str, Any]) -> Manifest:
    """Build the manifest and check that its content digest still fits."""
    manifest = Manifest(
        schema_version=raw["schema_version"],
        created=raw["created"],
        sources=tuple(Source(**{**s, "notes": tuple(s["notes"])}) for s in raw["sources"]),
        tables={k: tuple(DataFile(**f) for f in v) for k, v in raw["tables"].items()},
        truth={k: tuple(DataFile(**f) for f in v) for k, v in raw["truth"].items()},
        synthetic=raw["synthetic"],
        note=raw["note"],
    )
    if manifest.schema_version not in (1, SCHEMA_VERSION):
        raise ValueError(f"archive schema {manifest.schema_version!r} does not exist")
    outside = [
        file.path
        for file in manifest.files()
        if (path := PurePosixPath(file.path)).is_absolute() or ".." in path.parts
    ]
    if outside:
        raise ValueError(f"'{outside[0]}' is outside of the archive")
    if manifest.digest != raw["digest"]:
        raise ValueError("its digest does not fit the files it names")
    if raw.get(_SEAL, seal := _seal(raw)) != seal:  # archives of before have none
        raise ValueError("it was changed since it was written")
    return manifest
