"""Estimators tested on tasks that they have not seen: on each task left out in turn, or on the later ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.estimator import Estimator, Predicted, check_levels
from brokerlab.estimators.records import checked
from brokerlab.estimators.replaying import known, order
from brokerlab.words import plural

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
