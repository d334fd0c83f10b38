"""From survivors of the single checks to candidates: rows 19b, 21 to 26 and the final list (analysis-job-brokerage.md 4, 7).

These rules look at all queues of a task together, so they run in Polars on what the engine left over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import polars as pl

from brokerlab.brokerage.analysis_jobs import stabilizer, weights
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.analysis_jobs.settings import AnalysisSettings
from brokerlab.brokerage.production_jobs.pairs import run

Remove = Callable[[pl.LazyFrame, str, pl.Expr], pl.LazyFrame]

BEST = 10
"""Candidates kept."""
MANY = 2**31
"""No limit."""
LEAST_CAP = 20

INPUTS = tuple(
    dict.fromkeys(
        (
            *stabilizer.INPUTS, *weights.INPUTS,
            "p_id", "q_hospital", "q_local_only", "x_rt_nq", "x_rt_nr", "t_preassigned", "t_auto",
            "x_included", "x_non_vp", "x_data", "t_grand", "t_has_input", "t_second", "t_relaxed", "t_distributed",
            "t_nsites", "t_n_data", "t_min_weight", "t_files_known", "x_whole", "x_used",
        )
    )
)  # fmt: skip
"""Columns of the pairs that these rules read."""

FINAL_CHECKS = ("badsite", "low_weight", "below_min_weight", "fileunavailable")
"""Reasons of the final list: they end no loop."""
LATE_CHECKS = (
    "notincluded",
    "hospital",
    "cap_rt",
    "overloaded",
    "overloaded_vp",
    "tmp_user_problem",
    *FINAL_CHECKS,
)
"""Their reasons, in order."""
MARKS = ("user_queue", "bad_jobs", "no_running")
"""Why a queue is marked problematic."""


def ranked(
    survivors: pl.DataFrame,
    *,
    rules: AnalysisRules,
    settings: AnalysisSettings,
    off: Mapping[str, pl.Expr] | None = None,
) -> pl.DataFrame:
    """Return what becomes of the queues that no single check removed.

    Args:
        survivors: ``t, q`` and :data:`INPUTS`; ``q`` ascends with the queue's name.
        rules: The rule set.
        settings: Limits in force.
        off: What if: name of one of these rules or marks (all but ``low_weight``) to the rows that it lets pass.

    Returns:
        One row per survivor, sorted by t, q: ``check`` (reason; null for candidates), ``weight``, ``rank``, ``place``
        (as rank, but beyond the best ten too), ``most`` (candidates kept), the marks and the numbers of the stabilizer
        and the weights.
    """
    return run(planned(survivors.lazy(), rules=rules, settings=settings, off=off))


def planned(
    survivors: pl.LazyFrame,
    *,
    rules: AnalysisRules,
    settings: AnalysisSettings,
    off: Mapping[str, pl.Expr] | None = None,
) -> pl.LazyFrame:
    """Return the plan of :func:`ranked`."""
    asked = partial(_removed, off=off or {})
    frame = survivors.sort("t", "q").with_columns(check=pl.lit(None, dtype=pl.String))
    frame = asked(frame, "notincluded", _unlisted())
    frame = asked(frame, "hospital", pl.col("q_hospital") & (_left(~pl.col("q_hospital"))))
    if rules.cap_rt_effective:
        frame = asked(frame, "cap_rt", over_cap(rules))
    frame = _overloaded(frame, settings, asked).cache()
    places = _places(frame, rules=rules, settings=settings)
    shared = [*survivors.collect_schema().names(), "check", "overloaded", "no_running"]
    own = places.select("t", "p_id", pl.exclude("t", "p_id", *shared))
    frame = frame.join(own, on=["t", "p_id"], how="left", maintain_order="left")
    marks = {name: pl.col(name).fill_null(value=False) for name in MARKS}
    frame = frame.with_columns(
        **{name: mark & ~(off or {}).get(name, pl.lit(value=False)) for name, mark in marks.items()}
    ).with_columns(marked=pl.any_horizontal(MARKS))
    frame = asked(frame, "tmp_user_problem", _all_marked())
    return _final(frame, rules, asked)


def _left(kind: pl.Expr) -> pl.Expr:
    """Tell whether a task has a queue of a kind left."""
    return (pl.col("check").is_null() & kind).any().over("t")


def _removed(
    frame: pl.LazyFrame, name: str, skip: pl.Expr, *, off: Mapping[str, pl.Expr]
) -> pl.LazyFrame:
    """Give a reason to queues that have none yet."""
    first = pl.col("check").is_null() & skip.fill_null(value=False)
    if name in off:
        first = first & ~off[name]
    return frame.with_columns(check=pl.when(first).then(pl.lit(name)).otherwise("check"))


def _unlisted() -> pl.Expr:
    """Tell which queues were kept in reserve and are not needed (4.15)."""
    return pl.col("t_auto") & ~pl.col("x_included") & _left(pl.col("x_included"))


def over_cap(rules: AnalysisRules) -> pl.Expr:
    """Tell where too many jobs of the share and resource type wait (22)."""
    running = pl.col("x_rt_nr")
    if rules.cap_rt_form == "twice_larger":
        limit = 2 * pl.max_horizontal(LEAST_CAP, running)
    else:
        limit = pl.max_horizontal(LEAST_CAP, 2 * running)
    return ~pl.col("t_preassigned") & (pl.col("x_rt_nq") > limit)


def _overloaded(frame: pl.LazyFrame, settings: AnalysisSettings, asked: Remove) -> pl.LazyFrame:
    """Remove queues with far more waiting per running job than all together (4.13)."""
    nq, nr = pl.col("x_nq"), pl.col("x_nr")
    frame = frame.with_columns(ratio=pl.when(nr > 0).then(nq / nr))
    high = (pl.col("ratio") > pl.col("t_grand") * settings.overload_ratio).fill_null(value=False)
    many = (nq > settings.overload_min_queue) & ~pl.col("t_merging")
    frame = frame.with_columns(
        overloaded=many & ((nr == 0) | high),
        no_running=many & (nr == 0),
        plain=pl.col("x_non_vp") | ~pl.col("t_local") | ~pl.col("t_has_input"),
    )
    fine = _left(~pl.col("overloaded"))
    frame = frame.with_columns(fine=fine)
    loaded = pl.col("overloaded")
    frame = asked(frame, "overloaded", loaded & pl.col("plain") & pl.col("fine"))
    return asked(frame, "overloaded_vp", loaded & ~pl.col("plain")).drop("ratio", "plain", "fine")


def _places(
    frame: pl.LazyFrame, *, rules: AnalysisRules, settings: AnalysisSettings
) -> pl.LazyFrame:
    """Return the stabilizer's state and the weights of the unified queues that are left."""
    left = frame.filter(pl.col("check").is_null()).sort(
        "t", "p_id", "q_corecount", "q", descending=[False, False, True, False]
    )
    places = left.unique(["t", "p_id"], keep="first", maintain_order=True)
    places = stabilizer.limited(places, rules=rules, settings=settings).with_columns(
        user_queue="over_limit", bad_jobs="too_many_bad"
    )
    return weights.weighed(places, rules=rules)


def _all_marked() -> pl.Expr:
    """Tell where every queue left is marked, and a relaxation lets the task look without locality (26)."""
    another = pl.col("t_local") & pl.col("t_second") & pl.col("t_relaxed").is_not_null()
    return another & ~_left(~pl.col("marked"))


def _final(frame: pl.LazyFrame, rules: AnalysisRules, asked: Remove) -> pl.LazyFrame:
    """Make the final list (7)."""
    frame = asked(frame, "badsite", pl.col("marked") & ~pl.col("t_preassigned")).cache()
    used = pl.col("x_used") & pl.lit(value=rules.used_sites_first)
    order = (
        frame.filter(pl.col("check").is_null())
        .with_columns(first=used)
        .sort("t", "first", "weight", "q", descending=[False, True, True, False])
        .select("t", "q", place=pl.int_range(1, pl.len() + 1).over("t").cast(pl.Int64))
    )
    frame = frame.join(order, on=["t", "q"], how="left", maintain_order="left")
    with_data = pl.when("t_local").then("t_n_data").otherwise(0)  # nobody without locality (4.10)
    several = pl.max_horizontal(with_data, "t_nsites")
    most = (
        pl.when("t_distributed").then(MANY)
        .when(pl.col("t_nsites") > 1).then(several)
        .otherwise(BEST)
    )  # fmt: skip
    frame = frame.with_columns(most=most)
    frame = asked(frame, "low_weight", pl.col("place") > pl.col("most"))
    least = pl.col("t_min_weight")
    frame = asked(frame, "below_min_weight", (least > 0) & (pl.col("weight") < least))
    known = pl.col("t_files_known") & ~pl.col("t_distributed")
    missing = pl.col("q_local_only") & known & ~pl.col("x_whole")
    frame = asked(frame, "fileunavailable", missing).cache()
    passed = pl.col("check").is_null()
    ranks = (
        frame.filter(passed)
        .sort("t", "place")
        .select("t", "q", rank=pl.int_range(1, pl.len() + 1).over("t").cast(pl.Int64))
    )
    return frame.join(ranks, on=["t", "q"], how="left", maintain_order="left").sort("t", "q")
