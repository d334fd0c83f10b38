"""One translation, from the jobs with allocations to judgement and answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import polars as pl

from brokerlab.calibrate.assumptions import Assumptions
from brokerlab.calibrate.backtest import Backtest, backtest
from brokerlab.calibrate.comparison import Comparison, compare
from brokerlab.calibrate.judge import MIN_UNITS, Judgement, Question, judge
from brokerlab.calibrate.loss import LossWeights
from brokerlab.calibrate.nearest_setting.compare import Who, compared
from brokerlab.calibrate.nearest_setting.family import (
    FamilySetting,
    cheapest_of,
    family_outcomes,
)
from brokerlab.calibrate.nearest_setting.given import Scored, placed
from brokerlab.calibrate.nearest_setting.history import History
from brokerlab.calibrate.nearest_setting.translation import Translation, minimum_change
from brokerlab.calibrate.parameters import Parameter
from brokerlab.calibrate.percentile_study import overlapping, scored_tasks
from brokerlab.calibrate.verdict import Verdict, limit_of, propose
from brokerlab.errors import DataError
from brokerlab.words import short_percent

OWN_RETRIES = (
    "All are tried again as the back-test retries, not as the estimator would; what slots cannot take "
    "is that of the typical job of a task."
)
SAME_TASKS = (
    "Nearest and cheapest were chosen on the tasks they are scored on: what is lost by a setting comes out too small. Whether "
    "one is proposed rests on tasks that had no part in its choice."
)
RECORDS = "records carry no settings: a proposal needs an archive"


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
    question: Question

    def translation(self, created_at: datetime | None = None) -> Translation:
        """Judge the family on all tasks, and compare on those that have allocations.

        Args:
            created_at: When the proposal is made; None: when the last task was created.

        Raises:
            DataError: No finished job has an allocation.
            InsufficientDataError: No task can be scored, or none of those with allocations.
        """
        with_allocations = self._with_allocations()
        scored = Scored.of(self.history, with_allocations, self.parameter, self.made, self.weights)
        tried = self._backtest()
        outcomes = family_outcomes(tried, self.minima)
        judgement = judge(outcomes, self.question)
        comparison = compare(
            *scored_tasks(
                tried,
                outcomes,
                judgement,
                lambda setting: tried.replay.under(setting.minimum_mb),
            ),
            self.parameter,
            self.question,
            n_units=judgement.n_units,
        )
        verdict = self._verdict(judgement, comparison, tried, created_at)
        nearest, cheapest = FamilySetting(*judgement.best), cheapest_of(judgement)
        allocated, missing = placed(scored, self.given, self.current.pair, self.current.minimum_mb)
        sides = {"cheapest": cheapest, "nearest": nearest, "current": self.current}
        labels = {who: each.words(self.parameter) for who, each in sides.items()}
        rows: dict[Who, pl.DataFrame] = {
            "estimator": scored.by_allocation(allocated),
            "cheapest": scored.by_setting(cheapest.pair, cheapest.minimum_mb),
            "nearest": scored.by_setting(nearest.pair, nearest.minimum_mb),
            "current": scored.by_setting(self.current.pair, self.current.minimum_mb),
        }
        table, differences = compared(
            rows,
            {"estimator": self.name, **labels},  # type: ignore[dict-item]
            self.parameter,
            self.question,
        )
        tasks = self.history.tasks.join(self.history.quantities, on="jeditaskid", how="semi")
        counts = {
            "tasks_without_allocations": tasks.height - with_allocations.height,
            "jobs": allocated.size,
            "jobs_without_allocation": missing.size,
        }
        late = overlapping(self.history.quantities, outcomes, judgement)
        judged = judgement.n_units >= MIN_UNITS and self.history.window is not None
        return Translation(
            parameter=self.parameter,
            estimator=self.name,
            cheapest=cheapest,
            nearest=nearest,
            current=self.current,
            table=table,
            differences=differences,
            judgement=judgement,
            comparison=comparison if judged else None,
            verdict=verdict,
            counts=counts,
            notes=self._notes(counts, judgement, late),
        )

    def _with_allocations(self) -> pl.DataFrame:
        """Return the tasks of which finished jobs have allocations: only they are compared.

        Raises:
            DataError: None has.
        """
        jobs = self.history.quantities.select("jeditaskid", "pandaid")
        given = self.given.filter(pl.col("allocated").is_finite())
        known = jobs.join(given, on="pandaid", how="semi")
        if known.is_empty():
            raise DataError(
                f"allocations.pandaid: none of {given.height} jobs with an allocation is a finished job of the "
                f"source, whose ids are {jobs['pandaid'].min()!r} to {jobs['pandaid'].max()!r}"
            )
        return self.history.tasks.join(known, on="jeditaskid", how="semi", maintain_order="left")

    def _backtest(self) -> Backtest:
        """Replay every rank and margin under the current minimum, on all tasks: a setting acts on each of them."""
        return backtest(
            self.history.quantities,
            self.history.tasks,
            self.history.queues,
            self.history.jobs,
            parameter=self.parameter.name,
            ranks=self.ranks,
            margins=self.margins,
            current=self.current.pair,
            loss=self.weights,
            assumptions=self.made,
            synthetic=self.history.synthetic,
        )

    def _verdict(
        self,
        judgement: Judgement,
        comparison: Comparison,
        tried: Backtest,
        created_at: datetime | None,
    ) -> Verdict:
        """Return the answer; records have none, whatever the judge says."""
        window = self.history.window
        if window is None:
            n = judgement.n_units
            few = f"{n} tasks can be scored and {MIN_UNITS} are needed; " if n < MIN_UNITS else ""
            subject = self.parameter.rank_key or self.parameter.name
            return Verdict(
                "no_answer", f"No answer: {few}{RECORDS}.", subject, None, information_only=False
            )
        return propose(
            judgement,
            comparison,
            tried,
            self.history.config,
            created_at=created_at or window[1],
            archive_digest=self.history.digest,
            synthetic=self.history.synthetic,
            also=minimum_change(FamilySetting(*judgement.setting), self.current),
        )

    def _notes(
        self, counts: dict[str, int], judgement: Judgement, n_overlapping: int
    ) -> tuple[str, ...]:
        """Say what this cannot tell."""
        notes = [*self.history.notes, OWN_RETRIES, SAME_TASKS]
        if n_overlapping:
            notes.append(
                f"{n_overlapping:,} jobs of the tasks that a setting was chosen on ended after the tasks that score it had "
                "begun: they could not have been known yet."
            )
        if counts["tasks_without_allocations"]:
            notes.append(
                f"{counts['tasks_without_allocations']} tasks have no allocation of {self.name}: the setting is judged on "
                "them too, for it acts on them; the comparison leaves them out."
            )
        if counts["jobs_without_allocation"]:
            notes.append(
                f"{counts['jobs_without_allocation']:,} of {counts['jobs']:,} jobs have no allocation of "
                f"{self.name}: the current setting stands in for them."
            )
        if judgement.cheapest_within is None:
            notes.append(
                f"No member of the family keeps the limit of {short_percent(limit_of(judgement))} with room for chance: "
                "the nearest setting is the one that exceeds it least."
            )
        return tuple(notes)
