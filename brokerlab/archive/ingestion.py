"""Read dumps into an archive: nothing dropped silently, nothing twice, nothing half.

For every source and table: rows in = accepted + quarantined + duplicates.
"""

import functools
import hashlib
import itertools
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Mapping as Named
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl

from brokerlab.archive import approximate, readers, schema
from brokerlab.archive import manifest as manifests
from brokerlab.archive.manifest import Manifest, Source
from brokerlab.archive.mapping import Mapping, NotTaken, Shaper, Wishes, save
from brokerlab.archive.merge import RANK, Merged, merge
from brokerlab.archive.readers import columnar
from brokerlab.archive.spill import Spill
from brokerlab.archive.writer import ArchiveWriter
from brokerlab.errors import BrokerlabError, DataError, SchemaError, reading
from brokerlab.results import Result, Shows

_TEXTS = (".csv", ".tsv", ".json", ".ndjson", ".jsonl")
SUFFIXES = (
    ".parquet",
    *(f"{kind}{packed}" for kind in _TEXTS for packed in ("", ".gz")),
    ".pq",
    ".duckdb",
    ".sqlite",
    ".sqlite3",
    ".db",
)
"""Files taken from a folder given as a source."""

READ_BEFORE = (
    "was read before, with other options: what they gave then stays, rows that say otherwise now are refused; "
    "to correct a unit or a value, read all sources into a new archive"
)
"""Note on a source whose bytes are in the archive already."""
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

Progress = Callable[[int, int, str, int], None]
"""Called with (sources done, sources in all, name of the current one, its rows so far)."""


@dataclass(frozen=True, repr=False)
class IngestReport(Result):
    """What an ingest did.

    Attributes:
        sources: One entry per file read, with counts by table.
        skipped: Files left out because the same bytes are in the archive.
        approximated: Tasks that have stand-ins for files.
        superseded: Rows of the archive that a later row replaced, by table.
        manifest: The archive's manifest afterwards.
        not_taken: Columns of sources that are none of their tables, kept beside them, with the
            options that would take them where a name is near.
        mappings: Files that keep what was said about columns, for the next export.
        left_out: Files of folders, and tables of databases, that were not read.
    """

    shows = Shows(
        about="what an ingest read, one row per source and table",
        columns="source, table, rows, accepted, quarantined, duplicates",
        keys=("source", "table"),
        next=("open(folder)",),
    )

    sources: tuple[Source, ...]
    skipped: tuple[str, ...]
    approximated: int
    superseded: dict[str, int]
    manifest: Manifest
    not_taken: tuple[NotTaken, ...] = ()
    mappings: tuple[Path, ...] = ()
    left_out: tuple[str, ...] = ()

    def frame(self) -> pl.DataFrame:
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
    sources: Any,
    into: str | Path,
    *,
    table: str | None = None,
    mapping: Mapping | Named[str, Any] | str | Path | None = None,
    fill: Sequence[Any] = (),
    progress: Progress | None = None,
) -> IngestReport:
    """Read files and frames into an archive folder.

    Formats are recognised by content: Parquet, CSV and JSON records, one a line or in one
    document, also hits of Elasticsearch and OpenSearch; tables of DuckDB and SQLite; JSON of the
    BigPanDA monitor, queue records, links, software, site lists and transfer matrices in JSON,
    job tables of the InVEx kind. Names of columns are canonical or of the database, whatever
    their case and underscores; ``mapping`` says what others mean. Rows of the same key: the
    later ``modificationtime`` stays. Tasks with jobs but no files get stand-ins marked
    ``approximate``. Refused rows stand in the table ``quarantine``.

    Args:
        sources: A file, a folder whose files of known suffix are taken, a frame of pandas, Polars
            (eager or lazy), Arrow or DuckDB, several of these, or these by table.
        into: The archive folder, made if absent.
        table: Table of all sources, where name and columns do not tell.
        mapping: What foreign columns mean: a ``Mapping``, a dictionary of its fields, or a file
            of one. It is kept in the archive; null = the one kept for the same columns, if any.
        fill: Files of partial rows (key columns and any others) that fill nulls of rows with the
            same key and are never rows themselves; a value that contradicts goes to quarantine.
        progress: Called after every batch.

    Returns:
        Counts that add up, by source and table.

    Raises:
        DataError: A file cannot be read; nothing is changed then.
        SchemaError: A source lacks a required column, its dates may be read in two ways, or the
            mapping does not fit its columns; the message says what to type.

    Source:
        archive.md sections 0 and 13.
    """
    if isinstance(mapping, str | Path):
        given: Mapping | None = Mapping.read(mapping)
    else:
        given = Mapping.of(mapping) if isinstance(mapping, Named) else mapping
    if given is not None and given.table and table not in (None, given.table):
        raise SchemaError(f"--table {table}: the mapping is for {given.table}; say one of them")
    left_out: list[str] = []
    wanted = [
        *_wanted(sources, table or (given.table if given else ""), left_out, partial=False),
        *_wanted(fill, "", left_out, partial=True),
    ]
    with ArchiveWriter(into) as writer:
        wishes = Wishes.of(writer.path, given)
        jobs, skipped = _new_sources(writer, wanted, wishes)
        if not jobs:
            return IngestReport((), tuple(skipped), 0, {}, writer.base, left_out=tuple(left_out))
        _forget_refused(writer, jobs)
        run = _Run(writer)
        tell = progress or (lambda *_: None)
        for done, job in enumerate(jobs):
            try:
                run.stage(done + 1, job, functools.partial(tell, done, len(jobs)))
            except SchemaError as error:
                raise _together([error, *_problems(jobs[done:])]) from error.__cause__
        merged = run.merge(jobs)
        changed = pl.concat([merged["jobs"].tasks, merged["files"].tasks]).unique()
        approximated = approximate.refresh(writer, changed)
        entries = run.entries(jobs, merged)
        _check_sums(writer, entries, merged)
        manifest = writer.commit(sources=entries)
        kept = save(writer.path, (m for job in jobs for m in job.shaper.used.values()))
    superseded = {name: m.superseded for name, m in merged.items() if m.superseded}
    return IngestReport(
        entries,
        tuple(skipped),
        approximated,
        superseded,
        manifest,
        not_taken=tuple(column for job in jobs for column in job.shaper.not_taken),
        mappings=tuple(dict.fromkeys(kept)),
        left_out=(
            *left_out,
            *(f"{job.name}: {what}" for job in jobs for what in job.found.left_out),
        ),
    )


@dataclass(frozen=True)
class _Wanted:
    """A source as it is asked for: a file, or a frame."""

    source: Any
    name: str
    table: str | None
    partial: bool
    partition: dict[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class _Job:
    """A file to read."""

    path: Path
    where: str
    name: str
    sha256: str
    found: readers.Detected
    partial: bool
    shaper: Shaper
    mapping: str
    notes: tuple[str, ...]


@dataclass
class _Run:
    """The state of one ingest: staged rows by table, and of every source the rows and the refused rows by table, and notes."""

    writer: ArchiveWriter
    read: list[tuple[Counter[str], Counter[str], tuple[str, ...]]] = field(default_factory=list)
    staged: dict[str, Spill] = field(default_factory=dict)

    def stage(self, rank: int, job: _Job, progress: Callable[[str, int], None]) -> None:
        """Read one source; put good rows aside, refused ones into the quarantine."""
        rows, refused = Counter[str](), Counter[str]()
        notes = dict.fromkeys(job.notes)
        for batch, good, bad in _sift_batches(job):
            if len(bad):
                self.writer.write("quarantine", bad.sort("row"), trusted=True)
            rows[batch.table] += len(good) + len(bad)
            refused[batch.table] += len(bad)
            notes.update(dict.fromkeys(batch.notes))
            if len(good):
                new = Spill(self.writer.scratch(), batch.table)
                with _one_table(batch.table):
                    self.staged.setdefault(batch.table, new).put(
                        good.with_columns(pl.lit(rank, dtype=pl.Int32).alias(RANK))
                    )
            progress(job.name, rows.total())
        self.read.append((rows, refused, tuple(notes)))

    def merge(self, jobs: list[_Job]) -> defaultdict[str, Merged]:
        """Merge everything staged into the archive's tables."""
        merged: defaultdict[str, Merged] = defaultdict(Merged)
        sources = {rank: (job.name, job.partial) for rank, job in enumerate(jobs, start=1)}
        for table in [*self.staged]:
            with _one_table(table):
                merged[table] = merge(self.writer, self.staged.pop(table), sources)
                _check_columns(self.writer, table)
        return merged

    def entries(self, jobs: list[_Job], merged: defaultdict[str, Merged]) -> tuple[Source, ...]:
        """Return the manifest's record of each source."""
        made = []
        for rank, (job, (rows, cut, notes)) in enumerate(zip(jobs, self.read, strict=True), 1):
            accepted = {t: merged[t].accepted[rank] for t in rows}
            refused = {t: cut[t] + merged[t].quarantined[rank] for t in rows}
            made.append(
                Source(
                    name=job.name,
                    sha256=job.sha256,
                    format=job.found.format,
                    rows=dict(rows),
                    accepted=accepted,
                    quarantined=refused,
                    duplicates={t: n - accepted[t] - refused[t] for t, n in rows.items()},
                    notes=notes,
                    mapping=job.mapping,
                )
            )
        return tuple(made)


def _together(problems: Iterable[BrokerlabError]) -> BrokerlabError:
    """Return several errors as one, of the first one's kind."""
    first, *others = {str(problem): problem for problem in problems}.values()
    return type(first)("\n".join(map(str, [first, *others]))) if others else first


def _problems(jobs: list[_Job]) -> Iterator[BrokerlabError]:
    """Yield what is wrong with the columns of sources, of every table of a database, by their first rows."""
    for job in jobs:
        for name, table in job.found.tables.items() or [("", "")]:
            tables = {name: table} if name else {}
            try:
                next(_sift_batches(replace(job, found=replace(job.found, tables=tables))), None)
            except BrokerlabError as error:
                yield error


def _check_columns(writer: ArchiveWriter, table: str) -> None:
    """Refuse columns beside the contract that could not be read as one table."""
    one_each = {file.columns: file for file in writer.live(table)}
    kinds = defaultdict[str, set[pl.DataType]](set)
    for file in one_each.values():
        for name, kind in writer.scan(table, file).collect_schema().items():
            kinds[name].add(kind)
    for name, result in kinds.items():
        if len(result) > 1 and any(kind.is_nested() for kind in result):
            raise pl.exceptions.SchemaError(f"{name}: {', '.join(sorted(map(str, result)))}")


@contextmanager
def _one_table(table: str) -> Iterator[None]:
    """Refuse columns beside the contract whose types exclude each other."""
    try:
        yield
    except (pl.exceptions.SchemaError, pl.exceptions.InvalidOperationError) as error:
        words = str(error).split("\n", maxsplit=1)[0][:200]
        raise SchemaError(
            f"{table}: a column beside the canonical ones has types that cannot stand in one table "
            f"({words}); rename it in one source or leave it out"
        ) from error


def _wanted(sources: Any, table: str, left_out: list[str], *, partial: bool) -> list[_Wanted]:
    """List what is to be read; folders are replaced by their files of known suffix, by name."""
    if isinstance(sources, Named) and not columnar.is_frame(sources):
        return [
            one
            for name, source in sources.items()
            for one in _wanted(source, name, left_out, partial=partial)
        ]
    if columnar.is_frame(sources):
        return [_Wanted(sources, columnar.kind_of(sources), table or None, partial)]
    if isinstance(sources, str | Path):
        folder = Path(sources)
        if not folder.is_dir():
            return [_Wanted(folder, folder.name, table or None, partial)]
        return [
            _Wanted(
                path,
                str(path.relative_to(folder)),
                table or None,
                partial,
                _partition(folder, path),
            )
            for path in _expand(folder, left_out)
        ]
    if not isinstance(sources, Iterable):
        raise DataError(f"a source is a {type(sources).__name__}; allowed: {columnar.FRAMES}")
    return [one for source in sources for one in _wanted(source, table, left_out, partial=partial)]


def _expand(source: Path, left_out: list[str]) -> list[Path]:
    """Return the files of known suffix in a folder, sorted by name."""
    if (source / manifests.NAME).exists():
        raise DataError(f"{source}: is an archive; name folders of its tables, e.g. {source}/jobs")
    result: list[Path] = []
    for place, folders, files in os.walk(source):
        if "_delta_log" in folders:
            raise DataError(
                f"{place}: is a Delta table, whose files alone may hold deleted rows; export it"
            )
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        for name in files:
            path = Path(place, name)
            if name.lower().endswith(SUFFIXES):
                result.append(path)
            elif not name.startswith((".", "_")):
                left_out.append(f"{path.relative_to(source)}: no known suffix")
    if not result:
        raise DataError(f"{source}: no file to read in it; allowed: {', '.join(SUFFIXES)}")
    return sorted(result)


def _partition(folder: Path, path: Path) -> dict[str, str | None]:
    """Return the columns that stand in the path of a file, as Hive and Spark write them."""
    parts = [part.partition("=") for part in path.relative_to(folder).parts[:-1] if "=" in part]
    return {name: None if value == _HIVE_NULL else unquote(value) for name, _, value in parts}


def _sift_batches(job: _Job) -> Iterator[tuple[readers.Batch, pl.DataFrame, pl.DataFrame]]:
    """Yield every batch of a source with its good and its refused rows."""
    batches = readers.read(job.path, job.found, job.shaper, job.shaper.wishes.table)
    while True:
        with reading(job.where):
            batch = next(batches, None)
            if batch is None:
                return
            good, bad = schema.sift(
                batch.table, batch.frame, source=job.name, rows=batch.rows, partial=job.partial
            )
        marks = pl.lit(job.name).alias("source"), pl.lit(batch.table).alias("table")
        cut = batch.refused.with_columns(*marks).select(bad.columns)
        yield batch, good, pl.concat([bad, cut])


def _new_sources(
    writer: ArchiveWriter, wanted: list[_Wanted], wishes: Wishes
) -> tuple[list[_Job], list[str]]:
    """Recognise every source before reading any; leave out bytes the archive already has."""
    known = {(source.sha256, source.mapping) for source in writer.base.sources}
    in_archive = {sha256 for sha256, _ in known}
    read_before = set(in_archive)
    jobs: list[_Job] = []
    skipped: list[str] = []
    problems: list[BrokerlabError] = []
    for number, one in enumerate(wanted):
        path, spooled = one.source, not isinstance(one.source, Path)
        try:
            if spooled:
                path = writer.scratch() / f"frame-{number}.parquet"
                columnar.write_frame(one.source, path)
            with reading(path):
                detected = readers.detect(
                    path,
                    table=None if one.partial else one.table,
                    table_of=wishes.table,
                    partition=one.partition,
                )
            _refuse_options(one, detected, wishes)
            with path.open("rb") as handle:
                digest = hashlib.file_digest(handle, "sha256").hexdigest()
        except BrokerlabError as error:
            problems.append(
                type(error)(str(error).replace(str(path), one.name)) if spooled else error
            )
            continue
        mapping = wishes.given.digest if wishes.given and not one.partial else ""
        if (digest, mapping) in known or (not mapping and digest in read_before):
            skipped.append(one.name)
            continue
        known.add((digest, mapping))
        read_before.add(digest)
        others = {old.name for old in writer.base.sources if old.sha256 != digest}
        name = _own_name(one, others | {job.name for job in jobs})
        kept = Wishes() if one.partial else wishes
        recognised = readers.table_of_name(path.name) or readers.table_of_columns(detected.names)
        named = detected.named and recognised != detected.table  # only the caller tells the table
        shaper = Shaper(name, kept, detected.table, one.partial, named=named)
        where = name if spooled else str(path)
        notes = (READ_BEFORE,) if digest in in_archive else ()
        jobs.append(_Job(path, where, name, digest, detected, one.partial, shaper, mapping, notes))
    if problems:
        raise _together([*problems, *_problems(jobs)])
    return jobs, skipped


def _refuse_options(one: _Wanted, detected: readers.Detected, wishes: Wishes) -> None:
    """Refuse what is said about columns where the source has none of its own, or several tables."""
    if one.partial or wishes.given is None or not wishes.given.says:
        return
    if detected.format in ("invex", "links"):
        what = "jobs of the InVEx kind" if detected.format == "invex" else "a flat table of links"
        raise SchemaError(
            f"{one.name}: is {what}; --map, --default, --unit and --dates are not for it"
        )
    if len(set(detected.tables.values())) > 1:
        tables = ", ".join(sorted(set(detected.tables.values())))
        raise SchemaError(
            f"{one.name}: holds {tables}; say --table for which of them --map, --default, --unit and "
            "--dates are"
        )


def _forget_refused(writer: ArchiveWriter, jobs: list[_Job]) -> None:
    """Take the refused rows of sources out that are read again, because more is said about them now."""
    digests = {job.sha256 for job in jobs}
    others = {old.name for old in writer.base.sources if old.sha256 not in digests}
    again = {old.name for old in writer.base.sources if old.sha256 in digests} - others
    if again:
        writer.remove("quarantine", pl.col("source").is_in(list(again)))


def _own_name(one: _Wanted, taken: set[str]) -> str:
    """Return a name that tells a source, and its rows in the quarantine, apart from those before it."""
    if one.name not in taken:
        return one.name
    if isinstance(one.source, Path) and str(one.source) not in taken:
        return str(one.source)
    return next(name for n in itertools.count(2) if (name := f"{one.name} {n}") not in taken)


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
