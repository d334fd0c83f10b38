"""What a translation says, in tables and sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.calibrate.choice import Choice
from brokerlab.calibrate.nearest_setting.compare import Difference, Who
from brokerlab.calibrate.nearest_setting.family import MINIMUM_KEY
from brokerlab.calibrate.parameters import Parameter
from brokerlab.calibrate.periods import Periods
from brokerlab.calibrate.proof import Proof
from brokerlab.calibrate.replay import Setting
from brokerlab.calibrate.verdict import Verdict
from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig.proposal import Proposal
from brokerlab.words import short_percent

PERIODS = {
    "calibration": "on the calibration period",
    "proof": "on the proof period",
    "all": "not divided into periods",
}


@dataclass(frozen=True, kw_only=True)
class FamilySetting:
    """One member of the family that the deployed system has.

    Attributes:
        rank: Percentile rank.
        margin_pct: Margin [%].
        minimum_mb: SCOUT_RAMCOUNT_MIN [MB]; null: none.
    """

    rank: int
    margin_pct: int
    minimum_mb: int | None

    @property
    def pair(self) -> Setting:
        """Rank and margin."""
        return self.rank, self.margin_pct

    def words(self, parameter: Parameter) -> str:
        """Return the setting in words.

        Example:
            >>> from brokerlab.calibrate.parameters import parameter_named
            >>> FamilySetting(rank=75, margin_pct=10, minimum_mb=500).words(parameter_named("ramcount"))
            'rank 75, margin 10 %, minimum 500 MB'
        """
        text = f"rank {self.rank}, margin {self.margin_pct} %"
        if parameter.name != "ramcount":
            return text
        least = "no minimum" if self.minimum_mb is None else f"minimum {self.minimum_mb} MB"
        return f"{text}, {least}"


@dataclass(frozen=True, kw_only=True)
class Translation:
    """An estimator's allocations, the setting of the deployed system that comes nearest, and the current one.

    Amount columns end in the parameter's unit: ``_gbh`` of memory, ``_coreh`` of a walltime limit. The loss
    is in core-hours per core-hour of useful work, in every row by the same weights and retries.

    Attributes:
        parameter: What is set.
        estimator: Name of the estimator.
        cheapest: The member of the family that costs least on the calibration period, whatever it exceeds.
        nearest: The one that costs least there within the limit: what may be proposed.
        current: The one that acts.
        table: Of the tasks with allocations, one row per (period, who), ``who`` being estimator, cheapest, nearest, current: ``label, n_tasks, n_scored,
            n_exceed, n_lost, loss, loss_lo, loss_hi, exceed_rate, exceed_lo, exceed_hi, exceed_task_mean,
            over_allocation`` (reserved and not used / used)``, used_, over_, waste_, reserved_<amount>,
            killed_coreh, work_coreh, slots_share``.
        differences: One row per (period, difference), paired by task: ``of, against, loss, loss_lo, loss_hi,
            pct_of_current``. ``restriction``: cheapest - estimator, what is lost by having to set a rule;
            ``limit``: nearest - cheapest, for the limit or because the gain of the cheapest one is in doubt;
            ``setting``: current - nearest; ``estimator``: current - estimator.
        choice: Of the calibration period, or of all tasks.
        proof: Nearest against current on the proof period; null: none could be made.
        verdict: The answer.
        periods: Null: not divided.
        counts: ``tasks_without_allocations`` and ``jobs``, of which ``jobs_without_allocation``.
        notes: What this cannot tell, in sentences.
    """

    parameter: Parameter
    estimator: str
    cheapest: FamilySetting
    nearest: FamilySetting
    current: FamilySetting
    table: pl.DataFrame
    differences: pl.DataFrame
    choice: Choice
    proof: Proof | None
    verdict: Verdict
    periods: Periods | None
    counts: dict[str, int]
    notes: tuple[str, ...]

    @property
    def side_by_side(self) -> pl.DataFrame:
        """Rows of ``table`` of the period that is scored, with ``mark`` (current) and ``killed_share`` (of the work).

        The ends of ``exceed_rate`` are named after it: ``exceed_rate_lo, exceed_rate_hi``.
        """
        rows = self.table.filter(period=self.scored_on)
        return rows.rename(
            {"exceed_lo": "exceed_rate_lo", "exceed_hi": "exceed_rate_hi"}
        ).with_columns(
            mark=pl.when(who="current").then(pl.lit("current")),
            killed_share=pl.col("killed_coreh") / pl.col("work_coreh"),
        )

    @property
    def proposal(self) -> Proposal | None:
        """The document; null without one."""
        return self.verdict.proposal

    @property
    def scored_on(self) -> str:
        """The period that the comparison is to be read on: ``proof``, or ``all`` where there is none."""
        return "all" if self.proof is None else "proof"

    def side(self, who: Who, period: str | None = None) -> dict[str, Any]:
        """Return one row of the table."""
        return self._row(self.table, "who", who, period)

    def difference(self, name: Difference, period: str | None = None) -> dict[str, Any]:
        """Return one row of the differences."""
        return self._row(self.differences, "difference", name, period)

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
            "cheapest": vars(self.cheapest),
            "nearest": vars(self.nearest),
            "current": vars(self.current),
            "table": self.table.to_dicts(),
            "differences": self.differences.to_dicts(),
            "choice": self.choice.to_dict(),
            "proof": None if self.proof is None else self.proof.to_dict(),
            "verdict": self.verdict.to_dict(),
            "counts": dict(self.counts),
            "notes": list(self.notes),
            "parts": self.parts,
        }

    def _row(
        self, frame: pl.DataFrame, column: str, name: str, period: str | None
    ) -> dict[str, Any]:
        when = period or self.scored_on
        rows = frame.filter((pl.col("period") == when) & (pl.col(column) == name))
        if rows.is_empty():
            known = [*frame["period"].unique(), *frame[column].unique()]
            raise ConfigError(f"{column} '{name}' {when}: {nearest(name, known)}")
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
        words = self.nearest.words(self.parameter)
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
        sign, words = _sign(lost), self.cheapest.words(self.parameter)
        text = (
            f"The cheapest setting of all ({words}) costs {abs(lost['loss']):.4f}{_ends(lost, sign=sign)} "
            f"{'more' if sign > 0 else 'less'} per core-hour of work than the estimator's allocations"
        )
        if whole["loss"] > 0:
            kept = min(max(1 - lost["loss"] / whole["loss"], 0.0), 1.0)
            text += f": {100 * kept:.0f} % of what they gain on the current setting is left"
        if self.nearest != self.cheapest:
            sign = _sign(limit)
            of = f"limit of {short_percent(self.choice.max_exceed)} killed first attempts"
            text += (
                f"; the {of if self._breaks_limit() else 'nearest setting'} "
                f"{'costs another' if sign > 0 else 'saves'} {abs(limit['loss']):.4f}{_ends(limit, sign=sign)}"
            )
        return f"{text}."

    def _breaks_limit(self) -> bool:
        """Tell whether the limit is why the cheapest setting is not the nearest."""
        one = self.cheapest
        if one.pair == self.current.pair and one.minimum_mb != self.current.minimum_mb:
            return False  # a minimum is not set alone, whatever it keeps
        here = (pl.col("rank") == one.rank) & (pl.col("margin_pct") == one.margin_pct)
        minimum = pl.col("ram_min_mb").eq_missing(pl.lit(one.minimum_mb, pl.Int64))
        return self.choice.candidates.filter(here & minimum & pl.col("meets_limit")).is_empty()

    def _where(self) -> str:
        row = self.side("current")
        return f"{PERIODS[self.scored_on]}, {row['n_tasks']:,} tasks, {row['n_scored']:,} jobs"


def _sign(row: dict[str, Any]) -> int:
    return 1 if row["loss"] >= 0 else -1


def _ends(row: dict[str, Any], *, sign: int = 1) -> str:
    """Write an interval in brackets; nothing where there is none."""
    if row["loss_lo"] is None:
        return ""
    low, high = sorted((sign * row["loss_lo"], sign * row["loss_hi"]))
    return f" ({round(low, 4) + 0.0:.4f} to {round(high, 4) + 0.0:.4f})"  # no minus 0


def minimum_change(nearest_to: FamilySetting, current: FamilySetting) -> dict[str, int | None]:
    """Return the further key that a change sets, if it does."""
    if nearest_to.minimum_mb == current.minimum_mb:
        return {}
    return {MINIMUM_KEY: nearest_to.minimum_mb}
