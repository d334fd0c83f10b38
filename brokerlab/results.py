"""How every result shows itself: what it is, how many rows, its main columns with units, and the next call."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, ClassVar

import polars as pl

from brokerlab.errors import ConfigError

TEXT, PAGE = 600, 4_000  # characters of a headline in a text, and in a notebook
WIDEST = 60  # characters of a cell that are shown


@dataclass(frozen=True, kw_only=True)
class Shows:
    """What a kind of result says of itself.

    Attributes:
        about: What it is, with what a row of its frame is.
        columns: Main columns of the frame as they are headed, such as ``"queue, ranking [s]"``; those that a frame lacks are left
            out. Empty: all.
        keys: Columns that name a row, for :func:`compare`; empty: rows are compared in their order.
        next: Calls that come next; one of a method begins with a point.
        rows: So many are shown in a notebook.
    """

    about: str
    columns: str = ""
    keys: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    rows: int = 8


_OWN = ("column", "a", "b")  # columns that a comparison adds


class Result:
    """A result that shows itself; a dataclass of this kind is declared with ``repr=False``."""

    shows: ClassVar[Shows]

    def frame(self) -> pl.DataFrame:
        """Return the result as a frame: the first of its frames."""
        return next(each for each in vars(self).values() if isinstance(each, pl.DataFrame))

    def headline(self) -> str:
        """Return what this result is, in a line."""
        return self.shows.about

    def __repr__(self) -> str:
        frame = self.frame()
        named = self._main(frame)
        others = frame.width - len(named)
        more = f" and {others} more" if others else ""
        return (
            f"{type(self).__name__}: {_short(self.headline(), TEXT)}\n"
            f"{frame.height:,} rows: {', '.join(named.values())}{more}\n"
            f"next: {', '.join(self._calls())}"
        )

    def _repr_html_(self) -> str:
        frame = self.frame()
        named = self._main(frame)
        heads = "".join(f"<th>{escape(name)}</th>" for name in named.values())
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(_cell(value))}</td>" for value in row) + "</tr>"
            for row in frame.select(*named).head(self.shows.rows).iter_rows()
        )
        size = f"{min(self.shows.rows, frame.height):,} of {frame.height:,} rows, {len(named)} of {frame.width} columns"
        headline = escape(_short(self.headline(), PAGE)).replace("\n", "<br>")
        calls = ", ".join(f"<code>{escape(call)}</code>" for call in self._calls())
        return (
            f"<p><strong>{type(self).__name__}</strong>: {headline}</p>"
            f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
            f"<p>{size}. Next: {calls}</p>"
        )

    def _main(self, frame: pl.DataFrame) -> dict[str, str]:
        """Return the main columns of the frame, each with its name and unit."""
        heads = {head.split(" [")[0]: head for head in self.shows.columns.split(", ")}
        known = {name: head for name, head in heads.items() if name in frame.columns}
        return known or {name: name for name in frame.columns[:12]}

    def _calls(self) -> tuple[str, ...]:
        return (*self.shows.next, ".frame()")


def compare(a: Result, b: Result) -> pl.DataFrame:
    """Return where two results of one kind differ.

    Args:
        a: A result, such as of the settings in force.
        b: One of the same kind: other settings, another rule set, another archive.

    Returns:
        One row per difference: the columns that name a row (``column_key`` for one called ``column``), ``column``, and its
        values ``a`` and ``b`` as text (null: no value). Of a row that only one of them has, ``column`` is ``row``, and ``a`` or ``b`` is ``present``;
        of a column that only one has, what names a row is null.

    Raises:
        ConfigError: They are not results, or of different kinds.

    Example:
        >>> from brokerlab.gdpconfig import Config
        >>> a = Config.empty().with_values({"SCOUT_RAMCOUNT_RANK": 80})
        >>> compare(a, a.with_values({"SCOUT_RAMCOUNT_RANK": 85})).select("key", "column", "a", "b").row(0)
        ('SCOUT_RAMCOUNT_RANK', 'value', '80', '85')
    """
    if not (isinstance(a, Result) and type(a) is type(b)):
        raise ConfigError(
            f"compare: given are {type(a).__name__} and {type(b).__name__}; allowed are two results of one kind"
        )
    left, right = a.frame(), b.frame()
    keys = [name for name in a.shows.keys if name in left.columns and name in right.columns]
    if not keys:
        keys = ["number"]
        left, right = left.with_row_index("number"), right.with_row_index("number")
    own = {name: f"{name}_key" for name in keys if name in _OWN}
    left, right = left.rename(own), right.rename(own)
    keys = [own.get(name, name) for name in keys]
    # rows of one key are compared in their order
    repeated = pl.int_range(pl.len()).over(keys)
    both = left.with_columns(_a=True, _repeated=repeated).join(
        right.with_columns(_b=True, _repeated=repeated),
        on=[*keys, "_repeated"],
        how="full",
        coalesce=True,
        nulls_equal=True,
        suffix=" b",
    )
    alone = pl.col("_a").is_null() | pl.col("_b").is_null()
    parts = [
        both.filter(alone).select(
            *keys,
            column=pl.lit("row"),
            a=pl.when("_a").then(pl.lit("present")),
            b=pl.when("_b").then(pl.lit("present")),
        )
    ]
    for name in dict.fromkeys([*left.columns, *right.columns]):
        if name in keys:
            continue
        if name not in left.columns or name not in right.columns:
            side = "a" if name in left.columns else "b"
            parts.append(pl.DataFrame({"column": [name], side: ["present"]}))
            continue
        ours, theirs = _text(both[name]), _text(both[f"{name} b"])
        changed = both.select(keys).with_columns(
            column=pl.lit(name), a=ours, b=theirs, alone=both.select(alone).to_series()
        )
        parts.append(
            changed.filter(~pl.col("alone"), pl.col("a").ne_missing(pl.col("b"))).drop("alone")
        )
    return pl.concat(parts, how="diagonal_relaxed").sort(
        *keys, maintain_order=True, nulls_last=True
    )


def _text(values: pl.Series) -> pl.Series:
    """Return values as text."""
    if values.dtype.is_nested() or values.dtype == pl.Object:
        texts = [None if value is None else str(value) for value in values.to_list()]
        return pl.Series(values.name, texts, dtype=pl.String)
    return values.cast(pl.String)


def _cell(value: Any) -> str:
    """Return a value as it is shown."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e5 else f"{value:,.0f}"
    return _short(str(value), WIDEST)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
