"""Where the outputs would go at each nucleus, by their storage tokens, and whether there is room (production-tasks.md 1 and 3, rows 3 to 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.inputs.endpoints import SPACES, space_usable, up
from brokerlab.brokerage.inputs.valid import (
    KEY,
    first_valid_for,
    valid_for,
    with_positions,
    without_instants,
)
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.matching.patterns import PatternError, compile_pattern

_SEPARATOR = "\x1f"  # stands in no endpoint's name


def pattern_of(storagetoken: pl.Expr) -> pl.Expr:
    """Return the part of a token that names an endpoint; a null token is the empty pattern.

    It is what stands after the last ``/``, without a leading ``dst:``.
    """
    return storagetoken.fill_null("").str.split("/").list.last().str.strip_prefix("dst:")


def destination(endpoint: pl.Expr, storagetoken: pl.Expr) -> pl.Expr:
    """Return the token that sends a dataset to an endpoint: ``dst:ENDPOINT/`` and the end of its own."""
    tail = storagetoken.fill_null("").str.split("/").list.last()
    return pl.concat_str(pl.lit("dst:"), endpoint, pl.lit("/"), tail)


def match(pattern: str, endpoints: Sequence[tuple[str, str | None]]) -> str | None:
    """Return the endpoint that a pattern of :func:`pattern_of` means among those of a nucleus; null if there is none.

    It is the endpoint (name and type, in stored order) of that exact name; else the first whose name the pattern finds as a
    regular expression, or whose type is the pattern without ``ATLAS``. A pattern that is no regular expression, or that cannot
    be decided in linear time, finds no name.

    Source: production-tasks.md 1, ``output_datasets``.
    """
    if any(name == pattern for name, _ in endpoints):
        return pattern
    wanted = pattern.replace("ATLAS", "")
    return next((name for name, kind in endpoints if kind == wanted or _finds(pattern, name)), None)


def _finds(pattern: str, name: str) -> bool:
    try:
        return compile_pattern(pattern).search(name)
    except PatternError:
        return False


def refusal(pattern: str) -> str | None:
    """Return why a pattern is taken for a name or type only; null for a regular expression."""
    try:
        compile_pattern(pattern)
    except PatternError as error:
        return str(error)
    return None


def resolve(asked: pl.DataFrame, endpoints: pl.DataFrame) -> pl.DataFrame:
    """Find the endpoint of every pattern at every site, null where it has none; each distinct pair of texts is matched once."""
    names, kinds = (
        pl.col(column).fill_null("").str.join(_SEPARATOR).alias(column)
        for column in ("ddm_endpoint_name", "type")
    )
    ordered = endpoints.sort("state", "site", "position")
    lists = ordered.group_by("state", "site").agg(names, kinds)
    asked = asked.join(lists, on=["state", "site"], how="left")
    texts = ["pattern", "ddm_endpoint_name", "type"]
    distinct = asked.select(texts).unique().drop_nulls("ddm_endpoint_name")
    found = [
        match(pattern, list(zip(ends.split(_SEPARATOR), types.split(_SEPARATOR), strict=True)))
        for pattern, ends, types in distinct.iter_rows()
    ]
    distinct = distinct.with_columns(found=pl.Series(found, dtype=pl.String))
    answered = asked.join(distinct, on=texts, how="left")
    return answered.select("state", "site", "pattern", ddm_endpoint_name="found")


PAIR = (*KEY, "nucleus")
GB_PER_TB = 1024.0
HS06_PER_CORE = 10
SECONDS_PER_DAY = 86400
GB_PER_CORE_DAY = 0.25
MISSING = {
    "gathers_output": False,
    "ddm_endpoint_name": None,
    "read_wan_up": True,
    "write_wan_up": True,
    **dict.fromkeys(
        ("read_wan", "write_wan", "usable_gb", "space_free", "space_expired", "space_total")
    ),
}
"""Facts of the output that decides, and what holds where a nucleus gathers none."""


def endpoints_of(nuclei: pl.DataFrame, nucleus_endpoints: pl.DataFrame) -> pl.DataFrame:
    """Return the endpoints of every nucleus in stored order; without a table of them the lists of nuclei are read.

    ``snapshot`` (null = every instant), ``nucleus, direction, position, ddm_endpoint_name``; output endpoints are local ones.
    """
    if nucleus_endpoints.height:
        away = (pl.col("direction") == "output") & ~pl.col("is_local").fill_null(value=True)
        return with_positions(nucleus_endpoints).filter(~away).drop("is_local")
    parts = [
        nuclei.select(
            "snapshot",
            "nucleus",
            pl.lit(direction).alias("direction"),
            pl.col(f"{direction}_endpoints").alias("ddm_endpoint_name"),
        )
        .explode("ddm_endpoint_name")
        .drop_nulls("ddm_endpoint_name")
        for direction in ("input", "output")
    ]
    order = pl.int_range(pl.len(), dtype=pl.Int64).over("snapshot", "nucleus", "direction")
    return pl.concat(parts).with_columns(position=order)


def demand_gb(rw_all: pl.Series, rules: ProductionRules) -> pl.Series:
    """Return the space that all work left at a nucleus will need [GB] (switch ``demand_is_whole``).

    A core of 10 HS06 writes 0.25 GB a day: ``rw_all / 10 / 86400 * 0.25``, rw_all in HS06 s.

    Source: production-tasks.md 3, row 6.
    """
    work = rw_all.to_numpy().astype(np.float64)
    demand = work / HS06_PER_CORE / SECONDS_PER_DAY * GB_PER_CORE_DAY
    return pl.Series(np.trunc(demand) if rules.demand_is_whole else demand)


def outputs_asked(
    tasks: pl.DataFrame, outputs: pl.DataFrame, rules: ProductionRules
) -> pl.DataFrame:
    """Return the outputs for which storage is asked; one without outputs may ask for the first endpoint (switch ``storage_of``).

    Source: 002, ATLAS Production Task Brokerage: "The storages associated to nuclei must have enough space:".
    """
    if rules.storage_of == "outputs":
        return outputs
    asked = tasks.select(KEY)
    return pl.concat(
        [outputs, asked.join(valid_for(asked, outputs), on=KEY, how="anti")], how="diagonal"
    )


def placed(
    pairs: pl.DataFrame, outputs: pl.DataFrame, endpoints: pl.DataFrame, storage: pl.DataFrame
) -> pl.DataFrame:
    """Find the endpoint of every output at every site, see :func:`match`; distributed outputs (``ddd:...``) go nowhere.

    One row per pair (``site``: whose endpoints count) and output with its columns and ``ddm_endpoint_name``, null without one.
    """
    gathered = with_positions(outputs).filter(
        ~pl.col("storagetoken").str.starts_with("ddd:").fill_null(value=False)
    )
    gathered = gathered.with_columns(pattern=pattern_of(pl.col("storagetoken")))
    instants = pairs.select("snapshot").unique()
    wanted = endpoints.filter(pl.col("direction") == "output").drop("direction")
    wanted = without_instants(wanted, instants)
    kinds = without_instants(storage.select("snapshot", "ddm_endpoint_name", "type"), instants)
    varies = any(frame["snapshot"].is_not_null().any() for frame in (wanted, kinds))
    state = pl.col("snapshot") if varies else pl.lit(0, pl.Int64)  # else one state is that of all
    rows = valid_for(pairs.select(*PAIR, "site"), gathered).with_columns(state=state)
    asked = rows.select("state", "site", "pattern").unique()
    listed = valid_for(asked.select(snapshot="state").unique(), wanted, keys=["snapshot"])
    listed = first_valid_for(listed, kinds, ["ddm_endpoint_name"], ["snapshot"])
    found = resolve(asked, listed.rename({"snapshot": "state", "nucleus": "site"}))
    return rows.join(found, on=["state", "site", "pattern"], how="left").drop("state", "site")


def destinations(
    pairs: pl.DataFrame,
    outputs: pl.DataFrame,
    endpoints: pl.DataFrame,
    storage: pl.DataFrame,
    rules: ProductionRules,
) -> pl.DataFrame:
    """Add to :func:`placed` what the checks of an output compare.

    ``t, nucleus, position, demand_gb``, the columns of the endpoint, ``gathers_output`` (true), ``read_wan_up``,
    ``write_wan_up``, ``usable_gb`` and ``space_left``: the fraction of the endpoint that is left after the demand (null
    without total).
    """
    rows = placed(pairs, outputs, endpoints, storage)
    rows = rows.join(pairs.select(*PAIR, "t", "demand_gb"), on=PAIR)
    rows = first_valid_for(rows, storage, ["ddm_endpoint_name"], ["snapshot"])
    rows = rows.with_columns(
        pl.col(*SPACES, "space_total").fill_null(0.0),
        gathers_output=pl.lit(value=True),
        read_wan_up=up("read_wan", rules=rules),
        write_wan_up=up("write_wan", rules=rules),
    )
    free = pl.col("space_free") + pl.col("space_expired")
    usable = space_usable() if rules.usable_space == "usable" else free
    rows = rows.with_columns(usable_gb=usable)
    left = (pl.col("usable_gb") - pl.col("demand_gb")) / pl.col("space_total")
    rows = rows.with_columns(space_left=pl.when(pl.col("space_total") > 0).then(left))
    return rows.select("t", "nucleus", "position", "demand_gb", "space_left", *MISSING)


def deciding(rows: pl.DataFrame, checks: Sequence[Rule], settings: pl.DataFrame) -> pl.DataFrame:
    """Return the output that decides at each nucleus: the first one that fails a check, else the one with the least space."""
    failing = pl.any_horizontal(check.when.fill_null(value=False) for check in checks)
    rows = rows.join(settings, on="t", maintain_order="left").with_columns(failing=failing)
    rows = rows.with_columns(least=pl.when(~pl.col("failing")).then("space_left"))
    ordered = rows.sort(
        "failing", "least", "position", descending=[True, False, False], nulls_last=True
    )
    first = ordered.unique(["t", "nucleus"], keep="first", maintain_order=True)
    return first.select("t", "nucleus", *MISSING)
