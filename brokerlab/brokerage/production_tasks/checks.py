"""The rules that look at one nucleus, in their order (production-tasks.md 3, rows 1 to 7)."""

from __future__ import annotations

from functools import lru_cache

import polars as pl

from brokerlab.brokerage.engine.rule import Chapter, Rule, setting
from brokerlab.brokerage.engine.steps import Derived
from brokerlab.brokerage.production_tasks.storage import GB_PER_TB
from brokerlab.brokerage.rules import ProductionRules

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
            "1",
            "nucleus_inactive",
            "state is {state}, not ACTIVE",
            ~(pl.col("state") == "ACTIVE").fill_null(value=False),
        ),
        check(
            "2",
            "transfer_backlog",
            "{queued_files} files are queued for it, more than {queued_cap}, and t1weight is not negative",
            (pl.col("queued_files") > cap) & ~prefers_nuclei,
            numbers={"queued_cap": cap},
        ),
    )
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
            "3",
            "no_storage",
            "no output endpoint fits a storage token",
            pl.col("gathers_output") & pl.col("ddm_endpoint_name").is_null(),
        ),
        _wan_down("4", "read"),
        _wan_down("5", "write"),
        _disk_space(rules),
    )


def _wan_down(row: str, side: str) -> Rule:
    return check(
        row,
        f"{side}_wan_down",
        f"{side}_wan of {{ddm_endpoint_name}} is {{{side}_wan}}",
        ~pl.col(f"{side}_wan_up"),
    )


def _disk_space(rules: ProductionRules) -> Rule:
    left, threshold = pl.col("usable_gb") - pl.col("demand_gb"), setting(THRESHOLD) * GB_PER_TB
    short = left < threshold if rules.disk_equal_passes else left <= threshold
    equal = "below" if rules.disk_equal_passes else "not above"
    return check(
        "6",
        "disk_space",
        "{ddm_endpoint_name} has {usable_gb} GB usable and must hold {demand_gb} GB of work assigned: the rest is "
        f"{equal} {{disk_threshold_gb}} GB",
        pl.col("ddm_endpoint_name").is_not_null() & short,
    )


def no_queue(rules: ProductionRules) -> Rule:
    """Return row 7: no queue of the nucleus could run the task."""
    return check(
        "7",
        "no_queue",
        "none of its queues could run the task",
        (pl.col("n_hint_queues") == 0) & pl.lit(value=rules.hint_brokerage),
    )
