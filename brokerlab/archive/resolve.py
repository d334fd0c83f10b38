"""Settle rows that share a key: the latest wins, equals complete each other, contradictions show.

Rule (archive.md section 0): of rows with the same key the one with the latest
``modificationtime`` (or ``ts``) is kept. Rows of the same time fill each other's nulls; where both
have a value and the values differ, the row kept first stays and the other goes to quarantine.
"""

import polars as pl

from brokerlab.archive.contracts import empty, key_columns, polars_schema, version_column

ROW = "__row"
"""Row number in the source, first data row = 1; reserved name, never stored."""
RANK = "__rank"
"""Order of the sources, lower first; rows already in the archive have the lowest."""
SOURCE = "__source"
"""Name of the source of a row."""

_PICK = "__pick"
_ID = "__id"
_SHORT = 40


def shown(value: pl.Expr) -> pl.Expr:
    """Return a value as text, cut to forty characters."""
    return value.cast(pl.String).str.slice(0, _SHORT).fill_null("null")


def key_text(keys: list[str], prefix: str = "") -> pl.Expr:
    """Write the key of each row as ``name=value, ...``."""
    parts = [pl.lit(f"{key}=") + shown(pl.col(f"{prefix}{key}")) for key in keys]
    return pl.concat_str(parts, separator=", ").alias("key")


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
