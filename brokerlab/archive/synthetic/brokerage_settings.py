"""The brokerage keys that a synthetic archive's system has set (gdpconfig.csv), most at their defaults."""

from __future__ import annotations

import polars as pl

from brokerlab.archive.synthetic.world import conform

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
"""Component, key, value, type."""


def gdpconfig() -> pl.DataFrame:
    """Return the rows of ``gdpconfig`` that the production brokerage reads."""
    names = ["component", "key", "value", "type"]
    frame = pl.DataFrame(VALUES, schema=names, orient="row")
    return conform(
        "gdpconfig",
        frame.with_columns(app=pl.lit("jedi"), vo=pl.lit("atlas"), descr=pl.lit("synthetic")),
    )
