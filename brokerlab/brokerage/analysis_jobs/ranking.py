"""From survivors of the single checks to candidates: rows 19b, 21 to 26 and the final list, as steps.

Source: analysis-jobs.md 4 and 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from polars import col

from brokerlab.brokerage.analysis_jobs import weights
from brokerlab.brokerage.analysis_jobs.checks import code_only, virtual
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules, asked_of
from brokerlab.brokerage.engine.decisions import QueueDecisions, Results
from brokerlab.brokerage.engine.lookup import number_of
from brokerlab.brokerage.engine.own import WeightOf, weighed_by
from brokerlab.brokerage.engine.rule import Chapter, Rule, Scope, setting
from brokerlab.brokerage.engine.steps import (
    Derived,
    Mark,
    Order,
    PerPlace,
    Step,
    any_left,
    names_of,
    rules_of,
)
from brokerlab.brokerage.engine.world import SecondLoop, World
from brokerlab.brokerage.production_jobs.checks_queue import at_least_one
from brokerlab.brokerage.production_jobs.lookups import PARENT
from brokerlab.brokerage.production_jobs.ranking import shares

_rule = Chapter("analysis-jobs.md ")
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


def second_loop(rules: AnalysisRules, steps: Sequence[Step]) -> SecondLoop:
    """Return who is decided again without locality; reasons of the final list, or all temporary ones, end no loop.

    Source:
        002, ATLAS Analysis Job Brokerage: "If all queues are skipped due to the persistent issues, the brokerage tries
        to find candidates without the input data locality check."
    """
    known = rules_of(steps)
    names = [rule.name for rule in known]
    final = names[names.index(FINAL) :]
    if rules.second_loop != "always":
        temporary = {r.name for r in known if r.kind == "temporary" and r.name != ALL_MARKED}
        final = [name for name in names if name in {*final, *temporary}]
    may, suppresses = col("t_second"), pl.lit(value=rules.locality_mode == "suppress")
    at_once = may & col("t_relaxed").is_not_null() & suppresses
    return SecondLoop(may=may, at_once=at_once, final=tuple(final))


def steps(rules: AnalysisRules, own: WeightOf | None) -> tuple[Step, ...]:
    """Return the steps in order.

    They make the numbers of the stabilizer and the weights, the marks, ``weight``, ``rank``, ``place`` (as rank, but
    beyond the best ten too) and ``most`` (candidates kept).
    """
    return (
        _rule(
            "3", "notincluded",
            "the task lists queues and AUTO, which keeps this one in reserve, and a listed one is left",
            col("t_auto") & ~col("x_included") & any_left(col("x_included")), scope="task",
        ),
        *code_only(
            _rule(
                "6", "hospital", "it is a hospital queue, used only where no other is left",
                col("q_hospital") & any_left(~col("q_hospital")), scope="task",
            ),
            asked=rules.code_only_checks,
        ),
        _cap(rules),
        *_overload(rules),
        PerPlace(
            by=number_of(PARENT), largest="q_corecount",
            steps=(*weights.limited(rules), *weights.weighed(rules)),
        ),
        *weighed_by(own, rules),
        *(Mark(rule) for rule in _marks(rules)),
        Derived({"marked": pl.any_horizontal(MARKS)}),
        *_final(rules),
    )  # fmt: skip


def _cap(rules: AnalysisRules) -> Rule:
    """Return row 22: too many jobs wait, of the queue, or of the share and resource type (switch ``counted_jobs``).

    Source:
        002, ATLAS Analysis Job Brokerage: "Skip queues if defined+activated+assigned+starting > 2 × max(20, running)."
    """
    if rules.counted_jobs == "queue":
        names, whose = ("s_running", "s_waiting"), "jobs"
    else:
        names, whose = (
            ("x_rt_nr", "x_rt_nq"),
            "jobs of share {t_gshare} and resource type {t_resource_type}",
        )
    running, waiting = map(col, names)
    if rules.cap_rt_form == "twice_larger":
        limit = 2 * pl.max_horizontal(LEAST_CAP, running)
        says = f"twice the larger of {LEAST_CAP} and the {{running}} running ones"
    else:
        limit = pl.max_horizontal(LEAST_CAP, 2 * running)
        says = f"the larger of {LEAST_CAP} and twice the {{running}} running ones"
    over = asked_of(col("t_preassigned"), rules) & (waiting > limit)
    return _rule(
        "4", "cap_rt",
        f"{{waiting}} {whose} wait there, more than {{limit}} ({says})",
        over & pl.lit(value=rules.cap_rt_effective), kind="temporary",
        numbers={"limit": limit, "running": running, "waiting": waiting},
    )  # fmt: skip


def _many_wait(rules: AnalysisRules) -> pl.Expr:
    return (col("x_nq") > setting("OVERLOAD_MIN_QUEUE")) & asked_of(col("t_merging"), rules)


def _overload(rules: AnalysisRules) -> tuple[Step, ...]:
    """Return row 23: far more waiting per running job than all queues together (4.13).

    Source:
        002, ATLAS Analysis Job Brokerage: "Skip VP queues if the task specifies avoidVP or those queues are
        overloaded."; what is overloaded is that of the code: docs/rules/analysis-jobs.md 4.
    """
    waiting, running = col("x_nq"), col("x_nr")
    ratio = pl.when(running > 0).then(waiting / running)
    offset = setting("OVERLOAD_RATIO_OFFSET")
    limit = col("t_grand") * offset
    high = (ratio > limit).fill_null(value=False)
    every = rules.overload_scope == "all"
    plain = col("x_non_vp") | ~col("t_local") | ~col("t_has_input") if every else ~virtual(rules)
    which = "it has the input through virtual placement only" if every else "it is a VP queue"
    nothing = "{x_nq} jobs of the share wait there and none runs"
    says = (
        "{x_nq} jobs of the share wait there and {x_nr} run: {ratio} waiting for each running one, more than {limit}, "
        "which is {offset} times the ratio over all queues"
    )
    numbers = {
        "ratio": waiting / at_least_one(running),
        "limit": limit,
        "offset": offset,
        "none_runs": running == 0,
    }

    def rule(name: str, why: str, when: pl.Expr, scope: Scope) -> Rule:
        return _rule(
            "4", name, says + why, when, scope=scope, numbers=numbers,
            kind="temporary" if every else "persistent",
            variants={"none_runs": nothing + why},
        )  # fmt: skip

    loaded = col("overloaded")
    return (
        Derived({"overloaded": _many_wait(rules) & ((running == 0) | high)}),
        Derived({"some_not_loaded": any_left(~loaded)}),
        *code_only(
            rule("overloaded", "; other queues are less loaded", loaded & plain & col("some_not_loaded"), "task"),
            asked=every,
        ),
        rule("overloaded_vp", f"; {which}", loaded & ~plain, "pair"),
    )  # fmt: skip


def _marks(rules: AnalysisRules) -> tuple[Rule, ...]:
    bad = col("x_failed") + col("x_closed")
    twice = 2 * col("x_finished")
    least = setting("MIN_BAD_JOBS_TO_SKIP_PQ")
    all_bad = rules.bad_jobs_mode == "all"
    compared = "which reaches" if all_bad else "more than"
    return (
        _rule(
            "5", "user_queue",
            "{u_queued} jobs of user {t_user} wait there, more than the {max_q_len} that the stabilizer lets wait "
            "(max_q_len)",
            col("over_limit"), kind="temporary",
        ),
        _rule(
            "4", "bad_jobs",
            f"{{x_failed}} jobs of the task failed there lately and {{x_closed}} were closed, {{bad}} together, {compared} "
            "{limit} (the larger of twice the {x_finished} finished ones and {least})",
            col("too_many_bad"), kind="temporary",
            numbers={"bad": bad, "least": least, "limit": pl.max_horizontal(twice, least)},
        ),
        _rule(
            "4", "no_running", "{x_nq} jobs of the share wait there and none runs",
            _many_wait(rules) & (col("x_nr") == 0) & pl.lit(value=rules.overload_scope == "all"),
            kind="temporary",
        ),
    )  # fmt: skip


def _final(rules: AnalysisRules) -> tuple[Step, ...]:
    """Return row 26 and the final list (7)."""
    another = col("t_local") & col("t_second") & col("t_relaxed").is_not_null()
    with_data = pl.when("t_local").then("t_n_data").otherwise(0)  # nobody without locality (4.10)
    several = pl.max_horizontal(with_data, "t_nsites")
    more = pl.lit(value=not rules.best_ten_always)
    most = (
        pl.when(more & col("t_distributed")).then(MANY)
        .when(more & (col("t_nsites") > 1)).then(several)
        .otherwise(BEST)
    )  # fmt: skip
    least = col("t_min_weight")
    known = col("t_files_known") & ~col("t_distributed")
    return (
        _rule(
            "8", ALL_MARKED,
            "every queue that is left is marked problematic, so queues without the input are looked at too",
            another & ~any_left(~col("marked")), scope="task", kind="temporary",
        ),
        _rule(
            "8", "badsite", "it is marked problematic",
            col("marked") & asked_of(col("t_preassigned"), rules), kind="temporary",
        ),
        Derived({"first": col("x_used") & pl.lit(value=rules.used_sites_first), "most": most}),
        Order(
            name="place", by=("first", "weight"), descending=(True, True), among=pl.lit(value=True)
        ),
        _rule(
            "8", "low_weight", "its weight of {weight} is not among the best {most}",
            col("place") > col("most"), scope="task",
        ),
        *code_only(
            _rule(
                "8", "below_min_weight", "its weight of {weight} is under the least weight of {t_min_weight}",
                (least > 0) & (col("weight") < least),
            ),
            _rule(
                "8", "fileunavailable",
                "it takes work with local input only (use_only_local_data), and files of the input are missing there",
                col("q_local_only") & known & ~col("x_whole"),
            ),
            asked=rules.code_only_checks,
        ),
        Order(name="rank", by=("place",), descending=(False,), among=pl.lit(value=True)),
    )  # fmt: skip


PREASSIGNED = "nonpreassigned"
REPORTED = (
    "weight", "basic", "orig", "new", "new_document", "data_factor", "running", "really_running", "waiting", "starting",
    "x_nq", "x_nr", "trr",
    "s_class", "t_class", "max_q_len", "u_queued", "u_running", "rem_q_len", "nq_max", "user_share",
    "looked_at", "budget_hi", "budget_mid", "budget_lo", "overloaded", *MARKS, "x_used", "s_running", "s_rate",
    "t_grand", "x_data_weight",
)  # fmt: skip
"""Numbers of the table ``weighed``."""


@dataclass(frozen=True, repr=False)
class AnalysisDecisions(QueueDecisions):
    """What the analysis brokerage decided.

    Attributes:
        places: See there; ``loop``: 1 with locality; 2 without.
        first_loop: The same, without weights, for the first loop of tasks that went on to the second.
        weighed: The queues that no single check removed: state of the stabilizer, weights and marks, ``share`` of the
            task's jobs expected at each candidate; same keys.
        tasks: One row per task: ``outcome`` (candidates, temporary_error, fatal, throttled_waiting), ``throttle``
            (rule that held it back), ``stage`` that emptied the list, ``loop``, ``n_queues`` looked at,
            ``n_candidates``, ``pending_until``.
    """

    @staticmethod
    def results(world: World) -> Results:
        """Return what is kept of decisions."""
        names = names_of(world.checks, world.steps)  # an organisation may do without it
        last = names.index(PREASSIGNED) if PREASSIGNED in names else len(names)
        code = pl.col("check").to_physical()
        share = shares(pl.when(pl.col("rank").is_not_null()).then("weight"))
        return Results(
            weighed={name: pl.col(name) for name in ("check", "rank", *REPORTED)} | {"share": share},
            sums={"stranger": (code == last).any(), "past": (code > last).any()},
            outcome=outcome(world.rules),
            pending_min=world.rules.pending_min,
            tasks=(
                "outcome", "throttle", "stage", "loop", "n_queues", "n_candidates", "pending_until",
            ),
        )  # fmt: skip


def outcome(rules: AnalysisRules) -> pl.Expr:
    """Return how a task ends (switch ``preassigned_failure``).

    It reads ``outcome`` (how it ended before any queue was looked at), ``n_candidates``, ``t_preassigned``,
    ``stranger`` (some queue was skipped as :data:`PREASSIGNED`) and ``past`` (some by a later check).
    """
    ends = pl.lit(value=rules.preassigned_failure == "fatal")
    filtered = ends & pl.col("t_preassigned") & pl.col("stranger") & ~pl.col("past")
    return pl.coalesce(
        "outcome",
        pl.when(pl.col("n_candidates") > 0).then(pl.lit("candidates")),
        pl.when(filtered).then(pl.lit("fatal")),
        pl.lit("temporary_error"),
    )
