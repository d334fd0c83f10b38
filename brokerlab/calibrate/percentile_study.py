"""Take one scout parameter through back-test, choice and proof."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

import polars as pl

from brokerlab.calibrate.backtest import Assumptions, Backtest, Setting, backtest
from brokerlab.calibrate.choice import Choice, LimitOn, choose
from brokerlab.calibrate.inputs import Inputs
from brokerlab.calibrate.loss import LossWeights
from brokerlab.calibrate.parameters import Parameter, parameter_named
from brokerlab.calibrate.periods import exchangeability
from brokerlab.calibrate.proof import Proof, prove
from brokerlab.calibrate.verdict import Kind, Verdict, current_setting, propose
from brokerlab.errors import InsufficientDataError

CONFORMAL_COVERAGES = (75, 90, 95, 98)
"""Promised coverages tried with the conformal rule [%]."""
DIFFERENT_PERIODS = "The two periods differ: what was learnt on the first holds less surely later."
FIXED_RANK = "The rank is fixed in the code: this is for its developers."
NO_QUEUES = "Waiting: a back-test replays requests, not queues."
Case = Literal["undivided", "change", "refuted", "keep", "few", "unsure", "none", "breach"]
"""Why an answer is what it is.

undivided: the tasks are too few for two periods; change: a choice was proven; refuted: a choice was not, and the current
setting keeps the limit; keep: no setting within the limit costs clearly less; few: too few tasks to choose on; unsure: a
setting kills within the limit, but for none its upper bound is; none: no setting keeps the limit; breach: a choice was not
proven, and the current setting breaks the limit.
"""


@dataclass(frozen=True, kw_only=True)
class Unanswered:
    """A parameter that the archive has too little data for, and why."""

    parameter: Parameter
    reason: str


@dataclass(frozen=True, kw_only=True)
class Study:
    """One parameter, from back-test to answer.

    Attributes:
        parameter: Which.
        early: Back-test of the calibration period.
        late: Back-test of the proof period.
        choice: What the calibration period speaks for.
        proof: What the proof period says of the current setting and of `other`.
        other: The chosen setting; where none was chosen, the best one that was not.
        verdict: The answer in one sentence, and the proposal document if there is one; None where the
            tasks could not be divided into two periods: then both back-tests are of all tasks, and
            describe them without proving anything.
        alike: Exchangeability of the periods; None where they are not two.
        conformal: ``by_setting`` of the conformal rule on the calibration period.
    """

    parameter: Parameter
    early: Backtest
    late: Backtest
    choice: Choice
    proof: Proof
    other: Setting
    verdict: Verdict | None
    alike: pl.DataFrame | None
    conformal: pl.DataFrame

    @property
    def divided(self) -> bool:
        """Whether there are two periods, one to choose on and one to prove on."""
        return self.verdict is not None

    @property
    def kind(self) -> Kind:
        """The answer: change, keep or no_answer."""
        return self.verdict.kind if self.verdict else "no_answer"

    @property
    def other_role(self) -> str:
        """What the second setting is: proposed, not_proven (chosen, not borne out) or runner_up."""
        if self.kind == "change":
            return "proposed"
        return "not_proven" if self.chosen else "runner_up"

    @property
    def chosen(self) -> Setting | None:
        """The setting that the calibration period speaks for, proven or not; None: the current one."""
        return self.other if self.divided and self.choice.status == "change" else None

    @property
    def case(self) -> Case:
        """Why the answer is what it is, see `Case`."""
        if not self.divided:
            return "undivided"
        if self.kind == "keep":
            return "refuted" if self.chosen else "keep"
        if self.kind == "no_answer" and self.choice.status == "no_answer":
            tried = self.choice.candidates
            if tried["meets_limit"].any():
                return "few"
            within = (tried["exceed_rate"] <= self.choice.max_exceed).any()
            return "unsure" if within else "none"
        return "change" if self.kind == "change" else "breach"

    def to_dict(self) -> dict[str, Any]:
        """Return what stands in no table: the verdict's sentence, settings, counts of both periods, the choice."""
        return {
            "verdict": self.verdict.sentence if self.verdict else "",
            "divided": self.divided,
            "settings": {"current": self.proof.current, "other": self.other},
            "counts": {"calibration": self.early.counts, "proof": self.late.counts},
            "choice": self.choice.to_dict(),
        }

    @property
    def caveats(self) -> list[str]:
        """What the study cannot tell, in sentences."""
        sentences = list(self.late.caveats)
        if self.choice.status != "no_answer":
            sentences += self.choice.caveats
        if periods_differ(self.alike):
            sentences.append(DIFFERENT_PERIODS)
        if self.verdict and self.verdict.information_only:
            sentences.append(FIXED_RANK)
        return [*sentences, NO_QUEUES]


@dataclass(frozen=True, kw_only=True)
class _Replay:
    """A back-test with everything set but the tasks and the grid."""

    inputs: Inputs
    name: str
    weights: LossWeights
    made: Assumptions

    def __call__(
        self,
        tasks: pl.DataFrame,
        ranks: Iterable[int],
        margins: Iterable[int] | None,
        *,
        detail: Sequence[Setting] = (),
        made: Assumptions | None = None,
    ) -> Backtest:
        return backtest(
            self.inputs.quantities,
            tasks,
            self.inputs.queues,
            self.inputs.archive.jobs,
            parameter=self.name,
            ranks=ranks,
            margins=margins,
            current=current_setting(self.inputs.config, self.name),
            detail=detail,
            loss=self.weights,
            assumptions=made or self.made,
            synthetic=self.inputs.archive.synthetic,
        )

    def pair(self, tasks: pl.DataFrame, other: Setting) -> Backtest:
        """Replay the current and one other setting in detail."""
        both = sorted({current_setting(self.inputs.config, self.name), other})
        ranks, margins = ([pair[place] for pair in both] for place in (0, 1))
        return self(tasks, ranks, margins, detail=both)

    def conformal(self, tasks: pl.DataFrame) -> pl.DataFrame:
        """Replay the conformal rule, with and without the deployed margin."""
        margin = current_setting(self.inputs.config, self.name)[1]
        made = replace(self.made, rule="conformal")
        tried = self(tasks, CONFORMAL_COVERAGES, sorted({0, margin}), made=made)
        return tried.by_setting.filter(pl.col("rank").is_in(CONFORMAL_COVERAGES))


def study(
    inputs: Inputs,
    name: str,
    *,
    created_at: datetime,
    ranks: Iterable[int],
    margins: Iterable[int] | None = None,
    loss: dict[str, float] | None = None,
    max_exceed: float = 0.02,
    limit_on: LimitOn = "upper",
    assumptions: Assumptions | None = None,
    n_boot: int = 2000,
    seed: int = 0,
) -> Study | Unanswered:
    """Take one parameter through back-test, choice and proof.

    Args:
        inputs: From `load`.
        name: Parameter.
        created_at: When the proposal is made, UTC without zone.
        ranks: Percentile ranks tried.
        margins: Margins tried for ramcount [%]; the others' margins are fixed in the code.
        loss: Weights that differ from the parameter's defaults.
        max_exceed: Largest accepted share of jobs whose first attempt is killed.
        limit_on: Whether the upper bound of that share or the point must meet it.
        assumptions: Of the back-test.
        n_boot: Bootstrap replicates.
        seed: Of the bootstrap.

    Returns:
        The study, on all tasks where they cannot be divided into two periods; or why there is too little
        data even for that.
    """
    parameter = parameter_named(name)
    made = assumptions or Assumptions(
        rules=inputs.rules, ram_min_mb=inputs.config.get("SCOUT_RAMCOUNT_MIN")
    )
    weights = LossWeights.default(name, **(loss or {}))
    replay = _Replay(inputs=inputs, name=name, weights=weights, made=made)
    tried_margins = list(margins) if margins is not None and name == "ramcount" else None

    def on(early: pl.DataFrame, late: pl.DataFrame, *, divided: bool) -> Study:
        tried = replay(early, list(ranks), tried_margins)
        choice = choose(tried, max_exceed=max_exceed, limit_on=limit_on)
        changed = divided and choice.status == "change"
        other = choice.setting if changed else _runner_up(choice)
        later = replay.pair(late, other)
        alike = exchangeability(tried, later, n_boot=n_boot, seed=seed) if divided else None
        # the bound was asked of the choice; asked again it refuses half of all sound choices
        proof = prove(later, other, max_exceed=max_exceed, n_boot=n_boot, seed=seed)
        return Study(
            parameter=parameter,
            early=tried,
            late=later,
            choice=choice,
            proof=proof,
            other=other,
            verdict=_verdict(inputs, choice, proof, later, created_at) if divided else None,
            alike=alike,
            conformal=replay.conformal(early),
        )

    try:
        return on(inputs.periods.early, inputs.periods.late, divided=True)
    except InsufficientDataError:
        pass  # one of the periods has no task to score: describe all of them, without a proof
    try:
        return on(inputs.tasks, inputs.tasks, divided=False)
    except InsufficientDataError as error:
        return Unanswered(parameter=parameter, reason=str(error))


def periods_differ(alike: pl.DataFrame | None) -> bool:
    """Tell whether the two periods differ, by intervals that exclude no difference, in kills or in how scouts differ from the rest.

    Args:
        alike: Of ``calibrate.periods.exchangeability``; None or null (too few tasks): nothing speaks
            against the periods being alike.
    """
    if alike is None:
        return False
    overall = alike.filter(pl.col("level") == "all")
    return not overall["alike"].fill_null(value=True).all()


def _verdict(
    inputs: Inputs, choice: Choice, proof: Proof, late: Backtest, created_at: datetime
) -> Verdict:
    """Judge choice and proof together, and write the proposal."""
    return propose(
        choice,
        proof,
        late,
        inputs.periods,
        inputs.config,
        created_at=created_at,
        archive_digest=inputs.archive.digest,
        synthetic=inputs.archive.synthetic,
    )


def _runner_up(choice: Choice) -> Setting:
    """Return the best setting besides the current one: of least loss within the limit, else nearest to it."""
    here = (pl.col("rank") == choice.current[0]) & (pl.col("margin_pct") == choice.current[1])
    others = choice.candidates.filter(~here)
    within = others.filter("meets_limit").sort("loss", "rank", "margin_pct")
    nearest_to_it = others.sort("exceed_hi", "loss", "rank", "margin_pct")
    rows = within if within.height else nearest_to_it
    return (rows["rank"][0], rows["margin_pct"][0]) if rows.height else choice.current
