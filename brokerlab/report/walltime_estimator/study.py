"""Estimate, and sum up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from brokerlab.report.walltime_estimator.inputs import Inputs
from brokerlab.report.walltime_estimator.logs import LogStudy, study_logs
from brokerlab.report.walltime_estimator.power import PowerStudy, study_power


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """What was found.

    Attributes:
        inputs: What it was made from.
        logs: What batch logs showed; None without any.
        power: What core power explains; None without timed jobs.
        dice: Replicates and seed of the bootstrap.
    """

    inputs: Inputs
    logs: LogStudy | None
    power: PowerStudy | None
    dice: dict[str, Any]


def study(inputs: Inputs, *, n_boot: int = 2000, seed: int = 1) -> Study:
    """Run all estimators on everything there is.

    Args:
        inputs: From `load`.
        n_boot: Replicates of the bootstrap.
        seed: Of the bootstrap.
    """
    dice: dict[str, Any] = {"n_boot": n_boot, "seed": seed}
    return Study(
        inputs=inputs,
        logs=study_logs(inputs.logs, **dice) if inputs.logs else None,
        power=study_power(inputs.power, **dice),
        dice=dice,
    )
