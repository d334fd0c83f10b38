"""How many at every instant: sums over spans, as changes added up in the order of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.engines import microseconds
from brokerlab.lifecycle.classification.instants import Instants
from brokerlab.numerics import IntArray


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
