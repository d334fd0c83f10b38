"""What is known of a task before its scouts speak: units, offsets and split rule, as columns.

A split rule, ``US=2,NF=3,NG=14``, is a comma-separated list of ``XX=value``. The value is the digits after the equals sign
and the first occurrence of a tag wins. Items that are not of that form (the further numbers of the list-valued
``AN=1,2,3``) are passed over.

Source: docs/rules/scouts.md 1 and 15.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

import polars as pl

from brokerlab.archive.contracts.tasks import INT64_DIGITS, split_rule_digits, split_rule_pattern
from brokerlab.errors import DataError
from brokerlab.gdpconfig import Config
from brokerlab.scouts.rules import ScoutRules

SCOUT_TAGS = ("US", "SS", "NF", "NE", "NG", "MF", "TN", "LI", "IL", "MC")
"""Tags that the parameters and the exhausted checks read."""


@cache
def _compile(tag: str) -> re.Pattern[str]:
    return re.compile(split_rule_pattern(tag))


def tag_value(splitrule: str | None, tag: str) -> int | None:
    """Return the number behind one tag."""
    result = _compile(tag).search(splitrule or "")
    if result is None or len(result[1].lstrip("-")) > INT64_DIGITS:
        return None
    return int(result[1])


def tag_column(tag: str, splitrule: str = "splitrule") -> pl.Expr:
    """Return the expression of one tag's number: :func:`tag_value` of a whole column."""
    digits = split_rule_digits(pl.col(splitrule), tag)
    return digits.cast(pl.Int64, strict=False).alias(tag)


def tag_columns(tags: Iterable[str] = SCOUT_TAGS, splitrule: str = "splitrule") -> list[pl.Expr]:
    """Return :func:`tag_column` of several tags, to be given to ``select`` or ``with_columns``."""
    return [tag_column(tag, splitrule) for tag in tags]


def _items(splitrule: str | None) -> list[str]:
    return splitrule.split(",") if splitrule else []


def _has_tag(item: str, tag: str) -> bool:
    return item.lstrip(" \t").startswith(f"{tag}=")


def remove_tag(splitrule: str | None, tag: str) -> str:
    """Delete every item of one tag; the others keep their order (docs/rules/scouts.md 15)."""
    return ",".join(item for item in _items(splitrule) if not _has_tag(item, tag))


def set_tag(splitrule: str | None, tag: str, value: int) -> str:
    """Replace one tag's number in place, every time it occurs, or append it.

    Source: docs/rules/scouts.md 15.
    """
    new = f"{tag}={value}"
    items = _items(splitrule)
    if not any(_has_tag(item, tag) for item in items):
        return ",".join([*items, new])
    return ",".join(new if _has_tag(item, tag) else item for item in items)


AFTER_AVALANCHE = 3  # value of the scout flag ``US`` once the scouts have spoken
FIXED_CPUTIME_UNITS = ["HS06sPerEventFixed", "mHS06sPerEventFixed"]


def task_settings(tasks: pl.DataFrame, rules: ScoutRules, *, merge: bool) -> pl.DataFrame:
    """Resolve the settings of every task.

    One row per task, sorted by ``jeditaskid``: the columns given, the split rule's tags, and
    ``base_time_s``, ``efficiency_pct``, ``base_ram_mb``, ``ram_per_core``, ``ram_fixed``,
    ``outdisk_per_event``, ``outdisk_fixed``, ``cputime_fixed``, ``asked_unit``, ``old_ram_mb``.

    Source: docs/rules/scouts.md 1, 3.4, 5, 10.
    """
    twice = tasks.filter(pl.col("jeditaskid").is_duplicated())["jeditaskid"]
    if len(twice):
        raise DataError(repeated("tasks.jeditaskid", twice, "task"))
    asked_unit = pl.coalesce(
        "orig_cputimeunit",
        pl.when(pl.col("orig_cputime").fill_null(0) != 0).then(pl.lit("HS06sPerEvent")),
    )
    ramunit, diskunit = pl.col("ramunit"), pl.col("outdiskunit")
    base_ram = pl.lit(0) if merge else pl.col("baseramcount").fill_null(0)
    return tasks.sort("jeditaskid").with_columns(
        *tag_columns(),
        base_time_s=pl.col("basewalltime").fill_null(0),
        efficiency_pct=pl.col("cpuefficiency").fill_null(rules.default_cpu_efficiency),
        base_ram_mb=base_ram,
        ram_per_core=(ramunit == "MBPerCore").fill_null(value=False),
        ram_fixed=(ramunit == "MBPerCoreFixed").fill_null(value=False),
        outdisk_per_event=diskunit.str.ends_with("PerEvent").fill_null(value=False),
        outdisk_fixed=diskunit.str.contains("Fixed", literal=True).fill_null(value=False),
        asked_unit=asked_unit,
        cputime_fixed=asked_unit.is_in(FIXED_CPUTIME_UNITS).fill_null(value=False),
        old_ram_mb=pl.col("orig_mergeramcount" if merge else "orig_ramcount"),
    )


def repeated(column: str, ids: pl.Series, what: str) -> str:
    """Say which ids occur more than once where each has one row."""
    known = ids.unique().sort()
    return (
        f"{column}: {len(known)} ids occur more than once, e.g. "
        f"{known.head(5).to_list()}; allowed is one row per {what}: keep the latest"
    )


def label_settings(config: Config, labels: pl.Series, keys: Mapping[str, str]) -> pl.DataFrame:
    """Read the settings that depend on the task's label, once per label.

    One row per distinct label: ``prodsourcelabel`` and one Float64 column per key, a truth value as 1 or
    0; null where nothing is set and the catalogue has no default.
    """
    rows = [
        [label, *(config.get(key, prodsourcelabel=label or "") for key in keys.values())]
        for label in labels.unique(maintain_order=True)
    ]
    schema = {"prodsourcelabel": pl.String} | dict.fromkeys(keys, pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row", strict=False)


def uses_scouts() -> pl.Expr:
    """Tell whether a task uses scouts: exactly ``US=2`` (docs/rules/scouts.md 1)."""
    return (pl.col("US") == 2).fill_null(value=False)


def has_no_job_limits() -> pl.Expr:
    """Tell whether files, events, GB and maximal files per job are all left to the system."""
    return pl.all_horizontal(pl.col(tag).is_null() for tag in ("NF", "NE", "NG", "MF"))


def splitrule_with(tasks: pl.DataFrame, tag: str, value: pl.Expr) -> pl.DataFrame:
    """Set one tag of split rules, once per distinct rule and value. ``jeditaskid, splitrule`` of these tasks."""
    asked = tasks.select("jeditaskid", "splitrule", value=value)
    pairs = asked.select("splitrule", "value").unique()
    rules = [set_tag(rule, tag, number) for rule, number in pairs.iter_rows()]
    edited = pairs.with_columns(edited=pl.Series(rules, dtype=pl.String))
    return asked.join(edited, on=["splitrule", "value"], nulls_equal=True).select(
        "jeditaskid", splitrule="edited"
    )


def splitrule_after_scouts(tasks: pl.DataFrame) -> pl.DataFrame:
    """Set the scout flag of split rules to "after the avalanche" (docs/rules/exhausted.md 1)."""
    return splitrule_with(tasks, "US", pl.lit(AFTER_AVALANCHE))
