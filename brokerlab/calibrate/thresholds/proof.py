"""A chosen setting on a later period that nothing was chosen on; several at once are held to it together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from brokerlab.calibrate.thresholds.choice import Limits
from brokerlab.calibrate.thresholds.intervals import (
    FEWEST_SEEDS,
    MIN_TASKS,
    Draw,
    Pair,
    compared,
    p_value,
)
from brokerlab.calibrate.thresholds.outcomes import Outcome, Period, quantity_of
from brokerlab.calibrate.thresholds.settings import Setting
from brokerlab.calibrate.thresholds.sweep import Sweep
from brokerlab.intervals import t_factor

ProofStatus = Literal["proven", "not_proven", "no_answer"]
STRATA = ("gshare", "user_class")
NO_LEVEL = "(none)"


@dataclass(frozen=True)
class Proof:
    """Before and after on the proof period.

    Attributes:
        setting: What was proven, or not.
        status: ``proven``, ``not_proven`` or ``no_answer``.
        reason: One sentence.
        table: One row per quantity, see :func:`.intervals.compared`.
        strata: One row per ``stratum`` and ``level``: ``n_tasks, before, after, diff, diff_lo, diff_hi, diff_pct`` of the objective and
            ``verdict`` (gains, loses, open).
        queues: One row per queue: ``panda_queue, n_jobs_before, n_jobs_after`` (mean over replications),
            ``used_before, used_after`` (part of the slots), ``diff, diff_lo, diff_hi`` (draw of simulations) and ``verdict``
            (fuller, emptier, open).
        p: Two-sided, of no difference in the objective; null without an interval.
        p_holm: The same, for all settings proven together.
        n_tasks: Tasks of the proof period.
        replications: Of each setting.
        period: The period.
    """

    setting: Setting
    status: ProofStatus
    reason: str
    table: pl.DataFrame
    strata: pl.DataFrame
    queues: pl.DataFrame
    p: float | None
    p_holm: float | None
    n_tasks: int
    replications: int
    period: Period

    def quantity(self, name: str) -> dict[str, Any]:
        """Return one line of the table."""
        return self.table.filter(pl.col("quantity") == name).row(0, named=True)


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Return p-values that hold for all of several questions together; null stays null, and counts as a question.

    Source: Holm, Scand. J. Statist. 6 (1979) 65.

    Example:
        >>> holm([0.01, 0.04, None])
        [0.03, 0.08, None]
    """
    known = sorted((value, place) for place, value in enumerate(values) if value is not None)
    found: list[float | None] = [None] * len(values)
    least = 0.0
    for rank, (value, place) in enumerate(known):
        least = max(least, min(1.0, value * (len(values) - rank)))
        found[place] = least
    return found


def prove(
    sweep: Sweep, settings: Sequence[Setting], limits: Limits, *, relevant: float
) -> list[Proof]:
    """Compare chosen settings with the current one on the sweep's period.

    A setting is proven if the objective falls beyond its interval, by at least ``relevant``, at the level that Holm leaves
    it, and no limit is broken. The limits are asked of the point: the choice asked them of the upper end, and asking
    that twice would refuse half of all sound choices.

    Args:
        sweep: Of the proof period, with nothing tried yet.
        settings: The settings.
        limits: What may get worse.
        relevant: Smallest reduction that is worth a change, as a part of the current value.
    """
    sweep.try_all(settings)
    values = [_p_value(sweep, one) for one in settings]
    held = replace(limits, on="point")
    return [
        _proof(sweep, one, p, adjusted, held, relevant)
        for one, p, adjusted in zip(settings, values, holm(values), strict=True)
    ]


def _p_value(sweep: Sweep, setting: Setting) -> float | None:
    sides = _sides(sweep, setting)
    return None if sides is None else p_value(Pair.of(*sides), sweep.objective, sweep.draw)


def _sides(sweep: Sweep, setting: Setting) -> tuple[Outcome, Outcome] | None:
    """Return what the current setting and another one led to; null if the other one could not be simulated."""
    if setting not in sweep.found:
        return None
    seeds = sweep.seeds(sweep.seeds_used[setting])
    current = sweep.runs.outcome(sweep.space.config, seeds, sweep.period)
    other = sweep.runs.outcome(sweep.space.configured(setting), seeds, sweep.period)
    return None if current is None or other is None else (current, other)


def _proof(
    sweep: Sweep,
    setting: Setting,
    p: float | None,
    p_holm: float | None,
    limits: Limits,
    relevant: float,
) -> Proof:
    sides = _sides(sweep, setting)
    if sides is None:
        gone = "; ".join(missing.reason for missing in sweep.runs.missing[:3])
        empty = pl.DataFrame()
        reason = f"The setting could not be simulated in the proof period: {gone}."
        return Proof(setting, "no_answer", reason, empty, empty, empty, None, None, 0, 0, sweep.period)  # fmt: skip
    row = sweep.row(setting, sweep.objective)
    status, reason = _judged(sweep, setting, row, p_holm, limits, relevant)
    return Proof(
        setting=setting,
        status=status,
        reason=reason,
        table=sweep.found[setting],
        strata=by_stratum(Pair.of(*sides), sweep.objective, sweep.draw),
        queues=by_queue(*sides, sweep.draw),
        p=p,
        p_holm=p_holm,
        n_tasks=sweep.n_tasks,
        replications=sweep.seeds_used[setting],
        period=sweep.period,
    )


def _judged(
    sweep: Sweep,
    setting: Setting,
    row: dict[str, Any],
    p_holm: float | None,
    limits: Limits,
    relevant: float,
) -> tuple[ProofStatus, str]:
    """Say whether the proof holds, and why."""
    if row["diff_lo"] is None or p_holm is None:
        few = f"The proof period has {sweep.n_tasks} tasks and {MIN_TASKS} are needed"
        return "no_answer", f"{few}: no interval follows from them."
    label = quantity_of(sweep.objective).label.lower()
    change = (
        f"{label} {row['diff']:+.3g} {row['unit']} ({row['diff_lo']:+.3g} to {row['diff_hi']:+.3g})"
    )
    broken = limits.broken(sweep.found[setting])
    if broken:
        return "not_proven", f"On the proof period the limits {', '.join(broken)} are broken; {change}."  # fmt: skip
    if row["diff_hi"] >= 0:
        return "not_proven", f"On the proof period its interval includes 0: {change}."
    if p_holm > sweep.draw.alpha:
        return "not_proven", (
            f"On the proof period it is lower, but of several settings proven together one would be by chance (p = "
            f"{p_holm:.3f} after Holm, {sweep.draw.alpha:g} asked): {change}."
        )
    if -row["diff"] < relevant * abs(row["before"]):
        return "not_proven", f"On the proof period it falls by less than {100 * relevant:g} %: {change}."  # fmt: skip
    return "proven", f"On the proof period: {change}."


def by_stratum(pair: Pair, objective: str, draw: Draw) -> pl.DataFrame:
    """Compare inside each level of what tasks are known by; intervals from ten tasks on.

    Returns:
        See `Proof.strata`; sorted by stratum and level.
    """
    rows = []
    for stratum in STRATA:
        labels = pair.tasks[stratum]
        if objective == "unfairness" or labels.null_count() == len(labels):
            continue
        named = labels.fill_null(NO_LEVEL)
        for level in named.unique().sort():
            places = np.flatnonzero((named == level).to_numpy()).astype(np.int64)
            row = compared(pair.some(places), draw, spans=False).row(by_predicate=pl.col("quantity") == objective, named=True)  # fmt: skip
            numbers = [
                row[name] for name in ("before", "after", "diff", "diff_lo", "diff_hi", "diff_pct")
            ]
            rows.append(
                (stratum, level, len(places), *numbers, _who(row["diff_lo"], row["diff_hi"]))
            )
    schema = {
        **dict.fromkeys(("stratum", "level"), pl.String),
        "n_tasks": pl.Int64,
        **dict.fromkeys(("before", "after", "diff", "diff_lo", "diff_hi", "diff_pct"), pl.Float64),
        "verdict": pl.String,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _who(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "open"
    return "gains" if high < 0 else "loses" if low > 0 else "open"


def by_queue(current: Outcome, other: Outcome, draw: Draw) -> pl.DataFrame:
    """Compare how full queues are; intervals over replications.

    Returns:
        See `Proof.queues`; the largest change first.
    """
    keys = ["seed", "panda_queue"]
    both = current.queues.join(other.queues, on=keys, suffix="_after", how="inner").sort(keys)
    part = [pl.col(f"used_core_h{end}") / pl.col("capacity_core_h") for end in ("", "_after")]
    told = both.filter(pl.col("capacity_core_h") > 0).with_columns(before=part[0], after=part[1])
    n = both["seed"].n_unique()
    factor = t_factor(n, draw.confidence) if n >= FEWEST_SEEDS else None
    shift = pl.col("after") - pl.col("before")
    found = told.group_by("panda_queue").agg(
        n_jobs_before=pl.col("n_jobs").mean(),
        n_jobs_after=pl.col("n_jobs_after").mean(),
        used_before=pl.col("before").mean(),
        used_after=pl.col("after").mean(),
        diff=shift.mean(),
        half=shift.std() / pl.lit(float(np.sqrt(max(n, 1)))) * pl.lit(factor, pl.Float64),
    )
    low, high = pl.col("diff") - pl.col("half"), pl.col("diff") + pl.col("half")
    verdict = (
        pl.when(low > 0)
        .then(pl.lit("fuller"))
        .when(high < 0)
        .then(pl.lit("emptier"))
        .otherwise(pl.lit("open"))
    )
    return (
        found.with_columns(diff_lo=low, diff_hi=high, verdict=verdict)
        .drop("half")
        .select("panda_queue", pl.exclude("panda_queue", "verdict"), "verdict")
        .sort(pl.col("diff").abs(), "panda_queue", descending=[True, False])
    )
