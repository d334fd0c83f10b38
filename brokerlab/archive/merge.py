"""Bring newly read rows into the tables of an archive: one row per key, the latest wins.

Rows arrive as staged Parquet files, cut into buckets by their key, so that only some of one bucket and the
archive's rows of the same keys are in memory at a time. Files of the archive are rewritten only if
a row in them is superseded or completed.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from brokerlab.archive import parquet
from brokerlab.archive.contracts import key_columns, polars_schema, version_column
from brokerlab.archive.manifest import DataFile
from brokerlab.archive.resolve import RANK, ROW, SOURCE, empty_quarantine, resolve
from brokerlab.archive.writer import ArchiveWriter
from brokerlab.carry import spread
from brokerlab.errors import writing

PARTIAL = "__partial"
"""Marks rows that only fill nulls of others (``ingest(..., fill=...)``)."""
FILE = "__file"
TASK = "jeditaskid"
MERGED_ROWS = 250_000
"""Rows merged at a time; more of a bucket are merged one part after the other."""
FILE_ROWS = 500_000
"""Rows of a file that is laid out by task, about."""

_OWN = [ROW, RANK, SOURCE, PARTIAL]


@dataclass
class Merged:
    """What became of the staged rows of one table.

    Attributes:
        accepted: Rows that are in the archive now, by rank of their source.
        quarantined: Rows refused because they contradict or match nothing, by rank.
        superseded: Rows of the archive that were replaced.
        tasks: Tasks of the accepted rows.
        files: Files of the rows that this run wrote, whose keys no other bucket has.
    """

    accepted: Counter[int] = field(default_factory=Counter)
    quarantined: Counter[int] = field(default_factory=Counter)
    superseded: int = 0
    tasks: set[int] = field(default_factory=set)
    files: set[str] = field(default_factory=set)


def merge_bucket(writer: ArchiveWriter, table: str, staged: list[Path], into: Merged) -> None:
    """Merge one bucket of staged rows of a table into the archive, `MERGED_ROWS` at a time.

    Args:
        writer: Open writer of the archive.
        table: Canonical table.
        staged: Parquet files with canonical rows plus ``__row, __rank, __source, __partial``.
        into: Counts, added to.
    """
    rows = pl.concat([parquet.lazy(path) for path in staged], how="diagonal_relaxed")
    n = -(-int(rows.select(pl.len()).collect().item()) // MERGED_ROWS)
    part = pl.struct(key_columns(table)).hash(seed=1) % n  # another seed than that of the buckets
    for number in range(n):
        _merge(writer, table, rows.filter(part == number).collect(), into)


def _merge(writer: ArchiveWriter, table: str, new: pl.DataFrame, into: Merged) -> None:
    """Merge rows, all that are new of their keys, into the archive."""
    keys = key_columns(table)
    rank_of = dict(new.select(SOURCE, RANK).unique().iter_rows())
    old = _rows_with_keys(writer, table, new.select(keys).unique(), keys, into.files)
    rivals, homeless = _with_versions(table, _stacked(old, new), keys)
    del new  # the largest frame here; the merged one takes its place
    settled = resolve(table, rivals)
    del rivals
    refused = pl.concat([settled.quarantine, homeless])
    fresh, dead = _changes(old, settled.kept)
    _rewrite(writer, table, dead, keys)
    if len(refused):
        writer.write("quarantine", refused, trusted=True)
    ranks = fresh[RANK].value_counts()
    counts: dict[int, int] = dict(ranks.iter_rows())
    completed = counts.pop(0, 0)
    into.accepted.update(counts)
    into.quarantined.update(rank_of[name] for name in refused["source"])
    into.superseded += len(dead) - completed
    if "jeditaskid" in fresh.columns:
        into.tasks |= set(fresh["jeditaskid"].drop_nulls().unique().to_list())
    rows = fresh.drop([*_OWN, FILE], strict=False).sort(_order(fresh, keys), nulls_last=True)
    into.files |= {file.path for file in writer.add(table, rows)}


def _order(rows: pl.DataFrame, keys: list[str]) -> list[str]:
    """Return by what rows lie in the archive: by task, where they have one, then by key."""
    return list(dict.fromkeys([*([TASK] if TASK in rows.columns else []), *keys]))


def lay_out(writer: ArchiveWriter, table: str) -> None:
    """Lay the new rows of a table out by task within each folder, so that a task is found without reading everything.

    Buckets are cut by key, so each of their files has rows of all tasks. They are dealt out to files of neighbouring tasks,
    `FILE_ROWS` each, whose row groups tell by their statistics which tasks they hold.

    Args:
        writer: Open writer of the archive, all buckets of the table merged.
        table: A table with ``jeditaskid``.
    """
    old = {file.path for file in writer.base.tables.get(table, ())}
    folders: dict[Path, list[DataFile]] = {}
    for file in writer.live(table):
        if file.path not in old:
            folders.setdefault(Path(file.path).parent, []).append(file)
    for files in folders.values():
        if len(files) > 1:
            _dealt_out(writer, table, files)


def _dealt_out(writer: ArchiveWriter, table: str, files: list[DataFile]) -> None:
    """Write files of one folder again, by task."""
    parts = [parquet.lazy(writer.path / file.path) for file in files]
    tasks = pl.concat([part.select(TASK) for part in parts]).collect()[TASK].sort()
    n = -(-len(tasks) // FILE_ROWS)
    edges = tasks.gather_every(FILE_ROWS)[1:]  # a task is never cut
    names = [writer.scratch() / f"laid-{number}" for number in range(n)]
    columns = pl.concat([part.head(0) for part in parts], how="diagonal_relaxed").collect()

    def batches() -> Iterator[pl.DataFrame]:
        for part in parts:
            yield pl.concat([columns, part.collect()], how="diagonal_relaxed")

    with writing(writer.path):
        spread(batches(), lambda b: edges.search_sorted(b[TASK].fill_null(0), side="right"), names)
    for name in names:
        rows = pl.read_ipc_stream(name)
        name.unlink()
        writer.write(
            table, rows.sort(_order(rows, key_columns(table)), nulls_last=True), trusted=True
        )
    writer.drop(table, files)


def _changes(old: pl.DataFrame, kept: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (rows to write, rows of the archive to take out): what is not as it was."""
    if old.is_empty():
        return kept, old
    unchanged = _unchanged(old, kept)
    dead = old.join(unchanged, on=ROW, how="anti")
    same = unchanged.with_columns(pl.lit(0, dtype=pl.Int32).alias(RANK))
    return kept.join(same, on=[ROW, RANK], how="anti"), dead


def _rows_with_keys(
    writer: ArchiveWriter, table: str, wanted: pl.DataFrame, keys: list[str], without: set[str]
) -> pl.DataFrame:
    """Return the archive's rows that have one of the keys, with the file each stands in; some files are left out."""
    parts = []
    for file in [file for file in writer.live(table) if file.path not in without]:
        rows = parquet.lazy(writer.path / file.path)
        hits = rows.join(wanted.lazy(), on=keys, how="semi", nulls_equal=True)
        found = hits.collect(engine="streaming")
        if len(found):
            parts.append(found.with_columns(pl.lit(file.path).alias(FILE)))
    if not parts:
        schema = {**polars_schema(table), FILE: pl.String(), ROW: pl.Int64(), RANK: pl.Int32()}
        return pl.DataFrame(schema=schema)
    stacked = pl.concat(parts, how="diagonal_relaxed").with_row_index(ROW)
    return stacked.with_columns(pl.col(ROW).cast(pl.Int64), pl.lit(0, dtype=pl.Int32).alias(RANK))


def _stacked(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Put the rows of the archive before the new ones."""
    if old.is_empty():
        return new
    marked = old.drop(FILE).with_columns(
        pl.lit("the archive").alias(SOURCE), pl.lit(value=False).alias(PARTIAL)
    )
    return pl.concat([marked, new], how="diagonal_relaxed")


def _with_versions(
    table: str, rivals: pl.DataFrame, keys: list[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give rows that only fill others the time of the row they fill; refuse those without one."""
    fillers = rivals.filter(PARTIAL)
    if fillers.is_empty():
        return rivals, empty_quarantine()
    whole = rivals.filter(~pl.col(PARTIAL))
    named = version_column(table)
    version = named if named in rivals.columns else None
    latest = whole.group_by(keys).agg(pl.col(version).max() if version else pl.len())
    targets = fillers.drop(version) if version else fillers
    homed = targets.join(latest, on=keys, how="inner", nulls_equal=True)
    lost = targets.join(latest, on=keys, how="anti", nulls_equal=True)
    parts = [pl.lit(f"{key}=") + pl.col(key).cast(pl.String).fill_null("null") for key in keys]
    homeless = lost.select(
        pl.col(SOURCE).alias("source"),
        pl.col(ROW).alias("row"),
        pl.lit(table).alias("table"),
        pl.concat_str(parts, separator=", ").str.slice(0, 200).alias("key"),
        pl.lit("fills nothing: the archive has no row with this key").alias("reason"),
    )
    stays = pl.concat([whole, homed.select(whole.columns)])
    return stays, homeless


def _unchanged(old: pl.DataFrame, kept: pl.DataFrame) -> pl.DataFrame:
    """Return ``__row`` of rows of the archive that stay as they are."""
    own = [n for n in old.columns if n not in (FILE, ROW, RANK) and n in kept.columns]
    after = kept.filter(pl.col(RANK) == 0).select(ROW, *own)
    both = old.select(ROW, *own).join(after, on=ROW, suffix="__after")
    plain = [name for name in own if not old.schema[name].is_nested()]
    same = [pl.col(name).eq_missing(pl.col(f"{name}__after")) for name in plain]
    return both.filter(pl.all_horizontal(same)).select(ROW)


def _rewrite(writer: ArchiveWriter, table: str, dead: pl.DataFrame, keys: list[str]) -> None:
    """Write the files that hold dead rows again without them."""
    paths = set(dead[FILE].unique().to_list()) if len(dead) else set()
    touched: list[DataFile] = [file for file in writer.live(table) if file.path in paths]
    for file in touched:
        rows = parquet.lazy(writer.path / file.path).collect()
        left = rows.join(dead.select(keys), on=keys, how="anti", nulls_equal=True)
        writer.write(table, left, trusted=True)
    writer.drop(table, touched)
