"""The checks that remove nuclei, in their order (production-task-brokerage.md 4).

Each compares facts that stand beside it as columns of a pair of task and nucleus, or of an output there.
"""

from __future__ import annotations

import narwhals.stable.v2 as nw

from brokerlab.brokerage.check import Check
from brokerlab.brokerage.production_tasks.locality import BYTES_PER_GB
from brokerlab.brokerage.rules import ProductionRules

CHAPTER = "production-task-brokerage.md 4"
OUTPUT_CHECKS = ("no_storage", "read_wan_down", "write_wan_down", "disk_space")
"""Rows 3 to 6: asked for one output after the other; the first that fails gives the reason."""
INPUT_CHECKS = ("input_size", "input_files")
"""Rows 8 and 9, which the waiver of section 5.1 cancels."""


def checks(rules: ProductionRules) -> tuple[Check, ...]:
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


def _true(condition: nw.Expr) -> nw.Expr:
    return condition.fill_null(value=False)


def _nucleus_inactive() -> Check:
    return Check(
        name="nucleus_inactive",
        source=f"{CHAPTER}, 1 (S2)",
        says="state is {state}, not ACTIVE",
        skip=~_true(nw.col("state") == "ACTIVE"),
        inputs=("state",),
    )


def _transfer_backlog() -> Check:
    backlogged = _true(nw.col("queued_files") > nw.col("queued_cap"))
    return Check(
        name="transfer_backlog",
        source=f"{CHAPTER}, 2 (S2)",
        says="{queued_files} files are queued for it, more than {queued_cap}, and t1weight is not negative",
        skip=backlogged & ~_true(nw.col("t1weight") < 0),
        inputs=("queued_files", "queued_cap", "t1weight"),
        keys=("NQUEUED_NUC_CAP",),
    )


def _no_storage() -> Check:
    return Check(
        name="no_storage",
        source=f"{CHAPTER}, 3 (S2)",
        says="no output endpoint fits a storage token",
        skip=nw.col("ddm_endpoint_name").is_null(),
        inputs=("ddm_endpoint_name",),
    )


def _wan_down(side: str, row: int) -> Check:
    return Check(
        name=f"{side}_wan_down",
        source=f"{CHAPTER}, {row} (S2)",
        says=f"{side}_wan of {{ddm_endpoint_name}} is {{{side}_wan}}",
        skip=~nw.col(f"{side}_wan_up"),
        inputs=("ddm_endpoint_name", f"{side}_wan", f"{side}_wan_up"),
    )


def _disk_space(rules: ProductionRules) -> Check:
    left, threshold = nw.col("usable_gb") - nw.col("demand_gb"), nw.col("disk_threshold_gb")
    short = left < threshold if rules.disk_equal_passes else left <= threshold
    equal = "below" if rules.disk_equal_passes else "not above"
    return Check(
        name="disk_space",
        source=f"{CHAPTER}, 6 (S2)",
        says=f"{{ddm_endpoint_name}} has {{usable_gb}} GB usable and must hold {{demand_gb}} GB of work "
        f"assigned: the rest is {equal} {{disk_threshold_gb}} GB",
        skip=~nw.col("ddm_endpoint_name").is_null() & _true(short),
        inputs=("ddm_endpoint_name", "usable_gb", "demand_gb", "disk_threshold_gb"),
        keys=("DISK_THRESHOLD[_<gshare>]",),
    )


def _no_queue(rules: ProductionRules) -> Check:
    none = _true(nw.col("n_hint_queues") == 0)
    return Check(
        name="no_queue",
        source=f"{CHAPTER}, 7 (CODE)",
        says="none of its queues could run the task",
        skip=none & nw.lit(value=rules.hint_brokerage),
        inputs=("n_hint_queues",),
    )


def _lacks(part: str, needed: str, rules: ProductionRules) -> nw.Expr:
    """Tell where a local part is not above the part needed (row T8)."""
    if rules.fraction_equal_passes:
        return nw.col(part) < nw.col(needed)
    return nw.col(part) <= nw.col(needed)


def _input_size(rules: ProductionRules) -> Check:
    large = nw.col("tot_size") > nw.col("input_size_threshold_gb") * BYTES_PER_GB
    lacks = large & _lacks("ava_size_any", "size_needed", rules)
    return Check(
        name="input_size",
        source=f"{CHAPTER}, 8 (S2)",
        says="it has {ava_size_any} of {tot_size} B of the input; {size_needed} B are needed above "
        "{input_size_threshold_gb} GB",
        skip=_true(nw.col("locality_asked") & ~nw.col("waived") & lacks),
        inputs=(
            *("tot_size", "ava_size_any", "size_needed", "input_size_threshold_gb"),
            *("locality_asked", "waived"),
        ),
        keys=("INPUT_SIZE_THRESHOLD", "INPUT_SIZE_FRACTION"),
    )


def _input_files(rules: ProductionRules) -> Check:
    many = nw.col("tot_num") > nw.col("input_num_threshold")
    lacks = many & _lacks("ava_num_any", "files_needed", rules)
    return Check(
        name="input_files",
        source=f"{CHAPTER}, 9 (S2)",
        says="it has {ava_num_any} of {tot_num} files of the input; {files_needed} are needed above "
        "{input_num_threshold}",
        skip=_true(nw.col("locality_asked") & ~nw.col("waived") & lacks),
        inputs=(
            *("tot_num", "ava_num_any", "files_needed", "input_num_threshold"),
            *("locality_asked", "waived"),
        ),
        keys=("INPUT_NUM_THRESHOLD", "INPUT_NUM_FRACTION"),
    )


def _full_chain() -> Check:
    return Check(
        name="full_chain",
        source="full-chain.md 2 (S2)",
        says="{full_chain_detail}: fullChain is {fullchain}, its bareNucleus {bare_mode}, the parent is at "
        "{parent_nucleus}",
        skip=~nw.col("full_chain_detail").is_null(),
        inputs=("full_chain_detail", "fullchain", "bare_mode", "parent_nucleus"),
    )
