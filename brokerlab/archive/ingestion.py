"""Read dumps into an archive: nothing dropped silently, nothing twice, nothing half.

For every source and table: rows in = accepted + quarantined + duplicates.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from brokerlab.archive import approximate, parquet, readers, schema
from brokerlab.archive.contracts import key_columns
from brokerlab.archive.manifest import Manifest, Source
from brokerlab.archive.merge import PARTIAL, Merged, lay_out, merge_bucket
from brokerlab.archive.resolve import RANK, SOURCE
from brokerlab.archive.writer import ArchiveWriter
from brokerlab.errors import BrokerlabError, DataError, SchemaError

SUFFIXES = (".parquet", ".csv", ".csv.gz", ".json", ".json.gz")
"""Files taken from a folder given as a source."""

BUCKET_BYTES = 256 << 20
"""Unpacked bytes of sources per bucket; one bucket is in memory at a time."""
BY_TASK = ("jobs", "files")
"""Tables laid out by task."""
_PACKED = {".gz": 8, ".parquet": 4}
"""How much larger than the file the same rows are as plain CSV, roughly."""

Progress = Callable[[int, int, str, int], None]
"""Called with (sources done, sources in all, name of the current one, its rows so far)."""


@dataclass(frozen=True)
class IngestReport:
    """What an ingest did.

    Attributes:
        sources: One entry per file read, with counts by table.
        skipped: Files left out because the same bytes are in the archive.
        approximated: Tasks that have stand-ins for files.
        superseded: Rows of the archive that a later row replaced, by table.
        manifest: The archive's manifest afterwards.
    """

    sources: tuple[Source, ...]
    skipped: tuple[str, ...]
    approximated: int
    superseded: dict[str, int]
    manifest: Manifest

    def to_frame(self) -> pl.DataFrame:
        """Return one row per source and table.

        Returns:
            ``source, table, rows, accepted, quarantined, duplicates``, where
            ``rows = accepted + quarantined + duplicates``.
        """
        rows = [
            (s.name, t, n, s.accepted.get(t, 0), s.quarantined.get(t, 0), s.duplicates.get(t, 0))
            for s in self.sources
            for t, n in s.rows.items()
        ]
        names = ["source", "table", "rows", "accepted", "quarantined", "duplicates"]
        kinds = [pl.String, pl.String, pl.Int64, pl.Int64, pl.Int64, pl.Int64]
        return pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row")


def ingest(
    sources: Sequence[str | Path],
    into: str | Path,
    *,
    table: str | None = None,
    fill: Sequence[str | Path] = (),
    progress: Progress | None = None,
) -> IngestReport:
    """Read files into an archive folder.

    Formats are recognised by content: Parquet and CSV with canonical or database names in any
    case, JSON of the BigPanDA monitor, queue records, links, software, site lists and transfer
    matrices in JSON, job tables of the InVEx kind. Rows of the same key: the
    later ``modificationtime`` stays. Tasks with jobs but no files get stand-ins marked
    ``approximate``. Refused rows stand in the table ``quarantine``.

    Args:
        sources: Files, or folders whose files of known suffix are taken.
        into: The archive folder, made if absent.
        table: Table of all sources, where name and columns do not tell.
        fill: Files of partial rows (key columns and any others) that fill nulls of rows with the
            same key and are never rows themselves; a value that contradicts goes to quarantine.
        progress: Called after every batch.

    Returns:
        Counts that add up, by source and table.

    Raises:
        DataError: A file cannot be read; nothing is changed then.
        SchemaError: A source lacks a required column.

    Source:
        archive.md sections 0 and 13.
    """
    wanted = [(path, False) for path in _expanded(sources)] + [(p, True) for p in _expanded(fill)]
    with ArchiveWriter(into) as writer:
        jobs, skipped = _new_sources(writer.base, wanted, table)
        if not jobs:
            return IngestReport((), tuple(skipped), 0, {}, writer.base)
        run = _Run(writer, _buckets(jobs))
        for rank, job in enumerate(jobs, start=1):
            run.stage(rank, job, _telling(progress, rank - 1, len(jobs)))
        merged = run.merge()
        changed = merged["jobs"].tasks | merged["files"].tasks
        approximated = approximate.refresh(writer, changed)
        entries = run.entries(jobs, merged)
        _check_sums(writer, entries, merged)
        manifest = writer.commit(sources=entries)
    superseded = {name: m.superseded for name, m in merged.items() if m.superseded}
    return IngestReport(entries, tuple(skipped), approximated, superseded, manifest)


@dataclass(frozen=True)
class _Job:
    """A file to read."""

    path: Path
    name: str
    sha256: str
    found: readers.Detected
    partial: bool


@dataclass
class _Run:
    """The state of one ingest: staged rows and counts."""

    writer: ArchiveWriter
    buckets: int
    rows: dict[int, dict[str, int]] = field(default_factory=dict)
    refused: dict[int, dict[str, int]] = field(default_factory=dict)
    notes: dict[int, list[str]] = field(default_factory=dict)
    staged: dict[str, dict[int, list[Path]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def stage(self, rank: int, job: _Job, progress: Callable[[str, int], None]) -> None:
        """Read one source; put good rows aside by key, refused ones into the quarantine."""
        rows, refused = defaultdict[str, int](int), defaultdict[str, int](int)
        notes: dict[str, None] = {}
        for batch in readers.read(job.path, job.found):
            good, bad = _sifted(batch, job)
            bad = pl.concat([bad, _quarantined(batch, job.name)])
            if len(bad):
                self.writer.write("quarantine", bad.sort("row"), trusted=True)
            rows[batch.table] += len(good) + len(bad)
            refused[batch.table] += len(bad)
            notes.update(dict.fromkeys(batch.notes))
            marked = good.with_columns(
                pl.lit(rank, dtype=pl.Int32).alias(RANK),
                pl.lit(job.name).alias(SOURCE),
                pl.lit(job.partial).alias(PARTIAL),
            )
            self._put(batch.table, marked)
            progress(job.name, sum(rows.values()))
        self.rows[rank], self.refused[rank] = dict(rows), dict(refused)
        self.notes[rank] = list(notes)

    def _put(self, table: str, rows: pl.DataFrame) -> None:
        """Write rows to the staging folder, one file per bucket of keys."""
        if rows.is_empty():
            return
        keys = key_columns(table)
        bucket = rows.select((pl.struct(keys).hash(seed=0) % self.buckets).alias("b"))["b"]
        # columns that say nothing come back as null when the archive is written
        said = [c for c in rows.columns if c in keys or rows[c].null_count() < len(rows)]
        for value in bucket.unique().sort().to_list():
            files = self.staged[table][value]
            path = self.writer.scratch() / f"{table}-{value}-{len(files)}.parquet"
            rows.filter(bucket == value).select(said).write_parquet(path, compression="lz4")
            files.append(path)

    def merge(self) -> defaultdict[str, Merged]:
        """Merge everything staged into the archive's tables."""
        merged: defaultdict[str, Merged] = defaultdict(Merged)
        for table in self.staged:
            try:
                for _, files in sorted(self.staged[table].items()):
                    merge_bucket(self.writer, table, files, merged[table])
                    for file in files:
                        file.unlink()
                _check_columns(self.writer, table)
                if table in BY_TASK:
                    lay_out(self.writer, table)
            except pl.exceptions.PolarsError as error:
                raise _not_mergeable(table, str(error)) from error
        return merged

    def entries(self, jobs: list[_Job], merged: dict[str, Merged]) -> tuple[Source, ...]:
        """Return the manifest's record of each source."""
        made = []
        for rank, job in enumerate(jobs, start=1):
            rows = self.rows[rank]
            accepted = {t: merged[t].accepted[rank] if t in merged else 0 for t in rows}
            refused = {
                t: self.refused[rank][t] + (merged[t].quarantined[rank] if t in merged else 0)
                for t in rows
            }
            made.append(
                Source(
                    name=job.name,
                    sha256=job.sha256,
                    format=job.found.format,
                    rows=rows,
                    accepted=accepted,
                    quarantined=refused,
                    duplicates={t: n - accepted[t] - refused[t] for t, n in rows.items()},
                    notes=tuple(self.notes[rank]),
                )
            )
        return tuple(made)


def _check_columns(writer: ArchiveWriter, table: str) -> None:
    """Refuse columns beside the contract that could not be read as one table."""
    one_each = {file.columns: writer.path / file.path for file in writer.live(table)}
    kinds = defaultdict[str, set[pl.DataType]](set)
    for path in one_each.values():
        for name, kind in parquet.lazy(path).collect_schema().items():
            kinds[name].add(kind)
    for name, found in kinds.items():
        if len(found) > 1 and any(kind.is_nested() for kind in found):
            raise _not_mergeable(table, f"{name}: {', '.join(sorted(map(str, found)))}")


def _not_mergeable(table: str, found: str) -> SchemaError:
    """Return the error for columns beside the contract whose types exclude each other."""
    words = found.split("\n", maxsplit=1)[0][:200]
    return SchemaError(
        f"{table}: a column beside the canonical ones has types that cannot stand in one table "
        f"({words}); rename it in one source or leave it out"
    )


def _telling(progress: Progress | None, done: int, total: int) -> Callable[[str, int], None]:
    """Return what a source calls after every batch."""

    def tell(name: str, rows: int) -> None:
        if progress is not None:
            progress(done, total, name, rows)

    return tell


def _sifted(batch: readers.Batch, job: _Job) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Separate good from bad rows; an impossible column is told with the name of the file."""
    try:
        return schema.sift(
            batch.table, batch.frame, source=job.name, rows=batch.rows, partial=job.partial
        )
    except SchemaError as error:
        lines = str(error).splitlines()
        raise SchemaError("\n".join(f"{job.name}: {line}" for line in lines)) from error


def _quarantined(batch: readers.Batch, name: str) -> pl.DataFrame:
    """Return the rows a reader could not cut, in the form of the quarantine table."""
    return batch.refused.select(
        pl.lit(name).alias("source"), "row", pl.lit(batch.table).alias("table"), "key", "reason"
    )


def _expanded(sources: Iterable[str | Path]) -> list[Path]:
    """Replace folders by their files of known suffix, sorted by name."""
    found: list[Path] = []
    for source in map(Path, sources):
        if source.is_dir():
            inside = sorted(p for p in source.iterdir() if p.name.lower().endswith(SUFFIXES))
            if not inside:
                raise DataError(f"{source}: no file to read in it; allowed: {', '.join(SUFFIXES)}")
            found += inside
        else:
            found.append(source)
    return found


def _new_sources(
    base: Manifest, wanted: list[tuple[Path, bool]], table: str | None
) -> tuple[list[_Job], list[str]]:
    """Recognise every file before reading any; leave out bytes the archive already has."""
    known = {source.sha256 for source in base.sources}
    jobs: list[_Job] = []
    skipped: list[str] = []
    problems: list[BrokerlabError] = []
    for path, partial in wanted:
        try:
            found = readers.detect(path, table=None if partial else table)
            with path.open("rb") as handle:
                digest = hashlib.file_digest(handle, "sha256").hexdigest()
        except BrokerlabError as error:
            problems.append(error)
            continue
        if digest in known:
            skipped.append(path.name)
        else:
            known.add(digest)
            doubled = any(job.name == path.name for job in jobs)
            name = str(path) if doubled else path.name  # names tell sources apart
            jobs.append(_Job(path, name, digest, found, partial))
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise type(problems[0])("\n".join(str(problem) for problem in problems))
    return jobs, skipped


def _buckets(jobs: list[_Job]) -> int:
    """Choose into how many parts the keys are cut, from the size of the sources."""
    total = sum(j.path.stat().st_size * _PACKED.get(j.path.suffix, 1) for j in jobs)
    return 1 + total // BUCKET_BYTES


def _check_sums(
    writer: ArchiveWriter, entries: tuple[Source, ...], merged: dict[str, Merged]
) -> None:
    """Compare the rows that will be live with the counts; a difference is a defect, not data."""
    for table, fate in merged.items():
        if table in ("files", "datasets"):  # stand-ins come and go beside the sources' rows
            continue
        live = sum(file.rows for file in writer.live(table))
        accepted = sum(entry.accepted.get(table, 0) for entry in entries)
        expected = writer.base.counts.get(table, 0) + accepted - fate.superseded
        if live != expected or any(n < 0 for e in entries for n in e.duplicates.values()):
            raise DataError(
                f"{table}: {live} rows would be live, the counts say {expected}; nothing was "
                "changed; please report this with the sources"
            )
