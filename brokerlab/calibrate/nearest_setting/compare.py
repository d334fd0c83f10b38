"""The estimator's allocations, the best settings and the current one, side by side on the same jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import polars as pl

from brokerlab.calibrate.choice import MIN_TASKS
from brokerlab.calibrate.parameters import Parameter
from brokerlab.intervals import ShareSums, bootstrap_totals, percentile_interval
from brokerlab.numerics import FloatArray

Who = Literal["estimator", "cheapest", "nearest", "current"]
Difference = Literal["restriction", "limit", "setting", "estimator"]
WHO: tuple[Who, ...] = ("estimator", "cheapest", "nearest", "current")
DIFFERENCES: dict[Difference, tuple[Who, Who]] = {
    "restriction": ("cheapest", "estimator"),
    "limit": ("nearest", "cheapest"),
    "setting": ("current", "nearest"),
    "estimator": ("current", "estimator"),
}
"""What is told -> of whom, against whom: lost by setting a rule, by its limit; gained by the rule, by the estimator."""


def compared(
    sides: Mapping[Who, pl.DataFrame],
    labels: Mapping[Who, str],
    parameter: Parameter,
    *,
    period: str,
    confidence: float,
    n_boot: int,
    seed: int,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Lay results on the same tasks side by side.

    Tasks are drawn with replacement, the same ones for all. Below ten tasks no interval is given.

    Args:
        sides: One row per task each, sorted by it.
        labels: What each is called.
        parameter: What is allocated.
        period: What the rows are of.
        confidence: Of the intervals.
        n_boot: Replicates.
        seed: Of the draws.

    Returns:
        ``table``, one row per side, and ``differences``, one row per entry of ``DIFFERENCES``; columns as in
        :class:`Translation`.
    """
    work = sides["current"]["work_coreh"].to_numpy()
    cost = {who: sides[who]["cost_coreh"].to_numpy() for who in WHO}
    totals = np.column_stack([*cost.values(), work])
    enough = work.size >= MIN_TASKS
    drawn = bootstrap_totals(totals, n_boot=n_boot, seed=seed) if enough else None
    loss = {who: float(cost[who].sum() / work.sum()) for who in WHO}
    replicates = (
        None if drawn is None else {who: drawn[:, i] / drawn[:, -1] for i, who in enumerate(WHO)}
    )

    def ends(values: FloatArray | None) -> tuple[float | None, float | None]:
        if values is None:
            return None, None
        low, high = percentile_interval(values[:, None], confidence, n_tasks=work.size)
        return float(low[0]), float(high[0])

    table = [
        {"period": period, "who": who, "label": labels[who]}
        | _sums(sides[who], parameter, confidence if enough else None)
        | {"loss": loss[who]}
        | dict(
            zip(
                ("loss_lo", "loss_hi"),
                ends(None if replicates is None else replicates[who]),
                strict=True,
            )
        )
        for who in WHO
    ]
    differences = []
    for name, (of, against) in DIFFERENCES.items():
        gap = None if replicates is None else replicates[of] - replicates[against]
        low, high = ends(gap)
        value = loss[of] - loss[against]
        share = 100 * value / loss["current"] if loss["current"] else None
        differences.append(
            {"period": period, "difference": name, "of": of, "against": against, "loss": value}
            | {"loss_lo": low, "loss_hi": high, "pct_of_current": share}
        )
    return pl.DataFrame(table, schema=_schema(parameter)), pl.DataFrame(
        differences, schema=DIFFERENCE_SCHEMA
    )


DIFFERENCE_SCHEMA = {
    **dict.fromkeys(["period", "difference", "of", "against"], pl.String),
    **dict.fromkeys(["loss", "loss_lo", "loss_hi", "pct_of_current"], pl.Float64),
}


def _schema(parameter: Parameter) -> dict[str, type[pl.DataType]]:
    amounts = [f"{name}_{parameter.amount}" for name in ("used", "over", "waste", "reserved")]
    shares = ["exceed_rate", "exceed_lo", "exceed_hi", "exceed_task_mean"]
    rest = ["over_allocation", *amounts, "killed_coreh", "work_coreh", "slots_share"]
    return {
        **dict.fromkeys(["period", "who", "label"], pl.String),
        **dict.fromkeys(["n_tasks", "n_scored", "n_exceed", "n_lost"], pl.Int64),
        **dict.fromkeys(["loss", "loss_lo", "loss_hi", *shares, *rest], pl.Float64),
    }


def _sums(side: pl.DataFrame, parameter: Parameter, confidence: float | None) -> dict[str, Any]:
    """Sum one side over its tasks."""
    exceed = side["n_exceed"].cast(pl.Float64).to_numpy()
    jobs = side["n_scored"].cast(pl.Float64).to_numpy()
    amounts = {
        name: float(side[name].sum())
        for name in (f"{what}_{parameter.amount}" for what in ("used", "over", "waste", "reserved"))
    }
    low = high = None
    if confidence is not None:
        _, lows, highs = ShareSums.of(exceed[:, None], jobs).interval(confidence)
        low, high = float(lows[0]), float(highs[0])
    used = amounts[f"used_{parameter.amount}"]
    return {
        "n_tasks": side.height,
        "n_scored": int(jobs.sum()),
        "n_exceed": int(exceed.sum()),
        "n_lost": int(side["n_lost"].sum()),
        "exceed_rate": float(exceed.sum() / jobs.sum()),
        "exceed_lo": low,
        "exceed_hi": high,
        "exceed_task_mean": float((exceed / jobs).mean()),
        "over_allocation": amounts[f"over_{parameter.amount}"] / used if used else None,
        **amounts,
        "killed_coreh": float(side["killed_coreh"].sum()),
        "work_coreh": float(side["work_coreh"].sum()),
        "slots_share": side["slots_share"].mean(),
    }
