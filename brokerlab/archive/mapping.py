"""What foreign columns mean: names, defaults, units, order of dates; kept in the archive for the next export.

A ``Mapping`` is what the user says; ``Shaper`` makes rows of a source out of it, under canonical names.
"""

import hashlib
import json
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Mapping as Named
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from brokerlab.archive import conversion, names, parsing, schema
from brokerlab.archive.contracts import contract, key_columns, polars_schema, required_columns
from brokerlab.archive.contracts.tasks import SPLIT_RULE_TAGS
from brokerlab.archive.parsing import low
from brokerlab.archive.readers.queue_records import BESIDE, is_export
from brokerlab.archive.readers.records import Batch
from brokerlab.errors import SchemaError, nearest

FOLDER = "mappings"
"""Folder of an archive with the mappings that were used for it."""
NONE = "none"
"""Stands for a mapping that changes nothing, where the archive has one that may be meant."""

_SHOWN = 20
_HINTED = 300
"""With more foreign columns than this none is suggested: it would take too long."""


class Mapping(BaseModel):
    """How the columns of an export become those of a table; saved as a small JSON document.

    Attributes:
        table: Canonical table; empty where name or columns of the source tell.
        columns: Canonical column by the name in the source.
        defaults: Value of columns that the source lacks; for a time also the name of another time.
        units: Unit of columns by canonical name, where it is not that of the archive.
        dates: ``day-first`` or ``month-first``; empty where the dates tell.
        export: Names of all columns of the export it was saved for, lowered and sorted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str = ""
    columns: dict[str, str] = Field(default_factory=dict)
    defaults: dict[str, str | int | float | bool] = Field(default_factory=dict)
    units: dict[str, str] = Field(default_factory=dict)
    dates: str = ""
    export: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _whole_characters(self) -> Self:
        """Refuse half a character, which can be in no name and no file."""
        try:
            json.dumps(self.model_dump(), ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValueError("holds half a character (such as \\ud800)") from error
        return self

    @classmethod
    def of_options(
        cls,
        *,
        map: Sequence[str] = (),  # noqa: A002  (the option is called so)
        default: Sequence[str] = (),
        unit: Sequence[str] = (),
        dates: str = "",
    ) -> Self:
        """Make a mapping of options as they are typed: ``NAME=column`` (the name in the source first), ``column=value``, ``column=unit``.

        Example:
            >>> Mapping.of_options(map=["TaskID=jeditaskid"], unit=["maxpss=MB"]).units
            {'maxpss': 'MB'}
        """
        problems: list[str] = []
        columns = _pairs("--map", "TaskID=jeditaskid", map, problems)
        values = _pairs("--default", "prodsourcelabel=managed", default, problems)
        units = _pairs("--unit", "maxpss=MB", unit, problems)
        if problems:
            raise SchemaError("\n".join(problems))
        return cls.of({"columns": columns, "defaults": values, "units": units, "dates": dates})

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a mapping from a JSON or TOML document; a SchemaError says why it is none, and names every wrong entry."""
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
            raw = tomllib.loads(text) if file.suffix.lower() == ".toml" else json.loads(text)
            return cls.of(raw)
        except SchemaError as error:
            raise SchemaError(f"{file}: {error}") from error
        except OSError as error:
            raise SchemaError(
                f"{file}: cannot be read ({error.strerror}); check the path"
            ) from error
        except (ValueError, RecursionError) as error:
            words = str(error)[:200]
            raise SchemaError(f"{file}: is neither JSON nor TOML of a mapping ({words})") from error

    @classmethod
    def of(cls, fields: Named[str, Any]) -> Self:
        """Make a mapping of its fields; a SchemaError names every wrong one."""
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            wrong = [
                f"{'.'.join(map(str, one['loc'])) or 'the document'}: {one['msg']}"
                for one in error.errors()[:_SHOWN]
            ]
            allowed = ", ".join(cls.model_fields)
            raise SchemaError(f"is no mapping: {'; '.join(wrong)}; allowed: {allowed}") from error

    def write(self, path: Path) -> None:
        """Write the document; the file is there whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial")
        partial.write_text(self.model_dump_json(indent=1, exclude_defaults=True) + "\n", "utf-8")
        partial.replace(path)

    def joined(self, other: "Mapping") -> "Mapping":
        """Return this mapping with what another one says beside it; the other one wins."""
        return Mapping(
            table=other.table or self.table,
            columns=self.columns | other.columns,
            defaults=self.defaults | other.defaults,
            units=self.units | other.units,
            dates=other.dates or self.dates,
        )

    @property
    def says(self) -> bool:
        """Whether it says anything about columns."""
        return bool(self.columns or self.defaults or self.units or self.dates)

    @property
    def digest(self) -> str:
        """Digest of what it says, whichever export it is for."""
        document = self.model_dump_json(exclude={"export"})
        return hashlib.sha256(document.encode()).hexdigest()[:16]

    def named(self, columns: Iterable[str]) -> dict[str, str]:
        """Return the canonical column by name of the source, as the source writes it."""
        lowered = {low(name): column for name, column in self.columns.items()}
        wanted = {name: self.columns.get(name, lowered.get(low(name))) for name in columns}
        return {name: column for name, column in wanted.items() if column is not None}


def _pairs(option: str, example: str, texts: Sequence[str], problems: list[str]) -> dict[str, str]:
    """Cut ``name=value`` options; what is wrong goes to the problems."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, mark, value = (part.strip() for part in text.partition("="))
        if not (name and mark and value):
            problems.append(f"{option} {text}: allowed: NAME=VALUE, e.g. {option} {example}")
        elif name in pairs and pairs[name] != value:
            problems.append(
                f"{option} {text}: '{name}' is given twice, as {pairs[name]} too; keep one"
            )
        pairs.setdefault(name, value)
    return pairs


def export_of(columns: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the columns of an export as a mapping keeps them."""
    return tuple(sorted(low(name) for name in columns))


@dataclass(frozen=True)
class Wishes:
    """What is known about the columns of sources before they are read: what the user says, and mappings of the archive by file."""

    given: Mapping | None = None
    saved: dict[Path, Mapping] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, given: Mapping | None) -> "Wishes":
        """Read the mappings of an archive."""
        if given is not None and given.table:
            contract(given.table)
        files = sorted((folder / FOLDER).glob("*.json"))
        return cls(given, {path: Mapping.read(path) for path in files})

    def table(self, columns: Iterable[str]) -> str | None:
        """Tell the table of columns."""
        columns = list(columns)
        if self.given is not None:
            if self.given.table:
                return self.given.table
            renamed = self.given.named(columns)
            known = [*(renamed.get(name, name) for name in columns), *self.given.defaults]
            return names.table_of_columns(known)
        export = export_of(columns)
        for mapping in self.saved.values():
            if mapping.export == export and mapping.table:
                return mapping.table
        return names.table_of_columns(columns)

    def mapping(
        self, source: str, table: str, columns: Sequence[str]
    ) -> tuple[Mapping, Path | None]:
        """Return the mapping of columns and, where it is a saved one, its file.

        One that was saved for another export of some of the same columns is refused: the user has to say it is meant.
        """
        if self.given is not None:
            return self.given, None
        export = set(export_of(columns))
        near: list[Path] = []
        for path, mapping in self.saved.items():
            if mapping.table != table or not mapping.says:
                continue
            if set(mapping.export) == export:
                return mapping, path
            of_source = {low(name) for name in mapping.columns}
            of_table = {*mapping.units, *mapping.defaults} if not of_source else set()
            if (of_source and of_source <= export) or of_table & export:
                near.append(path)
        if near:
            kept = self.saved[near[0]]
            more, less = export - set(kept.export), set(kept.export) - export
            changed = [f"more: {_list(sorted(more))}"] if more else []
            changed += [f"missing: {_list(sorted(less))}"] if less else []
            raise SchemaError(
                f"{source}: has columns that {near[0]} maps, but not the columns it was saved for "
                f"({'; '.join(changed)}); say --mapping {near[0]} to use it, or --mapping {NONE}"
            )
        return Mapping(table=table), None


@dataclass(frozen=True)
class NotTaken:
    """A column of a source that is no column of its table.

    Attributes:
        source: Name of the source.
        table: Canonical table.
        column: The column, kept under this name beside the canonical ones.
        suggestion: The option to type if it means one of them; empty where nothing is near.
    """

    source: str
    table: str
    column: str
    suggestion: str = ""


@dataclass(frozen=True)
class _Plan:
    """What is done to the columns of one table of one source."""

    table: str
    mapping: Mapping
    rename: dict[str, str]
    copies: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]
    not_taken: tuple[NotTaken, ...]
    file: Path | None = None

    def times(self, frame: pl.DataFrame) -> list[str]:
        """Return the columns of texts that mean times, by their names in the source."""
        kinds, types = polars_schema(self.table), frame.schema
        return [
            name
            for name, column in self.rename.items()
            if isinstance(kinds[column], pl.Datetime)
            and types[name] == pl.String
            and column not in self.mapping.units
        ]

    def apply(
        self, frame: pl.DataFrame, unusual: Iterable[str], order: parsing.Order | None
    ) -> pl.DataFrame:
        """Give rows of the source canonical names, values and units; ``unusual`` are the times to be written anew."""
        frame = frame.with_columns(parsing.normalise(frame[name], order) for name in unusual)
        kinds, types = polars_schema(self.table), frame.schema
        for name, column in self.rename.items():
            is_duration = types[name] == pl.Duration and kinds[column].is_numeric()
            unit = "ns" if is_duration else self.mapping.units.get(column, "")
            if unit and not conversion.problem(self.table, column, unit):
                values = conversion.converted(self.table, column, unit, frame[name])
                frame = frame.with_columns(values)
        frame = frame.rename(self.rename)
        constants = [
            pl.lit(_text(value)).alias(name)
            for name, value in self.mapping.defaults.items()
            if name not in self.copies
        ]
        frame = frame.with_columns(constants)
        return frame.with_columns(
            pl.coalesce(*[_time(frame, name) for name in sources]).alias(target)
            for target, sources in self.copies.items()
        )


def plan(
    source: str, table: str, columns: Sequence[str], mapping: Mapping, *, partial: bool = False
) -> _Plan:
    """Find out what is to be done to the columns of a source; ``partial`` rows only fill others and need their key alone.

    One SchemaError names all options that do not fit and required columns that are missing, and what to type.
    """
    rename = mapping.named(columns)
    problems = _problems(source, table, columns, mapping, rename)
    if problems:
        raise SchemaError("\n".join(problems))
    renamed = [rename.get(name, name) for name in columns]
    source_of, extra, clashes = schema.match_names(table, renamed)
    if clashes:
        raise SchemaError("\n".join(f"{source}: {clash}" for clash in clashes))
    notes = []
    by_plain: dict[str, list[str]] = {}
    for name in extra.values():
        by_plain.setdefault(names.plain(name), []).append(name)
    known = names.meant(table)
    for word, alike in by_plain.items():
        column = known.get(word)
        if len(alike) == 1 and column and column not in {*source_of, *mapping.defaults}:
            source_of[column] = alike[0]
            extra = {low: name for low, name in extra.items() if name != alike[0]}
            notes.append(f"column '{alike[0]}' taken as {column}")
    original = {rename.get(name, name): name for name in columns}
    rename = {original[name]: column for column, name in source_of.items()}
    copies = _copies(table, source_of, mapping)
    free = [n for n in polars_schema(table) if n not in source_of and n not in mapping.defaults]
    hinted = len(extra) <= _HINTED
    not_taken = tuple(
        NotTaken(source, table, name, _option(table, name, free) if hinted else "")
        for name in extra.values()
    )
    lacking = [name for name in required_columns(table) if name in free and name not in copies]
    if lacking and not partial and not is_export(table, columns):
        raise SchemaError(
            "\n".join(_missing(source, table, lacking, columns, not_taken, source_of))
        )
    for target, times in copies.items():
        waits = _NO_WAITS if {target, times[0]} == _WAIT else ""
        notes.append(f"{target}: not in the source, {', else '.join(times)} stands for it{waits}")
    notes += [
        f"{name}: {unit} converted to {conversion.unit_of(table, name)}"
        for name, unit in mapping.units.items()
    ]
    return _Plan(table, mapping, rename, copies, tuple(notes), not_taken)


def _problems(
    source: str, table: str, columns: Sequence[str], mapping: Mapping, rename: dict[str, str]
) -> list[str]:
    """List the options that do not fit the columns of a source."""
    kinds = polars_schema(table)
    problems = []
    lowered = {low(name) for name in columns}
    taken: dict[str, str] = {}
    own, _, _ = schema.match_names(table, [name for name in columns if name not in rename])
    for name, column in mapping.columns.items():
        option = f"--map {name}={column}"
        if column not in kinds:
            problems.append(f"{option}: {_unknown(table, column)}")
        elif low(name) not in lowered:
            problems.append(f"{option}: {source} has no column '{name}': {_near(name, columns)}")
        elif column in taken:
            problems.append(f"{option}: {column} is mapped from '{taken[column]}' too; keep one")
        elif column in own:
            problems.append(
                f"{option}: {source} has {column} already, as '{own[column]}'; keep one of them"
            )
        taken.setdefault(column, name)
    known = names.meant(table)
    plain = {known[word] for name in columns if (word := names.plain(name)) in known}
    there = {*own, *rename.values(), *plain}
    for column, value in mapping.defaults.items():
        option = f"--default {column}={value}"
        if column not in kinds:
            problems.append(f"{option}: {_unknown(table, column)}")
        elif column in rename.values():
            problems.append(f"{option}: {column} is mapped from '{taken[column]}' too; keep one")
        elif column in there:
            problems.append(f"{option}: {source} has this column; leave the default out")
        elif column in SPLIT_RULE_TAGS and "splitrule" in there:
            problems.append(
                f"{option}: {source} has splitrule, which says it; leave the default out"
            )
        elif is_export(table, columns) and column not in BESIDE:
            problems.append(f"{option}: {source} holds whole queue records; leave the default out")
        elif value in there and isinstance(kinds.get(str(value)), pl.Datetime):
            continue  # another time stands for it
        elif value in kinds and isinstance(kinds[column], pl.Datetime):
            problems.append(
                f"{option}: the source has no time '{value}'; allowed: one that it has, or a time"
            )
        elif wrong := schema.problems_of_values(table, pl.DataFrame({column: [_text(value)]})):
            problems.append(f"{option}: {'; '.join(wrong)}")
    for column, unit in mapping.units.items():
        option = f"--unit {column}={unit}"
        if column not in kinds:
            problems.append(f"{option}: {_unknown(table, column)}")
        elif unfit := conversion.problem(table, column, unit):
            problems.append(f"{option}: {unfit}")
        elif column not in there:
            problems.append(f"{option}: {source} has no column {column}; say --map NAME={column}")
    if mapping.dates and mapping.dates not in parsing.ORDERS:
        problems.append(f"--dates {mapping.dates}: allowed: {', '.join(parsing.ORDERS)}")
    return problems


def _unknown(table: str, column: str) -> str:
    """Say that a table has no such column, and which one may be meant."""
    near = names.suggestion(table, column, list(polars_schema(table)))
    hint = f"did you mean '{near[0]}'?" if near else f"'brokerlab tables {table}' lists them"
    return f"{table} has no column '{column}': {hint}"


def _near(name: str, columns: Sequence[str]) -> str:
    """Hint at the column of the source that may be meant."""
    few = len(columns) <= _SHOWN
    return nearest(name, columns, None if few else f"it has {_list(sorted(columns))}")


def _text(value: object) -> str:
    """Write a default as a source would."""
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _copies(table: str, source_of: dict[str, str], mapping: Mapping) -> dict[str, tuple[str, ...]]:
    """Return the times that stand for a time that the source lacks."""
    kinds = polars_schema(table)
    copies: dict[str, tuple[str, ...]] = {
        name: (str(value),)
        for name, value in mapping.defaults.items()
        if isinstance(kinds.get(name), pl.Datetime) and value in source_of
    }
    derived = tuple(name for name in names.DERIVED.get(table, ()) if name in source_of)
    if derived and "modificationtime" not in {*source_of, *mapping.defaults}:
        copies["modificationtime"] = derived
    return copies


def _time(frame: pl.DataFrame, name: str) -> pl.Expr:
    """Return a column of the contract as a time, null where it is none."""
    kind = frame.schema[name]
    value = parsing.parsed(parsing.cleaned(pl.col(name), kind), kind, pl.Datetime("us"))
    return pl.lit(None, dtype=pl.Datetime("us")) if value is None else parsing.without_epoch(value)


def _option(table: str, name: str, free: Sequence[str]) -> str:
    """Write the options that take a column; empty where nothing is near."""
    near = names.suggestion(table, name, free)
    if near is None:
        return ""
    column, unit = near
    taken = f"--map {shlex.quote(f'{name}={column}')}"
    return f"{taken} --unit {column}={unit}" if unit else taken


def _missing(
    source: str,
    table: str,
    lacking: Sequence[str],
    columns: Sequence[str],
    not_taken: Sequence[NotTaken],
    there: Iterable[str],
) -> list[str]:
    """Say which required columns are missing, and what to type for each."""
    lines: list[str] = []
    used: list[str] = []
    for name in lacking:
        meant = [n.suggestion for n in not_taken if f"={name}" in n.suggestion]
        used += meant[:1]
        lines.append(
            f"{source}: {table}.{name}: required column is missing; say "
            f"{meant[0] if meant else f'--map NAME={name}'}{_or_default(table, name, there)}"
        )
    others = [n.suggestion for n in not_taken if n.suggestion and n.suggestion not in used]
    if others:
        lines.append(f"{source}: near others: {' '.join(others[:_SHOWN])}")
    lines.append(f"{source}: columns found: {_list(sorted(columns)) or 'none'}")
    return lines


_WAIT = {"creationtime", "starttime"}
_NO_WAITS = "; the wait of every job is 0 then, which says nothing"
_EXAMPLES = {"prodsourcelabel": "managed", "jobstatus": "finished", "vo": "atlas"}


def _or_default(table: str, name: str, there: Iterable[str]) -> str:
    """Return the default that may be typed for a column; nothing for keys."""
    kinds = polars_schema(table)
    if name in key_columns(table):
        return ""
    if isinstance(kinds[name], pl.Datetime):
        times = [n for n in there if isinstance(kinds[n], pl.Datetime)]
        start = "starttime" if "starttime" in times else next(iter(times), None)
        waits = _NO_WAITS if {name, start} == _WAIT else ""
        return f" or --default {name}={start} (another time stands for it{waits})" if start else ""
    return f" or --default {name}={_EXAMPLES.get(name, 'VALUE')} (of all rows)"


def _list(some: Sequence[str]) -> str:
    """List names, cut to a few."""
    cut = [name[:60] for name in some[:_SHOWN]]
    return ", ".join(cut) + (f" and {len(some) - _SHOWN} more" if len(some) > _SHOWN else "")


@dataclass
class Shaper:
    """Gives the rows of one source canonical names, values and units."""

    source: str
    wishes: Wishes
    # the only table that the given options are for; None for the first of the source
    table: str | None = None
    partial: bool = False
    named: bool = False  # the table was given, and neither name nor columns tell it
    used: dict[str, Mapping] = field(default_factory=dict)  # the mappings to keep, by table
    not_taken: dict[NotTaken, None] = field(default_factory=dict)
    _plans: dict[tuple[str, tuple[str, ...]], _Plan] = field(default_factory=dict)

    def __call__(self, batches: Callable[[], Iterator[Batch]]) -> Iterator[Batch]:
        """Shape the rows of a source; it is read once more where its dates need that."""
        order: parsing.Order | None = None
        for batch in batches():
            chosen = self._plan(batch)
            texts = {name: parsing.unusual(batch.frame[name]) for name in chosen.times(batch.frame)}
            unusual = [name for name, odd in texts.items() if len(odd)]
            ordered = [name for name in unusual if parsing.needs_order(texts[name])]
            notes = chosen.notes
            if chosen.mapping.dates:
                is_new = order is None
                order = "day-first" if chosen.mapping.dates == "day-first" else "month-first"
                if chosen.file and is_new:
                    evidence = parsing.Evidence.of(self._texts(batches()))
                    evidence.check_kept(self.source, order, chosen.file)
            elif ordered and order is None:
                order = parsing.Evidence.of(self._texts(batches())).order(self.source)
                self.used = {
                    table: kept.model_copy(update={"dates": order})
                    for table, kept in self.used.items()
                }
            if order is not None and ordered:
                notes = (*notes, f"dates with the year at the end read {order}, as UTC")
            frame = chosen.apply(batch.frame, unusual, order)
            yield replace(batch, frame=frame, notes=(*batch.notes, *notes))

    def _plan(self, batch: Batch) -> _Plan:
        """Return the plan for the columns of a batch."""
        result = tuple(batch.frame.columns)
        key = batch.table, result
        if key not in self._plans:
            self.table = self.table or batch.table
            mapping, file = Mapping(), None
            if batch.table == self.table:
                mapping, file = self.wishes.mapping(self.source, batch.table, result)
            made = plan(self.source, batch.table, result, mapping, partial=self.partial)
            if file:
                note = f"columns read as {FOLDER}/{file.name} says"
                made = replace(made, file=file, notes=(note, *made.notes))
            elif mapping.says or (self.named and batch.table == self.table):
                self.used[batch.table] = mapping.model_copy(
                    update={"table": batch.table, "export": export_of(result)}
                )
            self.not_taken.update(dict.fromkeys(made.not_taken))
            self._plans[key] = made
        return self._plans[key]

    def _texts(self, batches: Iterable[Batch]) -> Iterator[tuple[str, pl.Series, pl.Series]]:
        """Yield the columns of texts that mean times."""
        for batch in batches:
            for name in self._plan(batch).times(batch.frame):
                yield name, batch.frame[name], batch.rows


def save(folder: Path, mappings: Iterable[Mapping]) -> list[Path]:
    """Keep mappings in an archive, one file for each table and export; return the files."""
    files = []
    for mapping in mappings:
        export = hashlib.sha256("\n".join(mapping.export).encode()).hexdigest()[:8]
        path = folder / FOLDER / f"{mapping.table}-{export}.json"
        mapping.write(path)
        files.append(path)
    return files
