"""Small helpers that the checks' expressions share."""

from __future__ import annotations

from collections.abc import Mapping

import narwhals.stable.v2 as nw

from brokerlab.brokerage.check import Check, Kind

CHAPTER = "production-job-brokerage.md 5, "


def col(name: str) -> nw.Expr:
    """Return a column of the pairs."""
    return nw.col(name)


def truncated(value: nw.Expr) -> nw.Expr:
    """Round towards zero, as ``int`` does; a cast would round to the nearest on DuckDB."""
    return nw.when(value >= 0).then(value.floor()).otherwise(value.ceil())


def at_least_one(value: nw.Expr) -> nw.Expr:
    """Return the value, or 1 where it is 0 (undefined) or less."""
    return nw.when(value > 1).then(value).otherwise(nw.lit(1))


def near() -> nw.Expr:
    """Return whether a queue is of the nucleus or shares its storage; of any nucleus before there is one (hint mode)."""
    return col("x_near") | (col("t_hint") & col("p_near_any"))


def check(
    row: str,
    name: str,
    says: str,
    skip: nw.Expr,
    inputs: str,
    *,
    keys: tuple[str, ...] = (),
    kind: Kind = "persistent",
    numbers: Mapping[str, nw.Expr] | None = None,
    variants: Mapping[str, str] | None = None,
) -> Check:
    """Return a check of the chapter's table; ``inputs`` is a blank-separated list of columns."""
    return Check(
        name=name,
        source=CHAPTER + row,
        says=says,
        skip=skip,
        inputs=tuple(dict.fromkeys(inputs.split())),
        keys=keys,
        kind=kind,
        numbers=numbers or {},
        variants=variants or {},
    )
