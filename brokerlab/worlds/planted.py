"""The keys of gdpconfig that a synthetic archive's system has set, and what is planted among them in a lived world.

Most production keys have their defaults. Those of users are scaled to the size of the archive, where a few hundred
jobs of users run at a time, so that caps, thresholds and stabilizer bite now and then. Planted are settings that are wrong, and
some that are right, with what would be best: the history is made under them, and calibration never reads what is said of them here.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from brokerlab.worlds.block import CPUTIME_RANK
from brokerlab.worlds.queues import conform
from brokerlab.worlds.settings import Planted, SynthSettings

_JOBS, _TASKS = "jobbroker", "taskbrokerage"
VALUES: tuple[tuple[str, str, str, str], ...] = (
    (_JOBS, "NQUEUED_SAT_CAP", "150", "int"),
    (_JOBS, "NQUEUED_NUC_CAP_FOR_JOBS", "10000", "int"),
    (_JOBS, "IO_INTENSITY_CUTOFF", "200", "int"),
    (_JOBS, "SIZE_CUTOFF_TO_MOVE_INPUT", "100", "int"),
    (_JOBS, "NUM_CUTOFF_TO_MOVE_INPUT", "100", "int"),
    (_JOBS, "MAX_DISKIO_DEFAULT", "2000", "int"),
    (_JOBS, "STORAGE_MIN_FREE_SIZE", "200", "int"),
    (_JOBS, "MAX_MISSING_INPUT_FILES", "10", "int"),
    (_JOBS, "MIN_INPUT_COMPLETENESS", "90", "int"),
    (_JOBS, "NW_ACTIVE", "true", "bool"),
    (_JOBS, "NW_QUEUE_IMPORTANCE", "0.5", "float"),
    (_JOBS, "NW_THRESHOLD", "1.7", "float"),
    (_JOBS, "NW_WEIGHT_MULTIPLIER", "1", "float"),
    (_JOBS, "MAX_PRIO_TO_BOOTSTRAP", "150", "int"),
    (_JOBS, "NQUEUELIMITSITE_MC 16 simul", "50", "int"),
    (_JOBS, "MIN_WEIGHT_managed", "0.02", "float"),
    (_TASKS, "NQUEUED_NUC_CAP", "2000", "int"),
    (_TASKS, "DISK_THRESHOLD", "100", "int"),
    (_TASKS, "DISK_THRESHOLD_MC 16 reco", "150", "int"),
    (_TASKS, "FREE_DISK_CUTOFF", "1000", "int"),
    (_TASKS, "INPUT_SIZE_THRESHOLD", "1", "int"),
    (_TASKS, "INPUT_SIZE_FRACTION", "10", "int"),
    (_TASKS, "INPUT_NUM_THRESHOLD", "100", "int"),
    (_TASKS, "INPUT_NUM_FRACTION", "10", "int"),
    (_TASKS, "MIN_IO_INTENSITY_WITH_LOCAL_DATA", "200", "int"),
    (_TASKS, "MIN_INPUT_SIZE_WITH_LOCAL_DATA", "10000", "int"),
    (_TASKS, "MAX_TASK_PRIO_WITH_LOCAL_DATA", "800", "int"),
    (_TASKS, "DATA_LOCATION_CHECK_PERIOD", "7", "int"),
    ("core", "WORK_SHORTAGE", "false", "bool"),
)
"""Component, key, value, type; all of the application ``jedi``."""
_ANALYSIS, _SERVER = "anal_jobbroker", "pandaserver"
USER_VALUES: tuple[tuple[str, str, str, str, str], ...] = (
    ("jedi", _ANALYSIS, "IO_INTENSITY_CUTOFF_USER", "100", "int"),
    ("jedi", _ANALYSIS, "DATA_CHECK_TIMEOUT_USER", "24", "int"),
    ("jedi", _ANALYSIS, "BASE_QUEUE_LENGTH_PER_PQ", "10", "int"),
    ("jedi", _JOBS, "MIN_WEIGHT_user", "0.004", "float"),
    (_SERVER, "prio_mgr", "CAP_RUNNING_USER_JOBS", "200", "int"),
    (_SERVER, "prio_mgr", "CAP_RUNNING_USER_CORES", "240", "int"),
    (_SERVER, "prio_mgr", "CAP_RUNNING_GROUP_JOBS", "20", "int"),
    (_SERVER, "prio_mgr", "CAP_RUNNING_GROUP_CORES", "40", "int"),
    (_SERVER, "analy_eval", "USER_USAGE_THRESHOLD_A", "15", "int"),
    (_SERVER, "analy_eval", "USER_USAGE_THRESHOLD_B", "50", "int"),
    (_SERVER, "rebroker", "ANALY_TIMEOUT", "12", "int"),
    (_SERVER, "rebroker", "ANALY_TIMEOUT_phys-higgs", "6", "int"),
    (_SERVER, "rebroker", "FAST_REBRO_THRESHOLD_NQUEUE_User Analysis", "30", "int"),
    (_SERVER, "watcher", "HEARTBEAT_TIMEOUT_push", "4", "int"),
)
"""Application, component, key, value, type."""


SCOUT_VALUES: tuple[tuple[str, str, str], ...] = (
    ("SCOUT_SHORT_EXECTIME_managed", "0", "int"),
    ("SCOUT_SHORT_EXECTIME_user", "0", "int"),
    ("SCOUT_LOW_CPU_EFFICIENCY_managed", "0", "int"),
    ("SCOUT_LOW_CPU_EFFICIENCY_user", "0", "int"),
    ("SCOUT_WRONG_CPUTIME_THRESHOLD", "2", "float"),
    ("RAM_THR_EXAUSTED", "4", "int"),
)
"""Key, value, type of those keys of the scouts that no setting of the archive says; all of ``jedi``, ``dbproxy``."""


def gdpconfig(settings: SynthSettings) -> pl.DataFrame:
    """Return ``gdpconfig``: the keys of the scouts with the values that made the requests, then those of brokerage."""
    scouts = [
        ("SCOUT_CPUTIME_RANK", f"{CPUTIME_RANK}", "int"),
        ("SCOUT_RAMCOUNT_RANK", f"{settings.ram_rank}", "int"),
        ("SCOUT_RAMCOUNT_MARGIN", f"{settings.ram_margin_pct}", "int"),
        *SCOUT_VALUES,
    ]
    rows: list[tuple[str | None, ...]] = [("jedi", "dbproxy", *row, None) for row in scouts]
    rows += [("jedi", *row, "atlas") for row in VALUES] + [(*row, "atlas") for row in USER_VALUES]
    names = ["app", "component", "key", "value", "type", "vo"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return conform("gdpconfig", frame.with_columns(descr=pl.lit("synthetic")))


RANK, MARGIN = "SCOUT_RAMCOUNT_RANK", "SCOUT_RAMCOUNT_MARGIN"


@dataclass(frozen=True)
class Plant:
    """One key."""

    key: str  # of gdpconfig, without a scope
    component: str  # of gdpconfig
    # value in a world with wrong settings; equal to ``best`` for keys that are right
    planted: int
    best: int  # value in a world without
    lowest: float  # from this value on it is as good as the best ...
    highest: float | None  # ... and up to this one; null: no bound
    report: str  # which report judges it
    trades: str  # what goes wrong with the planted value


PLANTED = (
    Plant(
        MARGIN, "dbproxy", 0, 18, 14, 22, "scout-percentiles",
        "Without a margin above the scouts' percentile jobs are killed for memory and run again; a margin costs memory "
        "that is not used.",
    ),
    Plant(
        RANK, "dbproxy", 75, 75, 50, 99, "scout-percentiles",
        "One setting with the margin: with more of one less of the other is needed, and the loss is nearly the same.",
    ),
    Plant(
        "IO_INTENSITY_CUTOFF", "jobbroker", 200, 10_000, 5000, None, "thresholds",
        "Tasks with more input per second are bound to the few queues that have all of it, where they wait while others are idle.",
    ),
    Plant(
        "MAX_DISKIO_DEFAULT", "jobbroker", 2000, 2000, 2000, 2000, "thresholds",
        "Less leaves out queues for tasks with disk traffic; more changes no decision.",
    ),
    Plant(
        "NQUEUED_NUC_CAP_FOR_JOBS", "jobbroker", 2000, 50_000, 10_000, None, "thresholds",
        "Half of the nuclei have more than 2,000 files on their way to them, so that their tasks get no queue and starve until "
        "these have arrived.",
    ),
)  # fmt: skip
"""Sorted by report and key."""
FURTHER: dict[Planted, dict[str, int]] = {
    "wrong": {"NUM_CUTOFF_TO_MOVE_INPUT": 0},
    "none": {"NW_THRESHOLD": 0},
}
"""Further keys in force, of which nothing is said: no input of tasks over IO_INTENSITY_CUTOFF may be moved, which makes it matter (to let
it be moved gains less than to raise the cutoff, as limits on bytes stay); where links carry all that is sent, to leave slow ones
out costs 6 % of turnaround."""


def value_of(plant: Plant, planted: Planted) -> int:
    """Return the value in force."""
    return plant.planted if planted == "wrong" else plant.best


def drawn(planted: Planted) -> dict[str, int | float]:
    """Return what the draw of a world must know: the rule of its scouts."""
    values = {plant.key: value_of(plant, planted) for plant in PLANTED}
    return {"ram_rank": values[RANK], "ram_margin_pct": values[MARGIN]}


def config(settings: SynthSettings) -> pl.DataFrame:
    """Return ``gdpconfig``; in a lived world with what is planted in force."""
    usual = gdpconfig(settings)
    if not settings.lived:
        return usual
    values = {plant.key: str(value_of(plant, settings.planted)) for plant in PLANTED}
    values |= {key: str(value) for key, value in FURTHER[settings.planted].items()}
    return usual.with_columns(value=pl.col("key").replace_strict(values, default=pl.col("value")))


def truth(planted: Planted) -> pl.DataFrame:
    """Return ``truth/planted_settings``, one row per key of `PLANTED` by report and key; the columns are told in `brokerlab.worlds`."""
    rows = [
        (
            *(plant.key, plant.component, None, value_of(plant, planted) != plant.best),
            *(str(value_of(plant, planted)), str(plant.best), plant.lowest, plant.highest),
            *(plant.report, plant.trades),
        )
        for plant in PLANTED
    ]
    schema = {
        **dict.fromkeys(("key", "component", "scope"), pl.String),
        "wrong": pl.Boolean,
        **dict.fromkeys(("planted", "best"), pl.String),
        **dict.fromkeys(("best_lo", "best_hi"), pl.Float64),
        **dict.fromkeys(("report", "trades"), pl.String),
    }
    return pl.DataFrame(rows, schema=schema, orient="row").sort("report", "key")
