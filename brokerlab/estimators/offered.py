"""Which estimator is offered as default for systems of a kind: none that wastes more than simple rules, or breaks its bounds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.records import Quantity
from brokerlab.estimators.scoring.judged import Judged, exact, rate
from brokerlab.numerics import FloatArray
from brokerlab.scouts.quantities import floats

WORST = 1.05
"""Times the best simple rule that an estimator may be at most to be offered for systems of a kind."""
LEVEL = 0.95  # level of the bounds that must be kept


def coverage(judged: Judged, held: Predicted, level: float) -> dict[str, float | None]:
    """Return ``promised`` (share of the jobs with a bound of their own), ``coverage`` of these, and ``upper``: the end of its exact interval of 95 %."""
    promised, kept, n = judged.promises(held, level)
    interval = exact(kept, n, 0.95)
    return {
        "promised": promised,
        "coverage": interval.value if n else None,
        "upper": interval.hi if n else None,
    }


def judge_allocations(
    records: pl.DataFrame,
    quantity: Quantity,
    rules: Mapping[str, FloatArray],
    models: Mapping[str, tuple[FloatArray, Predicted]],
    *,
    system: str,
) -> pl.DataFrame:
    """Score allocations of one system, rules and models, on the jobs that each gives something."""
    judged = Judged.of(records, quantity, "production")
    asked = floats(records, "requested")
    asked = np.where(asked > 0, asked, np.inf)
    every = dict(rules) | {name: given for name, (given, _) in models.items()}
    filled = {name: np.where(np.isfinite(each), each, asked)[judged.rows] for name, each in every.items() if np.isfinite(each).any()}  # fmt: skip
    same = np.logical_and.reduce([np.isfinite(each) for each in filled.values()])
    scored = {
        name: rate(judged.sums(each, same), "waste_per_usage") for name, each in filled.items()
    }
    best = min((score for name, score in scored.items() if name in rules), default=np.nan)
    rows = []
    for name in every:
        covered = coverage(judged, models[name][1], LEVEL) if name in models else {}
        rows.append(
            {
                "kind": "",
                "unseen": "",
                "system": system,
                "estimator": name,
                "learns": name in models,
                "silent": name not in scored,
                "ratio": scored[name] / best if name in scored and best > 0 else None,
                "upper_0.95": covered.get("upper"),
                "promised_0.95": covered.get("promised"),
                "coverage_0.95": covered.get("coverage"),
            }
        )
    ends = ("ratio", "upper_0.95", "promised_0.95", "coverage_0.95")
    frame = pl.DataFrame(rows, schema_overrides=dict.fromkeys(ends, pl.Float64))
    return frame.with_columns(pl.col(ends).fill_nan(None)).filter(
        pl.col("learns") | ~pl.col("silent")
    )


def offers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return, by kind of system, what was unseen and estimator or rule, how it compares with the best simple rule, and whether it is offered.

    ``kind, unseen, estimator, learns, systems, mean`` (geometric), ``worst, worst_on``, ``short`` (systems whose 95 % bounds are kept
    less often than chance allows), ``silent`` (systems on which it says nothing), ``offered``: of rules all, of estimators those that
    were judged on every system of the kind and are good on all.
    """
    system = pl.col("system")
    rows = frame.group_by("kind", "unseen", "estimator", "learns", maintain_order=True).agg(
        systems=pl.len(),
        told=(pl.col("ratio").is_not_null() | pl.col("silent")).all(),
        mean=pl.col("ratio").log().mean().exp(),
        worst=pl.col("ratio").max(),
        worst_on=system.sort_by("ratio", nulls_last=False).last(),
        short=system.filter(pl.col("upper_0.95") < LEVEL),
        silent=system.filter("silent"),
    )
    good = (pl.col("worst") <= WORST) & (pl.col("short").list.len() + pl.col("silent").list.len() == 0)  # fmt: skip
    everywhere = pl.col("systems") == pl.col("systems").max().over("kind", "unseen")
    everywhere &= pl.col("told")
    good = good.fill_null(value=False) & everywhere
    return rows.with_columns(offered=~pl.col("learns") | good).drop("told")


def defaults(offered: pl.DataFrame) -> pl.DataFrame:
    """Return the default by kind of system and what was unseen: of the estimators offered the one of least mean, else of the rules."""
    return (
        offered.filter("offered")
        .sort("learns", "mean", descending=[True, False], nulls_last=True)
        .group_by("kind", "unseen", maintain_order=True)
        .first()
        .sort("kind", "unseen")
    )
