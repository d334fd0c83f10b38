"""By how much a retry should ask for more memory than the attempt that was killed for it.

The factor acts only where a first request was too small. So only tasks with such jobs are judged, under the current rank and
margin, and only what follows their first attempts: retries ask for the factor, and for its square, times the first request; who
needs more is given up. What these jobs needed is told by the retries that finished in the archive.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from brokerlab.calibrate.judge import MIN_UNITS, Judgement, Question, by_place, judge
from brokerlab.calibrate.percentiles.backtest import backtest
from brokerlab.calibrate.percentiles.history import History, Inputs, JobHistory
from brokerlab.calibrate.percentiles.parameters import (
    Assumptions,
    LossWeights,
    Setting,
    current_setting,
)
from brokerlab.calibrate.percentiles.replay import Ledger, Replay
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.numerics import FloatArray
from brokerlab.results import Result, Shows
from brokerlab.scouts.quantities import kill_cause

FACTORS = (1.1, 1.25, 1.5, 2.0, 3.0)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Retries(Result):
    """What factors would have cost, judged on later tasks.

    Attributes:
        judgement: Settings are factors, the objective is ``loss``: of retries, in core-hours per core-hour of work of the task.
        observed: One row per job killed for its memory that was tried again, once, with a request: ``jeditaskid, pandaid,
            failed_mb, retry_mb`` (of the whole job), ``factor``.
        kills: Jobs killed for their memory.
    """

    shows = Shows(
        about="what retries would cost by how much more memory they ask for, one row per factor",
        columns="factor [1], loss [core h per core h], n_lost [per core h], gain [1], is_current, is_best",
        keys=("factor",),
        next=(".judgement", ".observed"),
    )  # fmt: skip

    judgement: Judgement
    observed: pl.DataFrame = field(repr=False)
    kills: int

    def frame(self) -> pl.DataFrame:
        """Return one row per factor: ``factor, loss, loss_se, over, killed_coreh, n_lost, gain, gain_lo, is_current, is_best``.

        The parts ``over`` (GB h), ``killed_coreh``, ``n_lost`` (jobs given up) are without weights; all per core-hour of work.
        """
        factors = pl.Series("factor", self.judgement.settings, dtype=pl.Float64)
        names = ("loss", "loss_se", "over", "killed_coreh", "n_lost", "gain", "gain_lo", "is_current", "is_best")  # fmt: skip
        rows = self.judgement.candidates.sort("place")
        return rows.select(factors.gather(rows["place"]), *names)

    def headline(self) -> str:
        """Say which factor, and how sure that is; it is in no key, so that nothing is proposed."""
        judged = self.judgement
        n, now, best = judged.n_units, judged.current, judged.best
        if judged.acts:
            row = judged.quantity("loss")
            less = 100 * (1 - row["after"] / row["before"])
            return f"Ask for {judged.setting:g} times what was killed, not {now:g}: retries cost {less:.0f} % less on later tasks ({n} tasks)."
        if judged.kind == "keep":
            return f"Keep {now:g} times what was killed: no other factor is shown to cost less ({n} tasks)."
        few = f"{MIN_UNITS} are needed" if n < MIN_UNITS else "no gain is shown or excluded"
        return f"No answer on {n} tasks, {few}; {best:g} times what was killed costs least, now {now:g}."


def ask_retries(**how: Any) -> Question:
    """Ask for the factor of least loss."""
    return Question(reported=("over", "killed_coreh", "n_lost"), **how)


def judge_retries(
    inputs: Inputs,
    factors: Iterable[float] = FACTORS,
    question: Question | None = None,
    loss: LossWeights | None = None,
) -> Retries:
    """Judge by how much a retry should ask for more memory than the attempt that was killed for it.

    The current factor, the median of what retries asked for over what was killed, is tried too. ``question`` is of `ask_retries`;
    the weights are by default those of ramCount.

    Raises:
        ConfigError: A factor that is not above 1.
        InsufficientDataError: No such retry asked for more, or no task has jobs above their first request.
    """
    asked = tuple(factors)
    wrong = [f"{each:g}" for each in asked if not 1 < each < math.inf]
    if wrong:
        raise ConfigError(f"factors {', '.join(wrong)}: allowed are finite ones above 1")
    kills, observed = observed_retries(inputs.history, inputs.tasks)
    current = round(float(observed["factor"].median() or 0.0), 2)  # type: ignore[arg-type]
    if current <= 1:
        raise InsufficientDataError(
            f"{kills} jobs were killed for their memory, {observed.height} of them tried again with a request: no retry asked for more"
        )
    tried = tuple(sorted({*asked, current}))
    made = Assumptions(rules=inputs.rules, retry_factors=())
    now = current_setting(inputs.config, "ramcount")
    tested = backtest(
        inputs, ranks=(now.rank,), margins=(now.margin_pct,), loss=loss, assumptions=made
    )
    costs = partial(_costs, setting=now, made=made, weights=tested.weights)
    of_all = tested.outcomes_of(tried, current, costs)
    every = of_all.values(range(len(tried)))
    exceeds = every.pop("exceed_rate")[:, 0] > 0
    if not exceeds.any():
        raise InsufficientDataError("no task has jobs above their first request")
    outcomes = replace(
        of_all,
        units=of_all.units.filter(pl.Series(exceeds)),
        values=by_place({name: each[exceeds] for name, each in every.items()}),
    )
    judged = judge(outcomes, question or ask_retries())
    return Retries(judgement=judged, observed=observed, kills=kills)


def observed_retries(history: History, tasks: pl.DataFrame) -> tuple[int, pl.DataFrame]:
    """Return how many jobs of tasks were killed for their memory, and those that were tried again, see `Retries.observed`.

    A job that was divided, so that it has several retries, is left out: each of them needs less than it did.
    """
    ids = tasks.select("jeditaskid")

    def of(chunk: JobHistory) -> tuple[int, pl.DataFrame]:
        jobs = chunk.jobs.join(ids, on="jeditaskid", how="semi")
        killed = jobs.filter(pl.col("jobstatus") == "failed", kill_cause() == "memory")
        retries = jobs.drop_nulls("parentid").select(pandaid="parentid", retry_mb="minramcount")
        single = retries.unique("pandaid", keep="none")
        asked = killed.select("jeditaskid", "pandaid", failed_mb="minramcount")
        result = asked.join(single, on="pandaid").filter(
            pl.col("failed_mb") > 0, pl.col("retry_mb") > 0
        )
        return killed.height, result.with_columns(factor=pl.col("retry_mb") / pl.col("failed_mb"))

    parts = history.map(of)
    return sum(n for n, _ in parts), pl.concat([each for _, each in parts]).sort("pandaid")


def _costs(
    replay: Replay,
    factors: Sequence[float],
    setting: Setting,
    made: Assumptions,
    weights: LossWeights,
) -> dict[str, FloatArray]:
    """Return ``exceed_rate``, and what retries cost by factor: ``loss`` and its parts, (n_tasks, n_factors) each.

    ``replay`` has no retries: what it loses without giving up is what first attempts cost.
    """
    first = replay.of_judge([setting], weights)
    fixed = first["loss"] - weights.n_lost * first["n_lost"]

    def under(factor: float) -> dict[str, FloatArray]:
        ladder = replace(made, retry_factors=(factor, round(factor**2, 9)))
        n_tasks = replay.tasks.height
        ledger = Ledger(replay.jobs, replay.line, replay.parameter, ladder, n_tasks)
        result = replace(replay, ledger=ledger).of_judge([setting], weights)
        parts = {name: result[name] - first[name] for name in ("over", "killed_coreh")}
        return {"loss": result["loss"] - fixed, **parts, "n_lost": result["n_lost"]}

    each = [under(factor) for factor in factors]
    costs = {name: np.concatenate([one[name] for one in each], axis=1) for name in each[0]}
    return {"exceed_rate": first["exceed_rate"], **costs}
