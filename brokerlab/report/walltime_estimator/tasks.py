"""Grid tasks as the page shows them: what is read of them, and the evaluation of `brokerlab.estimators.walltime.tasks`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.doubts import Doubts
from brokerlab.estimators.learners import MODEL, learners
from brokerlab.estimators.records import Quantity
from brokerlab.estimators.scoring.measures import FEW_TASKS
from brokerlab.estimators.sources.source import At, Source
from brokerlab.estimators.trial import POLICY, Trial
from brokerlab.estimators.walltime.tasks import evaluate_tasks

QUANTITY: Quantity = "walltime"
OURS = MODEL
CHEAPEST = POLICY.format(OURS)
CLOCKS: tuple[At, ...] = ("submit", "start")
FEW = FEW_TASKS


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
    """What all estimators did on the tasks of a part, as :class:`TaskEvaluation`."""

    inputs: TaskInputs
    trials: Mapping[At, Trial]
    points: pl.DataFrame
    doubts: Mapping[At, Doubts]
    learnt: pl.DataFrame


def study_tasks(
    inputs: TaskInputs, *, level: float, estimators: Sequence[str] = (), n_boot: int, seed: int
) -> TaskStudy | None:
    """Try all estimators by both clocks; None where the jobs say too little."""
    makes = learners(QUANTITY, *estimators, seed=seed)
    try:
        found = evaluate_tasks(
            inputs.sources, makes, left_out=inputs.left_out, level=level, n_boot=n_boot, seed=seed
        )
    except InsufficientDataError:
        return None
    return TaskStudy(
        inputs=inputs,
        trials=found.trials,
        points=found.guesses,
        doubts=found.doubts,
        learnt=found.learnt,
    )


def row_of(points: pl.DataFrame, at: At, estimator: str) -> dict[str, Any]:
    """Return the errors of an estimator by a clock."""
    return points.filter(at=at, estimator=estimator).row(0, named=True)
