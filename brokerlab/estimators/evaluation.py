"""All estimators of a quantity tested on the jobs of one source: each task left out in turn, or the later tasks of an archive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, InsufficientDataError, nearest
from brokerlab.estimators.deployed import DEPLOYED, Rule, rules
from brokerlab.estimators.doubts import Doubts, check_model
from brokerlab.estimators.estimator import Estimator, Predicted, check_levels, known, order
from brokerlab.estimators.hierarchy.estimator import FEATURES, Hierarchy
from brokerlab.estimators.records import Quantity, checked
from brokerlab.estimators.saving import About, Card, Measured, Trained, save, versions
from brokerlab.estimators.scoring.settings import Setting
from brokerlab.estimators.sources.source import At, Source
from brokerlab.estimators.trial import LEVELS, Trial, run_trial, trial_levels, without_silent
from brokerlab.words import plural


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """What the jobs of one source showed."""

    # what all estimators did, by clock; the first is the one that the deployed system has
    trials: Mapping[At, Trial]
    doubts: Doubts  # where the model is not to be trusted, by the first clock
    learnt: pl.DataFrame  # the records that the saved model has learnt from
    model: Hierarchy  # that model
    # estimators that learnt nothing and refused every bound; they are in no trial
    unlearnt: tuple[str, ...] = ()
    # of an archive: ``part`` (fitted, calibrated, tested), ``tasks, jobs``; no row where tasks were left out
    division: pl.DataFrame = field(default_factory=pl.DataFrame)

    @property
    def main(self) -> Trial:
        """The trial by the clock of the deployed system."""
        return next(iter(self.trials.values()))

    @property
    def largest_task(self) -> tuple[int, float]:
        """The task with most of the tested jobs, and its share [1] of them."""
        jobs = self.main.production["jeditaskid"].value_counts().sort("count", "jeditaskid")
        task, n = jobs.row(-1)
        return task, n / jobs["count"].sum()

    def to_dict(self) -> dict[str, Any]:
        """Return how much was tested, how it was divided, and the limits.

        These are the counts of the trial, ``division``, and ``limits`` by clock: what hindsight over-allocates at the exceed
        rate of the deployed rule [1], ``task_mean`` and over ``all_jobs``; null where the rule has no answer.
        """
        limits = {
            at: {
                "task_mean": trial.limit(trial.deployed["exceed_task_mean"]),
                "all_jobs": trial.limit(trial.deployed["exceed"], averaged=False),
            }
            for at, trial in self.trials.items()
        }
        counts = self.main.comparison.counts
        return {**counts, "division": self.division.to_dicts(), "limits": limits}

    def card(self, source: str) -> Card:
        """Return the card of the model as it was tested by the first clock; ``source`` says whose jobs it has learnt from."""
        trial, learnt = self.main, self.learnt
        rows = trial.comparison.table.filter(
            pl.col("estimator") == MODEL, pl.col("level").is_not_null()
        )
        return Card(
            name=MODEL,
            quantity=trial.quantity,
            intended_use=(
                f"Upper bounds of the {trial.quantity} of single jobs at a stated level, updated as the jobs of their tasks finish.",
                "`brokerlab predict` holds them to their level by what they missed, and refuses one where too few jobs of the task are known or too many promises are open; so it was measured.",
                "To be held beside the rule that is deployed before anything is changed; not to judge users, sites or people.",
            ),
            trained_on=(
                f"{learnt.height} finished jobs of {learnt['jeditaskid'].n_unique()} tasks: {source}.",
            ),
            features=("jeditaskid", "kind", "queue", *FEATURES[trial.quantity], "requested"),
            measured=tuple(
                Measured(
                    level=row["level"],
                    jobs=round(row["jobs"] * (1 - row["share_without"])),
                    coverage=row["coverage"],
                    over_allocation=row["over_allocation"],
                )
                for row in rows.iter_rows(named=True)
                if row["coverage"] is not None
            ),
            do_not_trust=tuple(self.doubts.sentences),
            versions=versions(),
        )

    def save(self, folder: Path, source: str) -> Path:
        """Save the model with its manifest and card into a new folder; see :meth:`card`."""
        card = self.card(source)
        measured = {each.level: each.coverage for each in card.measured}
        about = About(
            levels=tuple(sorted({self.main.comparison.level, *measured})),
            features=card.features,
            trained=Trained.of(self.learnt),
            coverage={f"{level:g}": coverage for level, coverage in measured.items()},
            card=card,
        )
        return save(self.model, folder, about=about)


def evaluate_left_out(
    sources: Mapping[At, Source], makes: Mapping[str, Make], *, level: float = 0.95, **asked: Any
) -> Evaluation:
    """Test every estimator on each task, fitted on the other tasks; the saved model learns from all of them."""
    trials, levels = {}, trial_levels(level)
    for at, source in sources.items():
        records = checked(source.records)
        predicted = _replay_rules(records, source.quantity, levels)
        for name, make in makes.items():
            predicted[name] = replay_left_out(records, make, levels=levels)
        trials[at], unlearnt = _trial(
            records, predicted, list(makes), at=at, quantity=source.quantity, level=level, **asked
        )
    main = next(iter(trials.values()))
    return Evaluation(
        trials=trials,
        unlearnt=unlearnt,
        doubts=check_model(
            main,
            MODEL,
            lambda task: main.records.filter(pl.col("jeditaskid") != task),
            by_task=True,
        ),
        learnt=main.records,
        model=fit_and_calibrate(Hierarchy(main.quantity), main.records),
    )


def evaluate_later(
    sources: Mapping[At, Source], makes: Mapping[str, Make], *, level: float = 0.95, **asked: Any
) -> Evaluation:
    """Fit on the earlier tasks of an archive, calibrate on the next ones, test on the latest; the tested model is saved."""
    trials, levels = {}, trial_levels(level)
    parts = {at: divide_in_time(checked(source.records)) for at, source in sources.items()}
    models = {}
    for at, (fitting, calibrating, testing) in parts.items():
        quantity = sources[at].quantity
        predicted = _replay_rules(testing, quantity, levels)
        for name, make in makes.items():
            estimator = make().fit(fitting).conformalize(calibrating)
            predicted[name] = estimator.replay(testing, levels=levels)
            if name == MODEL:
                models[at] = cast("Hierarchy", estimator)
        trials[at], unlearnt = _trial(
            testing, predicted, list(makes), at=at, quantity=quantity, level=level, **asked
        )
    main = next(iter(trials.values()))
    learnt = pl.concat(parts[main.at][:2])
    division = zip(("fitted", "calibrated", "tested"), parts[main.at], strict=True)
    return Evaluation(
        trials=trials,
        unlearnt=unlearnt,
        doubts=check_model(main, MODEL, lambda _: learnt, by_task=False),
        learnt=learnt,
        model=models[main.at],
        division=pl.DataFrame(
            {"part": name, "tasks": part["jeditaskid"].n_unique(), "jobs": part.height}
            for name, part in division
        ),
    )


def _trial(
    records: pl.DataFrame,
    predicted: Mapping[str, Predicted],
    models: Sequence[str],
    *,
    variants: Mapping[Setting, Rule] | None = None,
    **asked: Any,
) -> tuple[Trial, tuple[str, ...]]:
    """Judge the deployed rules and all that learn; name those that refuse every bound and are left out."""
    predicted, unlearnt = without_silent(predicted, models)
    more = {
        setting: rule.replay(records, levels=LEVELS[:1]).point
        for setting, rule in (variants or {}).items()
    }
    learnt = [name for name in models if name in predicted]
    trial = run_trial(records, predicted, models=learnt, policies=[MODEL], more=more, **asked)
    return trial, unlearnt


def _replay_rules(
    records: pl.DataFrame, quantity: Quantity, levels: tuple[float, ...]
) -> dict[str, Predicted]:
    """Replay the deployed rules; another one than that of PanDA that answers for none of the jobs is left out.

    Guesses of run times are held against that of PanDA: without any answer of its own there is nothing to be said.
    """
    replayed = {each.name: each.replay(records, levels=levels) for each in rules(quantity)}
    answers = {name: each for name, each in replayed.items() if np.isfinite(each.point).any()}
    reference = DEPLOYED[quantity]
    if quantity == "walltime" and reference not in answers:
        raise InsufficientDataError(
            f"{reference} has no limit for any of {records.height} jobs; it needs five finished jobs of a task, or a task "
            "with a longest walltime"
        )
    return {reference: replayed[reference], **answers}


MODEL = "hierarchy"  # the estimator that is never left out
Make = Callable[[], Estimator]


def learners(quantity: Quantity, *names: str, seed: int = 0) -> Mapping[str, Make]:
    """Return how estimators that learn are made, the hierarchy first."""
    from brokerlab.estimators.quantiles import LinearQuantiles, QuantileBoosting

    makes: tuple[Make, ...] = (
        partial(Hierarchy, quantity),
        partial(QuantileBoosting, quantity, seed=seed),
        partial(LinearQuantiles, quantity, seed=seed),
    )
    known = {make().name: make for make in makes}
    wrong = [f"'{name}': {nearest(name, known)}" for name in names if name not in known]
    if wrong:
        raise ConfigError("models: " + "; ".join(wrong))
    return {name: make for name, make in known.items() if not names or name in {MODEL, *names}}


CALIBRATED_ON = 1 / 3
"""Share of the tasks, the latest, that bounds are calibrated on; at least one of two tasks or more."""
FITTED, CALIBRATED = 1 / 2, 1 / 6
"""Shares of an archive's tasks, by first decision, that are fitted on and that calibrate; the rest tests."""
FEWEST_TASKS = 3  # tasks below which records are not divided in time

E = TypeVar("E", bound=Estimator)


def replay_left_out(
    records: Any,
    make: Callable[[], Estimator],
    *,
    levels: Sequence[float],
    groups: int | None = None,
) -> Predicted:
    """Predict every job as it is decided, by an estimator that has learnt from the other tasks only.

    Tasks are left out one by one, or in so many groups: every so many-th one by its first decision.
    """
    frame, asked = checked(records), check_levels(levels)
    bounds, point = np.empty((frame.height, len(asked))), np.empty(frame.height)
    task = frame["jeditaskid"].to_numpy()
    tasks = np.array(list(dict.fromkeys(task.tolist())))
    step = tasks.size if groups is None else min(groups, tasks.size)
    for first in range(step):
        left_out = np.isin(task, tasks[first::step])
        rows, others = np.flatnonzero(left_out), frame[np.flatnonzero(~left_out)]
        if others.is_empty():
            raise InsufficientDataError(
                f"task {tasks[0]}: no other task to learn from; give the records of several tasks"
            )
        predicted = fit_and_calibrate(make(), others).replay(frame[rows], levels=asked)
        bounds[rows], point[rows] = predicted.bounds, predicted.point
    return Predicted(frame["pandaid"].to_numpy(), known(frame, order(frame)), asked, bounds, point)


def fit_and_calibrate(estimator: E, records: pl.DataFrame) -> E:
    """Fit on the earlier tasks of records, by their first decision, and calibrate on the latest third of them.

    A single task is fitted on, and nothing calibrates.
    """
    tasks = records["jeditaskid"].unique(maintain_order=True)
    n_late = max(int(len(tasks) * CALIBRATED_ON), int(len(tasks) > 1))
    late = pl.col("jeditaskid").is_in(tasks.tail(n_late).to_list())
    estimator.fit(records.filter(~late) if n_late else records)
    return estimator.conformalize(records.filter(late)) if n_late else estimator


def divide_in_time(records: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Divide records by task, in the order of their first decisions: to fit, to calibrate, to test.

    Jobs that ended after the first decision of a tested task teach nothing: they are in none of the three.
    """
    tasks = records["jeditaskid"].unique(maintain_order=True)  # in the order of decisions
    if len(tasks) < FEWEST_TASKS:
        raise InsufficientDataError(
            f"{len(tasks)} {plural(len(tasks), 'task')}, {FEWEST_TASKS} are needed to fit, to calibrate and to test on"
        )
    n_fit, n_calibrate = int(len(tasks) * FITTED), max(1, int(len(tasks) * CALIBRATED))
    later = tasks[n_fit + n_calibrate :]
    testing = records.filter(pl.col("jeditaskid").is_in(later.to_list()))
    ended = records.filter(pl.col("ended_s") <= testing["decided_s"][0])
    fitting, calibrating = (
        ended.filter(pl.col("jeditaskid").is_in(part.to_list()))
        for part in (tasks[:n_fit], tasks[n_fit : n_fit + n_calibrate])
    )
    if fitting.is_empty() or calibrating.is_empty():
        raise InsufficientDataError("no job of the earlier tasks ended before the later ones began")
    return fitting, calibrating, testing
