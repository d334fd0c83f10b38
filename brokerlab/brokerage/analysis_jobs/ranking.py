"""From survivors of the single checks to candidates: rows 19b, 21 to 26 and the final list, as steps.

Source: analysis-job-brokerage.md 4, 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import polars as pl

from brokerlab.brokerage.analysis_jobs import stabilizer, weights
from brokerlab.brokerage.analysis_jobs.keys import (
    BAD_JOBS_KEY,
    EXEMPT_KEYS,
    OVERLOAD_KEYS,
    STABILIZER_KEYS,
)
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.analysis_jobs.settings import AnalysisSettings
from brokerlab.brokerage.engine.rule import Chapter, Rule, Scope
from brokerlab.brokerage.engine.steps import (
    LEFT,
    Change,
    Derived,
    Mark,
    Order,
    Step,
    any_left,
    rules_of,
)
from brokerlab.brokerage.production_jobs.expressions import at_least_one, col
from brokerlab.brokerage.production_jobs.ranking import MIN_WEIGHT_KEY

_rule = Chapter("analysis-job-brokerage.md ")
BEST = 10
"""Candidates kept."""
MANY = 2**31
"""No limit."""
LEAST_CAP = 20
ALL_MARKED = "tmp_user_problem"
FINAL = "badsite"
"""The first reason of the final list; those from it on end no loop."""
MARKS = ("user_queue", "bad_jobs", "no_running")
"""Why a queue is marked problematic."""


def final_of(steps: Sequence[Step]) -> list[str]:
    """Return the reasons of the final list."""
    names = [rule.name for rule in rules_of(steps)]
    return names[names.index(FINAL) :]


@lru_cache(maxsize=64)  # made of many small expressions
def steps(rules: AnalysisRules, settings: AnalysisSettings) -> tuple[Step, ...]:
    """Return the steps in order.

    They make the numbers of the stabilizer and the weights, the marks, ``weight``, ``rank``, ``place`` (as rank, but
    beyond the best ten too) and ``most`` (candidates kept).

    Args:
        rules: The rule set.
        settings: Limits in force.
    """
    return (
        _rule(
            "4.15", "notincluded",
            "the task lists queues and AUTO, which keeps this one in reserve, and a listed one is left",
            col("t_auto") & ~col("x_included") & any_left(col("x_included")), scope="task",
        ),
        _rule(
            "4, 21", "hospital", "it is a hospital queue, used only where no other is left",
            col("q_hospital") & any_left(~col("q_hospital")), scope="task",
        ),
        _cap(rules),
        *_overload(settings),
        Change(
            function=partial(_with_places, rules=rules, settings=settings),
            reads=("p_id", "q_corecount", *stabilizer.INPUTS, *weights.INPUTS),
            makes=(*stabilizer.MAKES, *weights.MAKES),
        ),
        *(Mark(rule) for rule in _marks(rules, settings)),
        Derived({"marked": pl.any_horizontal(MARKS)}),
        *_final(rules),
    )  # fmt: skip


def _cap(rules: AnalysisRules) -> Rule:
    """Return row 22: too many jobs of the share and resource type wait."""
    running = col("x_rt_nr")
    if rules.cap_rt_form == "twice_larger":
        limit = 2 * pl.max_horizontal(LEAST_CAP, running)
        says = f"twice the larger of {LEAST_CAP} and the {{x_rt_nr}} running ones"
    else:
        limit = pl.max_horizontal(LEAST_CAP, 2 * running)
        says = f"the larger of {LEAST_CAP} and twice the {{x_rt_nr}} running ones"
    over = ~col("t_preassigned") & (col("x_rt_nq") > limit)
    return _rule(
        "4, 22", "cap_rt",
        "{x_rt_nq} jobs of share {t_gshare} and resource type {t_resource_type} wait there, more than {limit} "
        f"({says})",
        over & pl.lit(value=rules.cap_rt_effective), kind="temporary", numbers={"limit": limit},
    )  # fmt: skip


def _many_wait(settings: AnalysisSettings) -> pl.Expr:
    return (col("x_nq") > settings.overload_min_queue) & ~col("t_merging")


def _overload(settings: AnalysisSettings) -> tuple[Step, ...]:
    """Return row 23: far more waiting per running job than all queues together (4.13)."""
    waiting, running = col("x_nq"), col("x_nr")
    ratio = pl.when(running > 0).then(waiting / running)
    limit = col("t_grand") * settings.overload_ratio
    high = (ratio > limit).fill_null(value=False)
    plain = col("x_non_vp") | ~col("t_local") | ~col("t_has_input")
    nothing = "{x_nq} jobs of the share wait there and none runs"
    says = (
        "{x_nq} jobs of the share wait there and {x_nr} run: {ratio} waiting for each running one, more than {limit}, "
        "which is {offset} times the ratio over all queues"
    )
    numbers = {
        "ratio": waiting / at_least_one(running),
        "limit": limit,
        "offset": pl.lit(float(settings.overload_ratio)),
        "none_runs": running == 0,
    }

    def rule(name: str, why: str, when: pl.Expr, scope: Scope) -> Rule:
        return _rule(
            "4, 23", name, says + why, when, scope=scope, keys=OVERLOAD_KEYS, kind="temporary", numbers=numbers,
            variants={"none_runs": nothing + why},
        )  # fmt: skip

    loaded = col("overloaded")
    return (
        Derived({"overloaded": _many_wait(settings) & ((running == 0) | high)}),
        Derived({"some_not_loaded": any_left(~loaded)}),
        rule("overloaded", "; other queues are less loaded", loaded & plain & col("some_not_loaded"), "task"),
        rule("overloaded_vp", "; it has the input through virtual placement only", loaded & ~plain, "pair"),
    )  # fmt: skip


def _with_places(
    frame: pl.LazyFrame, *, rules: AnalysisRules, settings: AnalysisSettings
) -> pl.LazyFrame:
    """Add the stabilizer's state and the weights of the unified queues that are left."""
    frame = frame.cache()
    left = frame.filter(LEFT).sort(
        "t", "p_id", "q_corecount", "q", descending=[False, False, True, False]
    )
    places = left.unique(["t", "p_id"], keep="first", maintain_order=True)
    places = stabilizer.limited(places, rules=rules, settings=settings)
    places = weights.weighed(places, rules=rules)
    own = places.select("t", "p_id", *stabilizer.MAKES, *weights.MAKES)
    return frame.join(own, on=["t", "p_id"], how="left", maintain_order="left")


def _marks(rules: AnalysisRules, settings: AnalysisSettings) -> tuple[Rule, ...]:
    """Return why queues are marked problematic, in the order of :data:`MARKS`."""
    bad = col("x_failed") + col("x_closed")
    twice = 2 * col("x_finished")
    least = pl.lit(int(settings.min_bad_jobs))
    all_bad = rules.bad_jobs_mode == "all"
    compared = "which reaches" if all_bad else "more than"
    return (
        _rule(
            "5", "user_queue",
            "{u_queued} jobs of user {t_user} wait there, more than the {max_q_len} that the stabilizer lets wait "
            "(max_q_len)",
            col("over_limit"), keys=STABILIZER_KEYS, kind="temporary",
        ),
        _rule(
            "4.14", "bad_jobs",
            f"{{x_failed}} jobs of the task failed there lately and {{x_closed}} were closed, {{bad}} together, {compared} "
            "{limit} (the larger of twice the {x_finished} finished ones and {least})",
            col("too_many_bad"),
            keys=(BAD_JOBS_KEY,) if all_bad else (BAD_JOBS_KEY, *EXEMPT_KEYS), kind="temporary",
            numbers={"bad": bad, "least": least, "limit": pl.max_horizontal(twice, least)},
        ),
        _rule(
            "4.13", "no_running", "{x_nq} jobs of the share wait there and none runs",
            _many_wait(settings) & (col("x_nr") == 0), keys=("OVERLOAD_MIN_QUEUE",), kind="temporary",
        ),
    )  # fmt: skip


def _final(rules: AnalysisRules) -> tuple[Step, ...]:
    """Return row 26 and the final list (7)."""
    another = col("t_local") & col("t_second") & col("t_relaxed").is_not_null()
    with_data = pl.when("t_local").then("t_n_data").otherwise(0)  # nobody without locality (4.10)
    several = pl.max_horizontal(with_data, "t_nsites")
    most = (
        pl.when("t_distributed").then(MANY)
        .when(col("t_nsites") > 1).then(several)
        .otherwise(BEST)
    )  # fmt: skip
    least = col("t_min_weight")
    known = col("t_files_known") & ~col("t_distributed")
    return (
        _rule(
            "4, 26", ALL_MARKED,
            "every queue that is left is marked problematic, so queues without the input are looked at too",
            another & ~any_left(~col("marked")), scope="task", kind="temporary",
        ),
        _rule(
            "7, 2", "badsite", "it is marked problematic", col("marked") & ~col("t_preassigned"),
            kind="temporary",
        ),
        Derived({"first": col("x_used") & pl.lit(value=rules.used_sites_first), "most": most}),
        Order(
            name="place", by=("first", "weight"), descending=(True, True), among=pl.lit(value=True)
        ),
        _rule(
            "7, 3", "low_weight", "its weight of {weight} is not among the best {most}",
            col("place") > col("most"), scope="task",
        ),
        _rule(
            "7, 4", "below_min_weight", "its weight of {weight} is under the least weight of {t_min_weight}",
            (least > 0) & (col("weight") < least), keys=(MIN_WEIGHT_KEY,),
        ),
        _rule(
            "7, 5", "fileunavailable",
            "it takes work with local input only (use_only_local_data), and files of the input are missing there",
            col("q_local_only") & known & ~col("x_whole"),
        ),
        Order(name="rank", by=("place",), descending=(False,), among=pl.lit(value=True)),
    )  # fmt: skip
