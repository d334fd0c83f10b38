"""Two settings by every quantity, by who it is, and by queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from brokerlab.calibrate.judge import Judgement, Outcomes, Question, Sums, compare_blocks
from brokerlab.calibrate.thresholds.outcomes import LIMITS, QUANTITIES, Outcome
from brokerlab.calibrate.thresholds.settings import Setting
from brokerlab.calibrate.thresholds.simulations import PREFIX, Simulations
from brokerlab.intervals import t_factor
from brokerlab.numerics import percent_of

STRATA = ("gshare", "user_class")
FEWEST = 8
"""Spans of time from which differences have an interval; a verdict needs more, see the judge."""
NO_LEVEL = "(none)"
ENDS = ("", "_lo", "_hi")
_SHOWN = {
    **dict.fromkeys(("quantity", "label", "unit"), pl.String),
    **dict.fromkeys(("before", "after"), pl.Float64),
    **{f"{name}{end}": pl.Float64 for name in ("diff", "diff_pct") for end in ENDS},
    "limit": pl.Float64,
    "limit_unit": pl.String,
    "kept": pl.Boolean,
    "coverage": pl.Float64,
}


@dataclass(frozen=True)
class Comparison:
    """Settings that can be compared with each other on the periods in which they were simulated."""

    simulations: Simulations
    outcomes: Outcomes
    question: Question
    sums: Sums

    @classmethod
    def of(cls, simulations: Simulations, settings: Sequence[Setting]) -> Comparison:
        """Read the simulations of some settings, the current one among them."""
        outcomes = simulations.outcomes(settings)
        question = simulations.question(settings)
        return cls(simulations, outcomes, question, Sums.of(outcomes, question))

    def raw(
        self, before: Setting, after: Setting, blocks: Sequence[int] | None = None
    ) -> pl.DataFrame:
        """Compare two settings on some periods, null: all; see :attr:`Judgement.table`."""
        every = list(range(self.sums.n_blocks) if blocks is None else blocks)
        places = [[self.outcomes.settings.index(one)] * len(every) for one in (before, after)]
        return compare_blocks(
            self.outcomes,
            self.sums,
            self.question,
            before=places[0],
            after=places[1],
            blocks=every,
            enough=int(np.diff(self.sums.edges)[every].sum()) >= FEWEST,
        )

    def between(
        self, before: Setting, after: Setting, blocks: Sequence[int] | None = None
    ) -> pl.DataFrame:
        """Compare two settings on some periods, null: all; see :func:`as_shown`."""
        return as_shown(self.raw(before, after, blocks), self.n_tasks(blocks))

    def n_tasks(self, blocks: Sequence[int] | None = None) -> int:
        """Return the number of tasks of some periods."""
        held = self.simulations.blocks
        return sum(self.simulations.tasks(held[at]).height for at in (blocks or range(len(held))))


def as_shown(table: pl.DataFrame, n_tasks: int) -> pl.DataFrame:
    """Return a comparison of the judge in words and units.

    Args:
        table: See :attr:`Judgement.table`.
        n_tasks: Tasks behind it: totals are over all of them.

    Returns:
        One row per quantity of `QUANTITIES`: ``quantity, label, unit, before, after, diff, diff_lo, diff_hi`` (interval of the
        difference; null below so many units as the judge asks for), ``diff_pct, diff_pct_lo, diff_pct_hi`` (the same in per
        cent of ``before``; null where that is almost nothing), ``limit`` (null: none) [``limit_unit``], ``kept``,
        ``coverage`` (null: not measured). Nulls where the simulation does not know the quantity.
    """
    known = {row["quantity"]: row for row in table.iter_rows(named=True)}
    rows = []
    for quantity in QUANTITIES:
        about: dict[str, Any] = {
            "quantity": quantity.name,
            "label": quantity.label,
            "unit": quantity.unit,
        }
        found = known.get(quantity.name)
        if found is not None:
            times = n_tasks if quantity.total else 1
            wanted = ("before", "after", *(f"diff{end}" for end in ENDS))
            about |= {n: None if found[n] is None else found[n] * times for n in wanted}
            for end in ENDS:
                value = about[f"diff{end}"]
                about[f"diff_pct{end}"] = percent_of(value, about["before"], least=quantity.least)
        for name, limited in LIMITS.items():
            limit = known.get(f"{PREFIX}{name}")
            if (
                limited.quantity == quantity.name
                and limit is not None
                and limit["limit"] is not None
            ):
                unit = "% of now" if limited.relative else quantity.unit
                about |= {"limit": limit["limit"], "limit_unit": unit, "kept": limit["kept"]}
        rows.append(about)
    return pl.DataFrame(rows, schema=_SHOWN)


def by_stratum(
    simulations: Simulations, settings: tuple[Setting, Setting], block: int
) -> pl.DataFrame:
    """Compare two settings inside each level of what tasks are known by, on one period.

    Returns:
        One row per ``stratum`` and ``level``: ``n_tasks, before, after, diff, diff_lo, diff_hi, diff_pct`` of the objective and
        ``verdict`` (gains, loses: the interval excludes 0; open), ``role`` (worst; null: not), the worst first.
    """
    objective, tasks = simulations.options.objective, simulations.tasks(simulations.blocks[block])
    rows: list[dict[str, Any]] = []
    for stratum in STRATA:
        labels = tasks[stratum]
        if objective == "unfairness" or labels.null_count() == len(labels):
            continue
        for level in labels.unique().sort(nulls_last=True):
            part = simulations.only((stratum, level))
            if any(part.tasks(one).is_empty() for one in part.blocks):
                continue
            comparison = Comparison.of(part, [simulations.current, *settings])
            row = comparison.between(*settings, [block]).row(
                by_predicate=pl.col("quantity") == objective, named=True
            )
            who = {"stratum": stratum, "level": NO_LEVEL if level is None else level}
            numbers = {name: row[name] for name in _STRATA if name in row}
            n = comparison.n_tasks([block])
            rows.append({**who, "n_tasks": n, **numbers, "verdict": _side(row, "gains", "loses")})
    found = pl.DataFrame(rows, schema=_STRATA).sort("diff_pct", descending=True, nulls_last=True)
    return found.with_columns(role=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("worst")))


_STRATA = {
    **dict.fromkeys(("stratum", "level"), pl.String),
    "n_tasks": pl.Int64,
    **dict.fromkeys(("before", "after", "diff", "diff_lo", "diff_hi", "diff_pct"), pl.Float64),
    "verdict": pl.String,
}


def _side(row: dict[str, Any], below: str, above: str) -> str:
    low, high = row["diff_lo"], row["diff_hi"]
    if low is None or high is None:
        return "open"
    return below if high < 0 else above if low > 0 else "open"


def by_queue(
    current: Sequence[Outcome], other: Sequence[Outcome], confidence: float
) -> pl.DataFrame:
    """Compare how full queues are; intervals over replications.

    Returns:
        One row per queue, the largest change first: ``panda_queue, n_jobs_before, n_jobs_after`` (mean over replications),
        ``used_before, used_after`` (part of the slots), ``diff, diff_lo, diff_hi`` and ``verdict`` (fuller, emptier, open).
    """
    n = len(current)
    factor = t_factor(n, confidence) / float(np.sqrt(n)) if n > 1 else None
    both = pl.concat(
        now.queues.join(then.queues, on="panda_queue", suffix="_after", maintain_order="left")
        for now, then in zip(current, other, strict=True)
    )
    part = [pl.col(f"used_core_h{end}") / pl.col("capacity_core_h") for end in ("", "_after")]
    known = both.filter(pl.col("capacity_core_h") > 0).with_columns(before=part[0], after=part[1])
    shift = pl.col("after") - pl.col("before")
    found = known.group_by("panda_queue").agg(
        n_jobs_before=pl.col("n_jobs").mean(),
        n_jobs_after=pl.col("n_jobs_after").mean(),
        used_before=pl.col("before").mean(),
        used_after=pl.col("after").mean(),
        diff=shift.mean(),
        half=shift.std() * pl.lit(factor, pl.Float64),
    )
    rows = found.with_columns(
        diff_lo=pl.col("diff") - pl.col("half"), diff_hi=pl.col("diff") + pl.col("half")
    ).drop("half")
    verdict = [_side(row, "emptier", "fuller") for row in rows.iter_rows(named=True)]
    return rows.with_columns(verdict=pl.Series(verdict, dtype=pl.String)).sort(
        pl.col("diff").abs(), "panda_queue", descending=[True, False]
    )


def proof_of(table: pl.DataFrame, objective: str) -> pl.DataFrame:
    """Return the quantities that are known, with ``role``: objective, beyond its limit (null: neither).

    Args:
        table: See :func:`as_shown`.
        objective: Of the judge.
    """
    beyond = pl.when(pl.col("kept").not_()).then(pl.lit("beyond its limit"))
    role = beyond.when(pl.col("quantity") == objective).then(pl.lit("objective"))
    return table.filter(pl.col("before").is_not_null()).with_columns(role=role)


def candidates_of(simulations: Simulations, judgement: Judgement) -> pl.DataFrame:
    """Compare all settings that were judged with the current one, on all periods.

    Returns:
        One row per setting, least objective first: ``setting, n_keys``, ``after`` (mean of the objective), ``diff, diff_lo,
        diff_hi, diff_pct, diff_pct_lo, diff_pct_hi``, ``broken`` (limits, comma list), ``lowers`` (by its whole interval),
        ``role`` (chosen; null: not).
    """
    comparison = Comparison.of(simulations, judgement.settings)
    rows = []
    for one in judgement.settings:
        if one == judgement.current:
            continue
        raw = comparison.raw(judgement.current, one)
        table = as_shown(raw, comparison.n_tasks())
        objective = pl.col("quantity") == judgement.question.objective
        row = table.row(by_predicate=objective, named=True)
        broken = raw.filter(pl.col("kept").not_())["quantity"].str.strip_prefix(PREFIX)
        about = {
            "setting": one.name,
            "n_keys": len(one.values),
            "broken": ", ".join(broken),
            "lowers": row["diff_hi"] is not None and row["diff_hi"] < 0,
            "role": "chosen" if one == judgement.best else None,
        }
        rows.append({name: about[name] if name in about else row[name] for name in _CANDIDATES})
    return pl.DataFrame(rows, schema=_CANDIDATES).sort("diff", "n_keys", "setting")


_CANDIDATES = {
    "setting": pl.String,
    "n_keys": pl.Int64,
    **dict.fromkeys(
        ("after", "diff", "diff_lo", "diff_hi", "diff_pct", "diff_pct_lo", "diff_pct_hi"),
        pl.Float64,
    ),
    "broken": pl.String,
    "lowers": pl.Boolean,
    "role": pl.String,
}


def sensitivity_of(judgement: Judgement) -> pl.DataFrame:
    """Choose on everything again, each limit halved and doubled: ``limit, factor, setting``."""
    question, sums = judgement.question, judgement.sums
    rows = []
    for limit in question.limits:
        for factor in (0.5, 2.0):
            limits = tuple(
                replace(one, most=one.most * factor) if one == limit else one
                for one in question.limits
            )
            asked = replace(question, limits=limits)
            place = sums.choose(range(sums.n_blocks), asked, judgement.inner)
            name = limit.quantity.removeprefix(PREFIX)
            rows.append((name, factor, judgement.settings[place].name))
    schema = {"limit": pl.String, "factor": pl.Float64, "setting": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")
