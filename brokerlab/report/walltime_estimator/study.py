"""Estimate, and sum up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from brokerlab.estimators.walltime.power import PowerStudy, study_power
from brokerlab.report.walltime_estimator.inputs import Inputs
from brokerlab.report.walltime_estimator.logs import LogStudy, study_logs
from brokerlab.report.walltime_estimator.settings import Settings, study_settings
from brokerlab.report.walltime_estimator.tasks import TaskStudy, study_tasks


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """What was found.

    Attributes:
        inputs: What it was made from.
        logs: What batch logs showed; None without any.
        power: What core power explains; None without timed jobs.
        tasks: What grid tasks showed, by name of the part: real ones first.
        settings: What follows for settings.
        dice: Replicates and seed of the bootstrap.
    """

    inputs: Inputs
    logs: LogStudy | None
    power: PowerStudy | None
    tasks: Mapping[str, TaskStudy]
    settings: Settings
    dice: dict[str, Any]


def study(
    inputs: Inputs, *, estimators: Sequence[str] = (), level: float = 0.95, n_boot: int = 2000, seed: int = 1
) -> Study:  # fmt: skip
    """Run all estimators on everything there is.

    Args:
        inputs: From `load`.
        estimators: Names of the models that are tried on grid tasks, the hierarchy among them; none: all.
        level: Of the bounds on grid tasks that are held against their promise.
        n_boot: Replicates of the bootstrap.
        seed: Of models and bootstrap.
    """
    dice: dict[str, Any] = {"n_boot": n_boot, "seed": seed}
    tried = {
        name: study_tasks(each, level=level, estimators=estimators, **dice)
        for name, each in inputs.tasks.items()
    }
    tasks = {name: each for name, each in tried.items() if each is not None}
    return Study(
        inputs=inputs,
        logs=study_logs(inputs.logs, **dice) if inputs.logs else None,
        power=study_power(inputs.power, **dice),
        tasks=tasks,
        settings=study_settings(tasks, inputs.archive, **dice),
        dice=dice,
    )
