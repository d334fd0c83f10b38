"""The tables of a result, put together from what was found on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import polars as pl

from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.production_tasks import judge, locality, storage, tokens, weight
from brokerlab.brokerage.production_tasks.facts import Input
from brokerlab.brokerage.production_tasks.held import KEY, held_left
from brokerlab.brokerage.production_tasks.storage import PAIR
from brokerlab.brokerage.rules import ProductionRules

PENDING = timedelta(minutes=30)
"""A task without nucleus is tried again after this (S2)."""

_HINTED = ("no_candidates", "no_queue_at_all")
_NUMBERS = (
    *("site", "secondary_nucleus", "space_free", "space_expired", "space_total", "rw_all"),
    *("ava_size_disk", "ava_num_disk", "iointensity", "min_io_intensity", "free_disk_cutoff_tb"),
)
"""What is shown of a nucleus beside the columns that the checks compare."""


def of_nuclei(
    pairs: pl.DataFrame, weighed: pl.DataFrame, order: Sequence[Rule], rules: ProductionRules
) -> pl.DataFrame:
    """Return the table ``nuclei`` of the result."""
    names = [check.name for check in order]
    compared = [name for check in order for name in check.columns()]
    own = ["rw_prio", "work", *weight.factors(rules), "weight", "probability"]
    weights = weighed.select(*PAIR, *own)
    table = pairs.join(weights.rename({"rw_prio": "seen"}), on=PAIR, how="left")
    table = table.with_columns(rw_prio=pl.coalesce("seen", "rw_prio"))
    shown = [*PAIR, "position", "role", "passed", "skip_reason", "detail", *names]
    return table.select(list(dict.fromkeys([*shown, *compared, *_NUMBERS, *own]))).sort(PAIR)


def of_tasks(
    tasks: pl.DataFrame,
    pairs: pl.DataFrame,
    ends: pl.DataFrame,
    chosen: pl.DataFrame,
    given: Input,
    order: Sequence[Rule],
    rules: ProductionRules,
) -> pl.DataFrame:
    """Return the table ``tasks`` of the result."""
    counts = pairs.group_by(KEY).agg(
        n_nuclei=pl.len().cast(pl.Int64),
        n_passed=pl.col("passed").sum().cast(pl.Int64),
        waived=pl.col("waived").any(),
        has_input=pl.col("has_input").first(),
        tot_size=pl.col("tot_size").first(),
    )
    columns = ["draw", "at", "assigned", *_WAIVER, rules.waiver_priority, *_PERIOD]
    table = tasks.select(*KEY, *dict.fromkeys(columns))
    unreadable = given.unreadable.select(KEY).unique().with_columns(unreadable=pl.lit(value=True))
    parts = [
        ends,
        counts,
        unreadable,
        chosen,
        judge.stages(pairs, order),
        judge.would_help(pairs, order),
    ]
    for part in parts:
        table = table.join(part, on=KEY, how="left")
    return table.with_columns(_ended()).select(*KEY, *_told(rules)).sort(KEY)


_WAIVER = ("iointensity", "min_io_intensity", "min_input_size_gb", "max_task_prio")
_PERIOD = ("frozentime", "data_location_check_period_days")


def _ended() -> pl.Expr:
    return (
        pl.when(pl.col("assigned").is_not_null())
        .then(pl.lit("nucleus"))
        .when("unreadable")
        .then(pl.lit("input_not_readable"))
        .otherwise("outcome")
        .alias("outcome")
    )


def _told(rules: ProductionRules) -> list[pl.Expr]:
    """Return what a row of the table ``tasks`` says beside its key."""
    outcome = pl.col("outcome")
    fixed = {"abort": "no_storage", "no_queue_at_all": "no_queue", "parent_missing": "full_chain"}
    stage = pl.when(outcome == "no_candidates").then("stage")
    waits = ~outcome.is_in(["nucleus", "abort"])
    hints = pl.when(outcome.is_in(_HINTED)).then("would_help")
    return [
        outcome,
        pl.col("nucleus"),
        pl.col("assigned").is_not_null().alias("already_assigned"),
        pl.coalesce(stage, outcome.replace_strict(fixed, default=None)).alias("stage"),
        _locality().alias("locality"),
        pl.when(waits).then(pl.col("at") + PENDING).alias("pending_until"),
        hints.fill_null([]).alias("would_help"),
        pl.col("n_nuclei", "n_passed").fill_null(0),
        *(pl.col(name) for name in _WAIVER[:2]),
        (pl.col("tot_size") / locality.BYTES_PER_GB).alias("tot_size_gb"),
        pl.col(_WAIVER[2]),
        pl.col(rules.waiver_priority).alias("priority"),
        pl.col(_WAIVER[3]),
        locality.period_days_left().alias("period_days_left"),
        pl.col("draw"),
    ]


def _locality() -> pl.Expr:
    """Return why the check of locality did not count for a task; null where it did, or was never reached."""
    return (
        pl.when("waived")
        .then(pl.lit("waived"))
        .when(locality.off_period() & pl.col("came_to_input") & pl.col("has_input"))
        .then(pl.lit("off_period"))
    )


def of_datasets(chosen: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the table ``datasets`` of the result: where the outputs of tasks with a nucleus go.

    An output without fitting endpoint goes to the default output endpoint of a satellite, and nowhere else.
    """
    endpoints = storage.endpoints_of(tables["nuclei"], tables["nucleus_endpoints"])
    pairs = chosen.with_columns(site="nucleus")
    rows = storage.placed(pairs, tables["output_datasets"], endpoints, tables["storage_endpoints"])
    sites = tables["nuclei"].select("snapshot", "nucleus", "role", "default_endpoint_out")
    rows = held_left(rows, sites, ["nucleus"], ["snapshot"])
    default = pl.when(pl.col("role") == "satellite").then("default_endpoint_out")
    rows = rows.with_columns(ddm_endpoint_name=pl.coalesce("ddm_endpoint_name", default))
    token = tokens.destination(pl.col("ddm_endpoint_name"), pl.col("storagetoken"))
    columns = ["position", "datasetid", "datasetname", "storagetoken", "ddm_endpoint_name"]
    return rows.select(*PAIR, *columns, token=token).sort(*KEY, "position")
