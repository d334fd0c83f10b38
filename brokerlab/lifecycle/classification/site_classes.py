"""Classes of queues: hi, mid and lo by how quickly they start analysis jobs.

Source: docs/rules/classes.md 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import dataframely as dy
import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.engines import collect, microseconds
from brokerlab.errors import SchemaError
from brokerlab.frames import latest, prepared
from brokerlab.lifecycle import states
from brokerlab.lifecycle.classification.instants import (
    At,
    Instants,
    levels,
    place_of_cell,
    with_cells,
)
from brokerlab.lifecycle.classification.rules import ClassRules
from brokerlab.lifecycle.classification.wait_stats import USER, wait_stats
from brokerlab.numerics import IntArray
from brokerlab.results import Result, Shows
from brokerlab.units import DAY_S, HOUR_S, SECOND_US

GRID_S = 600  # windows of the rate are rounded down to this [s]
DELAY_S = 300  # starts of the last moments are not known yet [s]
WINDOWS = {"strr_6h": 6 * HOUR_S, "strr_1d": DAY_S}


def queue_activity(jobs: Any, *, at: At, vo: str | None = None) -> pl.DataFrame:
    """Count what each queue started in the last 24 and 6 hours.

    ``strr_W`` = cores of all jobs that started in ``[floor10(t - W), floor10(t - 300 s))`` per hour of that window,
    ``floor10`` rounding down to ten minutes. Of an archive, a job counts as running from its start to its end.
    The job-sized part is one query per measure in the engine of ``jobs``.

    One row per instant and queue with a start in the last 24 h, sorted: ``snapshot, at, computingsite, strr_6h,
    strr_1d`` (cores per hour), ``analysis_starts_1d`` (jobs labelled user that started in the 24 h to the instant;
    null in every row if no job has a label).

    ``jobs``: ``computingsite, jobstatus, corecount`` (null and 0 contribute nothing), ``starttime``, perhaps ``vo, prodsourcelabel,
    statechangetime, modificationtime``; ``vo`` None: all jobs.

    Source: docs/rules/classes.md 3, under the table.
    """
    instants = Instants.of(at)
    table, _ = states.read(jobs, None)
    keys = ["snapshot", "at", "computingsite"]
    names = [*WINDOWS, "analysis_starts_1d"]
    if not len(instants):
        kinds: list[Any] = [
            pl.Int64,
            pl.Datetime("us"),
            pl.String,
            pl.Float64,
            pl.Float64,
            pl.Int64,
        ]
        return pl.DataFrame(schema=dict(zip([*keys, *names], kinds, strict=True)))
    known = ~nw.col("computingsite").is_null() & ~nw.col("starttime").is_null()
    started = table.filter(known if vo is None else known & (nw.col("vo") == vo))
    starts = _rate_starts(started, instants)
    parts = [_rate(starts, instants, name, seconds) for name, seconds in WINDOWS.items()]
    parts.append(_analysis_starts(started, instants))
    result = parts[0].join(parts[1], on=keys, how="full", coalesce=True)
    result = result.join(parts[2], on=keys, how="full", coalesce=True)
    labelled = parts[2].height > 0 or _label(table)
    counted = pl.col(names[2]).fill_null(0) if labelled else pl.lit(None, pl.Int64)
    return result.with_columns(
        pl.col(*WINDOWS).fill_null(0.0), counted.alias("analysis_starts_1d")
    ).sort(keys)


def _label(jobs: nw.LazyFrame[Any]) -> bool:
    """Whether any job says what kind of job it is."""
    known = jobs.filter(~nw.col("prodsourcelabel").is_null()).select("prodsourcelabel")
    return collect(known.head(1)).height > 0


def _recent(jobs: nw.LazyFrame[Any], instants: Instants) -> nw.LazyFrame[Any]:
    """Keep the jobs that started within a day and some minutes of an instant."""
    early = instants.at_us[0] - (DAY_S + GRID_S) * SECOND_US
    earliest = pl.Series([early]).cast(pl.Datetime("us"))[0]
    began = nw.col("starttime")
    return jobs.filter((began >= nw.lit(earliest)) & (began <= nw.lit(instants.last)))


def _rate_starts(jobs: nw.LazyFrame[Any], instants: Instants) -> pl.DataFrame:
    """Sum the cores by queue, ten minutes of the start, and the instant from which they do not count."""
    counted = nw.col("jobstatus").is_in(list(states.COUNT_AS_STARTED))
    # a job whose last status does not count ran until then; without a time of it, the status always held
    last = nw.coalesce(states.changed(), "starttime")
    rows = (
        _recent(jobs, instants)
        .filter(nw.col("corecount") > 0)
        .select("computingsite", "corecount", "starttime", leave=nw.when(~counted).then(last))
    )
    grid = (microseconds(rows, nw.col("starttime")) // (GRID_S * SECOND_US)).cast(nw.Int64())
    placed = with_cells(rows.with_columns(grid=grid), instants, "leave")
    summed = placed.group_by("computingsite", "grid", "leave").agg(
        nw.col("corecount").sum().cast(nw.Int64()).alias("cores")
    )
    return collect(summed)


def _rate(starts: pl.DataFrame, instants: Instants, name: str, seconds: int) -> pl.DataFrame:
    """Return cores per hour of one window by instant and queue."""
    first, end = _window(instants, seconds)
    grid = starts["grid"].to_numpy()
    gone = place_of_cell(starts["leave"], instants, null=len(instants))
    past = np.searchsorted(first, grid, side="right")
    enter = np.searchsorted(end, grid, side="right")
    changes = starts.with_columns(enter=enter, leave=np.minimum(past, gone))
    result = levels(changes, ["computingsite"], ["cores"], instants)
    place = np.searchsorted(instants.at_us, result["at"].cast(pl.Int64).to_numpy())
    hours = (end - first)[place] * GRID_S / HOUR_S
    rate = pl.Series(name, result["cores"].to_numpy() / hours, dtype=pl.Float64)
    return result.drop("cores").with_columns(rate)


def _window(instants: Instants, seconds: int) -> tuple[IntArray, IntArray]:
    """Return first and end of a window, in steps of ten minutes since 1970."""
    step = GRID_S * SECOND_US
    return (instants.at_us - seconds * SECOND_US) // step, (
        instants.at_us - DELAY_S * SECOND_US
    ) // step


def _analysis_starts(jobs: nw.LazyFrame[Any], instants: Instants) -> pl.DataFrame:
    """Count the analysis jobs of each queue that started in the 24 hours to each instant."""
    began = nw.col("starttime")
    user = _recent(jobs, instants).filter(nw.col("prodsourcelabel") == USER)
    day = nw.lit(timedelta(seconds=DAY_S))
    rows = user.select("computingsite", enter=began, leave=began + day)
    placed = with_cells(rows, instants, "enter", "leave")
    counted = placed.group_by("computingsite", "enter", "leave").agg(
        nw.len().cast(nw.Int64()).alias("analysis_starts_1d")
    )
    result = collect(counted)
    places = {name: place_of_cell(result[name], instants, null=0) for name in ("enter", "leave")}
    return levels(
        result.with_columns(**places), ["computingsite"], ["analysis_starts_1d"], instants
    )


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
