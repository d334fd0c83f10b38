"""Classes of queues: hi, mid and lo by how quickly they start analysis jobs.

Source: docs/rules/classes.md 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dataframely as dy
import numpy as np
import polars as pl

from brokerlab.errors import SchemaError
from brokerlab.frames import latest, prepared
from brokerlab.lifecycle.classification.activity import queue_activity
from brokerlab.lifecycle.classification.instants import At
from brokerlab.lifecycle.classification.rules import ClassRules
from brokerlab.lifecycle.classification.wait_stats import wait_stats
from brokerlab.results import Result, Shows
from brokerlab.units import HOUR_S

HI, MID, LO = 1, 0, -1
STALE_MINUTES = 120  # older statistics are ignored [min]
GRID = "GRID"


class WaitStats(dy.Schema):
    """Statistics of queues: what :func:`brokerlab.lifecycle.classification.wait_stats` returns, or a recorded metric."""

    snapshot = dy.Int64(nullable=True)
    at = dy.Datetime(nullable=True, time_unit="us")
    computingsite = dy.String(nullable=False)
    age_minutes = dy.Float64(nullable=True)
    w_cl95upp = dy.Float64(nullable=True)
    long_q_n = dy.Int64(nullable=True)
    long_q_mean = dy.Float64(nullable=True)


class Queues(dy.Schema):
    """Queues and what they are."""

    panda_queue = dy.String(nullable=False)
    resource_type = dy.String(nullable=True)
    resource_type_q = dy.String(nullable=True)
    ts = dy.Datetime(nullable=True, time_unit="us")


class Activity(dy.Schema):
    """Starts of queues: what :func:`brokerlab.lifecycle.classification.queue_activity` returns."""

    snapshot = dy.Int64(nullable=True)
    computingsite = dy.String(nullable=False)
    strr_6h = dy.Float64(nullable=True)
    strr_1d = dy.Float64(nullable=True)
    analysis_starts_1d = dy.Int64(nullable=True)


CONTRACTS: dict[str, type[dy.Schema]] = {
    "wait_stats": WaitStats,
    "queues": Queues,
    "activity": Activity,
}


@dataclass(frozen=True, repr=False)
class SiteClasses(Result):
    """Classes of queues and what they were compared with.

    Attributes:
        classes: One row per snapshot and queue with statistics, sorted: ``snapshot, at`` (null if the statistics have
            none), ``computingsite, resource_type, w_cl95upp, long_q_n, long_q_mean, ranking`` [s], ``strr_6h, strr_1d,
            analysis_starts_1d``, ``class`` (1 hi, 0 mid, -1 lo, null unclassified), ``class_name``, ``reason``
            (``stale``, ``no_statistics``, ``no_resource_type``; null where there is a class).
        percentiles: One row per snapshot with such a queue: ``snapshot, n_ranked`` (queues that the percentiles are
            taken of), ``p33, p67`` [s] (null without any), ``hi_limit_s, lo_limit_s`` (null: nothing compares).
        rules: Name and digest of the rule set.
    """

    shows = Shows(
        about="classes of queues, one row per snapshot and queue",
        columns="at, computingsite, class_name, ranking [s], w_cl95upp [s], long_q_n, long_q_mean [s], reason",
        keys=("snapshot", "computingsite"),
        next=("lifecycle.classification.user_usage(user_slots, result.classes)",),
    )

    classes: pl.DataFrame
    percentiles: pl.DataFrame
    rules: str


def site_classes(
    wait_stats: Any,
    queues: Any,
    activity: Any | None = None,
    *,
    rules: ClassRules | str | None = None,
) -> SiteClasses:
    """Rate queues by the wait that a job must expect: ``ranking = max(w_cl95upp, long_q_mean)``.

    ``wait_stats``: ``computingsite, w_cl95upp, long_q_n, long_q_mean`` [s], perhaps ``snapshot`` (absent: one instant) and
    ``age_minutes`` (rows older than 120 are ignored). ``queues``: ``panda_queue``, ``resource_type`` (or ``resource_type_q``): ``GRID``,
    ``hpc``, ``cloud``; with ``ts`` the latest row of each queue counts. ``activity``: ``computingsite, strr_6h, strr_1d, analysis_starts_1d``, perhaps ``snapshot``; queues that are absent
    started nothing. Columns of another type, or activity that does not say which jobs are analysis jobs where the rules ask for
    them, are a SchemaError.

    Source: docs/rules/classes.md 3; switches hi_test, percentile_basis, percentile_low, percentile_high,
    hi_limit_hours, lo_limit_hours, short_queue_jobs, empty_percentile, recent_activity.
    """
    rules = ClassRules.of(rules)
    given = {"wait_stats": wait_stats, "queues": queues}
    tables = prepared(given if activity is None else {**given, "activity": activity}, CONTRACTS)
    rows = _join(tables, rules)
    ranked = rows.filter(pl.col("reason").is_null())
    percentiles = _percentiles(rows, ranked, rules)
    classified = _classify(rows.join(percentiles, on="snapshot", how="left"), rules)
    return SiteClasses(classified, percentiles, rules.digest)


def _join(tables: dict[str, pl.DataFrame], rules: ClassRules) -> pl.DataFrame:
    """Join type and activity to the statistics, and say why a queue is not classified."""
    kind = pl.coalesce("resource_type", "resource_type_q")
    queues = latest(tables["queues"]).select(computingsite="panda_queue", resource_type=kind)
    activity = tables["activity"]
    analysis = rules.recent_activity == "analysis_start"
    if analysis and activity.height and activity["analysis_starts_1d"].null_count():
        raise SchemaError(
            "activity.analysis_starts_1d: nulls; starts of analysis jobs are needed (jobs.prodsourcelabel), or set "
            "recent_activity='slot_rate'"
        )
    keys = ["computingsite"]
    if activity["snapshot"].null_count() == 0:
        keys.append("snapshot")
    else:
        activity = activity.drop("snapshot")
    rows = tables["wait_stats"].with_columns(pl.col("snapshot").fill_null(0))
    joined = rows.join(
        queues,
        on="computingsite",
        how="left",
    ).join(activity, on=keys, how="left")
    ranking = pl.max_horizontal("w_cl95upp", "long_q_mean")
    unknown = pl.any_horizontal(pl.col("w_cl95upp", "long_q_mean", "long_q_n").is_null())
    reason = (
        pl.when(pl.col("age_minutes") > STALE_MINUTES)
        .then(pl.lit("stale"))
        .when(unknown)
        .then(pl.lit("no_statistics"))
        .when(pl.col("resource_type").is_null())
        .then(pl.lit("no_resource_type"))
    )
    return joined.with_columns(
        pl.col("strr_6h", "strr_1d").fill_null(0.0),
        pl.col("analysis_starts_1d").fill_null(0),
        ranking=pl.when(~unknown).then(ranking),
        reason=reason,
    ).sort("snapshot", "computingsite")


def _percentiles(rows: pl.DataFrame, ranked: pl.DataFrame, rules: ClassRules) -> pl.DataFrame:
    """Take the two percentiles of every snapshot."""
    basis = ranked
    column = "w_cl95upp"
    if rules.percentile_basis == "grid_ranking":
        basis, column = ranked.filter(pl.col("resource_type") == GRID), "ranking"
    ranks = (rules.percentile_low, rules.percentile_high)
    ordered = basis.select("snapshot", column).sort("snapshot")
    snapshots, first = np.unique(ordered["snapshot"].to_numpy(), return_index=True)
    parts = np.split(ordered[column].to_numpy(), first[1:])
    result = []
    for snapshot, values in zip(
        snapshots, parts, strict=False
    ):  # of no queue there is one empty part
        # not numerics.percentile: queues of equal ranking must give exactly it, as "<=" compares with it
        low, high = np.quantile(values, ranks)
        result.append((int(snapshot), len(values), float(low), float(high)))
    names = {"snapshot": pl.Int64, "n_ranked": pl.Int64, "p33": pl.Float64, "p67": pl.Float64}
    taken = pl.DataFrame(result, schema=names, orient="row")
    every = rows.select("snapshot").unique().sort("snapshot")
    joined = every.join(taken, on="snapshot", how="left", maintain_order="left")
    low, high = (
        pl.lit(float(hours) * HOUR_S) for hours in (rules.hi_limit_hours, rules.lo_limit_hours)
    )
    limits = {
        "hi_limit_s": pl.max_horizontal("p33", low),
        "lo_limit_s": pl.max_horizontal("p67", high),
    }
    if rules.empty_percentile == "mid":
        limits = {name: pl.when(pl.col("p33").is_not_null()).then(e) for name, e in limits.items()}
    return joined.with_columns(pl.col("n_ranked").fill_null(0), **limits)


def _classify(rows: pl.DataFrame, rules: ClassRules) -> pl.DataFrame:
    """Compare every queue with the limits; a limit that is null compares as false."""
    ranking, upper, limit = pl.col("ranking"), pl.col("w_cl95upp"), pl.col("hi_limit_s")
    waiting, few = pl.col("long_q_n"), rules.short_queue_jobs
    if rules.hi_test == "all":
        quick = (ranking < limit) & (waiting < few)
    else:
        quick = (ranking <= limit) | ((upper <= limit) & (waiting <= few))
    by_rate = rules.recent_activity == "slot_rate"
    active = pl.col("strr_1d") > 0 if by_rate else pl.col("analysis_starts_1d") > 0
    hi = (quick & active).fill_null(value=False)
    value = pl.when(hi).then(HI).when(ranking > pl.col("lo_limit_s")).then(LO).otherwise(MID)
    known = pl.col("reason").is_null()
    names = {HI: "hi", MID: "mid", LO: "lo"}
    classed = rows.with_columns(pl.when(known).then(value).cast(pl.Int64).alias("class"))
    named = pl.col("class").replace_strict(names, return_dtype=pl.String)
    unknown = pl.when(~known).then(pl.lit("unknown")).otherwise(named)
    return classed.with_columns(class_name=unknown).select(
        *["snapshot", "at", "computingsite", "resource_type"],
        *["w_cl95upp", "long_q_n", "long_q_mean"],
        *["ranking", "strr_6h", "strr_1d", "analysis_starts_1d", "class", "class_name", "reason"],
    )


def site_classes_at(
    jobs: Any,
    queues: Any,
    *,
    status_log: Any | None = None,
    at: At,
    vo: str | None = None,
    rules: ClassRules | str | None = None,
) -> SiteClasses:
    """Rate queues from jobs: :func:`wait_stats`, :func:`queue_activity` and :func:`site_classes` in one call.

    ``queues``: ``panda_queue, resource_type`` (or ``resource_type_q``), ``workflow``; ``vo``: whose starts count, None: all jobs.
    """
    stats = wait_stats(jobs, queues, status_log=status_log, at=at, rules=rules)
    return site_classes(stats, queues, queue_activity(jobs, at=at, vo=vo), rules=rules)
