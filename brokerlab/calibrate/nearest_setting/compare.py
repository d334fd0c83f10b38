"""The estimator's allocations, the best settings and the current one, side by side on the same jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import polars as pl

from brokerlab.calibrate.judge import MIN_UNITS, Question, capped_weights
from brokerlab.calibrate.parameters import Parameter
from brokerlab.errors import InsufficientDataError
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
    question: Question,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Lay results on the same tasks side by side.

    Loss and kill rate are means over tasks with the weights that the judge gives them, and its intervals; below `MIN_UNITS`
    tasks there are none. The rest are sums over all jobs.

    Args:
        sides: One row per task each, sorted by it.
        labels: What each is called.
        parameter: What is allocated.
        question: Of the judge: confidence, replicates, seed; the same draws for all.

    Returns:
        ``table``, one row per side, and ``differences``, one row per entry of ``DIFFERENCES``; columns as in
        :class:`Translation`.

    Raises:
        InsufficientDataError: No task has work.
    """
    work = sides["current"]["work_coreh"].to_numpy()
    some = work > 0
    if not some.any():
        raise InsufficientDataError(
            "no task with allocations has work: there is nothing to compare"
        )
    weights = capped_weights(work[some])

    def mean(name: str, values: FloatArray, *, share: bool = False) -> dict[str, float | None]:
        enough = weights.size >= MIN_UNITS
        return question.interval(name, values, weights, share=share, enough=enough)

    loss = {who: sides[who]["cost_coreh"].to_numpy()[some] / work[some] for who in WHO}
    table = [
        {"who": who, "label": labels[who]}
        | mean("loss", loss[who])
        | mean("exceed_rate", sides[who]["exceed_rate"].to_numpy()[some], share=True)
        | _sums(sides[who], parameter)
        for who in WHO
    ]
    now = table[WHO.index("current")]["loss"]
    differences = []
    for name, (of, against) in DIFFERENCES.items():
        gap = mean("loss", loss[of] - loss[against])
        share = 100 * gap["loss"] / now if now else None  # type: ignore[operator]
        differences.append(
            {"difference": name, "of": of, "against": against} | gap | {"pct_of_current": share}
        )
    return pl.DataFrame(table, schema=_schema(parameter)), pl.DataFrame(
        differences, schema=DIFFERENCE_SCHEMA
    )


DIFFERENCE_SCHEMA = {
    **dict.fromkeys(["difference", "of", "against"], pl.String),
    **dict.fromkeys(["loss", "loss_lo", "loss_hi", "pct_of_current"], pl.Float64),
}


def _schema(parameter: Parameter) -> dict[str, type[pl.DataType]]:
    amounts = [f"{name}_{parameter.amount}" for name in ("used", "over", "waste", "reserved")]
    shares = ["exceed_rate", "exceed_rate_lo", "exceed_rate_hi", "exceed_rate_jobs"]
    rest = ["over_allocation", *amounts, "killed_coreh", "work_coreh", "slots_share"]
    return {
        **dict.fromkeys(["who", "label"], pl.String),
        **dict.fromkeys(["n_tasks", "n_scored", "n_exceed", "n_lost"], pl.Int64),
        **dict.fromkeys(["loss", "loss_lo", "loss_hi", *shares, *rest], pl.Float64),
    }


def _sums(side: pl.DataFrame, parameter: Parameter) -> dict[str, Any]:
    """Sum one side over its tasks."""
    exceed, jobs = int(side["n_exceed"].sum()), int(side["n_scored"].sum())
    amounts = {
        name: float(side[name].sum())
        for name in (f"{what}_{parameter.amount}" for what in ("used", "over", "waste", "reserved"))
    }
    used = amounts[f"used_{parameter.amount}"]
    return {
        "n_tasks": side.height,
        "n_scored": jobs,
        "n_exceed": exceed,
        "n_lost": int(side["n_lost"].sum()),
        "exceed_rate_jobs": exceed / jobs,
        "over_allocation": amounts[f"over_{parameter.amount}"] / used if used else None,
        **amounts,
        "killed_coreh": float(side["killed_coreh"].sum()),
        "work_coreh": float(side["work_coreh"].sum()),
        "slots_share": side["slots_share"].mean(),
    }
