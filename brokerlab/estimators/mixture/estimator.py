"""Estimate what jobs use from several views of the earlier jobs of their task, mixed by how well each foresaw what came."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Self

import numpy as np
import polars as pl

from brokerlab.estimators.estimator import Predicted, check_levels
from brokerlab.estimators.likejobs import MEDIAN, LikeJobs
from brokerlab.estimators.mixture.views import Mixture, Run
from brokerlab.estimators.records import Quantity, checked
from brokerlab.estimators.replaying import order
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.units import MB

FEWEST = 3  # finished jobs of a task below which like jobs of all tasks are asked instead


class Views:
    """Estimate memory or walltime per task by the mixture of views of its earlier jobs: see `views.Mixture`.

    Of a task of which fewer than three jobs have finished `LikeJobs` tell what the jobs of all tasks say. Killed jobs count
    with what they had used.

    Args:
        quantity: ``"memory"`` or ``"walltime"``.

    Raises:
        ConfigError: An unknown quantity.
    """

    name = "views"

    def __init__(self, quantity: Quantity) -> None:
        self.population = LikeJobs(quantity)
        self.quantity = quantity
        self._tasks: dict[int, Mixture] = {}

    def fit(self, records: Any) -> Self:
        """Learn what jobs of all tasks use; forgets what was seen before."""
        self.population.fit(records)
        self._tasks.clear()
        return self

    def conformalize(self, records: Any) -> Self:
        """See finished jobs of other tasks; there is nothing to calibrate, see `held.HeldBounds`."""
        self.population.conformalize(records)
        return self

    def update(self, records: Any) -> Self:
        """See finished jobs, in the order of their ends; those without an end are not seen."""
        frame = checked(records).filter(pl.col("ended_s").is_not_null()).sort("ended_s", "pandaid")
        self.population.update(frame)
        self._walk(frame, np.arange(frame.height), (), self._tasks)
        return self

    def predict(self, records: Any, *, levels: Sequence[float]) -> pl.DataFrame:
        """Bound jobs that have not run; columns as :meth:`Estimator.predict` says."""
        frame, asked = checked(records), check_levels(levels)
        plain = self.population.predict(frame, levels=asked)
        bounds = plain.select("point", pl.selectors.starts_with("bound_")).to_numpy()
        rows = np.arange(frame.height)
        tasks = {task: self._tasks[task] for task in set(frame["jeditaskid"]) & set(self._tasks)}
        seen = plain["seen"].to_numpy()
        return self._predicted(frame, ~rows, seen, bounds, asked, tasks).frame()

    def replay(self, records: Any, *, levels: Sequence[float]) -> Predicted:
        """Bound every job as it is decided; see :meth:`Estimator.replay`."""
        frame, asked = checked(records), check_levels(levels)
        plain = self.population.replay(frame, levels=asked)
        bounds = np.column_stack([plain.point, plain.bounds])
        events, tasks = order(frame), deepcopy(self._tasks)
        return self._predicted(frame, events, plain.seen, bounds, asked, tasks)

    def _predicted(
        self,
        frame: pl.DataFrame,
        events: IntArray,
        seen: IntArray,
        bounds: FloatArray,
        levels: tuple[float, ...],
        tasks: dict[int, Mixture],
    ) -> Predicted:
        """Put what the views tell in the place of what all tasks say, where enough was seen."""
        quantiles = self._walk(frame, events, (MEDIAN, *levels), tasks)
        result = np.where(np.isnan(quantiles), bounds, quantiles)
        result[:, 1:] = np.maximum.accumulate(result[:, 1:], axis=1)
        pandaid = frame["pandaid"].to_numpy()
        return Predicted(pandaid, seen, levels, result[:, 1:], result[:, 0])

    def _walk(
        self,
        frame: pl.DataFrame,
        events: IntArray,
        levels: tuple[float, ...],
        tasks: dict[int, Mixture],
    ) -> FloatArray:
        """Return what views tell of the jobs that are decided; NaN where too few were seen."""
        quantiles = np.full((frame.height, len(levels)), np.nan)
        asked = np.array(levels)
        task, used = frame["jeditaskid"].to_list(), frame["used"].to_list()
        runs = [
            Run((size or 0.0) * MB, request or float("nan"))
            for size, request in frame.select("input_mb", "requested").iter_rows()
        ]
        for event in events.tolist():
            row = event if event >= 0 else ~event
            model = tasks.get(task[row])
            if event >= 0:
                if model is None:
                    model = tasks[task[row]] = Mixture()
                model.see(runs[row], used[row], scored=model.n >= FEWEST)
            elif model is not None and model.n >= FEWEST:
                quantiles[row] = model.predict(runs[row]).quantiles(asked)
        return quantiles
