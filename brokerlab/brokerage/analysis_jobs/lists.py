"""Lists of queues that a task may or may not use, and its pre-assignment (analysis-jobs.md 3 and 4)."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.matching.patterns import PatternError, compile_pattern

AUTO = "AUTO"
ANYTHING = "*"
"""Marks a pattern."""


def with_lists(
    tasks: pl.DataFrame, queues: pl.DataFrame, places: pl.DataFrame, *, rules: AnalysisRules
) -> pl.DataFrame:
    """Add what a task says about queues.

    Args:
        tasks: Facts of tasks: ``t_version, t_site, t_limited, t_included, t_excluded``.
        queues: Facts of queues: ``q_version, panda_queue, parent``.
        places: Input endpoints that count: ``ddm_endpoint_name, parent``.
        rules: Switch ``lists_need_limitedsites``.

    Returns:
        The tasks with ``t_home`` (parent of the queue that ``site`` names; null: not pre-assigned), the lists in
        force, ``t_has_list`` (the task may use some queues only), ``t_named`` (it names them itself), ``t_auto`` and
        ``t_list_key``.

    Source:
        002, ATLAS Analysis Job Brokerage: "Exclude queues if excludedSite is specified and the queues are included in
        the list.", "Exclude queues if includedSite is specified and the queues are not included in the list.",
        "Pre-assigned queues are specified in includedSite or site."; docs/rules/analysis-jobs.md 3.
    """
    names = pl.concat(
        [
            queues.select("q_version", "panda_queue", t_home="parent"),
            queues.select("q_version", panda_queue="parent", t_home="parent"),
        ]
    ).unique(["q_version", "panda_queue"])
    around = places.group_by(t_site="ddm_endpoint_name").agg(
        around=pl.col("parent").unique().sort()
    )
    in_force = pl.col("t_limited") | (not rules.lists_need_limitedsites)
    tasks = (
        tasks.join(
            names, left_on=["t_version", "t_site"], right_on=["q_version", "panda_queue"],
            how="left",
        )
        .join(around, on="t_site", how="left")
        .with_columns(
            t_included=pl.when(pl.col("t_home").is_null() & pl.col("around").is_not_null())
            .then("around")
            .otherwise(pl.when(in_force & (pl.col("t_included").list.len() > 0)).then("t_included")),
            t_excluded=pl.when(in_force).then("t_excluded"),
        )
        .drop("around")
        .sort("t")
    )  # fmt: skip
    included = pl.col("t_included")
    # an endpoint in `site` lists queues, but does not let the task go to those that rest
    named = included.is_not_null() & (pl.col("t_site").is_null() | pl.col("t_home").is_not_null())
    return tasks.with_columns(
        t_named=named,
        t_preassigned=pl.col("t_home").is_not_null(),
        t_has_list=included.is_not_null(),
        t_auto=included.list.contains(AUTO).fill_null(value=False),
        t_list_key=pl.struct("t_included", "t_excluded").struct.json_encode(),
    )


def named_parents(tasks: pl.DataFrame, queues: pl.DataFrame) -> pl.DataFrame:
    """Return which parents the lists of tasks name: ``t_list_key, parent, x_included, x_excluded``."""
    kinds = tasks.select("t_list_key", "t_included", "t_excluded").unique("t_list_key")
    parents = queues["parent"].unique().sort().to_list()
    rows = [
        (key, name, *found)
        for key, included, excluded in kinds.sort("t_list_key").iter_rows()
        for name in parents
        if any(found := (matches(name, included), matches(name, excluded)))
    ]
    schema = {
        "t_list_key": pl.String, "parent": pl.String, "x_included": pl.Boolean,
        "x_excluded": pl.Boolean,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def pools(
    tasks: pl.DataFrame, queues: pl.DataFrame, *, rules: AnalysisRules
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the tasks with ``t_pool``, and the parents that the check of locality looks at: ``t_pool, parent``.

    Candidates of the task's instant, the pre-assigned queue, and, where the lists come first, nothing that they rule
    out; what AUTO keeps in reserve is looked at.
    """
    kind = ["t_version", "t_home", *(["t_list_key"] if rules.lists_first else [])]
    facts = [*kind, "t_has_list", "t_auto"] if rules.lists_first else kind
    kinds = tasks.select(facts).unique(kind).sort(kind).with_row_index("t_pool")
    usable = queues.filter(~pl.col("is_unified")).group_by("q_version", "parent").agg(
        pl.col("q_candidate").any()
    )  # fmt: skip
    pool = kinds.join(usable, left_on="t_version", right_on="q_version").filter(
        pl.col("q_candidate") | (pl.col("parent") == pl.col("t_home")).fill_null(value=False)
    )
    if rules.lists_first:
        out = pl.col("x_excluded") | (
            pl.col("t_has_list") & ~pl.col("t_auto") & ~pl.col("x_included")
        )
        pool = (
            pool.join(named_parents(tasks, queues), on=["t_list_key", "parent"], how="left")
            .with_columns(pl.col("x_included", "x_excluded").fill_null(value=False))
            .filter(~out)
        )
    numbered = tasks.join(kinds.select(*kind, "t_pool"), on=kind, how="left", nulls_equal=True)
    return numbered.sort("t"), pool.select("t_pool", "parent")


def matches(name: str, patterns: list[str | None] | None) -> bool:
    """Tell whether a list of patterns names a queue.

    A pattern with ``*`` is a regular expression, ``*`` standing for anything, looked for anywhere in the name; another
    one has to be equal. Empty patterns, and what is no regular expression, name nothing.

    Example:
        >>> matches("ANALY_CERN", ["CERN*"]), matches("ANALY_CERN", ["CERN"])
        (True, False)
    """
    return any(_matches(name, pattern) for pattern in patterns or () if pattern)


def _matches(name: str, pattern: str) -> bool:
    if ANYTHING not in pattern:
        return name == pattern
    try:
        return compile_pattern(pattern.replace(ANYTHING, ".*")).search(name)
    except PatternError:
        return False
