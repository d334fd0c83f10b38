"""The instants that a classification is made for, one or all hours of a month, and how many there are of something at each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.engines import microseconds
from brokerlab.numerics import IntArray
from brokerlab.times import number_instants, time_of

At: TypeAlias = datetime | str | Sequence[datetime | str] | pl.DataFrame
"""What a public function takes as ``at``: an instant, several, or a table ``snapshot``, ``at`` (UTC without zone)."""


@dataclass(frozen=True)
class Instants:
    """Instants in the order of time."""

    snapshots: IntArray  # number of each instant
    at_us: IntArray  # the instants [us since 1970], ascending

    @classmethod
    def of(cls, at: At) -> Instants:
        """Read the argument ``at``.

        Example:
            >>> Instants.of(datetime(1970, 1, 1, 0, 1)).at_us.tolist()
            [60000000]
        """
        if not isinstance(at, pl.DataFrame):
            times = at if isinstance(at, Sequence) and not isinstance(at, str) else [at]
            times = [time_of(time, "at") for time in times]
            at = pl.DataFrame(
                {"snapshot": range(len(times)), "at": times},
                schema={"snapshot": pl.Int64, "at": pl.Datetime("us")},
            )
        return cls(*number_instants(at, "at"))

    def __len__(self) -> int:
        return len(self.at_us)

    @property
    def first(self) -> datetime:
        """The first instant."""
        return _time(int(self.at_us[0]))

    @property
    def last(self) -> datetime:
        """The last instant."""
        return _time(int(self.at_us[-1]))

    @property
    def step_us(self) -> int:
        """Largest step that leads from the first instant to every other [us]."""
        return max(int(np.gcd.reduce(self.at_us - self.at_us[0])), 1)

    def columns(self, place: IntArray) -> dict[str, pl.Series]:
        """Return ``snapshot`` and ``at`` of the instants at some positions."""
        return {
            "snapshot": pl.Series(self.snapshots[place], dtype=pl.Int64),
            "at": pl.Series(self.at_us[place], dtype=pl.Int64).cast(pl.Datetime("us")),
        }


def _time(us: int) -> datetime:
    time: datetime = pl.Series([us], dtype=pl.Int64).cast(pl.Datetime("us"))[0]
    return time


def with_cells(frame: nw.LazyFrame[Any], instants: Instants, *times: str) -> nw.LazyFrame[Any]:
    """Replace times by the number of the step of the instants that they fall into, on every engine.

    The instants lie on steps from the first one on: times of one cell ``c`` have passed at exactly the instants of
    step ``c`` and later.
    """
    step, first = instants.step_us, int(instants.at_us[0])
    last = int(instants.at_us[-1]) - first
    # step by step: one expression would hold the time many times over, which takes engines long to plan
    counted = frame.with_columns(
        microseconds(frame, nw.col(name)).alias(name) - first for name in times
    )
    limited = counted.with_columns(_limit(nw.col(name), last).alias(name) for name in times)
    return limited.with_columns(
        ((nw.col(name) + (step - 1)) // step).cast(nw.Int64()).alias(name) for name in times
    )


def _limit(after: nw.Expr, last: int) -> nw.Expr:
    """Move what is before the first instant onto it, and what is after the last one behind it."""
    late = nw.when(after > last).then(nw.lit(last + 1)).otherwise(after)
    return nw.when(after <= 0).then(nw.lit(0)).otherwise(late)


def place_of_cell(cells: pl.Series, instants: Instants, *, null: int) -> IntArray:
    """Return the first instant at which the times of a cell have passed; nulls get a place of their own."""
    steps = (instants.at_us - instants.at_us[0]) // instants.step_us
    places = np.searchsorted(steps, cells.fill_null(0).to_numpy(), side="left")
    return np.where(cells.is_null().to_numpy(), null, places).astype(np.int64)


def levels(
    changes: pl.DataFrame, keys: Sequence[str], measures: Sequence[str], instants: Instants
) -> pl.DataFrame:
    """Add up what begins and ends.

    ``snapshot, at``, keys, measures, for the instants at which some row of the key counts; sorted.
    """
    rows = changes.filter(pl.col("enter") < pl.col("leave"))
    one = pl.lit(1, pl.Int64).alias("rows")
    begun = rows.select(*keys, *measures, one, place="enter")
    ended = rows.select(*keys, *(-pl.col(name) for name in measures), -one, place="leave")
    numbers = [*measures, "rows"]
    summed = (
        pl.concat([begun, ended])
        .group_by(*keys, "place")
        .agg(pl.col(numbers).sum())
        .sort(*keys, "place")
        .with_columns(
            pl.col(numbers).cum_sum().over(keys),
            until=pl.col("place").shift(-1, fill_value=len(instants)).over(keys),
        )
        .filter((pl.col("rows") > 0) & (pl.col("place") < pl.col("until")))
    )
    spread = summed.with_columns(place=pl.int_ranges("place", "until")).explode("place")
    place = spread["place"].cast(pl.Int64).to_numpy()
    result = spread.select(*keys, *measures).with_columns(**instants.columns(place))
    return result.select("snapshot", "at", *keys, *measures).sort("snapshot", *keys)


def placed(spans: nw.LazyFrame[Any], instants: Instants) -> nw.LazyFrame[Any]:
    """Replace ``enter`` and ``leave`` of spans by their cells, and keep the spans that some instant sees."""
    seen = spans.filter(
        (nw.col("enter").is_null() | (nw.col("enter") <= instants.last))
        & (nw.col("leave").is_null() | (nw.col("leave") > instants.first))
    )
    return with_cells(seen, instants, "enter", "leave")


def with_places(spans: pl.DataFrame, instants: Instants) -> pl.DataFrame:
    """Replace the cells ``enter`` and ``leave`` by places of instants; null is always, and to this day."""
    return spans.with_columns(
        enter=pl.Series(place_of_cell(spans["enter"], instants, null=0)),
        leave=pl.Series(place_of_cell(spans["leave"], instants, null=len(instants))),
    )


def quotient(numerator: pl.Series, denominator: pl.Series) -> pl.Series:
    """Divide as floats; null where the denominator is not above 0.

    Polars divides by a column of one value as multiplication with the reciprocal, and the last bit would depend on
    which other rows there are.
    """
    above, below = numerator.cast(pl.Float64).to_numpy(), denominator.cast(pl.Float64).to_numpy()
    some = below > 0
    parts = np.divide(above, below, out=np.full(len(above), np.nan), where=some)
    return pl.Series(numerator.name, parts).fill_nan(None)
