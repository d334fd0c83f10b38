"""What a translation says, in tables and sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.calibrate.judge import Judgement
from brokerlab.calibrate.nearest_setting.allocations import Difference, Who
from brokerlab.calibrate.percentiles.comparison import Comparison
from brokerlab.calibrate.percentiles.parameters import Parameter, Setting
from brokerlab.calibrate.verdict import Verdict, limit_of
from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig.proposal import Proposal
from brokerlab.words import short_percent


@dataclass(frozen=True, kw_only=True)
class Translation:
    """An estimator's allocations, the setting of the deployed system that comes nearest, and the current one.

    Amount columns end in the parameter's unit: ``_gbh`` of memory, ``_coreh`` of a walltime limit. The loss
    is in core-hours per core-hour of useful work, in every row by the same prices and retries.

    Attributes:
        parameter: What is set.
        estimator: Name of the estimator.
        cheapest: The member of the family that costs least, whatever it exceeds.
        nearest: The one that costs least within the limit, by the judge's last choice: what may be proposed.
        current: The one that acts.
        table: Of the tasks with allocations, one row per ``who`` (estimator, cheapest, nearest, current): ``label, n_tasks, n_scored,
            n_exceed, n_lost``; ``loss`` and ``exceed_rate`` (of first attempts) as the judge weighs tasks, with ``_lo, _hi``; over all jobs
            ``exceed_rate_jobs, over_allocation`` (reserved and not used / used)``, used_, over_, waste_, reserved_<amount>,
            killed_coreh, work_coreh``; ``slots_share``, mean of tasks.
        differences: One row per ``difference``, paired by task: ``of, against, loss, loss_lo, loss_hi,
            pct_of_current``. ``restriction``: cheapest - estimator, what is lost by having to set a rule;
            ``limit``: nearest - cheapest, lost for the limit; ``setting``: current - nearest;
            ``estimator``: current - estimator.
        judgement: On all tasks, with allocations or without; its settings are `Setting`.
        comparison: The current setting against those chosen on earlier tasks; null: records, or too few tasks.
        verdict: The answer; it rests on the comparison, not on the table.
        counts: ``tasks_without_allocations`` and ``jobs``, of which ``jobs_without_allocation``.
        notes: What this cannot tell, in sentences.
    """

    parameter: Parameter
    estimator: str
    cheapest: Setting
    nearest: Setting
    current: Setting
    table: pl.DataFrame
    differences: pl.DataFrame
    judgement: Judgement
    comparison: Comparison | None
    verdict: Verdict
    counts: dict[str, int]
    notes: tuple[str, ...]

    @property
    def side_by_side(self) -> pl.DataFrame:
        """The table with ``mark`` (current) and ``killed_share`` (of the work)."""
        return self.table.with_columns(
            mark=pl.when(who="current").then(pl.lit("current")),
            killed_share=pl.col("killed_coreh") / pl.col("work_coreh"),
        )

    @property
    def proposal(self) -> Proposal | None:
        """The document; null without one."""
        return self.verdict.proposal

    @property
    def max_exceed(self) -> float:
        """Limit on first attempts killed."""
        return limit_of(self.judgement)

    def side(self, who: Who) -> dict[str, Any]:
        """Return one row of the table."""
        return self._row(self.table, "who", who)

    def difference(self, name: Difference) -> dict[str, Any]:
        """Return one row of the differences."""
        return self._row(self.differences, "difference", name)

    @property
    def parts(self) -> dict[str, str]:
        """Sentences: ``answer``, ``estimator``, ``nearest`` and ``lost``."""
        return {
            "answer": self.verdict.sentence,
            "estimator": self._estimator(),
            "nearest": self._nearest(),
            "lost": self._lost(),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the facts that are not tables, and the tables as rows."""
        return {
            "parameter": self.parameter.name,
            "estimator": self.estimator,
            "cheapest": self.cheapest._asdict(),
            "nearest": self.nearest._asdict(),
            "current": self.current._asdict(),
            "table": self.table.to_dicts(),
            "differences": self.differences.to_dicts(),
            "judgement": self.judgement.to_dict(),
            "comparison": None if self.comparison is None else self.comparison.table.to_dicts(),
            "verdict": self.verdict.to_dict(),
            "counts": dict(self.counts),
            "notes": list(self.notes),
            "parts": self.parts,
        }

    def _row(self, frame: pl.DataFrame, column: str, name: str) -> dict[str, Any]:
        rows = frame.filter(pl.col(column) == name)
        if rows.is_empty():
            raise ConfigError(f"{column} '{name}': {nearest(name, frame[column].to_list())}")
        return rows.row(0, named=True)

    def _estimator(self) -> str:
        row, now = self.side("estimator"), self.side("current")
        return (
            f"Allocations of {self.estimator}: loss {row['loss']:.4f}{_ends(row)} against "
            f"{now['loss']:.4f}{_ends(now)} under the current setting, {short_percent(row['exceed_rate'])} of first "
            f"attempts killed against {short_percent(now['exceed_rate'])}, {self._where()}."
        )

    def _nearest(self) -> str:
        row = self.side("nearest")
        words = self.nearest.words(self.parameter, minimum=True)
        if self.nearest == self.current:
            return f"The nearest setting is the current one: {words}."
        gain = self.difference("setting")
        return (
            f"The nearest setting: {words}; loss {row['loss']:.4f}{_ends(row)}, "
            f"{abs(gain['loss']):.4f}{_ends(gain, sign=_sign(gain))} {'less' if gain['loss'] >= 0 else 'more'} "
            f"than the current one, {short_percent(row['exceed_rate'])} of first attempts killed."
        )

    def _lost(self) -> str:
        lost, whole, limit = (
            self.difference(name) for name in ("restriction", "estimator", "limit")
        )
        sign, words = _sign(lost), self.cheapest.words(self.parameter, minimum=True)
        text = (
            f"The cheapest setting of all ({words}) costs {abs(lost['loss']):.4f}{_ends(lost, sign=sign)} "
            f"{'more' if sign > 0 else 'less'} per core-hour of work than the estimator's allocations"
        )
        if whole["loss"] > 0:
            kept = min(max(1 - lost["loss"] / whole["loss"], 0.0), 1.0)
            text += f": {100 * kept:.0f} % of what they gain on the current setting is left"
        if self.nearest != self.cheapest:
            sign = _sign(limit)
            text += (
                f"; the limit of {short_percent(self.max_exceed)} killed first attempts "
                f"{'costs another' if sign > 0 else 'saves'} {abs(limit['loss']):.4f}{_ends(limit, sign=sign)}"
            )
        return f"{text}."

    def _where(self) -> str:
        row = self.side("current")
        return f"on {row['n_tasks']:,} tasks, {row['n_scored']:,} jobs"


def _sign(row: dict[str, Any]) -> int:
    return 1 if row["loss"] >= 0 else -1


def _ends(row: dict[str, Any], *, sign: int = 1) -> str:
    """Write an interval in brackets; nothing where there is none."""
    if row["loss_lo"] is None:
        return ""
    low, high = sorted((sign * row["loss_lo"], sign * row["loss_hi"]))
    return f" ({round(low, 4) + 0.0:.4f} to {round(high, 4) + 0.0:.4f})"  # no minus 0
