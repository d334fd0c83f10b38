"""Are the jobs like those that the model learnt from, as far as it can see them?"""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.records import checked

CLASSES = ("kind", "queue", "cores", ("kind", "queue", "cores"))
RANGES = ("events", "input_mb", "corepower", "requested")
ALLOWED = 0.05  # share of jobs outside from which a feature counts as not learnt


def support(learnt: Any, records: Any) -> pl.DataFrame:
    """Compare what is known of jobs with what was known of those that a model learnt from.

    A class (queue, kind, cores) is outside where no job learnt from had it; a number where it is below
    the smallest or above the largest. Nothing known (null) is inside only where it was learnt, too.

    One row per feature: ``feature, learnt_jobs, n, outside, share, lo, hi`` (exact interval of the
    share at 95 %; jobs come in tasks, so it is too narrow), ``learnt_from, learnt_to`` (range; null
    for classes), ``example`` (the most frequent value outside), ``verdict``: ``learnt``, ``partly
    learnt`` (more than allowed are outside), ``not learnt`` (all are).

    Partly learnt is what has more than 5 % of the jobs outside. Without a job on either side it is an InsufficientDataError.
    """
    old, new = checked(learnt), checked(records)
    if old.is_empty() or new.is_empty():
        raise InsufficientDataError(
            f"support: {old.height} jobs learnt from and {new.height} to be predicted; both are needed"
        )
    rows = [_class(old, new, (c,) if isinstance(c, str) else c) for c in CLASSES]
    rows += [_range(old, new, name) for name in RANGES]
    table = pl.DataFrame(rows, schema=_SCHEMA, orient="row", strict=False)
    lo, hi = _interval(table["outside"], table["n"])
    share = table["outside"] / table["n"]
    return table.with_columns(share=share, lo=lo, hi=hi).select(
        *("feature", "learnt_jobs", "n", "outside", "share", "lo", "hi"),
        *("learnt_from", "learnt_to", "example"),
        verdict=pl.when(pl.col("outside") == pl.col("n"))
        .then(pl.lit("not learnt"))
        .when(pl.col("share") > ALLOWED)
        .then(pl.lit("partly learnt"))
        .otherwise(pl.lit("learnt")),
    )


_SCHEMA = {
    "feature": pl.String,
    "learnt_jobs": pl.Int64,
    "n": pl.Int64,
    "outside": pl.Int64,
    "learnt_from": pl.Float64,
    "learnt_to": pl.Float64,
    "example": pl.String,
}
_Row = tuple[str, int, int, int, float | None, float | None, str | None]


def _class(old: pl.DataFrame, new: pl.DataFrame, names: tuple[str, ...]) -> _Row:
    """Count the jobs of a class that was never learnt."""
    known = old.select(names).unique()
    outside = new.select(names).join(known, on=names, how="anti", nulls_equal=True)
    text = pl.concat_str(
        [pl.col(n).cast(pl.String).fill_null("unknown") for n in names], separator=" / "
    )
    return (
        " / ".join(names),
        old.height,
        new.height,
        outside.height,
        None,
        None,
        _usual(outside, text),
    )


def _range(old: pl.DataFrame, new: pl.DataFrame, name: str) -> _Row:
    """Count the jobs whose number is beyond those learnt."""
    value, known = pl.col(name), old[name].drop_nulls().cast(pl.Float64).to_numpy()
    first, last = (float(known.min()), float(known.max())) if known.size else (None, None)
    beyond = (value < first) | (value > last) if known.size else value.is_not_null()
    unknown = pl.lit(value=old[name].null_count() == 0) & value.is_null()
    outside = new.filter(beyond.fill_null(value=False) | unknown)
    example = _usual(outside, value.cast(pl.String).fill_null("unknown"))
    return (name, old.height, new.height, outside.height, first, last, example)


def _usual(outside: pl.DataFrame, text: pl.Expr) -> str | None:
    """Return the most frequent value, the first of several in the order of the alphabet."""
    if outside.is_empty():
        return None
    counted = outside.select(said=text)["said"].value_counts(sort=False)
    return str(counted.sort("count", "said", descending=[True, False])["said"][0])


def _interval(outside: pl.Series, n: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the exact interval of shares (Clopper and Pearson)."""
    from statsmodels.stats.proportion import proportion_confint

    pairs = zip(outside.to_list(), n.to_list(), strict=True)
    bounds = [proportion_confint(k, total, method="beta") for k, total in pairs]
    return pl.Series([float(lo) for lo, _ in bounds]), pl.Series([float(hi) for _, hi in bounds])
