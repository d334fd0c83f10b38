"""Conformal levels with tasks as units: how far bounds are to be moved to hold on a new task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import polars as pl

from brokerlab.estimators.quantiles.curve import normal_score
from brokerlab.numerics import FloatArray, IntArray

Holds = Literal["a new task", "these tasks", "not calibrated", "no bound"]

LEAST_TASKS = 20  # 19 are the fewest that can hold 95 % on a new one
OWN_TASKS = 40  # of a group that is calibrated apart: with fewer, one task decides about 95 %
OWN_JOBS = 100  # likewise where all groups together have too few tasks
MOST_KEPT = 20_000  # scores of a group; more are thinned, never downwards
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Scores:
    """Scores of one group."""

    score: FloatArray  # ascending; infinite for killed jobs
    reached: FloatArray  # share up to each: of the mean task, of fewer than 20 of the worst one
    tasks: int
    jobs: int

    @classmethod
    def of(cls, score: FloatArray, task: IntArray) -> Self:
        """Sort scores; each job counts 1 / jobs of its task."""
        _, place, count = np.unique(task, return_inverse=True, return_counts=True)
        order = np.argsort(score, kind="stable")
        if count.size < LEAST_TASKS:
            share = _least_share(score[order], place[order], count)
        else:
            share = np.cumsum(1 / (count[place] * count.size)[order])
        kept = np.arange(score.size)
        if score.size > MOST_KEPT:
            grid = np.arange(1, MOST_KEPT + 1) / MOST_KEPT
            kept = np.unique(np.minimum(np.searchsorted(share, grid - _ROUNDING), score.size - 1))
        return cls(score[order[kept]], share[kept], count.size, score.size)

    @property
    def enough(self) -> bool:
        """Tell whether there are tasks enough for bounds that hold on a new one."""
        return self.tasks >= LEAST_TASKS

    def at(self, level: float) -> tuple[float, Holds]:
        """Return the least score that the level is reached with, one unit more being above all others.

        Units are tasks where there are enough of them, else jobs. The largest score stands for levels that
        so many tasks cannot hold, infinity for those that so many jobs cannot.
        """
        jobs_can = level * (self.jobs + 1) / self.jobs <= 1 + _ROUNDING
        units = self.tasks if self.enough else self.jobs
        need = level * (units + 1) / units
        if not jobs_can:
            return float("inf"), "no bound"
        place = int(np.searchsorted(self.reached, need - _ROUNDING))
        holds: Holds = "a new task" if self.enough and need <= 1 + _ROUNDING else "these tasks"
        return float(self.score[min(place, self.score.size - 1)]), holds


def _least_share(score: FloatArray, task: IntArray, count: IntArray) -> FloatArray:
    """Return the share up to each of the ascending scores in the task where it is least."""
    least = np.ones(score.size)
    for each, n in enumerate(count):
        np.minimum(least, np.cumsum(task == each) / n, out=least)
    return least


class Calibration:
    r"""Normal scores at which bounds hold their levels, by group.

    With K tasks of :math:`n_k` jobs the score of a level is the least s with

    .. math:: \sum_k \frac{1}{K + 1} \frac{1}{n_k} \#\{i : s_{ki} \le s\} \ge level

    which bounds a job of a new, exchangeable task with at least that probability, however alike the jobs
    of a task are, up to the level K / (K + 1); above it the largest score is taken. A group with fewer
    than 40 tasks takes all groups together. Are these fewer than 20, the score is such that the level was
    held in each of them: that promises nothing for a new task, see :meth:`table`. With every job a
    task of its own this is split conformal prediction.

    Source: Lee, Barber, Willett, Distribution-free inference with hierarchical data (2023),
    arXiv:2306.06342; scores by the fitted distribution: Chernozhukov, Wüthrich, Zhu, PNAS 118
    (2021) e2107794118, doi:10.1073/pnas.2107794118.
    """

    def __init__(self, groups: Mapping[str, Scores], together: Scores | None) -> None:
        self.groups = dict(groups)
        self.together = together

    @classmethod
    def of(cls, score: FloatArray, task: IntArray, names: Sequence[str], group: IntArray) -> Self:
        """Keep the scores of calibration jobs."""
        if not score.size:
            return cls({}, None)
        result = {
            names[each]: Scores.of(score[group == each], task[group == each])
            for each in np.unique(group).tolist()
        }
        return cls(result, Scores.of(score, task))

    @property
    def enough(self) -> bool:
        """Tell whether there are tasks enough for bounds that hold on a new one."""
        return self.together is not None and self.together.enough

    def score(self, group: str, level: float) -> tuple[float, Holds]:
        """Return the normal score of a level in a group, and for what it holds."""
        if self.together is None:
            return normal_score(level), "not calibrated"
        own, everyone = self.groups.get(group), self.together
        if own is None or (own.tasks < OWN_TASKS and (everyone.enough or own.jobs < OWN_JOBS)):
            return everyone.at(level)
        return own.at(level)

    def scores(self, names: Sequence[str], group: IntArray, level: float) -> FloatArray:
        """Return the (n,) normal scores of a level for jobs of these groups, by their place in the names."""
        return np.array([self.score(name, level)[0] for name in names])[group]

    def table(self, levels: Sequence[float]) -> pl.DataFrame:
        """Say for what the bounds hold.

        One row per group and level: ``group`` (null: all others), ``level, tasks, jobs, score, holds_for``.
        """
        everyone = self.together
        rows = []
        for name in [*self.groups, None]:
            of = everyone if name is None else self.groups[name]
            for level in levels:
                score, holds = self.score(name or "", level)
                counts = (of.tasks, of.jobs) if of else (0, 0)
                rows.append((name, level, *counts, score, holds))
        columns = ("group", "level", "tasks", "jobs", "score", "holds_for")
        types = (pl.String, pl.Float64, pl.Int64, pl.Int64, pl.Float64, pl.String)
        return pl.DataFrame(rows, schema=dict(zip(columns, types, strict=True)), orient="row")

    def state(self) -> dict[str, Any]:
        """Return plain values."""
        everyone = self.together
        return {
            "groups": {name: _state(each) for name, each in self.groups.items()},
            "together": _state(everyone) if everyone else None,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return what :meth:`state` was made of."""
        together = state["together"]
        groups = {name: _scores(each) for name, each in state["groups"].items()}
        return cls(groups, _scores(together) if together else None)


def _state(scores: Scores) -> dict[str, Any]:
    return {
        "score": scores.score,
        "reached": scores.reached,
        "tasks": scores.tasks,
        "jobs": scores.jobs,
    }


def _scores(state: Mapping[str, Any]) -> Scores:
    if not 0 < state["score"].size == state["reached"].size:
        raise ValueError("scores of a calibration without shares")
    return Scores(state["score"], state["reached"], int(state["tasks"]), int(state["jobs"]))
