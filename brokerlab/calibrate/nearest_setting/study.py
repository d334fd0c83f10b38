"""One translation, from the jobs with allocations to choice, proof and answer."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

import polars as pl

from brokerlab.calibrate.assumptions import Assumptions
from brokerlab.calibrate.backtest import Backtest, backtest
from brokerlab.calibrate.choice import MIN_TASKS, Choice, LimitOn, choose
from brokerlab.calibrate.loss import LossWeights
from brokerlab.calibrate.nearest_setting.compare import Who, compared
from brokerlab.calibrate.nearest_setting.family import cheapest_of, nearest_of, with_minima
from brokerlab.calibrate.nearest_setting.given import Scored, placed
from brokerlab.calibrate.nearest_setting.history import History
from brokerlab.calibrate.nearest_setting.translation import (
    FamilySetting,
    Translation,
    minimum_change,
)
from brokerlab.calibrate.parameters import Parameter
from brokerlab.calibrate.periods import Periods
from brokerlab.calibrate.proof import Proof, prove
from brokerlab.calibrate.verdict import Verdict, propose
from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.words import short_percent

OWN_RETRIES = (
    "All are tried again as the back-test retries, not as the estimator would; what slots cannot take "
    "is that of the typical job of a task."
)
SAME_TASKS = "The settings were chosen on the tasks that they are scored on: what is lost by them is told too small."


@dataclass(frozen=True, kw_only=True)
class Study:
    """One translation with everything set; see :func:`translate.translate`."""

    history: History
    given: pl.DataFrame
    parameter: Parameter
    name: str
    made: Assumptions
    weights: LossWeights
    current: FamilySetting
    ranks: tuple[int, ...]
    margins: tuple[int, ...] | None
    minima: tuple[int | None, ...]
    max_exceed: float
    limit_on: LimitOn
    n_boot: int
    seed: int
    told: pl.Series | None = None

    def with_allocations(self) -> Study:
        """Return the study with the tasks that have allocations: only they are compared.

        Raises:
            DataError: None has.
        """
        jobs = self.history.quantities.select("jeditaskid", "pandaid")
        given = self.given.filter(pl.col("allocated").is_finite())
        told = jobs.join(given, on="pandaid", how="semi")["jeditaskid"].unique()
        if told.is_empty():
            raise DataError(
                f"allocations.pandaid: none of {given.height} jobs with an allocation is a finished job of the "
                f"source, whose ids are {jobs['pandaid'].min()!r} to {jobs['pandaid'].max()!r}"
            )
        return replace(self, told=told)

    def proven(self, periods: Periods, created_at: datetime | None) -> Translation:
        """Choose on the early tasks, prove on the late ones, compare on those that have allocations.

        Raises:
            InsufficientDataError: One of the periods has no task that can be scored, or the later one none to
                compare on.
        """
        sides = {"proof": self._scored(self._with_told(periods.late))}
        early = self._with_told(periods.early)
        with suppress(InsufficientDataError):  # none where the estimator learnt from these tasks
            sides = {"calibration": self._scored(early), **sides}
        choice, cheapest, nearest = self._choice(periods.early)
        proof, now = self._proof(nearest, periods.late)
        moment = created_at or (periods.late_window or (periods.at, periods.at))[1]
        verdict = propose(
            choice,
            proof,
            now,
            periods,
            self.history.config,
            created_at=moment,
            archive_digest=self.history.digest,
            synthetic=self.history.synthetic,
            also=minimum_change(nearest, self.current),
        )
        return self._told(sides, choice, cheapest, nearest, verdict, proof=proof, periods=periods)

    def described(self, reason: str) -> Translation:
        """Compare on all tasks, without a proof.

        Raises:
            InsufficientDataError: No task can be scored.
        """
        everything = self._scored(self._with_told(self.history.tasks))
        choice, cheapest, nearest = self._choice(self.history.tasks)
        n = everything.sample.tasks.height
        few = f"{n} tasks can be scored and {MIN_TASKS} are needed in each period; " if n < 2 * MIN_TASKS else ""  # fmt: skip
        subject = self.parameter.rank_key or self.parameter.name
        verdict = Verdict(
            "no_answer", f"No answer: {few}{reason}.", subject, None, information_only=False
        )
        return self._told(
            {"all": everything}, choice, cheapest, nearest, verdict, proof=None, periods=None
        )

    def _with_told(self, tasks: pl.DataFrame) -> pl.DataFrame:
        """Return those of the tasks that have allocations."""
        told = pl.DataFrame({"jeditaskid": self.told}, schema={"jeditaskid": pl.Int64})
        return tasks.join(told, on="jeditaskid", how="semi", maintain_order="left")

    def _scored(self, tasks: pl.DataFrame) -> Scored:
        return Scored.of(self.history, tasks, self.parameter, self.made, self.weights)

    def _backtest(
        self, tasks: pl.DataFrame, made: Assumptions, only: tuple[FamilySetting, ...] = ()
    ) -> Backtest:
        """Replay the whole grid, or single settings in detail."""
        detail = sorted({each.pair for each in only})
        return backtest(
            self.history.quantities,
            tasks,
            self.history.queues,
            self.history.jobs,
            parameter=self.parameter.name,
            ranks=[rank for rank, _ in detail] or self.ranks,
            margins=[margin for _, margin in detail] or self.margins,
            current=self.current.pair,
            detail=detail,
            loss=self.weights,
            assumptions=made,
            synthetic=self.history.synthetic,
        )

    def _choice(self, tasks: pl.DataFrame) -> tuple[Choice, FamilySetting, FamilySetting]:
        """Choose from the family, on all tasks: a setting acts on each of them.

        Returns:
            The choice, the cheapest setting, and the cheapest one within the limit.
        """
        tried = with_minima(
            self._backtest(tasks, self.made),
            self._scored(tasks),
            self.minima,
            max_exceed=self.max_exceed,
            limit_on=self.limit_on,
        )
        choice = choose(tried, max_exceed=self.max_exceed, limit_on=self.limit_on)
        cheapest, nearest = (
            FamilySetting(rank=rank, margin_pct=margin, minimum_mb=minimum)
            for (rank, margin), minimum in (cheapest_of(tried), nearest_of(choice))
        )
        return choice, cheapest, nearest

    def _proof(self, nearest: FamilySetting, tasks: pl.DataFrame) -> tuple[Proof, Backtest]:
        """Score the nearest and the current setting on tasks that the choice never saw."""
        both = (self.current, nearest)
        now = self._backtest(tasks, self.made, both)
        other = now
        if nearest.minimum_mb != self.current.minimum_mb:
            other = self._backtest(tasks, replace(self.made, ram_min_mb=nearest.minimum_mb), both)
        proof = prove(
            now,
            nearest.pair,
            under=other,
            max_exceed=self.max_exceed,
            n_boot=self.n_boot,
            seed=self.seed,
        )
        return proof, now

    def _told(
        self,
        sides: dict[str, Scored],
        choice: Choice,
        cheapest: FamilySetting,
        nearest: FamilySetting,
        verdict: Verdict,
        *,
        proof: Proof | None,
        periods: Periods | None,
    ) -> Translation:
        """Lay the three side by side on each period."""
        tables, stood_in, jobs = [], 0, 0
        labels: dict[Who, str] = {
            "estimator": self.name,
            "cheapest": cheapest.words(self.parameter),
            "nearest": nearest.words(self.parameter),
            "current": self.current.words(self.parameter),
        }
        for period, scored in sides.items():
            allocated, missing = placed(
                scored, self.given, self.current.pair, self.current.minimum_mb
            )
            rows: dict[Who, pl.DataFrame] = {
                "estimator": scored.by_allocation(allocated),
                "cheapest": scored.by_setting(cheapest.pair, cheapest.minimum_mb),
                "nearest": scored.by_setting(nearest.pair, nearest.minimum_mb),
                "current": scored.by_setting(self.current.pair, self.current.minimum_mb),
            }
            stood_in, jobs = stood_in + missing.size, jobs + allocated.size
            tables.append(
                compared(
                    rows,
                    labels,
                    self.parameter,
                    period=period,
                    confidence=self.made.confidence,
                    n_boot=self.n_boot,
                    seed=self.seed,
                )
            )
        table, differences = (pl.concat(frames) for frames in zip(*tables, strict=True))
        counts = {"tasks_without_allocations": self._left_out(periods), "jobs": jobs, "jobs_without_allocation": stood_in}  # fmt: skip
        return Translation(
            parameter=self.parameter,
            estimator=self.name,
            cheapest=cheapest,
            nearest=nearest,
            current=self.current,
            table=table,
            differences=differences,
            choice=choice,
            proof=proof,
            verdict=verdict,
            periods=periods,
            counts=counts,
            notes=self._notes(counts, choice, periods),
        )

    def _left_out(self, periods: Periods | None) -> int:
        """Count the tasks with finished jobs that could not be compared."""
        tasks = self.history.tasks if periods is None else pl.concat([periods.early, periods.late])
        known = tasks.join(self.history.quantities, on="jeditaskid", how="semi")
        return known.height - self._with_told(known).height

    def _notes(
        self, counts: dict[str, int], choice: Choice, periods: Periods | None
    ) -> tuple[str, ...]:
        """Say what this cannot tell, from what was found."""
        notes = [*self.history.notes, OWN_RETRIES, *choice.caveats]
        if periods is None:
            notes.append(SAME_TASKS)
        elif periods.n_overlapping:
            notes.append(
                f"{periods.n_overlapping:,} jobs of the tasks that the setting was chosen on ended in the proof "
                "period: at its beginning they could not have been known yet."
            )
        if counts["tasks_without_allocations"]:
            notes.append(
                f"{counts['tasks_without_allocations']} tasks have no allocation of {self.name}: choice and proof of "
                "the setting include them, for it acts on them too; the comparison does not."
            )
        if counts["jobs_without_allocation"]:
            notes.append(
                f"{counts['jobs_without_allocation']:,} of {counts['jobs']:,} jobs have no allocation of "
                f"{self.name}: the current setting stands in for them."
            )
        if not choice.candidates["meets_limit"].any():
            notes.append(
                f"No member of the family keeps the limit of {short_percent(self.max_exceed)} on the tasks it was "
                "chosen on: the nearest setting is the one that costs least."
            )
        return tuple(notes)
