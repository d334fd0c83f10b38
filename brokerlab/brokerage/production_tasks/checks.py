"""The checks that remove nuclei, in their order (production-task-brokerage.md 4).

Each compares facts that stand beside it as columns of a pair of task and nucleus, or of an output there.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import polars as pl

from brokerlab.brokerage.engine.checklist import inserted
from brokerlab.brokerage.engine.own import Own
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.production_tasks.locality import BYTES_PER_GB
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError

CHAPTER = "production-task-brokerage.md 4"
OUTPUT_CHECKS = ("no_storage", "read_wan_down", "write_wan_down", "disk_space")
"""Rows 3 to 6: asked for one output after the other; the first that fails gives the reason."""
INPUT_CHECKS = ("input_size", "input_files")
"""Rows 8 and 9, which the waiver of section 5.1 cancels."""


@lru_cache(maxsize=64)  # made of many small expressions
def checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return the ten checks in the order in which they run.

    Args:
        rules: Switches T5, T8, T13; T2 and T15 act in the facts of an output, F-1 and F-3 in
            ``full_chain_detail``.
    """
    return (
        _nucleus_inactive(),
        _transfer_backlog(),
        _no_storage(),
        _wan_down("read", 4),
        _wan_down("write", 5),
        _disk_space(rules),
        _no_queue(rules),
        _input_size(rules),
        _input_files(rules),
        _full_chain(),
    )


def checks_with(own: Iterable[Own], rules: ProductionRules) -> tuple[Rule, ...]:
    """Return the checks with rules of one's own, of a nucleus or of all nuclei of a task.

    Raises:
        ConfigError: A rule of a name that is taken, or that follows no check, or one of an output.
    """
    order = checks(rules)
    for one in own:
        if one.rule.name in {check.name for check in order}:
            raise ConfigError(f"own rule {one.rule.name}: there is one of that name, take another")
        if one.after in OUTPUT_CHECKS[:-1]:
            raise ConfigError(
                f"own rule {one.rule.name} cannot follow {one.after}: outputs are checked together up to "
                f"{OUTPUT_CHECKS[-1]}, let it follow that"
            )
        order = inserted(order, one.rule, after=one.after)
    return order


def _true(condition: pl.Expr) -> pl.Expr:
    return condition.fill_null(value=False)


def _nucleus_inactive() -> Rule:
    return Rule(
        name="nucleus_inactive",
        source=f"{CHAPTER}, 1 (S2)",
        says="state is {state}, not ACTIVE",
        when=~_true(pl.col("state") == "ACTIVE"),
    )


def _transfer_backlog() -> Rule:
    backlogged = _true(pl.col("queued_files") > pl.col("queued_cap"))
    return Rule(
        name="transfer_backlog",
        source=f"{CHAPTER}, 2 (S2)",
        says="{queued_files} files are queued for it, more than {queued_cap}, and t1weight is not negative",
        when=backlogged & ~_true(pl.col("t1weight") < 0),
        keys=("NQUEUED_NUC_CAP",),
    )


def _no_storage() -> Rule:
    return Rule(
        name="no_storage",
        source=f"{CHAPTER}, 3 (S2)",
        says="no output endpoint fits a storage token",
        when=pl.col("ddm_endpoint_name").is_null(),
    )


def _wan_down(side: str, row: int) -> Rule:
    return Rule(
        name=f"{side}_wan_down",
        source=f"{CHAPTER}, {row} (S2)",
        says=f"{side}_wan of {{ddm_endpoint_name}} is {{{side}_wan}}",
        when=~pl.col(f"{side}_wan_up"),
    )


def _disk_space(rules: ProductionRules) -> Rule:
    left, threshold = pl.col("usable_gb") - pl.col("demand_gb"), pl.col("disk_threshold_gb")
    short = left < threshold if rules.disk_equal_passes else left <= threshold
    equal = "below" if rules.disk_equal_passes else "not above"
    return Rule(
        name="disk_space",
        source=f"{CHAPTER}, 6 (S2)",
        says=f"{{ddm_endpoint_name}} has {{usable_gb}} GB usable and must hold {{demand_gb}} GB of work "
        f"assigned: the rest is {equal} {{disk_threshold_gb}} GB",
        when=~pl.col("ddm_endpoint_name").is_null() & _true(short),
        keys=("DISK_THRESHOLD[_<gshare>]",),
    )


def _no_queue(rules: ProductionRules) -> Rule:
    none = _true(pl.col("n_hint_queues") == 0)
    return Rule(
        name="no_queue",
        source=f"{CHAPTER}, 7 (CODE)",
        says="none of its queues could run the task",
        when=none & pl.lit(value=rules.hint_brokerage),
    )


def _lacks(part: str, needed: str, rules: ProductionRules) -> pl.Expr:
    """Tell where a local part is not above the part needed (row T8)."""
    if rules.fraction_equal_passes:
        return pl.col(part) < pl.col(needed)
    return pl.col(part) <= pl.col(needed)


def _input_size(rules: ProductionRules) -> Rule:
    large = pl.col("tot_size") > pl.col("input_size_threshold_gb") * BYTES_PER_GB
    lacks = large & _lacks("ava_size_any", "size_needed", rules)
    return Rule(
        name="input_size",
        source=f"{CHAPTER}, 8 (S2)",
        says="it has {ava_size_any} of {tot_size} B of the input; {size_needed} B are needed above "
        "{input_size_threshold_gb} GB",
        when=_true(pl.col("locality_asked") & ~pl.col("waived") & lacks),
        keys=("INPUT_SIZE_THRESHOLD", "INPUT_SIZE_FRACTION"),
    )


def _input_files(rules: ProductionRules) -> Rule:
    many = pl.col("tot_num") > pl.col("input_num_threshold")
    lacks = many & _lacks("ava_num_any", "files_needed", rules)
    return Rule(
        name="input_files",
        source=f"{CHAPTER}, 9 (S2)",
        says="it has {ava_num_any} of {tot_num} files of the input; {files_needed} are needed above "
        "{input_num_threshold}",
        when=_true(pl.col("locality_asked") & ~pl.col("waived") & lacks),
        keys=("INPUT_NUM_THRESHOLD", "INPUT_NUM_FRACTION"),
    )


def _full_chain() -> Rule:
    return Rule(
        name="full_chain",
        source="full-chain.md 2 (S2)",
        says="{full_chain_detail}: fullChain is {fullchain}, its bareNucleus {bare_mode}, the parent is at "
        "{parent_nucleus}",
        when=~pl.col("full_chain_detail").is_null(),
    )
