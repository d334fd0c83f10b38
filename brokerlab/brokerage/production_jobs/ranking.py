"""From survivors of the single checks to candidates: the weight, and rows 43a to 52 of production-jobs.md 2, as steps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from brokerlab.brokerage.engine.decisions import QueueDecisions, Results
from brokerlab.brokerage.engine.own import WeightOf, weighed_by
from brokerlab.brokerage.engine.rule import Rule, setting
from brokerlab.brokerage.engine.steps import LEFT, MARKED, Derived, Order, Step
from brokerlab.brokerage.engine.world import World
from brokerlab.brokerage.production_jobs.checks import check
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.units import MB

MOST_WORKERS = 20
"""Batch workers that count as running jobs at most, and running jobs below which they do."""
QUEUE_OFFSET = 10


def counted(rules: ProductionRules) -> dict[str, pl.Expr]:
    """Return ``running`` (R), the number of running jobs that counts.

    Source: 002, ATLAS Production Job Brokerage: "The brokerage uses the largest one as the number of running jobs among the
        following numbers".
    """
    real = pl.col("x_running")
    workers = pl.min_horizontal("s_workers", MOST_WORKERS)
    few = (real < MOST_WORKERS) & (workers > real)
    slots = pl.col("x_numslots")
    filled = slots // pl.max_horizontal("q_corecount", 1) if rules.slots_per_core else slots
    filled = filled.fill_null(0)
    if rules.running_count == "largest":
        none_set = (slots == 0).fill_null(value=False)
        return {
            "running": pl.max_horizontal(
                real,
                pl.when(few).then(workers).otherwise(0),
                filled,
                pl.when(none_set).then("x_starting").otherwise(0),
            )
        }
    low = pl.col("t_may_bootstrap")
    pilots = (pl.col("s_pilots") > 0) & ~pl.col("t_listed")
    boots = few & pilots & pl.col("q_streams") & low
    base = pl.when(boots).then(workers).otherwise(real)
    with_slots = (
        pl.when(slots == 0)
        .then(base + pl.col("x_starting"))
        .otherwise(pl.max_horizontal(filled, base))
    )
    return {"running": pl.when(low & slots.is_not_null()).then(with_slots).otherwise(base)}


def product(rules: ProductionRules) -> pl.Expr:  # noqa: ARG001 - see Brokerage.own_weight
    """Return the weight: the product of its factors; those of the code alone are 1 under ``document``.

    Source: 002, ATLAS Production Job Brokerage: "weight = weight × networkWeight".
    """
    return (
        pl.col("work_factor")
        * pl.col("data_factor")
        * pl.col("t1_factor")
        * pl.col("network_factor")
        * pl.col("preference_factor")
    )


def many_assigned(rules: ProductionRules) -> pl.Expr:
    """Return how much jobs that wait for their input weigh against those that have it, 1 to 2 (switch ``many_assigned_plus_one``).

    Without the switch 0 activated jobs make 2, or 1 if none is assigned either.

    Source: 002, ATLAS Production Job Brokerage: "manyAssigned = max(1, min(2, assigned / activated))".
    """
    assigned, activated = pl.col("x_assigned"), pl.col("x_activated")
    if rules.many_assigned_plus_one:
        return ((assigned + 1) / (activated + 1)).clip(1, 2)
    no_job = pl.when(assigned > 0).then(2.0).otherwise(1.0)
    return pl.when(activated > 0).then((assigned / activated).clip(1, 2)).otherwise(no_job)


def factors(rules: ProductionRules) -> list[dict[str, pl.Expr]]:
    """Return the weight's factors in steps; needs ``running``.

    Source: 002, ATLAS Production Job Brokerage: "weight = (running + 1) / ((activated + assigned + starting + defined + 10) ×
        manyAssigned)" and "weight = weight × (availableSize + totalSize) / (totalSize × (numMissingFiles / 100 + 1))".
    """
    total, avail = pl.col("t_total"), pl.col("x_avail")
    queued = pl.col("x_activated") + pl.col("x_starting") + pl.col("defined")
    missing = pl.col("t_nfiles") - pl.col("x_navail")
    nearness, preference = pl.lit(1), pl.lit(1.0)
    if rules.nucleus_preferred:
        nearness = pl.when("x_near").then("t_t1_factor").otherwise(1)
    if rules.hardware_preferred:
        preference = pl.col("x_preference")
    return [
        {
            "defined": pl.col("x_defined") + pl.col("s_live"),
            "local": (total == 0) | (avail >= total),
            "many_assigned": many_assigned(rules),
            "missing_files": missing,
            "missing_mb": ((total - avail) / MB).cast(pl.Int64),
        },
        {
            "work_factor": pl.when("local")
            .then((pl.col("running") + 1) / (queued + QUEUE_OFFSET))
            .otherwise(
                (pl.col("running") + 1)
                / (queued + pl.col("x_assigned") + QUEUE_OFFSET)
                / pl.col("many_assigned")
            ),
            "data_factor": pl.when(total > 0)
            .then((total + avail) / total / (missing / pl.col("t_percent") + 1))
            .otherwise(1.0),
            "t1_factor": nearness,
            "network_factor": pl.when("t_network").then("l_weight").otherwise(1.0),
            "preference_factor": preference,
        },
    ]


BEST = 10
"""Candidates kept."""
FACTORS = ("work", "data", "t1", "network", "preference")
REPORTED = (
    "t_prio",
    "t_nucleus_id",
    "t_express",
    "q_ucore",
    "x_platform",
    "p_maxwdir",
    "p_corecount",
    "t_wdir_shared",
)
"""Facts of pairs that are reported besides those that the steps read."""


def steps(rules: ProductionRules, own: WeightOf | None) -> tuple[Step, ...]:
    """Return the steps in order.

    They make, beside the factors of the weight: ``running`` (R) and other counts [jobs], ``cap`` and ``cap_rt`` (6.4),
    ``bootstrap``, ``jumbo``, ``weight``, ``rank`` (1 to 10), ``place`` (as rank, but beyond the best ten too).
    """
    further, jumbo = pl.lit(value=rules.code_only_checks), pl.lit(value=False)
    if rules.jumbo_queues:
        jumbo = pl.col("t_jumbo") & pl.col("q_jumbo")
    late = (
        check("8", "locked", "another brokerage holds its lock", pl.col("x_locked") & further),
        _local_data_only(further),
        *caps(rules),
        _below_min_weight(further),
    )
    return (
        *input_to_move(rules),
        MARKED,
        Derived(counted(rules)),
        *(Derived(columns) for columns in factors(rules)),
        *(weighed_by(own, rules) or (Derived({"weight": product(rules)}),)),
        Derived(_limits(rules) | {"bootstrap": _bootstrap(rules)}),
        Derived({"jumbo": jumbo}),
        # queues that take a task's jumbo jobs are left alone
        *(replace(rule, when=rule.when & ~pl.col("jumbo")) for rule in late),
        *_single_queue(rules),
        *_best(),
    )


def input_to_move(rules: ProductionRules) -> tuple[Step, ...]:
    """Return row 43a: queues that would have to move too much input.

    Missing is what is on no disk there. Without ``io_check_relents`` each queue stands for itself.

    Source: 002, ATLAS Production Job Brokerage: "the total size of missing files must be less than SIZE_CUTOFF_TO_MOVE_INPUT
        ... and the number of missing files must be less than NUM_CUTOFF_TO_MOVE_INPUT ... I.e., if a queue needs to
        transfer more input files, the queue is skipped."
    """

    def over(avail: str, navail: str) -> tuple[pl.Expr, pl.Expr]:
        size = (pl.col("t_total") - pl.col(avail)) / MB
        size = size.cast(pl.Int64) if rules.whole_numbers else size
        number = pl.col("t_nfiles") - pl.col(navail)
        return size, number

    def exceeds(value: pl.Expr, limit: pl.Expr) -> pl.Expr:
        return value >= limit if rules.io_check_strict else value > limit

    most_mb, most_files = pl.col("t_most_mb"), pl.col("t_most_files")
    size, number = over("x_avail", "x_navail")
    here = ~(exceeds(size, most_mb) | exceeds(number, most_files))
    may = (
        "{missing_mb} MB in {missing_files} files of the input would have to move there; a task of more than "
        "{cutoff} kB/s (this one: {t_iointensity}) may move"
    )
    numbers = {"cutoff": setting("IO_INTENSITY_CUTOFF")}
    if not rules.io_check_relents:
        less = "less than " if rules.io_check_strict else ""
        most = f"{less}{{t_most_mb}} MB and {less}{{t_most_files}} files"
        when = pl.col("t_io_heavy") & ~here
        return (check("4", "input_to_move", f"{may} {most}", when, numbers=numbers),)
    size_tape, number_tape = over("x_avail_tape", "x_navail_tape")
    never = exceeds(pl.min_horizontal(size, size_tape), most_mb) | exceeds(
        pl.min_horizontal(number, number_tape), most_files
    )
    kept = (
        pl.when(pl.col("io_good").any().over("t")).then("io_good")
        .when(pl.col("io_tape").any().over("t")).then("io_tape")
        .otherwise(statement=True)
    )  # fmt: skip
    return (
        Derived({"io_good": ~never & here, "io_tape": ~never & ~here}),
        check(
            "4", "input_to_move", f"{may} {{t_most_mb}} MB and {{t_most_files}} files while other queues need no more",
            pl.col("t_io_heavy") & ~kept, scope="task", numbers=numbers,
        ),
    )  # fmt: skip


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
    return pl.lit(0.0) if rules.cap_mode == "twice_running" else pl.col("t_queue_limit")


def _bootstrap(rules: ProductionRules) -> pl.Expr:
    """Return whether a queue has no job at all and becomes a candidate of weight 0; else it is ranked by its weight.

    Source: 002, ATLAS Production Job Brokerage: "the remaining candidates are sorted by weight".
    """
    jobs = ("running", "x_activated", "x_assigned", "x_starting", "defined")
    empty = pl.sum_horizontal(jobs) == 0
    if not rules.bootstrap_first:
        return pl.lit(value=False)
    return empty & pl.col("t_may_bootstrap") & ~pl.col("t_merging") & ~pl.col("t_express")


def _local_data_only(further: pl.Expr) -> Rule:
    moves = (pl.col("missing_files") > 0) | (pl.col("missing_mb") > 0)
    return check(
        "8", "local_data_only",
        "it takes work with local input only (use_only_local_data), and {missing_mb} MB in {missing_files} files are "
        "missing there",
        pl.col("q_local_only") & moves & (pl.col("t_total") > 0) & further,
    )  # fmt: skip


def caps(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return ``queued_cap``, ``network_weight_low``, ``queued_cap_rt``.

    Assigned jobs count where the input is not all there; ``twice_running`` has no cap by resource type.

    Source: 002, ATLAS Production Job Brokerage: "Skip queues if activated + starting > 2 × running. Skip queues if
        defined+activated+assigned+starting > 2 × running."
    """
    larger = "the larger of {t_queue_limit} and twice the "
    no_cap = pl.col("t_express")
    over_rt = pl.col("rt_known") & (pl.col("queued_rt") > pl.col("cap_rt"))
    if rules.cap_mode == "twice_running":
        waiting = pl.col("x_activated") + pl.col("x_starting")
        over = (waiting > pl.col("cap")) | (pl.col("queued_all") > pl.col("cap"))
        capped = check(
            "8", "queued_cap",
            "{queued_all} jobs are queued there, {waiting} of them activated or starting, more than {cap} (twice the "
            "{running} running jobs)",
            over, numbers={"waiting": waiting},
        )  # fmt: skip
        over_rt = over_rt & pl.lit(value=False)
    else:
        capped = check(
            "8", "queued_cap",
            f"{{queued}} jobs are queued there, more than {{cap}} ({larger}{{running}} running jobs)",
            ~no_cap & ~pl.col("q_ucore") & (pl.col("queued") > pl.col("cap")),
        )  # fmt: skip
    return (
        capped,
        check(
            "8", "network_weight_low",
            "the network weight of {l_weight} is under {t_network_limit}, which express work asks for",
            pl.col("l_weight") < pl.col("t_network_limit"),
        ),
        check(
            "8", "queued_cap_rt",
            f"{{queued_rt}} jobs of the task's resource types are queued there, more than {{cap_rt}} ({larger}"
            "running jobs)",
            ~no_cap & over_rt,
        ),
    )  # fmt: skip


def _below_min_weight(further: pl.Expr) -> Rule:
    least = pl.col("t_min_weight")
    return check(
        "8", "below_min_weight", "its weight of {weight} is under the least weight of {t_min_weight}",
        (least > 0) & (pl.col("weight") < least) & ~pl.col("bootstrap") & further,
    )  # fmt: skip


def _single_queue(rules: ProductionRules) -> tuple[Step, ...]:
    """Return row 51: where ``t1weight`` is negative the queue with most running jobs is kept (6.6)."""
    reaches = pl.col("t_nucleus_only") & LEFT & ~pl.col("jumbo")
    rivals = reaches & ~pl.col("bootstrap")
    # the first of equals by name, in the order of which the places of a task stand
    winner = pl.col("q").get(pl.when(rivals).then("s_running").arg_max()).over("t")
    loses = (
        pl.when("bootstrap")
        .then(pl.col("q") < pl.col("winner"))
        .otherwise(pl.col("q") != pl.col("winner"))
    )
    return (
        Derived({"winner": winner}),
        check(
            "8", "t1_not_largest",
            "the task keeps to one queue of its nucleus {t_nucleus} (negative t1weight), the one with most running "
            "jobs; this one has {s_running}",
            reaches & loses & pl.lit(value=rules.single_t1_queue), scope="task",
        ),
    )  # fmt: skip


def _best() -> tuple[Step, ...]:
    """Return row 52: weight 0 first, then the largest; beyond the best ten the reason is ``rank``."""
    chosen = LEFT & (pl.col("place") <= BEST)
    return (
        Derived({
            "jumbo": pl.col("jumbo") & LEFT,
            "order": pl.when("bootstrap").then(0.0).otherwise("weight"),
        }),
        Order(
            name="place", by=("bootstrap", "order"), descending=(True, True), among=~pl.col("jumbo")
        ),
        check(
            "8", "rank", "its weight of {weight} is not among the best 10", pl.col("place") > BEST,
            scope="task",
        ),
        Derived({
            "rank": pl.when(chosen).then("place"),
            "weight": pl.when(chosen | pl.col("jumbo")).then("order").otherwise("weight"),
        }),
    )  # fmt: skip


def shares(weight: pl.Expr) -> pl.Expr:
    """Return the part of a task's jobs that each weight (null: no candidate) stands for; without any weight all share alike.

    The frame is sorted by ``t``.
    """
    # one after the other: a plain sum differs in the last bit with how the rows came to be sorted
    total = weight.fill_null(0.0).cum_sum().last().over("t")
    number = weight.count().over("t")
    alike = pl.when(weight.is_not_null()).then(1 / number)
    return pl.when(total > 0).then(weight / total).otherwise(alike)


def reported(rules: ProductionRules) -> dict[str, pl.Expr]:
    """Return what is said of the queues that were weighed, over what the :func:`steps` made (production-jobs.md 8).

    ``check, weight, rank``; the factors ``work, data, t1, network, preference``; ``network_weight``
    (also where it does not act); ``nrunning``, ``nqueuedjobs``, ``nrunningjobscap`` (null: express, no cap)
    [jobs]; ``share`` of the task's jobs expected there; ``maxwdir`` [MB] and ``platform`` passed on;
    ``missing_mb``, ``missing_files`` of the input; ``bootstrap``, ``jumbo``.
    """
    cap, queued = pl.col("cap"), pl.col("queued_all")
    if rules.cap_mode == "limit":
        of_types = pl.when("rt_known").then("cap_rt").otherwise(_least_cap(rules))
        cap = pl.when("q_ucore").then(of_types).otherwise("cap")
        cap = pl.when(~pl.col("t_express")).then(cap)
        queued = pl.when("q_ucore").then("queued_rt").otherwise("queued")
    several = pl.col("p_corecount") > 1
    shared = pl.lit(value=True) if rules.maxwdir_per_core else pl.col("t_wdir_shared")
    scaled = pl.when(several & shared).then(pl.col("p_maxwdir") / pl.col("p_corecount"))
    chosen = pl.when(pl.col("rank") <= BEST).then("weight")
    plain = ("check", "weight", "rank", "bootstrap", "jumbo")
    return {
        **{name: pl.col(name) for name in plain},
        **{name: pl.col(f"{name}_factor") for name in FACTORS},
        "network_weight": pl.when(pl.col("t_nucleus_id") >= 0).then("l_weight"),
        "nrunning": pl.col("running"),
        "nqueuedjobs": queued,
        "nrunningjobscap": cap.cast(pl.Int64),
        "share": shares(chosen),
        "maxwdir": pl.when(pl.col("p_maxwdir") != 0).then(scaled.otherwise("p_maxwdir")),
        "platform": pl.col("x_platform"),
        "missing_mb": pl.col("missing_mb"),
        "missing_files": pl.col("missing_files"),
    }


PENDING_MIN = 60
"""A task without candidates waits as long [min]."""


@dataclass(frozen=True, repr=False)
class Decisions(QueueDecisions):
    """What the production job brokerage decided.

    Attributes:
        places: See there; ``rank`` is 1 to 10, ``jumbo``: it stays a candidate for jumbo jobs.
        weighed: The queues that reached the weight: factors, counts, caps; same keys.
        tasks: One row per task: ``outcome`` (candidates, no_candidates, input_incomplete, unknown_nucleus), ``stage``
            that emptied the list, ``detail``, ``n_queues`` looked at, ``n_candidates``, ``pending_until`` (null in
            hint mode, which leaves the task where it is).
    """

    @staticmethod
    def results(world: World) -> Results:
        """Return what is kept of decisions."""
        some = pl.when(pl.col("n_candidates") > 0).then(pl.lit("candidates"))
        return Results(
            weighed=reported(world.rules),
            outcome=pl.coalesce("outcome", some, pl.lit("no_candidates")),
            pending_min=PENDING_MIN,
            tasks=("outcome", "stage", "detail", "n_queues", "n_candidates", "pending_until"),
        )
