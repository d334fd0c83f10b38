"""Grid tasks: every estimator on the jobs that followed real scouts, and on those of an archive, by both clocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators import deployed
from brokerlab.estimators.doubts import Doubts, check_model
from brokerlab.estimators.estimator import Estimator, Predicted
from brokerlab.estimators.hierarchy import Hierarchy
from brokerlab.estimators.holdout import fit_and_calibrate, replay_left_out
from brokerlab.estimators.quantiles import LinearQuantiles, QuantileBoosting
from brokerlab.estimators.records import Quantity
from brokerlab.estimators.sources.source import At, Source
from brokerlab.estimators.trial import POLICY, Trial, run_trial, trial_levels
from brokerlab.numerics import FloatArray

QUANTITY: Quantity = "walltime"
OURS = "hierarchy"
CHEAPEST = POLICY.format(OURS)
CLOCKS: tuple[At, ...] = ("submit", "start")
LEARNT = 2 / 3
"""Share of the tasks of an archive, the earliest, that models learn from; the later ones are judged."""
FEWEST_TASKS = 3
"""Tasks below which models have nothing to learn from."""
GUESSED = 0.95
"""Share of the jobs that an estimator must guess to be compared as a guess; the deployed rule is always."""
FEW = 8
"""With fewer tasks the range without one of them stands for an interval."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskInputs:
    """Records of the same jobs by both clocks.

    Attributes:
        name: Of the part: ``tasks`` or ``archive``.
        said: What they are, in words.
        sources: By clock.
        left_out: Each task is judged by models that learnt from the others; else the later third by those that learnt from
            the earlier.
        synthetic: The jobs were generated.
    """

    name: str
    said: str
    sources: Mapping[At, Source]
    left_out: bool
    synthetic: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskStudy:
    """What was found.

    Attributes:
        inputs: In what.
        trials: By clock.
        points: Errors of single guesses, by clock and estimator: see :func:`point_errors`.
        doubts: Where ours should not be trusted, by clock.
        seed: Of models.
    """

    inputs: TaskInputs
    trials: Mapping[At, Trial]
    points: pl.DataFrame
    doubts: Mapping[At, Doubts]
    seed: int

    @property
    def learnt(self) -> pl.DataFrame:
        """All jobs that there are to learn from, decided at submission."""
        return self.inputs.sources["submit"].records


def models(seed: int) -> dict[str, Callable[[], Estimator]]:
    """Return how estimators that learn are made, ours first."""
    made: Sequence[Callable[[], Estimator]] = (
        partial(Hierarchy, QUANTITY),
        partial(QuantileBoosting, QUANTITY, seed=seed),
        partial(LinearQuantiles, QUANTITY, seed=seed),
    )
    return {make().name: make for make in made}


def study_tasks(
    inputs: TaskInputs, *, level: float, estimators: Sequence[str] = (), n_boot: int, seed: int
) -> TaskStudy | None:
    """Try all estimators by both clocks; None where there are too few tasks to learn from.

    Args:
        inputs: From `inputs.load`.
        level: At which bounds are held against their promise.
        estimators: Names of the models that are tried, ours among them; none: all.
        n_boot: Draws of tasks for intervals.
        seed: Of models and draws.
    """
    if inputs.sources["submit"].records["jeditaskid"].n_unique() < FEWEST_TASKS:
        return None
    made = {name: make for name, make in models(seed).items() if not estimators or name in estimators}  # fmt: skip
    trials, checks, points = {}, {}, []
    for at, source in inputs.sources.items():
        learn, judged = _parts(inputs, source.records)
        predicted = _predicted(inputs, learn, judged, level, made)
        trials[at] = run_trial(
            judged, predicted, at=at, quantity=QUANTITY, level=level, models=list(made),
            policies=[OURS], n_boot=n_boot, seed=seed,
        )  # fmt: skip
        checks[at] = check_model(
            trials[at], OURS, partial(_learnt, inputs, learn), by_task=inputs.left_out
        )
        points.append(point_errors(trials[at], n_boot=n_boot, seed=seed))
    return TaskStudy(
        inputs=inputs, trials=trials, points=pl.concat(points), doubts=checks, seed=seed
    )


def _parts(inputs: TaskInputs, records: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the jobs that are learnt from and those that are judged; where each task is left out: all and all."""
    if inputs.left_out:
        return records, records
    tasks = records["jeditaskid"].unique(maintain_order=True)
    early = pl.col("jeditaskid").is_in(tasks.head(round(LEARNT * len(tasks))).to_list())
    return records.filter(early), records.filter(~early)


def _learnt(inputs: TaskInputs, learn: pl.DataFrame, task: int | None) -> pl.DataFrame:
    return learn.filter(pl.col("jeditaskid") != task) if inputs.left_out else learn


def _predicted(
    inputs: TaskInputs,
    learn: pl.DataFrame,
    judged: pl.DataFrame,
    level: float,
    made: Mapping[str, Callable[[], Estimator]],
) -> dict[str, Predicted]:
    """Replay deployed rules and models on the same jobs; a rule that answers for none of them is left out."""
    levels = trial_levels(level)
    rules = {rule.name: rule.replay(judged, levels=levels) for rule in deployed.rules(QUANTITY)}
    found = {name: each for name, each in rules.items() if np.isfinite(each.point).any()}
    for name, make in made.items():
        if inputs.left_out:
            found[name] = replay_left_out(make, judged, levels=levels)
        else:
            found[name] = fit_and_calibrate(make(), learn).replay(judged, levels=levels)
    return found


def point_errors(tried: Trial, *, n_boot: int, seed: int, confidence: float = 0.95) -> pl.DataFrame:
    """Say how far off single guesses are, of production jobs that ended by themselves.

    Args:
        tried: The trial.
        n_boot: Draws of tasks.
        seed: Of the draws.
        confidence: Of the intervals.

    Returns:
        One row per estimator that guesses, on the jobs of which all of these do: ``at, estimator, jobs, mae_s, median_s, accuracy`` (means over all jobs; accuracy as
        in :func:`walltime.score`), ``error`` (mean over tasks of summed error / summed time), ``ratio`` (error over that of the
        deployed rule of least error), ``lo, hi`` (interval over tasks; with fewer than 8 the range without one of them),
        ``best_rule``; the least error first.

    Raises:
        InsufficientDataError: There is no such job.
    """
    records, points = tried.records, _guesses(tried)
    answered = np.logical_and.reduce([np.isfinite(point) for point in points.values()])
    kept = answered & (~records["is_scout"] & ~records["censored"]).to_numpy()
    if not kept.any():
        raise InsufficientDataError(f"guesses {tried.at}: no job has one of every estimator")
    used, task = records["used"].to_numpy()[kept], records["jeditaskid"].to_numpy()[kept]
    codes, place = np.unique(task, return_inverse=True)
    total = np.bincount(place, weights=used, minlength=codes.size)
    rows, errors = [], {}
    for name, guess in points.items():
        point = guess[kept]
        off = np.abs(point - used)
        by_task = np.bincount(place, weights=off, minlength=codes.size) / total
        errors[name] = by_task
        closeness = np.minimum(point, used) / np.maximum(point, used)
        rows.append(
            {"at": tried.at, "estimator": name, "jobs": used.size, "mae_s": float(off.mean()),
             "median_s": float(np.median(off)), "accuracy": float(closeness.mean()),
             "error": float(by_task.mean())}
        )  # fmt: skip
    frame = pl.DataFrame(rows).sort("error", "estimator")
    rules = frame.filter(~pl.col("estimator").is_in(tried.models))["estimator"]
    return _against(frame, errors, str(rules[0]), confidence=confidence, n_boot=n_boot, seed=seed)


def _guesses(tried: Trial) -> dict[str, FloatArray]:
    """Return the guesses of the deployed rule, and of all others that answer for nearly all jobs."""
    judged = (~tried.records["is_scout"]).to_numpy()
    return {
        name: each.point
        for name, each in tried.predicted.items()
        if name not in tried.policies
        and (
            name == tried.comparison.reference or np.isfinite(each.point[judged]).mean() >= GUESSED
        )
    }


def _against(
    frame: pl.DataFrame, errors: Mapping[str, np.ndarray], best: str, *, confidence: float, n_boot: int, seed: int
) -> pl.DataFrame:  # fmt: skip
    """Add ratios to the best rule with their intervals over tasks."""
    n = errors[best].size
    if n < FEW:
        weights = (1 - np.eye(n)) if n > 1 else np.ones((1, 1))
        tails = [0.0, 1.0]
    else:
        weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=n_boot).astype(float)  # fmt: skip
        tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    drawn = {
        name: np.quantile((weights @ error) / (weights @ errors[best]), tails)
        for name, error in errors.items()
    }
    names = frame["estimator"].to_list()
    return frame.with_columns(
        ratio=pl.Series([errors[name].mean() / errors[best].mean() for name in names]),
        lo=pl.Series([float(drawn[name][0]) for name in names]),
        hi=pl.Series([float(drawn[name][1]) for name in names]),
        best_rule=pl.lit(best),
    )


def row_of(points: pl.DataFrame, at: At, estimator: str) -> dict[str, Any]:
    """Return the errors of an estimator by a clock."""
    return points.filter(at=at, estimator=estimator).row(0, named=True)
