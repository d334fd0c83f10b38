"""Checks of the state at the instant: links, activity, storage, transfers, pledges, pilots."""

from __future__ import annotations

import polars as pl
from polars import col

from brokerlab.brokerage.engine.rule import Rule, setting
from brokerlab.brokerage.engine.settings import setting_or
from brokerlab.brokerage.production_jobs.checks_queue import check, near, spared
from brokerlab.brokerage.production_jobs.settings import MIN_FREE_GB
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.units import HOUR_S

INACTIVE_S = 2 * HOUR_S
"""A queue without a start for longer is inactive [s]."""
BLOCKED = -1
"""Closeness of a blocked link."""


def remote() -> pl.Expr:
    """Return whether the queue's outputs cross a link to the nucleus."""
    known = (col("t_nucleus_id") >= 0) & (col("p_storage_id") >= 0)
    return known & (col("t_nucleus_id") != col("p_storage_id"))


def link_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return ``nucleus_unwritable``, ``nucleus_backlog``, ``link_blocked``, ``link_backlog``.

    Source: 002, ATLAS Production Job Brokerage: "Skip all queues if the number of files to be aggregated to the nucleus is
        larger than NQUEUED_NUC_CAP_FOR_JOBS" and "over the NQUEUED_SAT_CAP ... files queued on their links to the nucleus".
    """

    def reached(value: pl.Expr, cap: pl.Expr) -> pl.Expr:
        return value >= cap if rules.backlog_inclusive else value > cap

    used = "written and read" if rules.nucleus_must_send else "written"
    reaches = "which reaches the limit of" if rules.backlog_inclusive else "more than"
    of_nucleus, of_link = setting("NQUEUED_NUC_CAP_FOR_JOBS"), setting("NQUEUED_SAT_CAP")
    unwritable = remote() & col("t_nucleus_unwritable")
    backlog = reached(col("t_nucleus_queued"), of_nucleus)
    has_nucleus = remote() if rules.backlog_spares_nucleus else col("t_nucleus_id") >= 0
    open_link = remote() & ~col("t_nucleus_unwritable") & ~backlog & col("l_known")
    blocked = (col("l_closeness") == BLOCKED).fill_null(value=False)
    queued = reached(col("l_queued"), of_link)
    return (
        check(
            "3", "nucleus_unwritable", f"the storage of nucleus {{t_nucleus}} cannot be {used} over WAN",
            unwritable, kind="temporary",
        ),
        check(
            "3", "nucleus_backlog", f"{{t_nucleus_queued}} files wait to be moved to nucleus {{t_nucleus}}, {reaches} {{limit}}",
            has_nucleus & ~unwritable & backlog,
            kind="temporary", numbers={"limit": of_nucleus},
        ),
        check(
            "3", "link_blocked", "the link to nucleus {t_nucleus} is blocked (closeness {l_closeness})",
            open_link & blocked,
        ),
        check(
            "3", "link_backlog", f"{{l_queued}} files wait on the link to nucleus {{t_nucleus}}, {reaches} {{limit}}",
            open_link & ~blocked & queued,
            kind="temporary", numbers={"limit": of_link},
        ),
    )  # fmt: skip


def inactive_check(rules: ProductionRules) -> Rule:
    """Return ``inactive``."""
    waiting = col("s_activated")
    if rules.inactive_counts_starting:
        waiting = waiting + col("s_starting")
    silent = (col("t_at_s") - col("s_laststart_s") > INACTIVE_S).fill_null(value=False)
    applies = col("t_urgent") | col("t_merging") | col("t_merges_output")
    applies = applies & ~spared(rules, "t_listed")
    return check(
        "2",
        "inactive",
        "no job has started there for {idle_h} h although {waiting} wait; urgent, merging and to be merged work avoids "
        "queues idle for more than 2 h",
        applies & silent & (waiting > 0),
        numbers={"waiting": waiting, "idle_h": (col("t_at_s") - col("s_laststart_s")) / HOUR_S},
        kind="temporary",
    )


def _exempt(rules: ProductionRules) -> tuple[pl.Expr, pl.Expr]:
    """Return where queues of the nucleus need not receive over WAN, and where they need not send."""
    if not rules.wan_asked_at_nucleus:
        return col("x_nucleus"), col("x_nucleus")
    complete = col("t_no_complete") | col("x_complete")
    receives = col("x_nucleus") & col("s_input_disk") & complete
    return receives, col("x_nucleus") & col("s_output_disk")


def storage_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return ``storage_space``, the four endpoint checks and ``source_down``; each needs the ones before passed.

    Of several endpoints one good one is enough, see :mod:`brokerlab.brokerage.inputs.endpoints`.

    Source: 002, ATLAS Production Job Brokerage: "DISK size check, free space in the local storage has to be over 200GB" and
        "Skip queues if their storage endpoints are blacklisted".
    """
    limit = setting_or("STORAGE_MIN_FREE_SIZE", MIN_FREE_GB)
    space = col("s_space")
    little = space < limit if rules.free_equal_passes else space <= limit
    must = "at least" if rules.free_equal_passes else "more than"
    little = little.fill_null(value=False)
    exempt_in, exempt_out = _exempt(rules)
    further = pl.lit(value=rules.code_only_checks)
    steps = (
        ("6", "storage_space", f"{{s_space}} GB are {rules.local_space} at its output endpoint, {must} {{limit}} GB must be", little),
        (
            "6", "read_lan_down", "none of its input endpoints can be read over LAN",
            ~col("s_read_lan"),
        ),
        (
            "6", "write_lan_down", "none of its output endpoints can be written over LAN",
            ~col("s_write_lan"),
        ),
        (
            "6", "write_wan_down", "none of its input endpoints can receive files over WAN",
            ~(col("s_write_wan") | exempt_in),
        ),
        (
            "6", "read_wan_down", "none of its output endpoints can send files over WAN",
            ~(col("s_read_wan") | exempt_out),
        ),
        (
            "6", "source_down", "the input can be read over LAN only where it is, and not from here",
            ~col("t_remote_source") & ~(exempt_in | exempt_out) & further,
        ),
    )  # fmt: skip
    found: list[Rule] = []
    before = pl.lit(value=False)
    for row, name, says, bad in steps:
        found.append(
            check(
                row, name, says, bad & ~before,
                kind="temporary", numbers={"limit": limit},
            )
        )  # fmt: skip
        before = before | bad
    return tuple(found)


def transferring_check(rules: ProductionRules) -> Rule:
    """Return ``transferring``.

    Source: 002, ATLAS Production Job Brokerage: "Too many transferring jobs: skip if transferring > max(transferring_limit,
        2 x running), where transferring_limit limit is defined by site or 2000 if undefined."
    """
    waiting, asked = col("s_transferring"), pl.lit(value=True)
    if rules.transferring_spares:
        waiting = waiting - col("s_transferring_unwritable")
        away = (col("p_storage_id") >= 0) & (col("p_storage_id") != col("t_nucleus_id"))
        asked = away & ~near()
    twice = col("s_running") * 2
    own = col("p_transferring_limit")
    limit = pl.when(twice > own).then(twice).otherwise(own)
    return check(
        "2",
        "transferring",
        "{waiting} jobs are transferring, more than {limit} (the queue's limit of {p_transferring_limit}, or twice its "
        "{s_running} running jobs)",
        asked & (waiting > limit),
        kind="temporary",
        numbers={"waiting": waiting, "limit": limit},
    )


def shortage_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return ``opportunistic_shortage`` and ``pledge_exceeded``.

    Source: 002, ATLAS Production Job Brokerage: "When WORK_SHORTAGE in gdpconfig is set to True, the following queues are
        skipped".
    """
    short = ~spared(rules, "t_single") & setting("WORK_SHORTAGE")
    cores = col("s_running_cores")
    if rules.shortage_counts_starting:
        cores = cores + col("s_starting_cores")
    return (
        check(
            "2",
            "opportunistic_shortage",
            "work is short and the queue is opportunistic (pledgedcpu -1)",
            (col("p_pledgedcpu") == -1) & short,
        ),
        check(
            "2",
            "pledge_exceeded",
            "work is short and {cores} cores are in use, more than the pledge of {p_pledgedcpu}",
            (col("p_pledgedcpu") > 0) & (cores > col("p_pledgedcpu")) & short,
            numbers={"cores": cores},
        ),
    )


def pilot_check(rules: ProductionRules) -> Rule:
    """Return ``no_pilot``.

    Source: 002, ATLAS Production Job Brokerage: "Skip queues without pilots for the last 3 hours."
    """
    silent, says = col("s_pilots") == 0, "no pilot has come for 3 h"
    if rules.pilots_excused:
        jumbo = col("t_jumbo") & col("q_jumbo")
        silent = silent & ~col("x_has_slots") & ~jumbo & ~col("t_pilot_exempt")
        says += " and no slots are set for share {t_queue_name}, resource type {t_resource_type}"
    return check("2", "no_pilot", says, silent & ~spared(rules, "t_listed"), kind="temporary")
