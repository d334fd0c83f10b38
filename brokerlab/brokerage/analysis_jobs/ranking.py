"""The Analysis Stabilizer, the weights of analysis queues, and from survivors of the single checks to candidates.

Source: analysis-jobs.md 4 (rows 19b, 21 to 26), 5, 7 and 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from polars import col

from brokerlab.brokerage.analysis_jobs.checks import code_only, virtual
from brokerlab.brokerage.analysis_jobs.settings import AnalysisRules, asked_of
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
from brokerlab.brokerage.production_jobs.checks import at_least_one
from brokerlab.brokerage.production_jobs.lookups import PARENT
from brokerlab.brokerage.production_jobs.ranking import shares
from brokerlab.units import GB


def limited(rules: AnalysisRules) -> tuple[Derived, ...]:
    """Return the state of the stabilizer.

    It reads jobs of the share (``x_nq, x_nr``), running jobs of all shares (``s_running``), the to-running rate
    (``s_rate``), users with jobs and their running jobs, jobs of the task's user (``u_known``: there is a row), and makes
    ``trr`` [jobs/h], ``looked_at`` (step 3 did not exempt the queue), ``running_users`` (nR), ``nq_max``,
    ``user_share``, ``max_q_len``, ``rem_q_len``, ``over_limit`` (the user's jobs waiting exceed max_q_len), ``too_many_bad``.

    Source: analysis-jobs.md 4 and 5.
    """
    rows = pl.col("x_users") > 0
    base_length = setting("BASE_QUEUE_LENGTH_PER_PQ")
    exempt = (pl.col("x_nq") < base_length) | (
        pl.col("x_nq") < setting("BASE_EXPECTED_WAIT_HOUR_ON_PQ") * pl.col("trr")
    )
    if rules.bad_jobs_mode == "after_stabilizer":  # only bad jobs see a user without jobs there
        exempt = exempt | ~pl.col("u_known")
    users = pl.when(rows).then(pl.col("x_users") + int(rules.count_total_row)).otherwise(1)
    running = pl.col("running_users")
    own = pl.when(running > 0).then(pl.col("u_running") / running).otherwise(0.0)
    limit = pl.max_horizontal(
        setting("BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER"),
        setting("BASE_QUEUE_RATIO_ON_PQ") * running,
        pl.col("nq_max") * pl.col("user_share"),
    )
    left = (pl.col("max_q_len") - pl.col("u_queued")).clip(lower_bound=0.0)
    limited = pl.col("looked_at") & asked_of(pl.col("t_merging"), rules)
    over = limited & (pl.col("u_queued") > pl.col("max_q_len"))
    by_users = rows & pl.lit(value=rules.stabilizer_running == "users")
    return (
        Derived({
            "trr": _rate(rules),
            "running_users": pl.when(by_users).then("x_users_running").otherwise("x_nr").cast(pl.Float64),
        }),
        Derived({
            "looked_at": ~exempt,
            "user_share": pl.max_horizontal(pl.col("t_one") / users, own),
            "nq_max": pl.max_horizontal(
                base_length,
                setting("STATIC_MAX_QUEUE_RUNNING_RATIO") * running,
                setting("MAX_EXPECTED_WAIT_HOUR") * pl.col("trr"),
            ),
        }),
        Derived({"max_q_len": limit}),
        Derived({"rem_q_len": left, "over_limit": over, "too_many_bad": _too_many_bad(rules)}),
    )  # fmt: skip


def _rate(rules: AnalysisRules) -> pl.Expr:
    """Return the to-running rate of the queue [jobs/h], "number of jobs getting from queuing to running per hour in the PQ"."""
    rate = pl.col("s_rate")
    if not rules.trr_scaled:
        return rate
    every = pl.col("s_running")
    return pl.when(every > 0).then(pl.col("x_nr") * rate / every).otherwise(0.0)


def _too_many_bad(rules: AnalysisRules) -> pl.Expr:
    bad = pl.col("x_failed") + pl.col("x_closed")
    limit = pl.max_horizontal(2 * pl.col("x_finished"), setting("MIN_BAD_JOBS_TO_SKIP_PQ"))
    if rules.bad_jobs_mode == "all":
        return (bad >= limit) & asked_of(pl.col("t_merging"), rules)
    return (bad > limit) & asked_of(pl.col("t_merging"), rules) & pl.col("looked_at")


MOST_WORKERS = 20
"""Batch workers that count as running jobs at most, and running jobs below which they do."""
BY_CLASS = ("User Analysis", "Express Analysis")
"""Shares whose jobs go to queues by class."""
CLASS_B, CLASS_C = 0, -1
SITE_CLASSES = {1: "hi", 0: "mid", -1: "lo"}
UNASSIGNED = 0.001
LEAST_SHARE = 0.001
LEAST_WEIGHT = 2.0**-20
ROUNDING = 1e-9
"""What is less than this part of a sum is what rounding left of 0."""
EPSILON_1, EPSILON_2 = 0.05, 0.002
"""Weights of the page's table beside the matching class."""


def weighed(rules: AnalysisRules) -> tuple[Derived, ...]:
    """Return the basic weights, the data factor and the weight, of unified queues that are left, and what they are made of.

    ``really_running``, ``waiting``, ``starting`` (jobs that count), ``running`` (R), ``orig``, ``new``, ``new_document``,
    ``budget_hi``, ``budget_mid``, ``budget_lo`` (M), ``data_factor``, ``weight``.

    Source: analysis-jobs.md 7.
    """
    new = "new" if rules.new_weight == "budgets" else "new_document"
    basic = pl.col("orig" if rules.basic_weight == "original" else new)
    factor = pl.when(rules.data_factor).then(_data_factor()).otherwise(1.0)
    weight = pl.col("basic") * pl.col("data_factor") if rules.data_factor else pl.col("basic")
    return (
        Derived(counted(rules)),
        Derived({"running": _running(rules)}),
        Derived({
            "orig": (pl.col("running") + 1) / (pl.col("waiting") + 1),
            "jobs": pl.col("t_n_jobs").cast(pl.Float64),
            **_sums(),
        }),
        *_budgets(),
        Derived({"new": _new(), "new_document": _new_document(), "data_factor": factor}),
        Derived({"basic": basic}),
        Derived({"weight": weight}),
    )  # fmt: skip


def counted(rules: AnalysisRules) -> dict[str, pl.Expr]:
    """Return the jobs that count at a queue: all of them, or those of the share (switch ``counted_jobs``)."""
    every = rules.counted_jobs == "queue"
    names = ("s_running", "s_waiting", "s_starting") if every else ("x_nr", "x_nq", "x_starting")
    new = ("really_running", "waiting", "starting")
    return {name: pl.col(column) for name, column in zip(new, names, strict=True)}


def _running(rules: AnalysisRules) -> pl.Expr:
    """Return R, the number of running jobs that counts (6.1).

    Source:
        002, ATLAS Analysis Job Brokerage: "The brokerage uses the largest one as the number of running jobs among the
        following numbers".
    """
    real, slots = pl.col("really_running"), pl.col("x_numslots")
    workers = pl.min_horizontal("s_workers", MOST_WORKERS)
    boots = (real < MOST_WORKERS) & (workers > real)
    if rules.workers_need_pilots:
        boots = boots & (pl.col("s_pilots") > 0)
    base = pl.when(boots).then(workers).otherwise(real)
    filled = slots // pl.max_horizontal("q_corecount", 1) if rules.slots_per_core else slots
    if rules.slots_zero_mode == "sum":
        none = base + pl.col("starting")
    else:
        none = pl.max_horizontal(base, "starting")
    return (
        pl.when(slots.is_null()).then(base)
        .when(slots == 0).then(none)
        .otherwise(pl.max_horizontal(filled, base))
    )  # fmt: skip


def _sums() -> dict[str, pl.Expr]:
    """Return Q and n of the task, of each class (``_hi``...) and of the queue's own class (``_class``)."""
    remaining = pl.col("rem_q_len")
    return {
        "q_all": remaining.sum().over("t"),
        "n_all": pl.len().over("t").cast(pl.Float64),
        "q_class": remaining.sum().over("t", "s_class"),
        "n_class": pl.len().over("t", "s_class").cast(pl.Float64),
        **{
            f"q_{name}": remaining.filter(pl.col("s_class") == value).sum().over("t")
            for value, name in SITE_CLASSES.items()
        },
    }


def _budgets() -> tuple[Derived, ...]:
    """Return how many of the jobs each class of queues gets (6.2)."""
    cls = pl.col("t_class")
    jobs, hi = pl.col("shared_jobs"), pl.col("first_hi")
    first_b, first_a = pl.col("mid_b") > 0, hi > 0
    lo_a = jobs - hi - pl.col("mid_a")
    hi_a = pl.when(first_a).then(hi - 0.052).otherwise(hi)
    mid_a = pl.when(first_a).then(pl.col("mid_a") + 0.05).otherwise("mid_a")
    lo_a = pl.when(first_a).then(lo_a + 0.002).otherwise(lo_a)
    lo_b = jobs - pl.col("mid_b")
    mid_b = pl.when(first_b).then(pl.col("mid_b") - 0.1).otherwise("mid_b")
    lo_b = pl.when(first_b).then(lo_b + 0.1).otherwise(lo_b)
    limited = pl.col("t_gshare").is_in(BY_CLASS).fill_null(value=False)

    def by_class(of_a: pl.Expr, of_b: pl.Expr, of_c: pl.Expr) -> pl.Expr:
        chosen = pl.when(cls == CLASS_C).then(of_c).when(cls == CLASS_B).then(of_b).otherwise(of_a)
        return pl.when(limited).then(chosen).otherwise(UNASSIGNED)

    unassigned = pl.lit(UNASSIGNED)
    return (
        Derived({"shared_jobs": pl.min_horizontal("jobs", "q_all")}),
        Derived({
            "first_hi": pl.min_horizontal("shared_jobs", "q_hi"),
            "mid_b": pl.min_horizontal("shared_jobs", "q_mid"),
        }),
        Derived({"mid_a": pl.min_horizontal(jobs - hi, "q_mid")}),
        Derived({
            "budget_hi": by_class(hi_a, unassigned, unassigned),
            "budget_mid": by_class(mid_a, mid_b, unassigned),
            "budget_lo": by_class(lo_a, lo_b, jobs),
            "limited": limited,
        }),
    )  # fmt: skip


def _new() -> pl.Expr:
    """Return the new basic weight: jobs of the class times the queue's part of them."""
    limited = pl.col("limited")
    budget = (
        pl.when(pl.col("s_class") == 1).then("budget_hi")
        .when(pl.col("s_class") == -1).then("budget_lo")
        .otherwise("budget_mid")
    )  # fmt: skip
    own = pl.when(limited).then(budget).otherwise("jobs")
    total = pl.when(limited).then("q_class").otherwise("q_all")
    number = pl.when(limited).then("n_class").otherwise("n_all")
    return own * _part(own, total, number) + LEAST_WEIGHT


def _part(jobs: pl.Expr, total: pl.Expr, number: pl.Expr) -> pl.Expr:
    """Return W_q: what the queue has left after an even share of the jobs, as part of what all have left."""
    left = pl.max_horizontal(pl.col("rem_q_len") - jobs / number, LEAST_SHARE * jobs)
    rest = total - jobs
    return (
        pl.when((rest > ROUNDING * total) & ~pl.col("t_merging")).then(left / rest)
        .when(total > 0).then(pl.col("rem_q_len") / total)
        .otherwise(pl.col("t_one") / number)
    )  # fmt: skip


def _new_document() -> pl.Expr:
    """Return the new basic weight of the page: epsilon beside the matching class, all queues together."""
    cls, site, jobs = pl.col("t_class"), pl.col("s_class"), pl.col("jobs")
    fits = (
        pl.when(cls == CLASS_C).then(site == -1)
        .when(cls == CLASS_B).then(site == 0)
        .otherwise(site == 1)
    )  # fmt: skip
    nearer = (site == 0) | ((site == -1) & (cls == CLASS_B))
    beside = pl.when(nearer).then(EPSILON_1).otherwise(EPSILON_2)
    own = pl.when(fits | ~pl.col("limited")).then(jobs).otherwise(beside)
    return own * _part(jobs, pl.col("q_all"), pl.col("n_all"))


def _data_factor() -> pl.Expr:
    here_gb = (pl.col("x_avail") / GB).floor()
    by_size = 1 + here_gb / (10 * pl.col("t_one"))
    large = pl.col("t_total") >= GB
    weight = pl.when(pl.col("x_data_weight") > 0).then("x_data_weight").otherwise(1.0)
    return (
        pl.when(pl.col("t_local") & ~pl.col("t_union")).then(weight)
        .when(large).then(by_size)
        .otherwise(1.0)
    )  # fmt: skip


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
            steps=(*limited(rules), *weighed(rules)),
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
