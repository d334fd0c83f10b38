"""Every estimator of walltime on whole tasks: deployed rules and models on the same jobs, by both clocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators import deployed
from brokerlab.estimators.doubts import Doubts, check_model
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.evaluation import Evaluation
from brokerlab.estimators.hierarchy import Hierarchy
from brokerlab.estimators.holdout import fit_and_calibrate, replay_left_out
from brokerlab.estimators.learners import MODEL, Make
from brokerlab.estimators.sources.source import At, Source
from brokerlab.estimators.trial import Trial, run_trial, trial_levels, without_silent
from brokerlab.estimators.walltime.guesses import guess_errors
from brokerlab.words import plural

LEARNT = 2 / 3
"""Share of the tasks, the earliest, that models learn from where tasks are divided in time; the later ones are judged."""
FEWEST_TASKS = 3
"""Tasks below which models have nothing to learn from."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WalltimeEvaluation(Evaluation):
    """What the jobs of one source showed of run times.

    Attributes:
        guesses: Errors of single guesses, by clock and estimator: :func:`guesses.guess_errors`.
    """

    guesses: pl.DataFrame


def evaluate_tasks(
    sources: Mapping[At, Source],
    makes: Mapping[str, Make],
    *,
    left_out: bool,
    level: float = 0.95,
    n_boot: int = 2000,
    seed: int = 0,
) -> WalltimeEvaluation:
    """Try all estimators on the same jobs, by every clock.

    Args:
        sources: Records of the same jobs of walltime by clock, the one of submission first.
        makes: Of `learners.learners`, the hierarchy among them.
        left_out: Each task is judged by models that learnt from the others; else the later third of the tasks by those that
            learnt from the earlier ones.
        level: Of the bounds that are held against their promise.
        n_boot: Draws of tasks for intervals.
        seed: Of the draws.

    Raises:
        InsufficientDataError: Fewer than three tasks, or the deployed rule answers for no job.
    """
    trials: dict[At, Trial] = {}
    guesses = []
    unlearnt: tuple[str, ...] = ()
    for at, source in sources.items():
        learnt, judged = _divided(source.records, left_out=left_out)
        levels = trial_levels(level)
        predicted = _replay_rules(judged, levels)
        for name, make in makes.items():
            predicted[name] = (
                replay_left_out(make, judged, levels=levels)
                if left_out
                else fit_and_calibrate(make(), learnt).replay(judged, levels=levels)
            )
        predicted, unlearnt = without_silent(predicted, list(makes))
        trials[at] = run_trial(
            judged,
            predicted,
            at=at,
            quantity="walltime",
            level=level,
            models=[name for name in makes if name in predicted],
            policies=[MODEL],
            n_boot=n_boot,
            seed=seed,
        )
        guesses.append(guess_errors(trials[at], n_boot=n_boot, seed=seed))
    main, every = next(iter(trials.values())), next(iter(sources.values())).records
    taught, _ = _divided(every, left_out=left_out)
    return WalltimeEvaluation(
        trials=trials,
        doubts=_check(main, taught, left_out=left_out),
        learnt=every,
        model=fit_and_calibrate(Hierarchy("walltime"), every),
        guesses=pl.concat(guesses),
        unlearnt=unlearnt,
    )


def _divided(records: pl.DataFrame, *, left_out: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the jobs that are learnt from and those that are judged; where each task is left out: all and all."""
    tasks = records["jeditaskid"].unique(maintain_order=True)  # in the order of decisions
    if len(tasks) < FEWEST_TASKS:
        raise InsufficientDataError(
            f"{len(tasks)} {plural(len(tasks), 'task')} to learn from and to judge, {FEWEST_TASKS} are needed"
        )
    if left_out:
        return records, records
    early = pl.col("jeditaskid").is_in(tasks.head(round(LEARNT * len(tasks))).to_list())
    return records.filter(early), records.filter(~early)


def _replay_rules(judged: pl.DataFrame, levels: tuple[float, ...]) -> dict[str, Predicted]:
    """Replay the deployed rules; one that answers for none of the jobs is left out."""
    replayed = {
        each.name: each.replay(judged, levels=levels) for each in deployed.rules("walltime")
    }
    answers = {name: each for name, each in replayed.items() if np.isfinite(each.point).any()}
    reference = deployed.DEPLOYED["walltime"]
    if reference not in answers:
        raise InsufficientDataError(
            f"{reference} has no limit for any of {judged.height} jobs; it needs five finished jobs of a task, "
            "or a task with a longest walltime"
        )
    return answers


def _check(trial: Trial, learnt: pl.DataFrame, *, left_out: bool) -> Doubts:
    """Check the hierarchy against what it had learnt from when it was tested."""

    def others(task: int | None) -> pl.DataFrame:
        return learnt.filter(pl.col("jeditaskid") != task) if left_out else learnt

    return check_model(trial, MODEL, others, by_task=left_out)
