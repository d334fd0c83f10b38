"""The rules that look at one nucleus, those that look at all nuclei of a task, the weight, and the draw of every task in turn.

Rows 1 to 10 of production-tasks.md 3, and 4: a task that gets a nucleus makes it busier for those after it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import lru_cache, reduce
from operator import mul
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage import full_chain
from brokerlab.brokerage.engine.own import WeightOf, weighed_by
from brokerlab.brokerage.engine.rule import Chapter, Rule, setting
from brokerlab.brokerage.engine.steps import LEFT, Derived, Step, any_left
from brokerlab.brokerage.inputs.frames import KEY, first_valid_for
from brokerlab.brokerage.production_tasks.storage import GB_PER_TB
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.numerics import FloatArray

check = Chapter("production-tasks.md 3, ")
THRESHOLD = "DISK_THRESHOLD[_<gshare>]"


@lru_cache(maxsize=64)  # made of many small expressions
def checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return the checks of single nuclei in the order in which they run.

    Where ``missing_endpoint`` ends the task, the rules from row 3 on look at all its nuclei and stand among
    :func:`~.ranking.steps`.
    """
    cap = setting("NQUEUED_NUC_CAP")
    prefers_nuclei = (pl.col("t1weight") < 0).fill_null(value=False)
    first = (
        check(
            "1", "nucleus_inactive", "state is {state}, not ACTIVE",
            ~(pl.col("state") == "ACTIVE").fill_null(value=False),
        ),
        check(
            "2", "transfer_backlog",
            "{queued_files} files are queued for it, more than {queued_cap}, and t1weight is not negative",
            (pl.col("queued_files") > cap) & ~prefers_nuclei, numbers={"queued_cap": cap},
        ),
    )  # fmt: skip
    return first if aborts(rules) else (*first, *output_checks(rules), no_queue(rules))


def of_tasks(rules: ProductionRules) -> tuple[Derived, ...]:  # noqa: ARG001 - of one form
    """Return what settings make of a task: ``disk_threshold_gb``, see row 6."""
    return (Derived({"disk_threshold_gb": setting(THRESHOLD) * GB_PER_TB}),)


def aborts(rules: ProductionRules) -> bool:
    """Tell whether a nucleus without an endpoint for an output ends the task, as deployed."""
    return rules.missing_endpoint == "abort"


def output_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return rows 3 to 6, which look at the output that decides, see :func:`~.storage.deciding`."""
    return (
        check(
            "3", "no_storage", "no output endpoint fits a storage token",
            pl.col("gathers_output") & pl.col("ddm_endpoint_name").is_null(),
        ),
        _wan_down("4", "read"),
        _wan_down("5", "write"),
        _disk_space(rules),
    )  # fmt: skip


def _wan_down(row: str, side: str) -> Rule:
    return check(
        row, f"{side}_wan_down", f"{side}_wan of {{ddm_endpoint_name}} is {{{side}_wan}}",
        ~pl.col(f"{side}_wan_up"),
    )  # fmt: skip


def _disk_space(rules: ProductionRules) -> Rule:
    left, threshold = pl.col("usable_gb") - pl.col("demand_gb"), setting(THRESHOLD) * GB_PER_TB
    short = left < threshold if rules.disk_equal_passes else left <= threshold
    equal = "below" if rules.disk_equal_passes else "not above"
    return check(
        "6", "disk_space",
        "{ddm_endpoint_name} has {usable_gb} GB usable and must hold {demand_gb} GB of work assigned: the rest is "
        f"{equal} {{disk_threshold_gb}} GB",
        pl.col("ddm_endpoint_name").is_not_null() & short,
    )  # fmt: skip


def no_queue(rules: ProductionRules) -> Rule:
    """Return row 7: no queue of the nucleus could run the task."""
    return check(
        "7", "no_queue", "none of its queues could run the task",
        (pl.col("n_hint_queues") == 0) & pl.lit(value=rules.hint_brokerage),
    )  # fmt: skip


RW_OFFSET = 50.0  # HS06 s
TAPE_WEIGHT = 0.001


def work_factor(rw: FloatArray, rules: ProductionRules) -> FloatArray:
    """Return the factor of the work left [HS06 s]: ``1 / max(50, rw)``, or 1 below 50 (switch ``idle_work_is_one``).

    Source: production-tasks.md 4.
    """
    factor = 1.0 / np.maximum(RW_OFFSET, rw)
    return np.where(rw < RW_OFFSET, 1.0, factor) if rules.idle_work_is_one else factor


def with_weight(rules: ProductionRules) -> tuple[Derived, ...]:
    """Return what makes the factors that do not change within a cycle, and ``factor``, their product.

    They are ``data, tape, space_fraction, space_amount``, 1 where the term does not apply. Data terms need input that
    counts; space below 0 counts as 0. ``rw`` is the work left, before the tasks of the cycle [HS06 s].
    """
    has_data = pl.col("has_input") & (pl.col("tot_size") > 0)
    if rules.waiver_drops_data:
        has_data &= ~pl.col("waived")
    work = "rw_all" if rules.work_of_weight == "all" else "rw_prio"
    high = pl.col("iointensity") > setting("MIN_IO_INTENSITY_WITH_LOCAL_DATA")
    high = high.fill_null(value=rules.null_intensity_is_high)
    on_tape = pl.col("ava_size_any") > pl.col("ava_size_disk")
    fraction, amount_tb = _space(rules)
    has_space = pl.col("space_total") > 0
    cut = pl.min_horizontal("free_disk_cutoff_tb", amount_tb.clip(lower_bound=0.0))
    factors = {
        "data": _where(has_data & high, pl.col("ava_size_any") / pl.col("tot_size")),
        "tape": _where(has_data & on_tape, pl.lit(TAPE_WEIGHT)),
        "space_fraction": _where(has_space, fraction.clip(lower_bound=0.0)),
        "space_amount": _where(has_space, cut),
    }
    return (
        Derived({"free_disk_cutoff_tb": setting("FREE_DISK_CUTOFF"), "rw": pl.col(work)}),
        Derived(factors),
        Derived({"factor": reduce(mul, map(pl.col, factors))}),
    )


def _space(rules: ProductionRules) -> tuple[pl.Expr, pl.Expr]:
    """Return the fraction of the endpoint that is free, and the free amount [TB]."""
    if rules.weight_after_demand:
        left = pl.col("usable_gb") - pl.col("demand_gb")
        return left / pl.col("space_total"), (left / GB_PER_TB).floor()
    free = pl.col("space_free")
    return (free + pl.col("space_expired")) / pl.col("space_total"), free / GB_PER_TB


def _where(applies: pl.Expr, factor: pl.Expr) -> pl.Expr:
    return pl.when(applies).then(factor).otherwise(1.0)


def probabilities(weights: FloatArray) -> FloatArray:
    """Return the chance of each nucleus, ``w / W``; all of it is the first one's where W is 0."""
    total = float(np.cumsum(weights)[-1]) if len(weights) else 0.0
    if total == 0.0:
        return np.eye(1, len(weights), dtype=np.float64).ravel()
    return weights / total


def drawn(weights: FloatArray, draw: float) -> int:
    """Return the place of the nucleus drawn: walk the weights in stored order, the first that uses up ``draw * W`` wins.

    It is the last one where rounding leaves something over, 0 where all weights are 0; ``draw`` is in [0, 1).

    Source: production-tasks.md 4.
    """
    total = np.cumsum(weights)[-1]  # one after the other: sums of NumPy are pairwise
    left = np.subtract.accumulate(np.concatenate(([draw * total], weights)))[1:]
    used_up = np.flatnonzero(left <= 0)
    return int(used_up[0]) if used_up.size else len(weights) - 1


_MASK = 2**64 - 1  # seeds are not negative


def cycle_of(rules: ProductionRules) -> tuple[str, ...]:
    """Return the columns in which tasks are alike that see each other (switch ``work_of_weight``)."""
    return ("snapshot",) if rules.work_of_weight == "all" else ("snapshot", "workqueue_name")


def with_draws(tasks: pl.DataFrame, draws: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Add ``draw`` in [0, 1) to the tasks: as given, else from the seed, the same whatever else is decided with it."""
    joined = first_valid_for(tasks, draws.rename({"draw": "given"}))
    own = [
        np.random.default_rng([number & _MASK for number in (seed, *key)]).random()
        for key in joined.select(KEY).iter_rows()
    ]
    draw = pl.coalesce("given", pl.Series(own, dtype=pl.Float64))
    return joined.with_columns(draw=draw).drop("given")


def weigh_and_draw(
    tasks: pl.DataFrame, candidates: pl.DataFrame, rules: ProductionRules
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Weigh the nuclei left to every task and draw one, task by task in their ``turn``.

    Giving a task a nucleus adds its ``task_rw`` to the work left there as later tasks of its snapshot see it; where
    only work of the same work queue and of the same or higher priority counts, those of that queue and of the same or
    lower priority. ``factor`` of a candidate is the product of all but the factor of the work.

    Returns:
        ``t, q`` of the candidates with ``rw`` as the task saw it, ``work``, ``weight`` and ``probability``; and
        ``t, nucleus`` of every task with a nucleus.

    Source: production-tasks.md 4.
    """
    tasks = tasks.sort("turn")
    ordered = tasks.select("t", "turn").join(candidates, on="t").sort("turn", "position")
    names = ordered["nucleus"].to_list()
    rw, factor = (ordered[name].to_numpy().astype(np.float64) for name in ("rw", "factor"))
    seen, work, probability = rw.copy(), np.ones_like(rw), np.ones_like(rw)
    counts = candidates.group_by("t").agg(size=pl.len().cast(pl.Int64))
    sizes = tasks.select("t").join(counts, on="t", how="left", maintain_order="left")
    sizes = sizes.select(
        size=pl.col("size").fill_null(0), end=pl.col("size").fill_null(0).cum_sum()
    )
    given: list[str | None] = []
    added = _Added(rules)
    for row, (size, end) in zip(tasks.iter_rows(named=True), sizes.iter_rows(), strict=True):
        start = end - size
        chosen = row["assigned"]
        if chosen is None and size:
            of = slice(start, end)
            seen[of] += added.to(row, names[of])
            work[of] = work_factor(seen[of], rules)
            weights = work[of] * factor[of]
            probability[of] = probabilities(weights)
            chosen = names[start + drawn(weights, row["draw"])]
        if chosen is not None:
            added.take(row, chosen)
        given.append(chosen)
    columns = {"rw": seen, "work": work, "weight": work * factor, "probability": probability}
    weighed = ordered.select("t", "q").with_columns(
        pl.Series(name, values) for name, values in columns.items()
    )
    nuclei = tasks.select("t").with_columns(nucleus=pl.Series(given, dtype=pl.String))
    return weighed, nuclei.drop_nulls("nucleus")


class _Added:
    """Work given to nuclei within the cycles at hand."""

    def __init__(self, rules: ProductionRules) -> None:
        self._cycle, self._all = cycle_of(rules), rules.work_of_weight == "all"
        self._taken: dict[tuple[Any, ...], dict[tuple[str, int], float]] = defaultdict(dict)

    def take(self, row: dict[str, Any], nucleus: str) -> None:
        priority, rw = self._priority(row), row["task_rw"]
        if priority is None or not rw:
            return
        taken = self._taken[tuple(row[name] for name in self._cycle)]
        taken[nucleus, priority] = taken.get((nucleus, priority), 0.0) + rw

    def to(self, row: dict[str, Any], nuclei: list[str]) -> FloatArray:
        """Return what was added at each nucleus, where priority counts at the task's or above."""
        taken, least = (
            self._taken.get(tuple(row[name] for name in self._cycle)),
            self._priority(row),
        )
        if not taken or least is None:
            return np.zeros(len(nuclei))
        at: dict[str, float] = defaultdict(float)
        for (nucleus, priority), rw in taken.items():
            if priority >= least:
                at[nucleus] += rw
        return np.array([at[nucleus] for nucleus in nuclei])

    def _priority(self, row: dict[str, Any]) -> int | None:
        return 0 if self._all else row["currentpriority"]


BYTES_PER_GB = 1024.0**3
LOCALITY_PERIOD = "DATA_LOCATION_CHECK_PERIOD"
MIN_INTENSITY = "MIN_IO_INTENSITY_WITH_LOCAL_DATA"
MIN_SIZE = "MIN_INPUT_SIZE_WITH_LOCAL_DATA"
MAX_PRIORITY = "MAX_TASK_PRIO_WITH_LOCAL_DATA"


def steps(rules: ProductionRules, own: WeightOf | None) -> tuple[Step, ...]:
    """Return the steps in order.

    They make ``asks_locality`` (the check of locality is on, and some nucleus came to it), ``off_period``, ``waived``,
    ``full_chain_detail`` (F1 to F3), the factors of the weight and ``factor``, their product without that of the work.
    """
    return (
        *(_ending_the_task(rules) if aborts(rules) else ()),
        *_locality(rules),
        check(
            "F4", "parent_missing", "the task is full chain and its parent {parent_tid} is not known",
            pl.col("parent_unknown") & pl.lit(value=rules.missing_parent_waits),
        ),
        *_full_chain(rules),
        *with_weight(rules),
        *weighed_by(own, rules, "factor"),
    )  # fmt: skip


def _ending_the_task(rules: ProductionRules) -> tuple[Step, ...]:
    """Return rows 3 to 7 as deployed: the first nucleus without an endpoint for an output ends the task."""
    storage = output_checks(rules)
    stops = LEFT & storage[0].when
    first = pl.col("position").filter(stops).min().over("t")
    reached = pl.col("first_without_storage").is_null() | (
        pl.col("position") <= pl.col("first_without_storage")
    )
    ended = check(
        "3", "not_reached",
        "a nucleus before it, or behind, has no endpoint for an output, at which the deployed code gives up",
        pl.col("first_without_storage").is_not_null(), scope="task",
    )  # fmt: skip
    return (
        Derived({"first_without_storage": first}),
        *(replace(rule, when=rule.when & reached) for rule in storage),
        ended,
        no_queue(rules),
    )


def fraction(key: str) -> pl.Expr:
    """Return a setting in percent as a fraction: a division by a column, as Polars multiplies by 1/100 otherwise."""
    percent = setting(key)
    return percent / (percent * 0 + 100)


def off_period(rules: ProductionRules) -> pl.Expr:
    """Tell where a task has been stuck for longer than DATA_LOCATION_CHECK_PERIOD (switch ``locality_ends``)."""
    if not rules.locality_ends:
        return pl.lit(value=False)
    stuck = pl.col("at") - pl.col("frozentime")
    limit = pl.duration(microseconds=setting(LOCALITY_PERIOD) * 86400e6)
    return (stuck > limit).fill_null(value=False)


def period_days_left(rules: ProductionRules) -> pl.Expr:
    """Return the days until the check of locality ends by itself [days]; null for a task that is not stuck."""
    if not rules.locality_ends:
        return pl.lit(None, pl.Float64)
    stuck = (pl.col("at") - pl.col("frozentime")).dt.total_microseconds()
    return setting(LOCALITY_PERIOD) - stuck / 86400e6


def _locality(rules: ProductionRules) -> tuple[Step, ...]:
    """Return rows 8 and 9, and what waives them for all nuclei of a task."""
    staged = pl.col("inputprestaging").fill_null(value=False)
    if rules.prestaging_needs_local_files:
        staged &= pl.col("ava_num_any") > 0
    size, number = setting("INPUT_SIZE_THRESHOLD"), setting("INPUT_NUM_THRESHOLD")
    total = (
        pl.col("tot_num") if rules.input_num_of == "files" else pl.col("tot_size") / BYTES_PER_GB
    )

    def lacks(part: str, whole: str, key: str) -> pl.Expr:
        """Tell where a local part is not above the fraction, compared without a fraction, which would be off by a bit."""
        if rules.fraction_equal_passes:
            return pl.col(part) < pl.col(whole) * fraction(key)
        return pl.col(part) * 100 <= pl.col(whole) * setting(key)

    asked = pl.col("has_input") & ~pl.col("off_period") & ~staged
    passes = ~(pl.col("lacks_size") | pl.col("lacks_files"))
    return (
        Derived({
            "came_to_input": LEFT,
            "off_period": off_period(rules),
        }),
        Derived({
            "lacks_size": asked
            & (pl.col("tot_size") > size * BYTES_PER_GB)
            & lacks("ava_size_any", "tot_size", "INPUT_SIZE_FRACTION"),
            "lacks_files": asked
            & (total > number)
            & lacks("ava_num_any", "tot_num", "INPUT_NUM_FRACTION"),
        }),
        Derived({
            "waived": any_left(pl.lit(value=True)) & ~any_left(passes) & _may_waive(rules),
        }),
        check(
            "8", "input_size",
            "it has {ava_size_any} of {tot_size} B of the input; {size_needed} B are needed above {size_threshold_gb} GB",
            LEFT & pl.col("lacks_size") & ~pl.col("waived"), scope="task",
            numbers={
                "size_threshold_gb": size,
                "size_needed": pl.col("tot_size") * fraction("INPUT_SIZE_FRACTION"),
            },
        ),
        check(
            "9", "input_files",
            "it has {ava_num_any} of {tot_num} files of the input; {files_needed} are needed above {files_threshold}",
            LEFT & pl.col("lacks_files") & ~pl.col("waived"), scope="task",
            numbers={
                "files_threshold": number,
                "files_needed": pl.col("tot_num") * fraction("INPUT_NUM_FRACTION"),
            },
        ),
    )  # fmt: skip


def _may_waive(rules: ProductionRules) -> pl.Expr:
    """Tell where the check of locality is cancelled if no nucleus passes it."""
    intensity = pl.col("iointensity")
    light = intensity.is_null() | (intensity <= setting(MIN_INTENSITY))
    small = pl.col("tot_size") / BYTES_PER_GB <= setting(MIN_SIZE)
    urgent = pl.col(rules.waiver_priority) >= setting(MAX_PRIORITY)
    return (light & small) | urgent.fill_null(value=False)


def _full_chain(rules: ProductionRules) -> tuple[Derived, Rule]:
    away = (pl.col("nucleus") != pl.col("parent_nucleus")).fill_null(value=True)
    return (
        Derived({"full_chain_detail": full_chain.detail_where(rules, away=away)}),
        check(
            "10", "full_chain",
            "{full_chain_detail}: fullChain is {fullchain}, its bareNucleus {bare_mode}, the parent is at "
            "{parent_nucleus}",
            pl.col("full_chain_detail").is_not_null(),
        ),
    )  # fmt: skip
