"""Estimators tested on tasks that they have not seen: fitted on all other tasks, task after task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.estimator import Estimator, Predicted, checked_levels
from brokerlab.estimators.records import checked
from brokerlab.estimators.replaying import known

CALIBRATED_ON = 1 / 3
"""Share of the tasks, the latest, that bounds are calibrated on; at least one of two tasks or more."""


def replay_left_out(
    make: Callable[[], Estimator], records: Any, *, levels: Sequence[float]
) -> Predicted:
    """Predict every job as it is decided, by an estimator that has learnt from the other tasks only.

    Args:
        make: Returns a new estimator.
        records: As :class:`records.Records`, of two tasks or more.
        levels: Of the bounds.

    Returns:
        Predictions of all jobs, in the order of the checked records.

    Raises:
        InsufficientDataError: There is only one task.
    """
    frame, asked = checked(records), checked_levels(levels)
    bounds, point = np.empty((frame.height, len(asked))), np.empty(frame.height)
    task = frame["jeditaskid"].to_numpy()
    for each in dict.fromkeys(task.tolist()):
        rows = np.flatnonzero(task == each)
        others = frame[np.flatnonzero(task != each)]
        if others.is_empty():
            raise InsufficientDataError(
                f"task {each}: no other task to learn from; give the records of several tasks"
            )
        found = trained(make(), others).replay(frame[rows], levels=asked)
        bounds[rows], point[rows] = found.bounds, found.point
    return Predicted(frame["pandaid"].to_numpy(), known(frame), asked, bounds, point)


E = TypeVar("E", bound=Estimator)


def trained(estimator: E, records: pl.DataFrame) -> E:
    """Fit on the earlier tasks of records, by their first decision, and calibrate on the latest third of them.

    A single task is fitted on, and nothing calibrates.
    """
    tasks = records["jeditaskid"].unique(maintain_order=True)
    n_late = max(int(len(tasks) * CALIBRATED_ON), int(len(tasks) > 1))
    late = pl.col("jeditaskid").is_in(tasks.tail(n_late).to_list())
    estimator.fit(records.filter(~late) if n_late else records)
    return estimator.conformalize(records.filter(late)) if n_late else estimator
