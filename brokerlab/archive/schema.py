"""Hold a table to its contract: names, types, required values, ranges, keys (archive.md 0).

``validate`` is for frames that should be right: it returns the table or raises one error that lists
everything. ``sift`` is for readers: it keeps the good rows and says for each other row why not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import polars as pl

from brokerlab.archive import parsing
from brokerlab.archive.contracts import Frame, columns_of, key_columns, polars_schema
from brokerlab.archive.contracts._columns import MAX_JSON, about
from brokerlab.archive.names import spellings
from brokerlab.errors import SchemaError

_SHOWN = 5
ROW = "__row"
"""Row number in the source, first data row = 1; reserved name, never stored."""
_SHORT = 40


def shown(value: pl.Expr) -> pl.Expr:
    """Return a value as text, cut to forty characters."""
    return value.cast(pl.String).str.slice(0, _SHORT).fill_null("null")


def key_text(keys: list[str], prefix: str = "") -> pl.Expr:
    """Write the key of each row as ``name=value, ...``."""
    parts = [pl.lit(f"{key}=") + shown(pl.col(f"{prefix}{key}")) for key in keys]
    return pl.concat_str(parts, separator=", ").alias("key")


def validate(table: str, frame: Frame) -> Frame:
    """Return the table in canonical form or raise one error that lists all problems.

    Names are lowered, aliases of section 13 renamed, missing optional columns added as null, values
    converted as section 0 says; extra columns are carried through after the canonical ones.

    Args:
        table: Name of a canonical table.
        frame: The rows. A lazy frame is read once in streaming mode to check it.

    Returns:
        The same kind of frame, canonical columns in the chapter's order, rows in the given order.

    Raises:
        SchemaError: Unknown table, missing required column, type that cannot be converted, rows
            that break the contract, or rows that share a key.

    Source:
        archive.md sections 0 and 13.

    Example:
        >>> frame = pl.DataFrame({"RESOURCE_NAME": ["SCORE"], "MinCore": ["1.0"]})
        >>> validate("resource_types", frame).row(0)
        ('SCORE', 1, None, None, None)
    """
    lazy = frame.lazy()
    plan = _plan_of(table, tuple(lazy.collect_schema().items()))
    staged = plan.staged(lazy)
    bad = _reasons(plan, staged.filter(plan.broken).collect(engine="streaming"))
    problems = _summarise(table, bad)
    result = staged.select(plan.values)
    keys = key_columns(table)
    if keys and not problems:
        doubled = result.group_by(keys).len().filter(pl.col("len") > 1)
        shared = doubled.sort(keys).collect(engine="streaming")
        if len(shared):
            some = "; ".join(shared.head(_SHOWN).select(key_text(keys))["key"])
            problems.append(
                f"{table}: {len(shared)} key(s) occur more than once ({some}); "
                "allowed: one row per key; ingest keeps the latest"
            )
    if problems:
        raise SchemaError("\n".join(problems))
    return result if isinstance(frame, pl.LazyFrame) else result.collect()


def sift(
    table: str, frame: pl.DataFrame, *, source: str, rows: pl.Series, partial: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (canonical rows with ``__row``, quarantine rows); rows that share a key are not settled.

    With ``partial`` required columns that are no key may be missing: such rows only fill others.
    """
    plan = _plan_of(table, tuple(frame.schema.items()), partial=partial)
    staged = plan.staged(frame.lazy()).collect().with_columns(rows.cast(pl.Int64).alias(ROW))
    broken = staged.select(plan.broken.alias("broken"))["broken"]
    refused = _reasons(plan, staged.filter(broken)).select(
        pl.lit(source).alias("source"),
        pl.col(ROW).alias("row"),
        pl.lit(table).alias("table"),
        "key",
        pl.col("reasons").list.join("; ").alias("reason"),
    )
    good = staged.filter(~broken) if len(refused) else staged
    return good.select(*plan.values, ROW), refused


def problems_of_values(table: str, values: pl.DataFrame) -> list[str]:
    """Say why values, under the names of columns, cannot stand in a table; nothing where they can.

    Example:
        >>> problems_of_values("jobs", pl.DataFrame({"maxpss": ["-5"], "jobstatus": ["failed"]}))
        ['maxpss -5 is negative, allowed: 0 and above']
    """
    plan = _Plan(table, {name: name for name in values.columns}, values.schema, {})
    rows = plan.staged(values.lazy()).filter(plan.broken).collect()
    return _reasons(plan, rows)["reasons"].explode().to_list()


@dataclass(frozen=True)
class _Plan:
    """How the columns of one source become those of one table."""

    table: str
    source_of: dict[str, str]
    schema: pl.Schema
    extra: dict[str, str]

    def value(self, name: str) -> pl.Expr | None:
        """Return the converted column, epoch times still in place, of the cleaned one; None if it cannot work."""
        target, kind = polars_schema(self.table)[name], self.schema[self.source_of[name]]
        value = pl.col(f"__c_{name}")
        numbers = target.is_integer() and about(columns_of(self.table)[name])["unit"] == "-"
        if kind == pl.Float32 and numbers:
            value = pl.when(value.abs() <= parsing.EXACT_FLOAT32).then(value)
        return parsing.parsed(value, kind, target)

    def staged(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Return cleaned (``__c_``) and converted (``__v_``) columns, extras, row numbers."""
        extra = [pl.col(source).alias(name) for name, source in self.extra.items()]
        clean = [
            parsing.cleaned(pl.col(source), self.schema[source]).alias(f"__c_{name}")
            for name, source in self.source_of.items()
        ]
        values = {f"__v_{name}": self.value(name) for name in self.source_of}
        number = pl.col(ROW).cast(pl.Int64)
        cleaned = frame.with_row_index(ROW, offset=1).select(number, *extra, *clean)
        return cleaned.with_columns(
            **{n: value for n, value in values.items() if value is not None}
        )

    def final(self, name: str) -> pl.Expr:
        """Return the canonical column of a staged frame; null where the source has none."""
        target = polars_schema(self.table)[name]
        if name not in self.source_of:
            return pl.lit(None, dtype=target)
        value = pl.col(f"__v_{name}")
        return parsing.without_epoch(value) if isinstance(target, pl.Datetime) else value

    @cached_property
    def values(self) -> list[pl.Expr]:
        """Return all columns of the result under their canonical names."""
        canonical = [self.final(name).alias(name) for name in polars_schema(self.table)]
        return canonical + [pl.col(name) for name in self.extra]

    @cached_property
    def checks(self) -> list[tuple[pl.Expr, pl.Expr]]:
        """Return (row breaks the rule, reason as text) for every rule of the table."""
        result: list[tuple[pl.Expr, pl.Expr]] = []
        for name in self.source_of:
            result += self._checks_of(name)
        for name, source in self.extra.items():
            if self.schema[source] == pl.String:
                size = pl.col(name).str.len_bytes()
                result.append((size > MAX_JSON, _too_long(name, size, MAX_JSON)))
        return result

    def _checks_of(self, name: str) -> list[tuple[pl.Expr, pl.Expr]]:
        """Return the rules of one column: readable, required, in range, after another time."""
        column = columns_of(self.table)[name]
        clean, final = pl.col(f"__c_{name}"), self.final(name)
        target = column.dtype
        result: list[tuple[pl.Expr, pl.Expr]] = []
        unread = clean.is_not_null() & pl.col(f"__v_{name}").is_null()
        kind, is_time = self.schema[self.source_of[name]], isinstance(target, pl.Datetime)
        hint = _hint(name, clean) if is_time and kind == pl.String else pl.lit("")
        if kind != target:
            words = shown(clean) + f"' cannot be read as {_kind(target)}" + hint
            result.append((unread, pl.lit(f"{name} '") + words))
        if not column.nullable:
            result.append((final.is_null() & ~unread, pl.lit(f"{name} is null, it is required")))
        limit = str(getattr(column, "max", ""))
        rules = _TIME_RULES if is_time else {**_RULES, "max": _TOO_LARGE.format(limit)}
        for rule, passes in column.validation_rules(final).items():
            if rule in rules:
                result.append((~passes, pl.lit(f"{name} ") + shown(clean) + rules[rule] + hint))
            elif rule == "max_length":
                size = final.str.len_bytes()
                result.append((~passes, _too_long(name, size, getattr(column, "max_length", 0))))
        if known := about(column).get("values", ()):
            meant = final.map_batches(partial(_meant, known), return_dtype=pl.String)
            words = pl.lit(f"{name} '") + shown(clean) + "' is no value, did you mean '" + meant
            result.append((final != meant, words + "'?"))
        before = about(column).get("after")
        if before in self.source_of:
            words = pl.lit(f"{name} ") + shown(final) + f" is before {before} "
            result.append((final < self.final(before), words + shown(self.final(before))))
        return result

    @cached_property
    def broken(self) -> pl.Expr:
        """Return whether a row breaks any rule."""
        return pl.any_horizontal([check.fill_null(value=False) for check, _ in self.checks])


@lru_cache(maxsize=64)
def _plan_of(
    table: str, columns: tuple[tuple[str, pl.DataType], ...], *, partial: bool = False
) -> _Plan:
    """Match names, aliases included, and refuse what can never work; batches of one source share their plan."""
    schema = pl.Schema(columns)
    source_of, extra, problems = match_names(table, list(schema))
    plan = _Plan(table=table, source_of=source_of, schema=schema, extra=extra)
    for name, target in polars_schema(table).items():
        column = columns_of(table)[name]
        if name not in source_of:
            if not column.nullable and (not partial or name in key_columns(table)):
                problems.append(
                    f"{table}.{name}: required column is missing; found: "
                    f"{', '.join(sorted(schema)[:20]) or 'no columns'}; add the column"
                )
        elif plan.value(name) is None:
            problems.append(
                f"{table}.{name}: found type {schema[source_of[name]]}, "
                f"allowed: {_kind(target)}, or text that can be read as it; "
                f"{_way(name, schema[source_of[name]], target)}"
            )
    if problems:
        raise SchemaError("\n".join(problems))
    return plan


_RULES = {
    "min": " is negative, allowed: 0 and above",
    "inf": " is infinite, allowed: a finite number",
    "nan": " is not a number (NaN), allowed: a finite number or null",
}

_TOO_LARGE = " is more than there is, allowed: up to {}"
_TIME_RULES = dict.fromkeys(
    ("min", "max"), " is no time that can be true, allowed: 1970-01-01 to 9999-12-31"
)
_KINDS = {
    "Int64": "a whole number",
    "Int32": "a whole number of 32 bits",
    "Float64": "a number",
    "Boolean": "Y/N, 1/0, T/F",
    "Datetime": "a time (YYYY-MM-DD HH:MM:SS, Z or offset)",
    "String": "text",
}


def _kind(target: pl.DataType) -> str:
    """Name a canonical type in words."""
    return _KINDS[str(target).split("(")[0]]


def _way(name: str, source: pl.DataType, target: pl.DataType) -> str:
    """Say what to do about a column of an impossible type."""
    if isinstance(target, pl.Datetime) and source.is_numeric():
        return (
            f"say --unit {name}=s (or ms, us, ns) where it counts from 1970, or convert the column"
        )
    return "convert the column"


_TIMES_OF_OTHERS = {
    r"^(\d{9,19}(\.\d+)?|\d(\.\d+)?[eE]\+?\d+)$": "where it counts from 1970, say --unit {name}=s (or ms, us, ns)",
    r"(?i)\d ?[ap]\.?m\b": "write hours as 0 to 23, without AM and PM",
    r"\b\d{1,2}[./\-]\d{1,2}[./\-]\d{2}\b": "write years with four digits: two can be read as day, month or year",
    r"(?i)\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)": "write the month as a number",
    r"^\d{8}(T|$)": "write it with separators",
}
"""Times that nobody can read for sure, as patterns, and what to do about them."""


def _hint(name: str, clean: pl.Expr) -> pl.Expr:
    """Say what would help with a text that is no time; nothing where that is not known."""
    hints = [
        pl.when(clean.str.contains(pattern)).then(pl.lit(f"; {way.format(name=name)}"))
        for pattern, way in _TIMES_OF_OTHERS.items()
    ]
    return pl.coalesce(*hints, pl.lit(""))


def _meant(known: Sequence[str], texts: pl.Series) -> pl.Series:
    """Return the known values that texts are up to their letter case; most columns have no others, and are read once."""
    if texts.drop_nulls().is_in(list(known)).all():
        return texts
    return texts.str.to_lowercase().replace_strict({v.lower(): v for v in known}, default=None)


def _too_long(name: str, size: pl.Expr, limit: int) -> pl.Expr:
    """Say that a text is too long without showing it."""
    return pl.lit(f"{name} has ") + size.cast(pl.String) + f" bytes, allowed: {limit}"


def _reasons(plan: _Plan, rows: pl.DataFrame) -> pl.DataFrame:
    """Return ``__row, key, reasons`` for rows known to break a rule."""
    if rows.is_empty():
        nothing = {ROW: pl.Int64(), "key": pl.String(), "reasons": pl.List(pl.String)}
        return pl.DataFrame(schema=nothing)
    words = [pl.when(check).then(reason) for check, reason in plan.checks]
    keys = [k for k in key_columns(plan.table) if k in plan.source_of]
    key = key_text(keys, "__c_") if keys else pl.lit(None, dtype=pl.String)
    return rows.select(
        ROW, key.alias("key"), pl.concat_list(words).list.drop_nulls().alias("reasons")
    )


def _summarise(table: str, bad: pl.DataFrame) -> list[str]:
    """Group the reasons of bad rows into one line each, with up to five keys."""
    grouped = (
        bad.explode("reasons")
        .rename({"reasons": "reason"})
        .with_columns(column=pl.col("reason").str.extract(r"^(\S+)"))
        .group_by("column", maintain_order=True)
        .agg(pl.len(), pl.col("reason").first(), pl.col("key").head(_SHOWN), pl.col(ROW).first())
        .sort("column")
    )
    return [
        f"{table}.{row['column']}: {row['len']} row(s), e.g. row {row[ROW]}: {row['reason']} "
        f"({'; '.join(k for k in row['key'] if k)})"
        for row in grouped.iter_rows(named=True)
    ]


def match_names(table: str, columns: list[str]) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Map canonical to source names; also the other columns by their lowered names, and the clashes."""
    lowered: dict[str, str] = {}
    problems: list[str] = []
    for name in columns:
        low = parsing.low(name)
        if low in lowered:
            problems.append(
                f"{table}.{low}: found twice, as '{lowered[low]}' and '{name}'; keep one"
            )
        elif low.startswith("__"):
            problems.append(f"{table}.{low}: names that begin with '__' are reserved; rename it")
        elif parsing.is_pattern(low):
            problems.append(f"{table}.{low}: means other columns, not this one; rename it")
        lowered.setdefault(low, name)
    source_of: dict[str, str] = {}
    for canonical, candidates in spellings(table).items():
        taken = next((name for name in candidates if name in lowered), None)
        if taken is not None:
            source_of[canonical] = lowered[taken]
    used = set(source_of.values())
    extra = {low: name for low, name in lowered.items() if name not in used}
    return source_of, extra, problems
