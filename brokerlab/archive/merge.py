"""Bring newly read rows into the tables of an archive: one row per key, the latest wins.

Rule (archive.md section 0): of rows with the same key the one with the latest ``modificationtime`` (or ``ts``) is kept.
Rows of the same time fill each other's nulls; where both have a value and the values differ, the row kept first stays and
the other goes to quarantine.

Most keys are new and occur once: their rows go to the archive as they are. Rows that share a key with each other or with rows
of the archive are settled, some keys at a time. Files of the archive are written again only if a row in them is superseded or
completed.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from brokerlab.archive import schema
from brokerlab.archive.contracts import empty, key_columns, polars_schema, version_column
from brokerlab.archive.manifest import DataFile
from brokerlab.archive.schema import ROW, key_text, shown
from brokerlab.archive.spill import KEY, TASK, Spill, in_order, key_of
from brokerlab.archive.writer import ArchiveWriter

RANK = "__rank"
"""Order of the sources, lower first; rows already in the archive have the lowest."""
SOURCE = "__source"
"""Name of the source of a row."""

_PICK = "__pick"
_ID = "__id"
PARTIAL = "__partial"
"""Marks rows that only fill nulls of others (``ingest(..., fill=...)``)."""
FILE = "__file"
SETTLED_ROWS = 250_000
"""New rows settled at a time, about."""
COMPARED_KEYS = 16_000_000
"""Keys compared at a time, about."""
FILE_ROWS = 500_000
"""Rows of a file, about."""

_OWN = [ROW, RANK, SOURCE, PARTIAL, FILE]
_UNCHANGED = -1
"""Rank of rows whose file is written again because others in it are gone."""


@dataclass
class Merged:
    """What became of the staged rows of one table; counts by rank of their source."""

    accepted: Counter[int] = field(default_factory=Counter)
    # rows refused because they contradict or match nothing
    quarantined: Counter[int] = field(default_factory=Counter)
    superseded: int = 0  # rows of the archive that were replaced
    # tasks of the accepted rows, some of them more than once
    tasks: pl.Series = field(default_factory=lambda: pl.Series(dtype=pl.Int64))


def merge(writer: ArchiveWriter, staged: Spill, sources: Mapping[int, tuple[str, bool]]) -> Merged:
    """Merge staged rows (with ``__row`` and ``__rank``) into the archive; sources by rank: name, and whether its rows only fill others.

    Its files hold neighbouring tasks, `FILE_ROWS` of them each within a day, and their row groups tell by their statistics
    which: a task is found without reading everything. Tables without tasks are cut by key.
    """
    table, into = staged.table, Merged()
    keys, files = _shared(writer, staged, [rank for rank, (_, fills) in sources.items() if fills])
    if len(keys):
        _settle(writer, staged, keys, files, sources, into)
    for piece in staged.pieces(FILE_ROWS):
        ranks = piece[RANK]
        into.accepted.update(dict(ranks.filter(ranks > 0).value_counts().iter_rows()))
        if TASK in piece.columns:
            touched = piece[TASK].filter(ranks != _UNCHANGED).drop_nulls().unique()
            into.tasks = pl.concat([into.tasks, touched])
        order = dict.fromkeys([*([TASK] if TASK in piece.columns else []), *key_columns(table)])
        rows = piece.drop(_OWN, strict=False)
        writer.write(table, in_order(rows, [*order]), trusted=True)
    return into


def _shared(
    writer: ArchiveWriter, staged: Spill, fills: list[int]
) -> tuple[pl.Series, list[DataFile]]:
    """Return the digests of keys that several rows have, and the files of the archive with such rows."""
    table = staged.table
    new, old = staged.columns(KEY, RANK), writer.live(table)
    n = -(-int(new.select(pl.len()).collect().item()) // COMPARED_KEYS)
    shared, files = [pl.Series(KEY, dtype=pl.UInt64)], dict[str, DataFile]()
    for number in range(n):
        part = pl.col(KEY) % n == number
        own = new.filter(part).collect()
        digests = np.sort(own[KEY].to_numpy())
        doubled = digests[1:][digests[1:] == digests[:-1]]
        shared += [pl.Series(KEY, doubled), own.filter(pl.col(RANK).is_in(fills))[KEY]]
        for file in old:
            there = writer.scan(table, file).select(key_of(table))
            both = there.filter(part, pl.col(KEY).is_in(own[KEY].implode())).collect()[KEY]
            if len(both):
                files[file.path] = file
                shared.append(both)
    return pl.concat(shared).unique().sort(), [*files.values()]


def _settle(
    writer: ArchiveWriter,
    staged: Spill,
    keys: pl.Series,
    files: list[DataFile],
    sources: Mapping[int, tuple[str, bool]],
    into: Merged,
) -> None:
    """Take the rows of some keys out of the staged ones, and put the one row of each key back."""
    table, on = staged.table, key_columns(staged.table)
    named = pl.DataFrame(
        [(rank, *source) for rank, source in sources.items()],
        schema={RANK: pl.Int32, SOURCE: pl.String, PARTIAL: pl.Boolean},
        orient="row",
    )
    rank_of = dict(named.select(SOURCE, RANK).iter_rows())
    gone = []
    for piece in staged.split(keys).pieces(SETTLED_ROWS):
        new = piece.join(named, on=RANK, how="left", maintain_order="left")
        old = _rows_with_keys(writer, table, files, new.select(on).unique())
        rivals, homeless = _with_versions(table, _stack(old, new), on)
        kept, contradicting = resolve(table, rivals)
        refused = pl.concat([contradicting, homeless])
        fresh, dead = _changes(old, kept)
        if len(refused):
            writer.write("quarantine", refused, trusted=True)
        into.quarantined.update(rank_of[name] for name in refused["source"])
        into.superseded += len(dead) - len(fresh.filter(pl.col(RANK) == 0))
        gone.append(dead.select(*on, FILE))
        staged.put(fresh.drop(SOURCE, PARTIAL))
    dead = pl.concat(gone)
    touched = [file for file in files if file.path in set(dead[FILE])]
    for file in touched:
        rows = writer.scan(table, file).collect()
        left = rows.join(dead.select(on), on=on, how="anti", nulls_equal=True)
        staged.put(left.with_columns(pl.lit(_UNCHANGED, pl.Int32).alias(RANK)))
    writer.drop(table, touched)


def _changes(old: pl.DataFrame, kept: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (rows to write, rows of the archive to take out): what is not as it was."""
    if old.is_empty():
        return kept, old
    own = [n for n in old.columns if n not in (FILE, ROW, RANK) and n in kept.columns]
    more = [n for n in kept.columns if n not in (*old.columns, *_OWN)]
    after = kept.filter(pl.col(RANK) == 0).select(ROW, *own, *more)
    both = old.select(ROW, *own).join(after, on=ROW, suffix="__after")
    plain = [name for name in own if not old.schema[name].is_nested()]
    same = [pl.col(name).eq_missing(pl.col(f"{name}__after")) for name in plain]
    unchanged = both.filter(pl.all_horizontal(*same, pl.col(more).is_null())).select(ROW)
    dead = old.join(unchanged, on=ROW, how="anti")
    stays = unchanged.with_columns(pl.lit(0, dtype=pl.Int32).alias(RANK))
    return kept.join(stays, on=[ROW, RANK], how="anti"), dead


def _rows_with_keys(
    writer: ArchiveWriter, table: str, files: list[DataFile], wanted: pl.DataFrame
) -> pl.DataFrame:
    """Return the rows of files that have one of the keys, with the file each stands in."""
    parts = []
    for file in files:
        rows = writer.scan(table, file)
        hits = rows.join(wanted.lazy(), on=wanted.columns, how="semi", nulls_equal=True)
        parts.append(hits.collect(engine="streaming").with_columns(pl.lit(file.path).alias(FILE)))
    nothing = empty(table).with_columns(pl.lit(None, dtype=pl.String).alias(FILE))
    stacked = pl.concat([part for part in parts if len(part)] or [nothing], how="diagonal_relaxed")
    number = pl.int_range(pl.len(), dtype=pl.Int64).alias(ROW)
    return stacked.with_columns(number, pl.lit(0, dtype=pl.Int32).alias(RANK))


def _stack(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
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
        return rivals, empty("quarantine")
    whole = rivals.filter(~pl.col(PARTIAL))
    named = version_column(table)
    version = named if named in rivals.columns else None
    latest = whole.group_by(keys).agg(pl.col(version).max() if version else pl.len())
    targets = fillers.drop(version) if version else fillers
    homed = targets.join(latest, on=keys, how="inner", nulls_equal=True)
    lost = targets.join(latest, on=keys, how="anti", nulls_equal=True)
    homeless = lost.sort(RANK, ROW).select(
        pl.col(SOURCE).alias("source"),
        pl.col(ROW).alias("row"),
        pl.lit(table).alias("table"),
        key_text(keys),
        pl.lit("fills nothing: the archive has no row with this key").alias("reason"),
    )
    return pl.concat([whole, homed.select(whole.columns)]), homeless


# --- rows that share a key --------------------------------------------------------------------------------------------


def resolve(table: str, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (one row per key, quarantine of those that contradict the one kept); the rest were duplicates.

    The rows have ``__row``, ``__rank`` and ``__source``; those kept come back in the order of ``__row``.
    """
    known = [name for name in polars_schema(table) if name in frame.columns]
    keys = key_columns(table)
    doubled = frame.select(pl.struct(keys).is_duplicated()).to_series()
    if not doubled.any():
        return frame, empty("quarantine")
    # a source may number several rows of a table alike: those of one record, one link
    rivals = _order(table, frame.filter(doubled), keys).with_row_index(_ID)
    winners = rivals.unique(keys, keep="first", maintain_order=True)
    others = rivals.join(winners.select(_ID), on=_ID, how="anti")
    version = version_column(table)
    if version in frame.columns:
        latest = winners.select(*keys, version)
        others = others.join(latest, on=[*keys, version], how="semi", nulls_equal=True)
    compared = [c for c in known if c not in keys] + _plain_extras(table, frame)
    agreeing, refused = _agreeing(table, others, winners, compared)
    filled = _fill(winners, agreeing, keys, compared)
    # two rows may agree with the kept one and still contradict each other where it is null
    agreeing, late = _agreeing(table, agreeing, filled, compared, words=", completed by others)")
    if len(late):
        filled = _fill(winners, agreeing, keys, compared)
    refused = pl.concat([refused, late])
    kept = pl.concat([frame.filter(~doubled), filled.select(frame.columns)])
    return kept.sort(ROW), refused


def _agreeing(
    table: str, others: pl.DataFrame, kept: pl.DataFrame, columns: list[str], words: str = ")"
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (rows that contradict their kept row nowhere, quarantine of those that do)."""
    beside = others.join(
        kept,
        on=key_columns(table),
        how="left",
        suffix="__kept",
        nulls_equal=True,
        maintain_order="left",
    )
    differs = {c: (pl.col(c) != pl.col(f"{c}__kept")).fill_null(value=False) for c in columns}
    clash = pl.any_horizontal(list(differs.values())) if differs else pl.lit(value=False)
    clashing = beside.select(clash.alias("clash"))["clash"]
    refused = _contradictions(table, beside.filter(clashing), differs, words)
    return beside.filter(~clashing).select(others.columns), refused


def _order(table: str, rivals: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Sort rivals so that the row to keep comes first whatever the order they came in."""
    version = version_column(table)
    latest = [version] if version in rivals.columns else []
    settle = [c for c in polars_schema(table) if c in rivals.columns and c not in {*keys, *latest}]
    by = [*keys, *latest, RANK, *settle, ROW]
    down = [name in latest for name in by]
    return rivals.sort(by, descending=down, nulls_last=True)


def _plain_extras(table: str, frame: pl.DataFrame) -> list[str]:
    """Name the extra columns that can be compared."""
    own = polars_schema(table)
    return [
        name
        for name, kind in frame.schema.items()
        if name not in own and not name.startswith("__") and not kind.is_nested()
    ]


def _contradictions(
    table: str, rows: pl.DataFrame, differs: dict[str, pl.Expr], words: str
) -> pl.DataFrame:
    """Write a quarantine row for each row that contradicts the one kept."""
    result = [
        pl.when(test).then(
            pl.lit(f"{name} ")  # no format: a name may hold braces
            + shown(pl.col(name))
            + " contradicts "
            + shown(pl.col(f"{name}__kept"))
        )
        for name, test in differs.items()
    ]
    where = pl.lit(" (kept, of ") + pl.col(f"{SOURCE}__kept") + words
    return rows.select(
        pl.col(SOURCE).alias("source"),
        pl.col(ROW).alias("row"),
        pl.lit(table).alias("table"),
        key_text(key_columns(table)),
        (pl.concat_str(result, separator="; ", ignore_nulls=True) + where).alias("reason"),
    )


def _fill(
    winners: pl.DataFrame, equals: pl.DataFrame, keys: list[str], columns: list[str]
) -> pl.DataFrame:
    """Complete the nulls of the kept rows from rows of the same key and time."""
    if equals.is_empty() or not columns:
        return winners
    first = equals.group_by(keys, maintain_order=True).agg(
        [pl.col(c).drop_nulls().first() for c in columns]
    )
    both = winners.join(first, on=keys, how="left", suffix=_PICK, nulls_equal=True)
    return both.with_columns([pl.coalesce(c, f"{c}{_PICK}").alias(c) for c in columns])


def split(
    table: str, frame: pl.DataFrame, *, source: str, rows: pl.Series
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (rows of one source that satisfy the contract, one per key; quarantine rows); the rest are duplicates."""
    good, refused = schema.sift(table, frame, source=source, rows=rows)
    marks = pl.lit(0, dtype=pl.Int32).alias(RANK), pl.lit(source).alias(SOURCE)
    kept, contradicting = resolve(table, good.with_columns(*marks))
    quarantine = pl.concat([refused, contradicting]).sort("row", maintain_order=True)
    return kept.drop(ROW, RANK, SOURCE), quarantine
