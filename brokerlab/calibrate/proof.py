"""Score the current and the proposed setting on a later period, with intervals by bootstrap over tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from brokerlab.calibrate.backtest import Backtest
from brokerlab.calibrate.choice import MIN_TASKS, LimitOn
from brokerlab.calibrate.loss import COMPONENTS, LossWeights
from brokerlab.calibrate.parameters import Parameter
from brokerlab.calibrate.replay import Setting
from brokerlab.calibrate.strata import with_levels
from brokerlab.errors import ConfigError
from brokerlab.intervals import bootstrap_totals, percentile_interval
from brokerlab.numerics import FloatArray
from brokerlab.words import short_percent

ProofStatus = Literal["proven", "not_proven", "no_answer"]


@dataclass(frozen=True)
class Quantity:
    """One line of the before-and-after table: a total, or a ratio of two totals over tasks."""

    name: str
    label: str
    unit: str
    over: str = ""


@dataclass(frozen=True)
class Proof:
    """Before and after on the proof period.

    Attributes:
        status: ``proven``, ``not_proven`` or ``no_answer`` (too few tasks: intervals are null).
        reason: One sentence.
        current: Setting before.
        proposed: Setting after.
        table: One row per quantity: ``quantity, label, unit, before, before_lo, before_hi, after, after_lo,
            after_hi, diff, diff_lo, diff_hi, diff_pct, diff_pct_lo, diff_pct_hi``.
        by_stratum: One row per (stratum, level): the same of loss, exceed rate and over-allocation, with
            ``verdict`` (``gains``, ``loses``, ``open``).
        n_tasks: Tasks of the proof period.
        n_boot: Replicates.
        seed: Of the bootstrap.
    """

    status: ProofStatus
    reason: str
    current: Setting
    proposed: Setting
    table: pl.DataFrame
    by_stratum: pl.DataFrame
    n_tasks: int
    n_boot: int
    seed: int
    max_exceed: float
    limit_on: LimitOn

    def quantity(self, name: str) -> dict[str, Any]:
        """Return one line of the table.

        Raises:
            ConfigError: No such quantity.
        """
        rows = self.table.filter(pl.col("quantity") == name)
        if rows.is_empty():
            raise ConfigError(f"no quantity {name!r}: {', '.join(self.table['quantity'])}")
        return rows.row(0, named=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the facts that are not tables, and the table."""
        return {
            "status": self.status,
            "reason": self.reason,
            "current": list(self.current),
            "proposed": list(self.proposed),
            "n_tasks": self.n_tasks,
            "n_boot": self.n_boot,
            "seed": self.seed,
            "max_exceed": self.max_exceed,
            "limit_on": self.limit_on,
            "quantities": {row["quantity"]: row for row in self.table.iter_rows(named=True)},
        }


def quantities_of(parameter: Parameter) -> tuple[Quantity, ...]:
    """Return the lines of the before-and-after table of a parameter."""
    suffix, unit = parameter.amount, parameter.amount_unit
    return (
        Quantity(f"reserved_{suffix}", "Reserved in all", unit),
        Quantity(f"used_{suffix}", "Used by finished jobs", unit),
        Quantity(f"over_{suffix}", "Reserved and not used", unit),
        Quantity(f"waste_{suffix}", "Reserved by killed attempts", unit),
        Quantity("exceed_rate", "First attempts killed", "share of jobs", over="n_scored"),
        Quantity("n_exceed", "Jobs killed and retried", "jobs"),
        Quantity("n_lost", "Jobs killed in every attempt", "jobs"),
        Quantity("killed_coreh", "Core-hours of killed attempts", "core h"),
        Quantity("headroom_mean", "Mean head-room, request / use - 1", "share", over="n_scored"),
        Quantity("queues_share", "Queues that can take a task", "share", over="one"),
        Quantity("slots_share", "Slots that can take a task", "share", over="one"),
        Quantity("loss", "Stated loss", "core h per core h of work", over="work_coreh"),
    )


def prove(
    late: Backtest,
    proposed: Setting,
    *,
    under: Backtest | None = None,
    max_exceed: float = 0.02,
    limit_on: LimitOn = "point",
    loss: LossWeights | None = None,
    n_boot: int = 2000,
    seed: int = 0,
) -> Proof:
    """Compare the proposed with the current setting on tasks that the choice never saw.

    Tasks are drawn with replacement, the same ones for both settings, so that what a task does alike under
    both does not blur the difference. The interval of an exceed rate is that of the back-test (exact
    binomial with effective jobs), because a bootstrap of no kills at all would claim certainty.

    Args:
        late: Back-test of the proof period with ``detail=[proposed]``.
        proposed: (rank, margin_pct).
        under: Back-test of the same tasks that holds the proposed setting, where more than rank and margin
            is proposed; None: ``late``.
        max_exceed: Limit.
        limit_on: What must meet it here. ``point`` (default): the choice was made under the upper bound, and
            this period has not been looked at; asking for the ``upper`` bound twice would refuse half of
            all sound choices. ``upper``: where the two periods are not alike, so that the bound of the
            first says little of this one.
        loss: Weights; None: those of the back-test.
        n_boot: Replicates.
        seed: Same seed, same intervals.

    Returns:
        A :class:`Proof`: ``proven`` if the limit is met and the loss is lower beyond its interval, or the
        current setting breaks the limit.

    Raises:
        ConfigError: The back-test was not made with the proposed setting in detail, or on other tasks.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), section 13.3.
    """
    weights = loss or late.weights
    later = under or late
    if later.n_tasks != late.n_tasks:
        raise ConfigError(f"back-tests of {late.n_tasks} and {later.n_tasks} tasks: no proof")
    before = _columns(late, late.current, weights)
    after = _columns(later, proposed, weights)
    lines = quantities_of(late.parameter)
    names = list(before)
    totals = np.column_stack([*before.values(), *after.values()])
    few = late.n_tasks < MIN_TASKS
    drawn = None if few else bootstrap_totals(totals, n_boot=n_boot, seed=seed)
    rows = [
        _line(
            line,
            _halves(names, totals.sum(axis=0)[None, :]),
            _halves(names, drawn),
            n_tasks=late.n_tasks,
            confidence=late.assumptions.confidence,
        )
        for line in lines
    ]
    table = pl.DataFrame(rows, infer_schema_length=None)
    rates = late.setting(*late.current), later.setting(*proposed)
    table = _binomial_bounds(table, *rates)
    status, reason = _judge(table, late.n_tasks, max_exceed, limit_on)
    return Proof(
        status=status,
        reason=reason,
        current=late.current,
        proposed=proposed,
        table=table,
        by_stratum=_strata(late, before, after, n_boot=n_boot, seed=seed),
        n_tasks=late.n_tasks,
        n_boot=n_boot,
        seed=seed,
        max_exceed=max_exceed,
        limit_on=limit_on,
    )


def _columns(late: Backtest, setting: Setting, weights: LossWeights) -> dict[str, FloatArray]:
    """Return the per-task numerators and denominators under one setting, tasks in order."""
    rows = late.by_task.filter(
        (pl.col("rank") == setting[0]) & (pl.col("margin_pct") == setting[1])
    ).sort("jeditaskid")
    if rows.height != late.n_tasks:
        raise ConfigError(
            f"setting {setting} is not in the detail of the back-test: give detail=[{setting}]"
        )
    n = rows["n_scored"].cast(pl.Float64).to_numpy()
    amount = late.parameter.amount
    w = weights.to_dict()
    parts = {name: f"over_{amount}" if name == "over" else name for name in COMPONENTS}
    cost = sum(w[k] * rows[v].cast(pl.Float64).fill_null(0.0).to_numpy() for k, v in parts.items())
    plain = [line.name for line in quantities_of(late.parameter)]
    columns = {
        name: rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
        for name in (*plain, "work_coreh", "n_scored")
        if name in rows.columns
    }
    columns["headroom_mean"] = columns["headroom_mean"] * n
    return columns | {
        "exceed_rate": columns["n_exceed"],
        "loss": np.asarray(cost, dtype=np.float64),
        "one": np.ones(rows.height),
    }


def _halves(
    names: list[str], totals: FloatArray | None
) -> tuple[Mapping[str, FloatArray], Mapping[str, FloatArray]] | None:
    """Split rows of totals into those before and after, by name."""
    if totals is None:
        return None
    k = len(names)
    return (
        {name: totals[:, i] for i, name in enumerate(names)},
        {name: totals[:, k + i] for i, name in enumerate(names)},
    )


def _value(line: Quantity, columns: Mapping[str, FloatArray]) -> FloatArray:
    """Return a total or a ratio of totals."""
    value = columns[line.name]
    return value / columns[line.over] if line.over else value


def _line(
    line: Quantity,
    point: tuple[Mapping[str, FloatArray], Mapping[str, FloatArray]] | None,
    drawn: tuple[Mapping[str, FloatArray], Mapping[str, FloatArray]] | None,
    *,
    n_tasks: int,
    confidence: float,
) -> dict[str, Any]:
    """Return one row of the table."""
    row: dict[str, Any] = {"quantity": line.name, "label": line.label, "unit": line.unit}
    keys = ("before", "after", "diff", "diff_pct")
    values = _four(line, point)
    bounds = _four(line, drawn)
    for key in keys:
        row[key] = None if values is None else _finite(values[key][0])
        low = high = None
        if bounds is not None and row[key] is not None:
            interval = percentile_interval(bounds[key][:, None], confidence, n_tasks=n_tasks)
            low, high = (_finite(b[0]) for b in interval)
        row |= {f"{key}_lo": low, f"{key}_hi": high}
    return row


def _four(
    line: Quantity, halves: tuple[Mapping[str, FloatArray], Mapping[str, FloatArray]] | None
) -> dict[str, FloatArray] | None:
    """Return before, after, difference and difference in per cent of before."""
    if halves is None:
        return None
    before, after = (_value(line, half) for half in halves)
    with np.errstate(all="ignore"):
        percent = np.where(before != 0, 100 * (after - before) / before, np.nan)
    return {"before": before, "after": after, "diff": after - before, "diff_pct": percent}


def _finite(value: float) -> float | None:
    """Return a plain float; None for what is not a number."""
    return float(value) if np.isfinite(value) else None


def _binomial_bounds(
    table: pl.DataFrame, before: dict[str, Any], after: dict[str, Any]
) -> pl.DataFrame:
    """Replace the interval of the exceed rates by that of the back-test."""
    here = pl.col("quantity") == "exceed_rate"
    settings = {"before": before, "after": after}
    return table.with_columns(
        pl.when(here)
        .then(pl.lit(float(row[f"exceed_{side}"])))
        .otherwise(pl.col(f"{when}_{side}"))
        .alias(f"{when}_{side}")
        for when, row in settings.items()
        for side in ("lo", "hi")
    )


def _judge(
    table: pl.DataFrame, n_tasks: int, max_exceed: float, limit_on: LimitOn
) -> tuple[ProofStatus, str]:
    """Say whether the proof holds, and why."""
    rows = {row["quantity"]: row for row in table.iter_rows(named=True)}
    loss, exceed = rows["loss"], rows["exceed_rate"]
    if n_tasks < MIN_TASKS:
        few = (
            f"The proof period has {n_tasks} tasks and {MIN_TASKS} are needed: the numbers of each task "
            "are exact, but no interval follows from them."
        )
        return "no_answer", few
    bound = exceed["after_hi"] if limit_on == "upper" else exceed["after"]
    limit = (
        f"exceed rate {short_percent(exceed['after'])} ({short_percent(exceed['after_lo'])} to {short_percent(exceed['after_hi'])}, limit "
        f"{short_percent(max_exceed)})"
    )
    if bound <= max_exceed < exceed["after_hi"]:
        limit += ", its interval reaching above the limit"
    change = f"loss {loss['diff']:+.4f} ({loss['diff_lo']:+.4f} to {loss['diff_hi']:+.4f})"
    if exceed["after"] > max_exceed:
        return "not_proven", f"On the proof period the limit is not met: {limit}."
    if bound > max_exceed:
        passed = "the upper bound of the exceed rate is above the limit"
        return "not_proven", f"On the proof period {passed}: {limit}."
    if loss["diff_hi"] < 0 or exceed["before"] > max_exceed:
        return "proven", f"On the proof period: {change}, {limit}."
    return "not_proven", f"On the proof period the loss is not lower beyond doubt: {change}."


def _strata(
    late: Backtest,
    before: Mapping[str, FloatArray],
    after: Mapping[str, FloatArray],
    *,
    n_boot: int,
    seed: int,
) -> pl.DataFrame:
    """Compare before and after inside each level; intervals from ten tasks on."""
    amount = late.parameter.amount
    lines = (
        Quantity("loss", "", "", over="work_coreh"),
        Quantity("exceed_rate", "", "", over="n_scored"),
        Quantity(f"over_{amount}", "", ""),
    )
    names = [*(line.name for line in lines), "work_coreh", "n_scored"]
    tasks = late.by_task.unique("jeditaskid", keep="first").sort("jeditaskid")
    levels = with_levels(tasks.with_row_index("place")).group_by("stratum", "level").agg("place")
    rows = []
    for stratum, level, place in levels.sort("stratum", "level").iter_rows():
        totals = np.column_stack([side[name][place] for side in (before, after) for name in names])
        drawn = (
            bootstrap_totals(totals, n_boot=n_boot, seed=seed) if len(place) >= MIN_TASKS else None
        )
        row = {
            "stratum": stratum,
            "level": level,
            "n_tasks": len(place),
            "n_scored": int(before["n_scored"][place].sum()),
        }
        for line in lines:
            found = _line(
                line,
                _halves(names, totals.sum(axis=0)[None, :]),
                _halves(names, drawn),
                n_tasks=len(place),
                confidence=late.assumptions.confidence,
            )
            row |= {
                f"{line.name}_{key}": found[key]
                for key in ("before", "after", "diff", "diff_lo", "diff_hi", "diff_pct")
            }
        rows.append(row | {"verdict": _who(row["loss_diff_lo"], row["loss_diff_hi"])})
    return pl.DataFrame(rows, infer_schema_length=None)


def _who(low: float | None, high: float | None) -> str:
    """Say who gains and who loses by the interval of the loss."""
    if low is None or high is None:
        return "open"
    return "gains" if high < 0 else "loses" if low > 0 else "open"
