"""From survivors of the single checks to candidates: rows 43a to 52 of production-job-brokerage.md 5.

These rules look at all queues of a task together, so they run in Polars on what the engine left over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from brokerlab.brokerage.production_jobs.recipe import Recipe, with_weight
from brokerlab.brokerage.production_jobs.settings import JobSettings
from brokerlab.brokerage.production_jobs.weights import counted, factors
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.units import MB

Asked = Callable[[str], pl.Expr]

BEST = 10
"""Candidates kept."""
GB_IN_MB = 1024

READ = (
    "t_prio", "t_scout", "t_single", "t_listed", "t_merging", "t_express", "t_es", "t_jumbo",
    "t_iointensity", "t_nucleus_id", "t_nucleus_only", "t_total", "t_nfiles", "t_t1_factor",
    "t_network", "t_queue_limit", "t_min_weight", "t_percent",
    "q_corecount", "q_ucore", "q_streams", "q_local_only", "q_jumbo", "p_storage_id",
    "s_pilots", "s_running", "s_workers", "x_numslots", "x_near", "x_locked", "x_preference", "s_live",
    "x_avail", "x_navail", "x_avail_tape", "x_navail_tape",
    "x_running", "x_defined", "x_assigned", "x_activated", "x_starting",
    "x_rt_listed", "x_rt_known", "x_rt_running", "x_rt_queued", "x_rt_assigned",
    "x_rt_own_known", "x_rt_own_running", "x_rt_own_queued", "x_rt_own_assigned",
    "l_weight",
)  # fmt: skip
"""Columns of the pairs that these rules read."""
INPUTS = (*READ, "x_platform", "p_maxwdir", "p_corecount", "t_wdir_shared")
"""The same, and what is reported besides."""

LATE_CHECKS = (
    "input_to_move",
    "locked",
    "local_data_only",
    "queued_cap",
    "network_weight_low",
    "queued_cap_rt",
    "below_min_weight",
    "t1_not_largest",
    "rank",
)
"""Their reasons, in order."""


def ranked(
    survivors: pl.LazyFrame,
    names: pl.Enum,
    *,
    rules: ProductionRules,
    settings: JobSettings,
    recipe: Recipe,
    off: Mapping[str, pl.Expr] | None = None,
) -> pl.LazyFrame:
    """Return what becomes of the queues that no single check removed.

    Args:
        survivors: ``t, q, mark`` (name of the last temporary check, null: none) and :data:`INPUTS`, sorted by t,
            q; ``q`` ascends with the queue's name.
        names: Names of all checks.
        rules: Strictness, caps, bootstrap and the other known differences.
        settings: Limits in force.
        recipe: Says what the weight is.
        off: What if: name of one of these rules (all but ``rank``) to the rows that it lets pass.

    Returns:
        One row per survivor, sorted by t, q: ``check`` (reason; null for candidates), ``weight`` and its
        factors, ``rank``, ``place`` (as rank, but beyond the best ten too), ``bootstrap``, ``jumbo``, ``running`` and
        other counts.
    """
    asked = _asked(off or {})
    frame = survivors
    for step in _to_move(rules, settings):
        frame = frame.with_columns(**step)
    frame = frame.with_columns(
        check=pl.when(pl.col("moves_too_much") & asked("input_to_move"))
        .then(pl.lit("input_to_move", dtype=names))
        .otherwise("mark")
    )
    frame = frame.with_columns(**counted(rules, settings))
    for step in factors():
        frame = frame.with_columns(**step)
    frame = with_weight(recipe, frame, rules, settings)
    frame = frame.with_columns(**_limits(rules))
    frame = frame.with_columns(bootstrap=_bootstrap(rules, settings))
    frame = frame.with_columns(check=_filtered(rules, settings, names, asked))
    frame = frame.with_columns(check=pl.coalesce("check", _too_light(asked).cast(names)))
    if rules.single_t1_queue:
        frame = _single_queue(frame, names, asked)
    return _best(frame, names)


def _asked(off: Mapping[str, pl.Expr]) -> Asked:
    """Return a function that tells of a rule which rows it is asked for."""
    return lambda name: ~off[name] if name in off else pl.lit(value=True)


def _to_move(rules: ProductionRules, settings: JobSettings) -> list[dict[str, pl.Expr]]:
    """Tell in steps which queues would have to move too much input (6.1)."""
    applies = (
        ~pl.col("t_single")
        & (pl.col("t_total") > 0)
        & ~pl.col("t_merging")
        & (pl.col("t_iointensity") > settings.io_intensity_cutoff)
        & ~pl.col("t_es")
    )

    def over(avail: str, navail: str) -> tuple[pl.Expr, pl.Expr]:
        size = ((pl.col("t_total") - pl.col(avail)) / MB).cast(pl.Int64)
        number = pl.col("t_nfiles") - pl.col(navail)
        return size, number

    def exceeds(value: pl.Expr, limit: float) -> pl.Expr:
        return value >= limit if rules.io_check_strict else value > limit

    most_mb, most_files = settings.size_cutoff_gb * GB_IN_MB, settings.num_cutoff
    size, number = over("x_avail", "x_navail")
    size_tape, number_tape = over("x_avail_tape", "x_navail_tape")
    never = exceeds(pl.min_horizontal(size, size_tape), most_mb) | exceeds(
        pl.min_horizontal(number, number_tape), most_files
    )
    here = ~(exceeds(size, most_mb) | exceeds(number, most_files))
    good = ~pl.col("io_never") & pl.col("io_here")
    from_tape = ~pl.col("io_never") & ~pl.col("io_here")
    kept = (
        pl.when("io_any_good").then("io_good").when("io_any_tape").then("io_tape")
        .otherwise(statement=True)
    )  # fmt: skip
    return [
        {"io_never": never, "io_here": here},
        {"io_good": good, "io_tape": from_tape},
        {
            "io_any_good": pl.col("io_good").any().over("t"),
            "io_any_tape": pl.col("io_tape").any().over("t"),
        },
        {"moves_too_much": applies & ~kept},
    ]


def _limits(rules: ProductionRules) -> dict[str, pl.Expr]:
    """Caps on queued jobs (6.4)."""
    counts_assigned = pl.col("x_avail") < pl.col("t_total")
    waiting = pl.col("x_activated") + pl.col("x_starting")
    assigned = pl.when(counts_assigned).then("x_assigned").otherwise(0)

    def of_types(name: str) -> pl.Expr:
        return pl.when("x_rt_listed").then(f"x_rt_{name}").otherwise(f"x_rt_own_{name}")

    assigned_rt = pl.when(counts_assigned).then(of_types("assigned")).otherwise(0)
    least = _least_cap(rules)
    twice_rt = 2 * pl.max_horizontal(of_types("running"), "running")
    return {
        "queued": waiting + assigned,
        "queued_all": waiting + assigned + pl.col("defined"),
        "cap": pl.max_horizontal(least, 2 * pl.col("running")),
        "rt_known": of_types("known"),
        "rt_running": of_types("running"),
        "queued_rt": of_types("queued") + assigned_rt,
        "cap_rt": pl.max_horizontal(least, twice_rt),
    }


def _least_cap(rules: ProductionRules) -> pl.Expr:
    """Return the number of jobs that may always wait, L."""
    return pl.lit(0.0) if rules.cap_mode == "document" else pl.col("t_queue_limit")


def _bootstrap(rules: ProductionRules, settings: JobSettings) -> pl.Expr:
    """Tell which queues have no job at all and become candidates of weight 0 (6.5)."""
    jobs = ("running", "x_activated", "x_assigned", "x_starting", "defined")
    empty = pl.sum_horizontal(jobs) == 0
    low = pl.col("t_prio") <= settings.max_prio_to_bootstrap
    if not rules.bootstrap_first:
        return pl.lit(value=False)
    return empty & low & ~pl.col("t_merging") & ~pl.col("t_express")


def _filtered(
    rules: ProductionRules, settings: JobSettings, names: pl.Enum, asked: Asked
) -> pl.Expr:
    """Return the first of ``locked`` to ``queued_cap_rt`` that holds."""
    moves = (pl.col("missing_files") > 0) | (pl.col("missing_mb") > 0)
    local_only = pl.col("q_local_only") & moves & (pl.col("t_total") > 0)
    if rules.cap_mode == "document":
        waiting = pl.col("x_activated") + pl.col("x_starting")
        capped = (waiting > pl.col("cap")) | (pl.col("queued_all") > pl.col("cap"))
        capped_rt = pl.lit(value=False)
    else:
        capped = ~pl.col("q_ucore") & (pl.col("queued") > pl.col("cap"))
        capped_rt = pl.col("rt_known") & (pl.col("queued_rt") > pl.col("cap_rt"))
    slow = pl.col("t_network") & (pl.col("l_weight") < settings.nw_limit)
    reasons = {
        "locked": pl.col("x_locked"),
        "local_data_only": local_only,
        "queued_cap": ~pl.col("t_express") & capped,
        "network_weight_low": pl.col("t_express") & slow,
        "queued_cap_rt": ~pl.col("t_express") & capped_rt,
    }
    found = (
        pl.when(skip & asked(name)).then(pl.lit(name, dtype=names))
        for name, skip in reasons.items()
    )
    return pl.coalesce("check", *found)


def _too_light(asked: Asked) -> pl.Expr:
    least = pl.col("t_min_weight")
    light = (least > 0) & (pl.col("weight") < least) & ~pl.col("bootstrap")
    return pl.when(light & asked("below_min_weight")).then(pl.lit("below_min_weight"))


def _single_queue(frame: pl.LazyFrame, names: pl.Enum, asked: Asked) -> pl.LazyFrame:
    """Keep the queue with most running jobs where ``t1weight`` is negative (6.6)."""
    frame = frame.cache()
    reaches = pl.col("t_nucleus_only") & pl.col("check").is_null()
    rivals = frame.filter(reaches & ~pl.col("bootstrap")).sort(
        "t", "s_running", "q", descending=[False, True, False]
    )
    winners = rivals.group_by("t", maintain_order=True).agg(winner=pl.col("q").first())
    frame = frame.join(winners, on="t", how="left", maintain_order="left")
    loses = (
        pl.when("bootstrap")
        .then(pl.col("q") < pl.col("winner"))
        .otherwise(pl.col("q") != pl.col("winner"))
    )
    lost = reaches & loses.fill_null(value=False) & asked("t1_not_largest")
    return frame.with_columns(
        check=pl.when(lost).then(pl.lit("t1_not_largest", dtype=names)).otherwise("check")
    ).drop("winner")


def _best(frame: pl.LazyFrame, names: pl.Enum) -> pl.LazyFrame:
    """Rank what is left: weight 0 first, then the largest; beyond the best ten the reason is ``rank``."""
    jumbo = pl.col("t_jumbo") & pl.col("q_jumbo")
    frame = frame.cache()
    frame = frame.with_columns(jumbo=jumbo & pl.col("check").is_null())
    frame = frame.with_columns(order=pl.when("bootstrap").then(0.0).otherwise("weight"))
    order = (
        frame.filter(pl.col("check").is_null() & ~pl.col("jumbo"))
        .sort("t", "bootstrap", "order", "q", descending=[False, True, True, False])
        .select("t", "q", rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("t"))
    )
    frame = frame.join(order, on=["t", "q"], how="left", maintain_order="left")
    late = pl.col("rank") > BEST
    return frame.with_columns(
        check=pl.when(late).then(pl.lit("rank", dtype=names)).otherwise("check"),
        place="rank",
        rank=pl.when(~late).then("rank"),
        weight=pl.when((pl.col("rank") <= BEST) | pl.col("jumbo"))
        .then("order")
        .otherwise("weight"),
    )


def shares(weight: pl.Expr) -> pl.Expr:
    """Return the part of a task's jobs that each weight stands for; candidates without weight only share alike.

    Args:
        weight: Weight of candidates, null for other queues; the frame is sorted by ``t``.
    """
    # one after the other: a plain sum differs in the last bit with how the rows came to be sorted
    total = weight.fill_null(0.0).cum_sum().last().over("t")
    number = weight.count().over("t")
    alike = pl.when(weight.is_not_null()).then(1 / number)
    return pl.when(total > 0).then(weight / total).otherwise(alike)


def reported(ranking: pl.DataFrame, *, rules: ProductionRules) -> pl.DataFrame:
    """Return what is told of the queues that were weighed.

    Args:
        ranking: Result of :func:`ranked`.
        rules: Switches ``maxwdir_per_core`` and ``cap_mode``.

    Returns:
        ``t, q, check, weight, rank``; the factors ``work, data, t1, network, preference``; ``network_weight``
        (also where it does not act); ``nrunning``, ``nqueuedjobs``, ``nrunningjobscap`` (null: express, no cap)
        [jobs]; ``share`` of the task's jobs expected there; ``maxwdir`` [MB] and ``platform`` passed on;
        ``missing_mb``, ``missing_files`` of the input; ``bootstrap``, ``jumbo``.

    Source: production-job-brokerage.md 6.4, 7.
    """
    of_types = pl.when("rt_known").then("cap_rt").otherwise(_least_cap(rules))
    cap = pl.when("q_ucore").then(of_types).otherwise("cap")
    several = pl.col("p_corecount") > 1
    shared = pl.lit(value=True) if rules.maxwdir_per_core else pl.col("t_wdir_shared")
    scaled = pl.when(several & shared).then(pl.col("p_maxwdir") / pl.col("p_corecount"))
    chosen = pl.when(pl.col("rank") <= BEST).then("weight")
    return ranking.select(
        "t", "q", "check", "weight", "rank", "bootstrap", "jumbo",
        work="work_factor", data="data_factor", t1="t1_factor", network="network_factor",
        preference="preference_factor",
        network_weight=pl.when(pl.col("t_nucleus_id") >= 0).then("l_weight"),
        nrunning="running",
        nqueuedjobs=pl.when("q_ucore").then("queued_rt").otherwise("queued"),
        nrunningjobscap=pl.when(~pl.col("t_express")).then(cap).cast(pl.Int64),
        share=shares(chosen),
        maxwdir=pl.when(pl.col("p_maxwdir") != 0).then(
            scaled.otherwise("p_maxwdir")
        ),
        platform="x_platform",
        missing_mb="missing_mb", missing_files="missing_files",
    )  # fmt: skip
