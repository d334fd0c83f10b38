"""From nuclei that no single check removed to those that are drawn from: rules that look at all nuclei of a task, and the weight.

Rows 8 to 10 and the weight of production-tasks.md.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from brokerlab.brokerage import full_chain
from brokerlab.brokerage.engine.own import WeightOf, weighed_by
from brokerlab.brokerage.engine.rule import Rule, setting
from brokerlab.brokerage.engine.steps import LEFT, Derived, Step, any_left
from brokerlab.brokerage.production_tasks.checks import aborts, check, no_queue, output_checks
from brokerlab.brokerage.production_tasks.cycle import with_weight
from brokerlab.brokerage.rules import ProductionRules

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
            "F4",
            "parent_missing",
            "the task is full chain and its parent {parent_tid} is not known",
            pl.col("parent_unknown") & pl.lit(value=rules.missing_parent_waits),
        ),
        *_full_chain(rules),
        *with_weight(rules),
        *weighed_by(own, rules, "factor"),
    )


def _ending_the_task(rules: ProductionRules) -> tuple[Step, ...]:
    """Return rows 3 to 7 as deployed: the first nucleus without an endpoint for an output ends the task."""
    storage = output_checks(rules)
    stops = LEFT & storage[0].when
    first = pl.col("position").filter(stops).min().over("t")
    reached = pl.col("first_without_storage").is_null() | (
        pl.col("position") <= pl.col("first_without_storage")
    )
    ended = check(
        "3",
        "not_reached",
        "a nucleus before it, or behind, has no endpoint for an output, at which the deployed code gives up",
        pl.col("first_without_storage").is_not_null(),
        scope="task",
    )
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
            "8",
            "input_size",
            "it has {ava_size_any} of {tot_size} B of the input; {size_needed} B are needed above {size_threshold_gb} GB",
            LEFT & pl.col("lacks_size") & ~pl.col("waived"),
            scope="task",
            numbers={
                "size_threshold_gb": size,
                "size_needed": pl.col("tot_size") * fraction("INPUT_SIZE_FRACTION"),
            },
        ),
        check(
            "9",
            "input_files",
            "it has {ava_num_any} of {tot_num} files of the input; {files_needed} are needed above {files_threshold}",
            LEFT & pl.col("lacks_files") & ~pl.col("waived"),
            scope="task",
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
            "10",
            "full_chain",
            "{full_chain_detail}: fullChain is {fullchain}, its bareNucleus {bare_mode}, the parent is at "
            "{parent_nucleus}",
            pl.col("full_chain_detail").is_not_null(),
        ),
    )
