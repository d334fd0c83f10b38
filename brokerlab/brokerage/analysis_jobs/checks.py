"""The checks of single queues, rows 1 to 20 of analysis-jobs.md 4, in order.

Each is an expression over the columns of a pair: ``t_`` of the task, ``q_`` of the queue, ``p_`` of its unified
parent, ``s_`` state of the parent at the instant, ``e_`` its endpoints, ``x_`` of task and queue together. Checks that
the production brokerage has too are its own, under the names of this chapter.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import polars as pl
from polars import col

from brokerlab.brokerage.analysis_jobs.settings import AnalysisRules, asked_of
from brokerlab.brokerage.engine.rule import Chapter, Rule
from brokerlab.brokerage.engine.steps import setting_or
from brokerlab.brokerage.production_jobs import checks as shared
from brokerlab.brokerage.production_jobs.checks import (
    DAY_S,
    REFERENCE_POWER,
    at_least_one,
    capacity,
)
from brokerlab.brokerage.production_jobs.settings import MIN_FREE_GB
from brokerlab.brokerage.rules import AS_DEPLOYED, ProductionRules

check = Chapter("analysis-jobs.md ")
FLAGS = ("read_lan", "write_lan", "write_wan", "read_wan")
"""What endpoints are asked for, in the order in which it is reported (4.10)."""


def _as(rule: Rule, row: str, name: str) -> Rule:
    """Return a check of the production brokerage under its name here."""
    return replace(rule, name=name, source=check.prefix + row, kind="persistent")


@lru_cache(maxsize=64)  # made of many small expressions
def queue_checks(rules: AnalysisRules) -> tuple[Rule, ...]:
    """Return the checks in the order in which they run."""
    *lists, cloud = _list_checks()
    early, late = (lists, ()) if rules.lists_first else ((), lists)
    cores, most_cores = shared.core_checks(AS_DEPLOYED)
    intensity = _as(shared.io_intensity_check(AS_DEPLOYED), "5", "max_io_intensity")
    only = rules.code_only_checks
    return (
        *early,
        check(
            "4", "data_locality", "its storage does not hold the input",
            col("t_local") & col("t_has_input") & ~col("x_data"),
        ),
        _status_check(rules),
        *code_only(
            check(
                "6", "zeroshare",
                "the queue's fairsharepolicy ({q_fairsharepolicy}) gives no share to processing type {t_type} of share {t_gshare}",
                col("x_zero_share") & ~col("t_preassigned"),
            ),
            asked=only,
        ),
        _as(shared.diskio_check(per_core=rules.diskio_per_core, whole=False), "4", "diskio"),
        *code_only(intensity, asked=only),
        _vp_check(rules),
        _as(cores, "4", "cpucore"),
        _as(most_cores, "4", "max_cpucore"),
        *_software_checks(rules),
        *_memory_and_disk(rules),
        *_storage_checks(rules),
        *_time_checks(rules),
        check(  # "Skip queues without pilots for the last 3 hours."
            "4", "nopilot", "no pilot has come for 3 h",
            (col("s_pilots") == 0) & asked_of(col("t_label") == "test", rules),
        ),
        *late,
        *code_only(cloud, asked=only),
        check(
            "3", "nonpreassigned", "the task is pre-assigned to {t_home}",
            col("t_preassigned") & ~col("x_home"),
        ),
    )  # fmt: skip


def code_only(*rules: Rule, asked: bool) -> tuple[Rule, ...]:
    """Return rules of the deployed code that the page does not name, or, where the rule set does not ask them, none."""
    return rules if asked else ()


def _status_check(rules: AnalysisRules) -> Rule:
    """Return ``status``: "The queue status must be online unless the queues are pre-assigned."."""
    status = col("q_status")
    if rules.status_mode == "online":
        chosen = col("x_home") | (col("t_named") & col("x_included"))
        bad = (status != "online") & ~chosen
        says = "the queue's status is {q_status}, not online"
    else:
        resting = (status == "brokeroff") | (status == "test")
        bad = (status == "offline") | (resting & ~col("t_named") & ~col("x_home"))
        says = "the queue's status is {q_status}"
    return check("4", "status", says, bad)


def virtual(rules: AnalysisRules) -> pl.Expr:
    """Tell which queues are VP queues: they have a VP endpoint for input."""
    return col("e_vp_default" if rules.vp_default_scope else "e_vp")


def _vp_check(rules: AnalysisRules) -> Rule:
    """Return ``avoid_vp``: "Skip VP queues if the task specifies avoidVP"; the code has more reasons."""
    avoids = col("t_avoids_vp")
    if rules.vp_avoided_by == "more":
        avoids = (
            avoids
            | col("t_merging")
            | col("t_distributed")
            | (col("t_local") & col("t_union"))
            | ~col("t_local")
        )
    reads = "it reads through virtual placement, which "
    return check(
        "4", "avoid_vp", reads + "is not used without locality",
        avoids & virtual(rules),
        variants={
            "t_avoids_vp": reads + "the task avoids (avoidvp)",
            "t_merging": reads + "merge jobs avoid",
            "t_distributed": reads + "is not used for a distributed input",
            "t_union": reads + "is not used where no queue holds all of the input",
        },
    )  # fmt: skip


def _software_checks(rules: AnalysisRules) -> tuple[Rule, ...]:
    free, software = asked_of(col("t_preassigned"), rules), col("x_software")
    asked = "architecture {t_architecture:none}, release {t_transhome:none}, container {t_container_name:none}"
    platform = check(
        "6", "architecture", "it is a GPU queue, and the task names no platform",
        col("q_gpu") & col("x_platform_missing"),
        variants={"t_architecture": "it is a GPU queue without the platform {t_architecture}"},
    )  # fmt: skip
    closed = check(
        "6", "closed", "{x_closed} jobs of the task were closed there lately",
        free & asked_of(col("t_merging"), rules) & (col("x_closed") > 0), kind="temporary",
    )  # fmt: skip
    return (
        *code_only(platform, asked=rules.code_only_checks),
        *code_only(closed, asked=rules.closed_skips),
        check(
            "4", "cache", f"it lacks the software or hardware asked for ({{x_software_reason}}): {asked}",
            free & (software == shared.REJECTED),
        ),
        check(
            "4", "regexpcmtconfig", "no platform that it publishes fits the pattern {t_architecture}",
            free & (software == shared.UNRESOLVED),
        ),
    )  # fmt: skip


def _memory_and_disk(rules: AnalysisRules) -> tuple[Rule, ...]:
    low, high = shared.memory_checks(whole=rules.whole_numbers)
    single = rules.maxwdir_mode == "single_core"
    as_deployed = ProductionRules(
        "production",
        maxwdir_per_core=not single,
        scratch_equal_passes=single,
        direct_asks_task=rules.direct_asks_task,
    )
    remote, disk = shared.disk_checks(as_deployed)
    return (
        _as(low, "4", "lowmemory"),
        _as(high, "4", "highmemory"),
        *code_only(_as(remote, "6", "remoteio"), asked=rules.code_only_checks),
        _as(disk, "4", "disk"),
    )


def _storage_checks(rules: AnalysisRules) -> tuple[Rule, ...]:

    def little(space: str, limit: pl.Expr) -> pl.Expr:
        short = col(space) <= limit if rules.space_strict else col(space) < limit
        return short.fill_null(value=False)

    must = "more than" if rules.space_strict else "at least"
    limit, limit_in = (
        setting_or(key, MIN_FREE_GB)
        for key in ("STORAGE_MIN_FREE_SIZE_OUTPUT", "STORAGE_MIN_FREE_SIZE")
    )
    stays = pl.lit(value=rules.data_counts_without_locality) & col("x_data")
    holds = (col("t_local") & col("x_data")) | stays
    far = (
        ~col("t_local")
        & ~stays
        & (~col("e_input") | (~col("e_same") & little("e_in_space", limit_in)))
    )
    wan = col("e_write_wan") & col("e_read_wan")
    far_off = ~holds & ~(wan & col("t_remote_source"))
    quota = check(
        "6", "local_quota", "its output endpoint is over the quota of the user or group",
        col("x_over_quota"),
    )  # fmt: skip
    return (
        check(
            "4", "storage", f"{{e_in_space}} GB are {rules.local_space} at its input endpoint, to which the input has to move, and {must} "
            "{limit_in} GB must be",
            ~col("e_output") | little("e_out_space", limit) | far,
            numbers={
                "limit": limit, "limit_in": limit_in,
                "no_output": ~col("e_output"), "little_output": little("e_out_space", limit),
                "no_input": ~col("e_input"),
            },
            variants={
                "no_output": "it has no output endpoint",
                "little_output": f"{{e_out_space}} GB are {rules.local_space} at its output endpoint, and {must} {{limit}} GB must be",
                "no_input": "it has no input endpoint, and the input has to move there",
            },
        ),
        check(
            "4", "blacklist", "it does not hold the input, and no source of it can be read over WAN",
            ~col("e_read_lan") | ~col("e_write_lan") | far_off,
            numbers={f"no_{name}": ~col(f"e_{name}") for name in FLAGS},
            variants={
                "no_read_lan": "none of its input endpoints can be read over LAN",
                "no_write_lan": "none of its output endpoints can be written over LAN",
                "no_write_wan": "none of its input endpoints can be written over WAN, asked for where the input is not",
                "no_read_wan": "none of its output endpoints can be read over WAN, asked for where the input is not",
            },
        ),
        *code_only(quota, asked=rules.code_only_checks),
    )  # fmt: skip


def _time_checks(rules: AnalysisRules) -> tuple[Rule, ...]:
    scout = col("t_scout") & asked_of(col("t_preassigned"), rules)
    applies = scout | col("t_walltime_undefined")
    whole = rules.whole_numbers
    fits, least = (capacity(limit, whole=whole) for limit in ("q_maxtime", "q_mintime"))
    need, slot, taken = col("t_need"), fits, least
    no_scaling = (col("t_efficiency") == 0) & col("t_hs06")
    if rules.zero_efficiency_rejects:
        no_scaling = no_scaling & pl.lit(value=False)
    else:
        need = pl.when(no_scaling).then(col("t_basewalltime")).otherwise(need)
        slot = pl.when(no_scaling).then(col("q_maxtime")).otherwise(slot)
        taken = pl.when(no_scaling).then(col("q_mintime")).otherwise(taken)
    if rules.min_capacity_mode == "capacity":
        day = at_least_one(col("q_corecount")) * (DAY_S * REFERENCE_POWER)
        short = (fits != 0) & (fits < day)
        says = "{day} HS06 s, 24 h at 10 HS06 per core, {fits} fit into the queue's maxtime of {q_maxtime} s"
        numbers = {"day": day, "fits": fits}
    else:
        applies = applies | col("t_merging")
        short = (col("q_maxtime") != 0) & (col("q_maxtime") < DAY_S)
        says, numbers = "24 h, the queue's maxtime is {q_maxtime} s", {}
    counts = (need > 0) & asked_of(col("t_merging"), rules)
    long, little = "the largest job needs {t_need}", "the largest job needs only {t_need}"
    base = "the base wall time of {t_basewalltime} s alone"
    maxtime, mintime = "maxtime of {q_maxtime} s", "mintime of {q_mintime} s"
    return (
        check(
            "4", "shortwalltime", f"{long} s, {{fits}} s fit into the queue's {maxtime}",
            counts & (col("q_maxtime") != 0) & (need > slot),
            numbers={"fits": fits, "no_scaling": no_scaling},
            variants={
                "no_scaling": f"{base} is over the queue's {maxtime}",
                "t_hs06": f"{long} HS06 s, {{fits}} HS06 s fit into the queue's {maxtime}",
            },
        ),
        check(
            "4", "longwalltime", f"{little} s, and the queue's {mintime} asks for {{least}} s",
            counts & (col("q_mintime") != 0) & (need < taken),
            numbers={"least": least, "no_scaling": no_scaling},
            variants={
                "no_scaling": f"{base} is under the queue's {mintime}",
                "t_hs06": f"{little} HS06 s, and the queue's {mintime} asks for {{least}} HS06 s",
            },
        ),
        check(
            "4", "scout_walltime", f"scouts need {says}", applies & short & col("t_scout"),
            numbers=numbers,
        ),
        check(
            "4", "min_walltime", f"jobs of unknown wall time need {says}",
            applies & short & ~col("t_scout"), numbers=numbers,
        ),
    )  # fmt: skip


def _list_checks() -> tuple[Rule, ...]:
    other = col("t_has_list") & ~col("x_included")
    return (
        check("3", "excluded", "the task excludes it", col("x_excluded")),
        check(
            "3", "notincluded", "it is not among the queues that the task may use",
            other & ~col("t_auto"),
        ),
        check(
            "3", "cloudmismatch", "the task runs in cloud {t_cloud}, the queue is of {q_cloud}",
            (col("t_cloud") != col("q_cloud")),
        ),
    )  # fmt: skip
