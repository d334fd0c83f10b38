"""Checks of wall time, rows 28 to 30."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.production_jobs.expressions import (
    at_least_one,
    check,
    col,
    spared,
    truncated,
)
from brokerlab.brokerage.rules import ProductionRules

DAY_S = 24 * 3600
REFERENCE_POWER = 10
"""Core power with which the deployed code turns a day into HS06 s [HS06/core]."""

_SLOT = (
    "the queue's {0}time of {{q_{0}time}} s (less {{t_basewalltime}} s, x {{q_corecount}} cores x {{q_corepower}} HS06 x "
    "efficiency {{t_efficiency}} %)"
)


def capacity(limit: str, *, whole: bool = True) -> pl.Expr:
    """Return the work that fits into ``q_maxtime`` or ``q_mintime``: HS06 s, ``whole`` or exact, else s x cores."""
    cores = at_least_one(col("q_corecount"))
    time = (col(limit) - col("t_basewalltime")) * cores
    power = time * col("q_corepower") * col("t_efficiency") / col("t_percent")
    power = truncated(power) if whole else power
    return pl.when(col("t_hs06")).then(power).otherwise(col(limit) * cores)


def time_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return ``walltime_max``, ``walltime_24h``, ``walltime_min``.

    Args:
        rules: Switches ``zero_efficiency_rejects``, ``long_queue_by_capacity``, ``zero_maxtime_limits``, ``whole_numbers``.

    Source: 002, ATLAS Production Job Brokerage: "The estimated walltime must be between mintime and maxtime at the queue."
    """
    most = capacity("q_maxtime", whole=rules.whole_numbers)
    no_scaling = (col("t_efficiency") == 0) & col("t_hs06")
    if rules.zero_efficiency_rejects:
        no_scaling = no_scaling & pl.lit(value=False)
    dynamic = col("t_dynamic") & (col("q_mintime") > 0)
    need = pl.when(dynamic).then(col("t_need_dyn")).otherwise(col("t_need"))
    longer = (need != 0) & (need > most)
    over = (no_scaling & (col("t_basewalltime") > col("q_maxtime"))) | (~no_scaling & longer)
    return (
        check(
            "5",
            "walltime_max",
            "the smallest job needs {need} core s, {fits} core s fit into the queue's maxtime of {q_maxtime} s",
            (col("q_maxtime") != 0) & over,
            numbers={"need": need, "fits": most, "no_scaling": no_scaling},
            variants={
                "no_scaling": "the base wall time of {t_basewalltime} s alone is over the queue's maxtime of "
                "{q_maxtime} s",
                "t_hs06": f"the smallest job needs {{need}} HS06 s, {{fits}} HS06 s fit into {_SLOT.format('max')}",
            },
        ),
        _long_enough(rules),
        _not_too_short(no_scaling, rules),
    )


def _long_enough(rules: ProductionRules) -> Rule:
    applies = (col("t_scout") & ~spared(rules, "t_single")) | col("t_walltime_undefined")
    fits = capacity("q_maxtime")
    if rules.long_queue_by_capacity:
        applies = applies | col("t_merging")
        day = at_least_one(col("q_corecount")) * (DAY_S * REFERENCE_POWER)
        short = (fits != 0) & (fits < day)
        if not rules.zero_maxtime_limits:
            short = short & (col("q_maxtime") != 0)
        says = (
            f"scouts, merging and jobs of unknown wall time need 24 h at {REFERENCE_POWER} HS06 a core, that is {{day}} "
            f"HS06 s; {{fits}} fit into {_SLOT.format('max')}"
        )
    else:
        day = pl.lit(DAY_S)
        short = (col("q_maxtime") != 0) & (col("q_maxtime") < DAY_S)
        says = "scouts and jobs of unknown wall time need {day} s (24 h), the queue's maxtime is {q_maxtime} s"
    return check(
        "5",
        "walltime_24h",
        says,
        applies & short,
        numbers={"day": day, "fits": fits},
    )


def _not_too_short(no_scaling: pl.Expr, rules: ProductionRules) -> Rule:
    fits = capacity("q_mintime", whole=rules.whole_numbers)
    unknown = col("t_need").is_null() & pl.lit(value=rules.unknown_walltime_is_short)
    plain = unknown | (col("t_need") < fits).fill_null(value=False)
    dynamic = (col("t_need_dyn") < fits) & (col("t_need_dyn_max") < fits)
    scaled = pl.when(col("t_dynamic")).then(dynamic).otherwise(plain)
    fixed = no_scaling & (col("t_basewalltime") < col("q_mintime"))
    return check(
        "5",
        "walltime_min",
        "the smallest job needs only {need} core s, the queue's mintime of {q_mintime} s takes {fits} core s",
        (col("q_mintime") != 0) & (fixed | (~no_scaling & scaled)),
        numbers={
            "need": pl.when(col("t_dynamic")).then(col("t_need_dyn")).otherwise(col("t_need")),
            "fits": fits,
            "no_scaling": no_scaling,
            "undefined": col("t_need").is_null() & ~col("t_dynamic"),
        },
        variants={
            "no_scaling": "the base wall time of {t_basewalltime} s is under the queue's mintime of {q_mintime} s",
            "undefined": "how long the job takes is not known, and the queue has a mintime of {q_mintime} s",
            "t_hs06": f"the smallest job needs only {{need}} HS06 s, {{fits}} HS06 s fit into {_SLOT.format('min')}",
        },
    )
