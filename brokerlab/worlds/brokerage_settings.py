"""The keys of scouts, brokerage, classes and timeouts that a synthetic archive's system has set (gdpconfig.csv).

Most production keys have their defaults. Those of users are scaled to the size of the archive, where a few hundred
jobs of users run at a time, so that caps, thresholds and stabilizer bite now and then.
"""

from __future__ import annotations

import polars as pl

from brokerlab.worlds.queues import conform
from brokerlab.worlds.requests import CPUTIME_RANK
from brokerlab.worlds.settings import SynthSettings

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
