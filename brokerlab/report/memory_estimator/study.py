"""Estimate, and sum up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from brokerlab.estimators.sizing.peers import peers
from brokerlab.report.memory_estimator.inputs import Inputs
from brokerlab.report.memory_estimator.traces import TraceStudy, study_traces


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """What was found.

    Attributes:
        inputs: What it was made from.
        traces: What workflow traces showed; None without any.
        dice: Replicates and seed of the bootstrap.
    """

    inputs: Inputs
    traces: TraceStudy | None
    dice: dict[str, Any]


def study(inputs: Inputs, *, seeds: Sequence[int], n_boot: int = 2000, seed: int = 1) -> Study:
    """Run all estimators on everything there is.

    Args:
        inputs: From `load`.
        seeds: Random orders in which the runs of traces arrive.
        n_boot: Replicates of the bootstrap.
        seed: Of the bootstrap.
    """
    dice: dict[str, Any] = {"n_boot": n_boot, "seed": seed}
    traces = (
        study_traces(inputs.traces, peers=peers, seeds=seeds, **dice) if inputs.traces else None
    )
    return Study(inputs=inputs, traces=traces, dice=dice)
