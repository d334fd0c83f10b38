"""Take one scout parameter through back-test and judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from brokerlab.calibrate.backtest import Assumptions, Backtest, Setting, backtest
from brokerlab.calibrate.comparison import Comparison, compare
from brokerlab.calibrate.inputs import Inputs
from brokerlab.calibrate.judge import Case, Judgement, Kind, Limit, Outcomes, Question, judge
from brokerlab.calibrate.loss import COMPONENTS, LossWeights
from brokerlab.calibrate.parameters import Parameter, parameter_named
from brokerlab.calibrate.replay import Replays
from brokerlab.calibrate.sample import History, JobHistory, history_of
from brokerlab.calibrate.verdict import Verdict, current_setting, propose
from brokerlab.errors import InsufficientDataError

CONFORMAL_COVERAGES = (75, 90, 95, 98)
"""Promised coverages tried with the conformal rule [%]."""
FIXED_RANK = "The rank is fixed in the code: this is for its developers."
NO_QUEUES = "Waiting: a back-test replays requests, not queues."


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
        tried: Back-test of all tasks, every setting.
        judgement: What the judge says.
        comparison: Before and after on the scored tasks: the current setting against those chosen on earlier tasks.
        before: One row per scored task under the current setting, see ``Backtest.by_task``.
        after: The same under the setting chosen for it.
        by_task: One row per task and setting, for the current and the best setting, over all tasks.
        sensitivity: What is chosen with one weight of the loss halved or doubled: ``weight, factor, rank, margin_pct``.
        verdict: The answer in one sentence, and the proposal document if there is one.
        conformal: ``by_setting`` of the conformal rule.
        n_overlapping: Jobs of a block's tasks that ended after the next block had begun: not known yet when it was chosen.
    """

    parameter: Parameter
    tried: Backtest
    judgement: Judgement
    comparison: Comparison
    before: pl.DataFrame
    after: pl.DataFrame
    by_task: pl.DataFrame
    sensitivity: pl.DataFrame
    verdict: Verdict
    conformal: pl.DataFrame
    n_overlapping: int

    @property
    def kind(self) -> Kind:
        """The verdict."""
        return self.verdict.kind

    @property
    def case(self) -> Case:
        """Why."""
        return self.judgement.case

    @property
    def acts(self) -> bool:
        """Whether another setting is to be set."""
        return self.judgement.acts

    @property
    def current(self) -> Setting:
        """The current setting."""
        return self.tried.current

    @property
    def best(self) -> Setting:
        """What the last choice, on all tasks, fell on."""
        rank, margin = self.judgement.best
        return rank, margin

    @property
    def stable(self) -> bool:
        """Whether halving or doubling any weight leaves the choice as it is."""
        same = (pl.col("rank") == self.best[0]) & (pl.col("margin_pct") == self.best[1])
        return self.sensitivity.filter(~same).is_empty()

    @property
    def caveats(self) -> list[str]:
        """What the study cannot tell, in sentences."""
        fixed = [FIXED_RANK] if self.verdict.information_only else []
        return [*self.tried.caveats, *fixed, NO_QUEUES]

    def to_dict(self) -> dict[str, Any]:
        """Return the facts that are not tables."""
        return {
            **self.tried.to_dict(),
            "judgement": self.judgement.to_dict(),
            "verdict": self.verdict.to_dict(),
            "stable": self.stable,
            "n_overlapping": self.n_overlapping,
        }


def study(
    inputs: Inputs,
    name: str,
    *,
    created_at: datetime,
    ranks: Iterable[int],
    margins: Iterable[int] | None = None,
    loss: dict[str, float] | None = None,
    max_exceed: float = 0.02,
    relevant: float = 0.05,
    blocks: int = 4,
    assumptions: Assumptions | None = None,
    n_boot: int = 2000,
    seed: int = 0,
) -> Study | Unanswered:
    """Take one parameter through back-test and judge.

    Args:
        inputs: From `load`.
        name: Parameter.
        created_at: When the proposal is made, UTC without zone.
        ranks: Percentile ranks tried.
        margins: Margins tried for ramcount [%]; the others' margins are fixed in the code.
        loss: Weights that differ from the parameter's defaults.
        max_exceed: Largest accepted share of jobs whose first attempt is killed, as a mean over tasks.
        relevant: Smallest change of the loss that matters, as a part of its current value.
        blocks: Blocks of time, see `judge`.
        assumptions: Of the back-test.
        n_boot: Bootstrap replicates.
        seed: Of the bootstrap.

    Returns:
        The study; or why there is too little data.
    """
    parameter = parameter_named(name)
    made = assumptions or Assumptions(
        rules=inputs.rules, ram_min_mb=inputs.config.get("SCOUT_RAMCOUNT_MIN")
    )
    weights = LossWeights.default(name, **(loss or {}))
    current = current_setting(inputs.config, name)
    tried_margins = list(margins) if margins is not None and name == "ramcount" else None

    def replayed(
        ranks: Iterable[int], margins: Iterable[int] | None, made: Assumptions
    ) -> Backtest:
        return backtest(
            inputs.history,
            inputs.tasks,
            inputs.queues,
            parameter=name,
            ranks=ranks,
            margins=margins,
            current=current,
            loss=weights,
            assumptions=made,
            synthetic=inputs.archive.synthetic,
        )

    question = Question(
        limits=(Limit(quantity="exceed_rate", most=max_exceed),),
        relevant=relevant,
        blocks=blocks,
        confidence=made.confidence,
        n_boot=n_boot,
        seed=seed,
    )
    try:
        tried = replayed(list(ranks), tried_margins, made)
        outcomes = tried.outcomes()
        judgement = judge(outcomes, question, also=COMPONENTS)
    except InsufficientDataError as error:
        return Unanswered(parameter=parameter, reason=str(error))
    before, after = scored_tasks(tried, outcomes, judgement)
    comparison = compare(before, after, parameter, question, n_units=judgement.n_units)
    verdict = propose(
        judgement,
        comparison,
        tried,
        inputs.config,
        created_at=created_at,
        archive_digest=inputs.archive.digest,
        synthetic=inputs.archive.synthetic,
        filters=inputs.filters,
    )
    conformal = replayed(
        CONFORMAL_COVERAGES, sorted({0, current[1]}), replace(made, rule="conformal")
    )
    return Study(
        parameter=parameter,
        tried=tried,
        judgement=judgement,
        comparison=comparison,
        before=before,
        after=after,
        by_task=tried.replay.by_task(sorted({tried.current, judgement.best}), weights),
        sensitivity=_sensitivity(judgement, weights),
        verdict=verdict,
        conformal=conformal.by_setting.filter(pl.col("rank").is_in(CONFORMAL_COVERAGES)),
        n_overlapping=overlapping(inputs.history, outcomes, judgement),
    )


def scored_tasks(
    tried: Backtest,
    outcomes: Outcomes,
    judgement: Judgement,
    replay_of: Callable[[Any], Replays] | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return what happened in each scored task, under the current setting and under the one chosen for it.

    Args:
        tried: The back-test.
        outcomes: What was judged; settings begin with rank and margin.
        judgement: On them.
        replay_of: The replay that a setting is of; None: that of the back-test.

    Returns:
        Twice one row per scored task, in the order of time, as ``Backtest.by_task``, with the task's ``weight``.
    """
    units = outcomes.units.select("weight", jeditaskid="unit", place=pl.Series(judgement.chosen))
    scored = units.filter(pl.col("place") >= 0)

    def rows(place: int, tasks: pl.DataFrame) -> pl.DataFrame:
        setting = outcomes.settings[place]
        replay = tried.replay if replay_of is None else replay_of(setting)
        found = replay.by_task([setting[:2]], tried.weights)
        return tasks.drop("place").join(found, on="jeditaskid", maintain_order="left")

    chosen = sorted(set(scored["place"]))
    after = pl.concat(rows(place, scored.filter(place=place)) for place in chosen)
    order = scored.select("jeditaskid")
    return rows(outcomes.current, scored), order.join(after, on="jeditaskid", maintain_order="left")


def _sensitivity(judgement: Judgement, weights: LossWeights) -> pl.DataFrame:
    """Choose again with each weight halved and doubled."""
    rows = []
    for name in COMPONENTS:
        for factor in (0.5, 2.0):
            rank, margin = judgement.rechoose(weights.scaled(name, factor).to_dict())
            rows.append({"weight": name, "factor": factor, "rank": rank, "margin_pct": margin})
    return pl.DataFrame(rows)


def overlapping(history: pl.DataFrame | History, outcomes: Outcomes, judgement: Judgement) -> int:
    """Count jobs that ended after the block behind that of their task had begun; 0 where nothing was chosen by blocks."""
    if judgement.case == "few":
        return 0
    blocks = np.repeat(np.arange(judgement.sums.n_blocks), np.diff(judgement.sums.edges))
    following = judgement.blocks["start"].shift(-1).gather(blocks.tolist())
    next_start = pl.DataFrame({"jeditaskid": outcomes.units["unit"], "next_start": following})

    def late(chunk: JobHistory) -> int:
        ended = chunk.quantities.select("jeditaskid", "finish_time")
        ended = ended.join(next_start, on="jeditaskid")
        return ended.filter(pl.col("finish_time") >= pl.col("next_start")).height

    return sum(history_of(history).map(late))
