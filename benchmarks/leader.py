"""What each job is given by the estimator that cost least so far: a model where it is better, a simple rule where that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import polars as pl

from brokerlab.compiled import compiled
from brokerlab.estimators.allocation import PRICE, allocate_at_prices, level_of
from brokerlab.estimators.deployed import log_rules, rules
from brokerlab.estimators.estimator import GRID, Estimator, Predicted, check_levels, order
from brokerlab.estimators.held import HeldBounds
from brokerlab.estimators.hierarchy import Hierarchy
from brokerlab.estimators.likejobs import LikeJobs
from brokerlab.estimators.mixture import Views
from brokerlab.estimators.records import Quantity, checked
from brokerlab.numerics import FloatArray, IntArray

OTHERS = 20.0  # jobs of the task that the mean cost over the jobs of all tasks counts as


@compiled
def walk(
    events: IntArray,
    task: IntArray,
    costs: FloatArray,
    of_task: FloatArray,
    of_all: FloatArray,
    chosen: IntArray,
) -> None:
    """Go through decisions (~row) and ends (row): choose the candidate of least cost, add up what each has cost.

    ``costs`` (n, candidates), ``of_task`` (tasks, candidates), ``of_all`` (candidates + 1,), the last one the number of jobs.
    """
    last = of_all.size - 1
    for event in events:
        if event >= 0:
            of_task[task[event]] += costs[event]
            of_all[:last] += costs[event]
            of_all[last] += 1
        else:
            mean = of_all[:last] / max(of_all[last], 1.0)
            chosen[~event] = np.argmin(of_task[task[~event]] + OTHERS * mean)


class BestSoFar:
    """Give each job what the candidate says that has cost least on the jobs that had ended.

    The cost of a candidate is what it would have wasted: of memory what is held and not used x time, with what is killed tried
    again with twice as much; of walltime how far the guess is off. Jobs of the task count, and the mean over the jobs
    of all tasks like 20 of them. So it is hardly ever much worse than the best of its candidates, whatever the system is.

    It is a rule: it says one number at every level and promises no coverage.

    Source: own; choosing by what predictions made in advance cost: Cesa-Bianchi, Lugosi, Prediction, Learning, and Games
    (2006), doi:10.1017/CBO9780511546921, chapter 2.
    """

    name = "best so far"

    def __init__(self, quantity: Quantity, made: Sequence[Estimator] | None = None) -> None:
        self.quantity = quantity
        self.candidates = tuple(candidates(quantity) if made is None else made)
        self._forget()

    def _forget(self) -> None:
        self._of_task: dict[int, FloatArray] = {}
        self._of_all: FloatArray | None = None
        self._open: dict[int, FloatArray] = {}

    def fit(self, records: Any) -> Self:
        """Let the candidates learn; what they have cost is forgotten."""
        for each in self.candidates:
            each.fit(records)
        self._forget()
        return self

    def conformalize(self, records: Any) -> Self:
        """Calibrate the candidates."""
        for each in self.candidates:
            each.conformalize(records)
        return self

    def update(self, records: Any) -> Self:
        """See finished jobs: what each candidate said of them is held against what they used."""
        frame = checked(records).filter(pl.col("ended_s").is_not_null()).sort("ended_s", "pandaid")
        if frame.is_empty():
            return self
        new = frame.filter(~pl.col("pandaid").is_in(list(self._open)))
        if new.height:
            self.predict(new, levels=GRID[-1:])
        predicted = np.array([self._open.pop(each) for each in frame["pandaid"].to_list()])
        self._walk(frame, np.arange(frame.height), predicted, keeps=True)
        for each in self.candidates:
            each.update(frame)
        return self

    def predict(self, records: Any, *, levels: Sequence[float]) -> pl.DataFrame:
        """Say what jobs that have not run should get; columns as :meth:`Estimator.predict` says."""
        frame = checked(records)
        pandaid, predictions, seen = (
            frame["pandaid"].to_numpy(),
            [],
            np.zeros(frame.height, np.int64),
        )
        for each in self.candidates:
            prediction = each.predict(frame, levels=GRID)
            bounds = prediction.select(pl.selectors.starts_with("bound_")).to_numpy()
            seen = prediction["seen"].to_numpy()
            predictions.append(
                self._given(Predicted(pandaid, seen, GRID, bounds, prediction["point"].to_numpy()))
            )
        given = np.column_stack(predictions)
        self._open |= dict(zip(pandaid.tolist(), given, strict=True))
        chosen = self._walk(frame, ~np.arange(frame.height), given, keeps=False)
        return self._predicted(frame, seen, given, chosen, levels).frame()

    def replay(self, records: Any, *, levels: Sequence[float]) -> Predicted:
        """Say what every job gets as it is decided; see :meth:`Estimator.replay`."""
        frame = checked(records)
        predictions = [each.replay(frame, levels=GRID) for each in self.candidates]
        return self.follow(
            frame, {str(k): each for k, each in enumerate(predictions)}, levels=levels
        )

    def follow(
        self, records: Any, predictions: Mapping[str, Predicted], *, levels: Sequence[float]
    ) -> Predicted:
        """Replay from what the candidates, in their order, told of the jobs at the levels of `GRID`."""
        frame = checked(records)
        given = np.column_stack([self._given(each) for each in predictions.values()])
        chosen = self._walk(frame, order(frame), given, keeps=False)
        return self._predicted(frame, next(iter(predictions.values())).seen, given, chosen, levels)

    def _given(self, prediction: Predicted) -> FloatArray:
        """Return what a candidate would give: of a distribution of memory the cheapest allocation, else its guess."""
        if self.quantity == "walltime" or bool(
            (prediction.bounds == prediction.bounds[:, :1]).all()
        ):
            return prediction.point
        at = tuple(prediction.levels.index(level) for level in GRID)
        grid = Predicted(
            prediction.pandaid, prediction.seen, GRID, prediction.bounds[:, at], prediction.point
        )
        allocated: FloatArray = allocate_at_prices(grid, prices=(PRICE,)).at(level_of(PRICE))
        return allocated

    def _walk(
        self, frame: pl.DataFrame, events: IntArray, given: FloatArray, *, keeps: bool
    ) -> IntArray:
        """Return the place of the candidate that each job follows."""
        tasks = frame["jeditaskid"].unique(maintain_order=True)
        numbers = {task: number for number, task in enumerate(tasks.to_list())}
        task = np.array([numbers[each] for each in frame["jeditaskid"].to_list()], dtype=np.int64)
        nothing = np.zeros(given.shape[1])
        of_task = np.array([self._of_task.get(each, nothing) for each in numbers])
        of_task = of_task.reshape(len(numbers), given.shape[1])
        of_all = np.zeros(given.shape[1] + 1) if self._of_all is None else self._of_all.copy()
        chosen = np.zeros(frame.height, dtype=np.int64)
        walk(events, task, self._costs(frame, given), of_task, of_all, chosen)
        if keeps:
            self._of_task |= dict(zip(numbers, of_task, strict=True))
            self._of_all = of_all
        return chosen

    def _costs(self, frame: pl.DataFrame, given: FloatArray) -> FloatArray:
        """Return what each candidate's number cost of each job; where it says nothing, as much as the worst."""
        used, known = frame["used"].to_numpy()[:, None], np.isfinite(given)
        given = np.where(known, given, used)
        if self.quantity == "walltime":
            costs = np.abs(given - used)
        else:
            steps = np.ceil(np.log2(np.maximum(used / np.maximum(given, 1e-9), 1.0) * (1 - 1e-12)))
            attempts = given * (2 ** (np.maximum(steps, 0) + 1) - 1)
            costs = (attempts - used) * frame["wall_s"].to_numpy()[:, None]
        worst = np.where(known, costs, 0.0).max(axis=1, keepdims=True)
        result: FloatArray = np.where(known, costs, worst)
        return result

    def _predicted(
        self,
        frame: pl.DataFrame,
        seen: IntArray,
        given: FloatArray,
        chosen: IntArray,
        levels: Sequence[float],
    ) -> Predicted:
        """Return the numbers of those followed; where that one says nothing, of the first that says something."""
        asked = check_levels(levels)
        some = given[np.arange(chosen.size), np.isfinite(given).argmax(axis=1)]
        followed = given[np.arange(chosen.size), chosen]
        number = np.where(np.isfinite(followed), followed, some)
        bounds = np.repeat(number[:, None], len(asked), axis=1)
        return Predicted(frame["pandaid"].to_numpy(), seen, asked, bounds, number)


def candidates(quantity: Quantity) -> list[Estimator]:
    """Return the simple rules of a quantity, the deployed one first, and the models; their guesses of walltime are at most the request."""
    named: dict[str, Estimator] = {each.name: each for each in rules(quantity)}
    if quantity == "walltime":
        named |= {each.name: each for each in log_rules()}
    models: list[Estimator] = [Hierarchy(quantity), LikeJobs(quantity), Views(quantity)]
    if quantity == "walltime":
        models = [HeldBounds(each, quantity) for each in models]
    return [*named.values(), *models]
