"""The settings that the production task brokerage reads, one column each (chapter section 1, gdpconfig)."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from brokerlab.brokerage.engine import settings
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.production_tasks.held import KEY
from brokerlab.gdpconfig import Config

PLACE = "jedi/taskbrokerage"
"""App and component of the keys."""

KEYS = {
    "queued_cap": "NQUEUED_NUC_CAP",
    "disk_threshold_tb": "DISK_THRESHOLD[_<gshare>]",
    "free_disk_cutoff_tb": "FREE_DISK_CUTOFF",
    "input_size_threshold_gb": "INPUT_SIZE_THRESHOLD",
    "input_size_fraction": "INPUT_SIZE_FRACTION",
    "input_num_threshold": "INPUT_NUM_THRESHOLD",
    "input_num_fraction": "INPUT_NUM_FRACTION",
    "min_io_intensity": "MIN_IO_INTENSITY_WITH_LOCAL_DATA",
    "min_input_size_gb": "MIN_INPUT_SIZE_WITH_LOCAL_DATA",
    "max_task_prio": "MAX_TASK_PRIO_WITH_LOCAL_DATA",
    "data_location_check_period_days": "DATA_LOCATION_CHECK_PERIOD",
}
"""Column -> gdpconfig key. The threshold on disk is asked for the task's work queue (row T6)."""

PERCENT = ("input_size_fraction", "input_num_fraction")
"""Columns that hold a fraction; their keys are in percent."""


def with_settings(tasks: pl.DataFrame, config: Config) -> pl.DataFrame:
    """Join the value of every key to the tasks, as it was at the task's instant.

    Args:
        tasks: ``at`` and ``workqueue_name``.
        config: May have a history.
    """
    when = [*(["at"] if config.has_history else []), "workqueue_name"]
    asked = tasks.select(when).unique()
    rows = []
    for row in asked.iter_rows(named=True):
        then = config.at(row["at"]) if config.has_history else config
        found = {
            name: float(then.get(key, gshare=row["workqueue_name"])) for name, key in KEYS.items()
        }
        # divided here: a column divided by 100 is a product with 0.01, and fractions meet limits
        rows.append(found | {name: found[name] / 100 for name in PERCENT})
    values = pl.DataFrame(rows, schema=dict.fromkeys(KEYS, pl.Float64))
    known = pl.concat([asked, values], how="horizontal")
    return tasks.join(known, on=when, how="left", nulls_equal=True, maintain_order="left")


def with_settings_of(
    pairs: pl.DataFrame, tasks: pl.DataFrame, rules: Iterable[Rule], config: Config
) -> pl.DataFrame:
    """Add the settings that rules of one's own read, as they were at the task's instant.

    Args:
        pairs: ``jeditaskid, snapshot``.
        tasks: ``jeditaskid, snapshot, at, workqueue_name``.
        rules: The rules.
        config: May have a history.
    """
    read = [name for rule in rules for name in rule.reads]
    if not read:
        return pairs
    known = tasks.select(*KEY, "at", "workqueue_name")
    parts = known.partition_by("at", maintain_order=True) if config.has_history else [known]
    named = pl.concat(
        settings.with_settings(
            part, read, config.at(part["at"][0]) if config.has_history else config,
            lambda _: PLACE, {"gshare": "workqueue_name"},
        )
        for part in parts
    )  # fmt: skip
    return pairs.join(named.drop("at", "workqueue_name"), on=KEY, how="left", maintain_order="left")
