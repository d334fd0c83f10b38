"""Choose the setting that lowers the objective most under stated limits, or keep what is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal

import polars as pl

from brokerlab.calibrate.thresholds.intervals import MIN_TASKS
from brokerlab.calibrate.thresholds.outcomes import QUANTITIES, quantity_of
from brokerlab.calibrate.thresholds.settings import Setting
from brokerlab.calibrate.thresholds.sweep import Sweep

Status = Literal["change", "keep", "no_answer"]
On = Literal["upper", "point"]
TINY = 1e-9
"""Rounding."""
RELATIVE = {"moved_pct": "moved_tb", "lost_pct": "lost_core_h"}
"""Limits in per cent of the current value, and the quantity they are on; the others are on their own quantity."""
LEAST = {quantity.name: quantity.least for quantity in QUANTITIES}
"""Quantity to the smallest value that can be told from nothing."""


@dataclass(frozen=True)
class Limits:
    """What a new setting may cost, against the current one; None: no limit.

    Attributes:
        moved_pct: Bytes moved [% of now].
        lost_pct: Core-hours of killed attempts [% of now].
        unfairness: 1 - Jain's index between shares [1].
        unfinished: Share of the tasks that are not over at the end [1]: a setting must not look fast by leaving work.
        on: What must meet them: the ``upper`` end of the difference's interval, or the ``point``.
    """

    moved_pct: float | None = 5.0
    lost_pct: float | None = 10.0
    unfairness: float | None = 0.02
    unfinished: float | None = 0.01
    on: On = "upper"

    def values(self) -> dict[str, float]:
        """Return the limits that there are."""
        named = {name: getattr(self, name) for name in ("moved_pct", "lost_pct", "unfairness", "unfinished")}  # fmt: skip
        return {name: value for name, value in named.items() if value is not None}

    def excess(self, found: pl.DataFrame) -> dict[str, float]:
        """Return by how much a comparison passes each limit, in the limit's unit; not above 0: it is kept.

        A quantity that the simulation does not know breaks none; one without an interval breaks its limit if the upper
        end is asked for; where there is almost nothing now, relative limits allow nothing more.

        Args:
            found: See :func:`.intervals.compared`.
        """
        rows = {row["quantity"]: row for row in found.iter_rows(named=True)}
        told = {}
        for name, value in self.values().items():
            row = rows[RELATIVE.get(name, name)]
            if row["diff"] is None:
                continue
            bound = row["diff_hi"] if self.on == "upper" else row["diff"]
            if bound is None:
                told[name] = inf
            elif name not in RELATIVE:
                told[name] = bound - value
            elif row["before"] > LEAST[row["quantity"]]:
                told[name] = bound / (row["before"] / 100) - value
            else:
                told[name] = 0.0 if bound <= LEAST[row["quantity"]] else inf
        return told

    def broken(self, found: pl.DataFrame) -> list[str]:
        """Return the names of the limits that a comparison breaks."""
        return [name for name, value in self.excess(found).items() if value > TINY]

    def scaled(self, name: str, factor: float) -> Limits:
        """Return the limits with one of them multiplied."""
        return replace(self, **{name: getattr(self, name) * factor})


@dataclass(frozen=True)
class Choice:
    """What the calibration period speaks for.

    Attributes:
        status: ``change``, ``keep`` or ``no_answer``.
        setting: The setting chosen; the current one unless ``change``.
        reason: One sentence with numbers.
        candidates: One row per setting tried: ``setting``, ``n_keys``, ``diff, diff_lo, diff_hi, diff_pct`` of the objective, ``broken``
            (limits, comma list), ``lowers`` (by its whole interval, and by enough); best first.
        sensitivity: The choice again with each limit halved and doubled: ``limit, factor, setting``.
    """

    status: Status
    setting: Setting
    reason: str
    candidates: pl.DataFrame
    sensitivity: pl.DataFrame

    @property
    def stable(self) -> bool:
        """Tell whether halving or doubling any limit leaves the choice as it is."""
        return self.sensitivity.filter(pl.col("setting") != self.setting.name).is_empty()


def choose(
    sweep: Sweep, limits: Limits, *, relevant: float, prefer: Setting | None = None
) -> Choice:
    """Choose among everything that a sweep tried.

    A setting replaces the current one only if the interval of the objective's difference lies below 0, the
    difference is at least ``relevant``, and no limit is broken. The largest reduction wins; one with fewer keys that
    is within half of ``relevant`` of it is preferred.

    Args:
        sweep: Of the calibration period.
        limits: What may get worse, and by how much.
        relevant: Smallest reduction that is worth a change, as a part of the current value.
        prefer: Taken if it lowers the objective and keeps the limits, though another may lower it more.
    """
    frame = _candidates(sweep, limits, relevant)
    status, setting, reason = _picked(sweep, frame, limits, relevant, prefer)
    others = []
    for name in limits.values():
        for factor in (0.5, 2.0):
            scaled = limits.scaled(name, factor)
            again = _picked(sweep, _candidates(sweep, scaled, relevant), scaled, relevant, prefer)
            others.append((name, factor, again[1].name))
    schema = {"limit": pl.String, "factor": pl.Float64, "setting": pl.String}
    return Choice(status, setting, reason, frame, pl.DataFrame(others, schema=schema, orient="row"))


def _candidates(sweep: Sweep, limits: Limits, relevant: float) -> pl.DataFrame:
    rows = []
    for one, found in sweep.found.items():
        row = sweep.row(one, sweep.objective)
        worth = -row["diff"] >= relevant * abs(row["before"])
        rows.append(
            {
                "setting": one.name,
                "n_keys": len(one.values),
                **{name: row[name] for name in ("before", "after", "diff", "diff_lo", "diff_hi", "diff_pct", "diff_pct_lo", "diff_pct_hi")},
                "broken": ", ".join(limits.broken(found)),
                "lowers": row["diff_hi"] is not None and row["diff_hi"] < 0 and worth,
            }
        )  # fmt: skip
    return pl.DataFrame(rows, schema=_SCHEMA).sort("diff", "n_keys", "setting")


_SCHEMA = {
    "setting": pl.String,
    "n_keys": pl.Int64,
    **dict.fromkeys(
        ("before", "after", "diff", "diff_lo", "diff_hi", "diff_pct", "diff_pct_lo", "diff_pct_hi"),
        pl.Float64,
    ),
    "broken": pl.String,
    "lowers": pl.Boolean,
}


def _picked(
    sweep: Sweep, frame: pl.DataFrame, limits: Limits, relevant: float, prefer: Setting | None
) -> tuple[Status, Setting, str]:
    if sweep.n_tasks < MIN_TASKS:
        few = f"{sweep.n_tasks} tasks in the calibration period; {MIN_TASKS} are needed to tell effect from chance."
        return "no_answer", Setting(), few
    if frame.is_empty():
        return "no_answer", Setting(), "No other setting could be simulated."
    within = frame.filter(pl.col("broken") == "")
    pool = within.filter("lowers")
    label = quantity_of(sweep.objective).label.lower()
    if pool.is_empty():
        return "keep", Setting(), _nothing(frame, within, label, relevant)
    spare = 0.5 * relevant * abs(pool["before"][0])
    least = pool.filter(pl.col("diff") <= pool["diff"][0] + spare).sort("n_keys", "diff", "setting")
    wanted = pool.filter(pl.col("setting") == ("" if prefer is None else prefer.name))
    best = (wanted if wanted.height else least).row(0, named=True)
    names = {one.name: one for one in sweep.found}
    held = f", within the {len(limits.values())} limits" if limits.values() else ""
    return "change", names[best["setting"]], f"{best['setting']}: {label} {_change(best)}{held}."


def _change(row: dict[str, Any]) -> str:
    """Say by how much a setting changes the objective."""
    if row["diff_pct"] is None or row["diff_pct_lo"] is None:
        return f"changes by {row['diff']:+.3g}"
    return f"changes by {row['diff_pct']:+.1f} % ({row['diff_pct_lo']:+.1f} to {row['diff_pct_hi']:+.1f})"


def _nothing(frame: pl.DataFrame, within: pl.DataFrame, label: str, relevant: float) -> str:
    """Say why nothing is better, and what the limits cost."""
    more = ""
    beyond = frame.filter("lowers", pl.col("broken") != "")
    if beyond.height:
        row = beyond.row(0, named=True)
        more = f" Beyond the limits the {label} would fall: with {row['setting']} it {_change(row)}, which breaks {row['broken']}."
    if within.is_empty():
        return f"Of {frame.height} settings none keeps the limits.{more}"
    best = within.row(0, named=True)
    return (
        f"Of {frame.height} settings tried none lowers the {label} by more than its own uncertainty, by "
        f"{100 * relevant:g} % or more and within the limits; the best within them, {best['setting']}, {_change(best)}.{more}"
    )
