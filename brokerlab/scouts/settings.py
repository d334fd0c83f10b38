"""What is known of a task before its scouts speak: units, offsets and split rule, as columns."""

from __future__ import annotations

import polars as pl

from brokerlab.errors import DataError
from brokerlab.scouts.rules import ScoutRules
from brokerlab.scouts.split_rule import set_tag, tag_columns

CPUTIME_UNITS = ["HS06sPerEvent", "mHS06sPerEvent", "HS06sPerEventFixed", "mHS06sPerEventFixed"]
SCOUT_RULE_TAGS = ("US", "SS", "NF", "NE", "NG", "MF", "TN", "LI", "IL", "MC", "MO", "DY", "EI")


def task_settings(tasks: pl.DataFrame, rules: ScoutRules, *, merge: bool) -> pl.DataFrame:
    """Resolve the settings of every task.

    Args:
        tasks: Columns of ``gather.TASK_COLUMNS``, key ``jeditaskid``.
        rules: Rule set; S02 fills a null ``cpuefficiency``.
        merge: Settings for the merge jobs of the task (scouts.md 10).

    Returns:
        One row per task, sorted by ``jeditaskid``: the columns given, the split rule's tags, and
        ``base_time_s``, ``efficiency_pct``, ``base_ram_mb``, ``ram_per_core``, ``ram_fixed``,
        ``outdisk_per_event``, ``outdisk_fixed``, ``cputime_fixed``, ``asked_unit``, ``old_ram_mb``.

    Raises:
        DataError: Two rows of one task.

    Source: scouts.md 1, 3.4, 5, 10.
    """
    repeated = tasks.filter(pl.col("jeditaskid").is_duplicated())["jeditaskid"].unique().sort()
    if len(repeated):
        raise DataError(
            f"tasks.jeditaskid: {len(repeated)} ids occur more than once, e.g. "
            f"{repeated.head(5).to_list()}; allowed is one row per task: keep the latest"
        )
    asked_unit = pl.coalesce(
        "orig_cputimeunit",
        pl.when(pl.col("orig_cputime").fill_null(0) != 0).then(pl.lit("HS06sPerEvent")),
    )
    ramunit, diskunit = pl.col("ramunit"), pl.col("outdiskunit")
    base_ram = pl.lit(0) if merge else pl.col("baseramcount").fill_null(0)
    return tasks.sort("jeditaskid").with_columns(
        *tag_columns(SCOUT_RULE_TAGS),
        base_time_s=pl.col("basewalltime").fill_null(0),
        efficiency_pct=pl.col("cpuefficiency").fill_null(rules.default_cpu_efficiency),
        base_ram_mb=base_ram,
        ram_per_core=(ramunit == "MBPerCore").fill_null(value=False),
        ram_fixed=(ramunit == "MBPerCoreFixed").fill_null(value=False),
        outdisk_per_event=diskunit.str.ends_with("PerEvent").fill_null(value=False),
        outdisk_fixed=diskunit.str.contains("Fixed", literal=True).fill_null(value=False),
        asked_unit=asked_unit,
        cputime_fixed=asked_unit.str.ends_with("Fixed").fill_null(value=False),
        old_ram_mb=pl.col("orig_mergeramcount" if merge else "orig_ramcount"),
    )


def uses_scouts() -> pl.Expr:
    """Tell whether a task uses scouts: exactly ``US=2`` (scouts.md 1)."""
    return (pl.col("US") == 2).fill_null(value=False)


def has_no_job_limits() -> pl.Expr:
    """Tell whether files, events, GB and maximal files per job are all left to the system."""
    return pl.all_horizontal(pl.col(tag).is_null() for tag in ("NF", "NE", "NG", "MF"))


def splitrule_with_ng(tasks: pl.DataFrame) -> pl.DataFrame:
    """Return ``jeditaskid, splitrule`` with ``NG`` set to ``newng`` for the distinct pairs."""
    pairs = tasks.select("splitrule", "newng").unique()
    rules = [set_tag(rule, "NG", ng) for rule, ng in pairs.iter_rows()]
    edited = pairs.with_columns(edited=pl.Series(rules, dtype=pl.String))
    return tasks.join(edited, on=["splitrule", "newng"], nulls_equal=True).select(
        "jeditaskid", splitrule="edited"
    )
