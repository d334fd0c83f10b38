"""What the test of all estimators on the jobs of one source showed, whatever their quantity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from brokerlab.estimators.doubts import Doubts
from brokerlab.estimators.hierarchy import Hierarchy
from brokerlab.estimators.sources.source import At
from brokerlab.estimators.trial import Trial


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """What the jobs of one source showed.

    Attributes:
        trials: What all estimators did, by clock; the first is the one that the deployed system has.
        doubts: Where the model is not to be trusted, by the first clock.
        learnt: The records that the saved model has learnt from.
        model: That model.
        unlearnt: Estimators that learnt nothing and refused every bound; they are in no trial.
    """

    trials: Mapping[At, Trial]
    doubts: Doubts
    learnt: pl.DataFrame
    model: Hierarchy
    unlearnt: tuple[str, ...] = ()

    @property
    def main(self) -> Trial:
        """The trial by the clock of the deployed system."""
        return next(iter(self.trials.values()))
