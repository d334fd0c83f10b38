"""Facts that are looked up in tables, as values: what they are told apart by, and the tables and settings behind them.

A :class:`Lookup` with columns of tasks and of places makes facts of pairs, one with columns of tasks alone facts of tasks,
one with columns of places alone facts of places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import polars as pl

from brokerlab.brokerage.engine.pairs import LazySide, Side
from brokerlab.brokerage.inputs.frames import run, run_all
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules
from brokerlab.rulesets import watched

Columns: TypeAlias = tuple[str, ...]
Reads: TypeAlias = tuple[set[str], set[str]]
"""What was read of a rule set, and of that of the text rules; more may come as the rest of them is read."""
_NUMBERS: dict[Columns, str] = {("t",): "t", ("q",): "q"}


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known of a world: its input tables, and what was made of them so far.

    Attributes:
        given: The input tables, held to their contracts.
        missing: Names of tables that were not given: nothing is known of what they would say.
        options: What else was asked, by name.
        tables: The input tables, those of states with rows for every snapshot.
        tasks: Facts of tasks, key ``t``.
        places: Facts of places, key ``q``.
        lists: ``t, q`` of tasks whose candidates are a list; a row without ``q`` for a task that may have no other.
        made: What else was made of the tables, by name.
    """

    given: Mapping[str, pl.DataFrame]
    missing: frozenset[str]
    rules: Any
    matching: MatchingRules
    config: Config
    options: Mapping[str, Any]
    tables: Mapping[str, pl.LazyFrame] = field(default_factory=dict)
    tasks: pl.LazyFrame = field(default_factory=pl.LazyFrame)
    places: pl.LazyFrame = field(default_factory=pl.LazyFrame)
    lists: pl.DataFrame = field(
        default_factory=lambda: pl.DataFrame(schema={"t": pl.Int64, "q": pl.Int64})
    )
    made: Mapping[str, Any] = field(default_factory=dict)

    def table(self, name: str) -> pl.DataFrame:
        """Return an input table at every snapshot."""
        return run(self.tables[name])

    def kinds(self, *columns: str, **named: str) -> pl.DataFrame:
        """Return the distinct values of columns of the tasks, perhaps under other names."""
        return run(self.tasks.select(*columns, **named).unique(maintain_order=True))

    def with_made(self, **made: Any) -> Known:
        """Return it with more that was made."""
        return replace(self, made={**self.made, **made})


def watching(known: Known, read: Reads) -> Known:
    """Return it with rules that add what is read of them."""
    rules, matching = watched(known.rules, read[0]), watched(known.matching, read[1])
    return replace(known, rules=rules, matching=matching)


@dataclass(frozen=True, kw_only=True, eq=False)
class Lookup:
    """Facts that are looked up.

    Attributes:
        task: Columns of tasks that tell the rows apart.
        place: Columns of places that do.
        facts: Fact to its value where there is no row, or a function that says it.
        rows: ``task``, ``place`` and the facts, one row each at most; rows of strangers are left out.
        tables: Tables of counts behind the rows: they may change from cycle to cycle.
        made: Names of what else was made that the rows are made of.
        reads: Facts of tasks that the rows are made of beside ``task``.
        keys: gdpconfig keys behind the rows; one with a placeholder stands for a column of the tasks.
    """

    task: Columns = ()
    place: Columns = ()
    facts: Mapping[str, Any | Callable[[Known], Any]]
    rows: Callable[[Known], pl.LazyFrame]
    tables: Columns = ()
    made: Columns = ()
    reads: Columns = ()
    keys: Columns = ()

    @property
    def of_pairs(self) -> bool:
        """It makes facts of pairs."""
        return bool(self.task and self.place)

    def missing(self, known: Known) -> dict[str, Any]:
        """Return fact to its value where there is no row."""
        return {
            name: value(known) if callable(value) else value for name, value in self.facts.items()
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Made:
    """What several facts are made of, and the gdpconfig keys behind it."""

    name: str
    of: Callable[[Known], Any]
    keys: Columns = ()


def made_rows(name: str, known: Known, **columns: str | pl.Expr) -> pl.LazyFrame:
    """Return what was made under a name, or an input table, as rows of a :class:`Lookup`; ``columns``: only these."""
    made: pl.DataFrame | pl.LazyFrame = (
        known.made[name] if name in known.made else known.tables[name]
    )
    return made.lazy().select(**columns) if columns else made.lazy()


def number_of(columns: Columns) -> str:
    """Return the name of the column that numbers the values of these."""
    return _NUMBERS.get(columns) or f"#{','.join(columns)}"


def numbered_by(known: Known, lookups: Iterable[Lookup]) -> Known:
    """Return it with numbers of what facts of pairs are told apart by: text joins on pairs would cost too much."""
    pairs = [each for each in lookups if each.of_pairs]
    result = []
    for frame, keys in (
        (run(known.tasks), [each.task for each in pairs]),
        (run(known.places), [each.place for each in pairs]),
    ):
        names = {number_of(columns): columns for columns in keys}
        numbers = (
            (pl.struct(columns).rank("dense").cast(pl.Int64) - 1).alias(name)
            for name, columns in names.items()
            if name not in frame.columns
        )
        result.append(frame.with_columns(numbers).lazy())
    return replace(known, tasks=result[0], places=result[1])


def with_facts(frame: pl.LazyFrame, lookup: Lookup, known: Known) -> pl.LazyFrame:
    """Add facts of tasks, or of places."""
    on = [*(lookup.task or lookup.place)]
    rows = lookup.rows(known).select(*on, *lookup.facts)
    joined = frame.drop(lookup.facts, strict=False).join(
        rows, on=on, how="left", nulls_equal=True, maintain_order="left"
    )
    return joined.with_columns(
        pl.col(name).fill_null(value)
        for name, value in lookup.missing(known).items()
        if value is not None
    )


def side_by_side(lookups: Iterable[Lookup]) -> list[list[Lookup]]:
    """Return lookups by the side that they make: those of counts that are told apart by the same lie in one."""
    together: dict[tuple[Columns, Columns, int], list[Lookup]] = {}
    for number, each in enumerate(lookups):
        key = (each.task, each.place, -1 if each.tables and "t" not in each.task else number)
        together.setdefault(key, []).append(each)
    return [*together.values()]


def lazy_sides(lookups: Iterable[Lookup], known: Known) -> list[LazySide]:
    """Return facts of pairs."""
    return [_lazy_side(some, known) for some in side_by_side(lookups)]


def _lazy_side(lookups: Sequence[Lookup], known: Known) -> LazySide:
    task, place = lookups[0].task, lookups[0].place
    numbers = number_of(task), number_of(place)
    missing = {name: value for each in lookups for name, value in each.missing(known).items()}
    parts = [each.rows(known).select(*task, *place, *each.facts) for each in lookups]
    rows = parts[0]
    if len(parts) > 1:
        # one row of each at most: its value is the largest; a group by is cheaper than many joins
        rows = pl.concat(parts, how="diagonal").group_by(*task, *place).agg(pl.all().max())
    for frame, columns, number in (
        (known.tasks, task, numbers[0]),
        (known.places, place, numbers[1]),
    ):
        if columns != (number,):
            kinds = frame.select(*columns, number).unique()
            rows = rows.join(kinds, on=[*columns], nulls_equal=True)
    filled = [
        pl.col(name) if value is None else pl.col(name).fill_null(value)
        for name, value in missing.items()
    ]
    return Side(*numbers, pl.DataFrame(), missing), rows.select(*numbers, *filled)


def sides_of(lookups: Iterable[Lookup], known: Known) -> tuple[Side, ...]:
    """Return facts of pairs, all collected at once."""
    sides = lazy_sides(lookups, known)
    plans = [plan for _, plan in sides]
    frames = run_all(plans)
    return tuple(replace(side, rows=rows) for (side, _), rows in zip(sides, frames, strict=True))
