"""An estimator whose bound is the allocation of least expected cost under another one's distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import polars as pl

from brokerlab.estimators.allocation.cheapest import Allocations, cheapest
from brokerlab.estimators.allocation.distribution import GRID, Tail
from brokerlab.estimators.allocation.ladder import Ladder
from brokerlab.estimators.allocation.prices import Prices, amount_per_unit
from brokerlab.estimators.estimator import Estimator, Predicted, checked_levels
from brokerlab.estimators.records import Quantity, checked
from brokerlab.numerics import FloatArray
from brokerlab.units import HOUR_S


class Allocated:
    """Give each job what is expected to cost least; the bound at every level is that allocation.

    Args:
        estimator: What tells the distribution; it learns, is calibrated and updated through this one.
        quantity: What it tells: memory [MB] or walltime [s].
        ladder: Of retries; None: any.
        prices: None: idle and lost amounts count 1, nothing else counts.
        tail: Of the distributions.
        levels: Asked of the estimator.
        wait_s: Expected wait of a retry in the queue [s].
        name: None: that of the estimator and how it is used.

    An attempt is expected to take as long as the jobs of ``fit`` of the same kind on average; of a kind that was
    not there, as all of them; an hour before any was seen. With prices of idle and lost amounts alone the
    duration does not matter.
    """

    def __init__(
        self,
        estimator: Estimator,
        quantity: Quantity,
        *,
        ladder: Ladder | None = None,
        prices: Prices | None = None,
        tail: Tail | None = None,
        levels: Sequence[float] = GRID,
        wait_s: float = 0.0,
        name: str | None = None,
    ) -> None:
        self.estimator = estimator
        self.quantity = quantity
        self.ladder, self.prices, self.tail = ladder, prices, tail
        self.levels, self.wait_s = tuple(levels), wait_s
        self.name = name or f"{estimator.name}, cheapest allocation"
        self._usual = _usual_wall(None)

    def fit(self, records: Any) -> Self:
        """Learn from finished jobs, as the estimator does; and how long they took."""
        self.estimator = self.estimator.fit(records)
        self._usual = _usual_wall(checked(records))
        return self

    def conformalize(self, records: Any) -> Self:
        """Calibrate the estimator."""
        self.estimator = self.estimator.conformalize(records)
        return self

    def update(self, records: Any) -> Self:
        """Let the estimator see finished jobs."""
        self.estimator = self.estimator.update(records)
        return self

    def predict(self, records: Any, *, levels: Sequence[float]) -> pl.DataFrame:
        """Return the first allocation of each job at every level asked for; see :class:`Estimator`."""
        told = self.estimator.predict(records, levels=self.levels)
        names = [name for name in told.columns if name.startswith("bound_")]
        jobs = told.select("pandaid").join(
            checked(records), on="pandaid", how="left", maintain_order="left"
        )
        first = self._cheapest(told.select(names).to_numpy(), jobs).first
        return told.select("pandaid", "seen", "point").with_columns(
            pl.Series(f"bound_{level:g}", first) for level in checked_levels(levels)
        )

    def replay(self, records: Any, *, levels: Sequence[float]) -> Predicted:
        """Return the first allocation of each job at every level asked for; see :class:`Estimator`."""
        told = self.estimator.replay(records, levels=self.levels)
        first = self._cheapest(told.bounds, checked(records)).first
        asked = checked_levels(levels)
        return replace(told, levels=asked, bounds=np.repeat(first[:, None], len(asked), axis=1))

    def allocations(self, records: Any) -> pl.DataFrame:
        """Return what each job would have been given as it was decided, and what was expected of it.

        Returns:
            One row per job, in the order of decision: ``pandaid``, ``allocated``, ``second`` [MB or s],
            ``cost`` (expected, in the currency of the prices), ``attempts``, ``exceed``, ``given_up``.
        """
        told = self.estimator.replay(records, levels=self.levels)
        found = self._cheapest(told.bounds, checked(records))
        return pl.DataFrame(
            {
                "pandaid": told.pandaid,
                "allocated": found.first,
                **{name: getattr(found, name) for name in ("second", "cost")},
                **{name: getattr(found, name) for name in ("attempts", "exceed", "given_up")},
            }
        )

    def _cheapest(self, bounds: FloatArray, jobs: pl.DataFrame) -> Allocations:
        """Choose under the distributions of jobs in the same order."""
        overall = self._usual.filter(pl.col("kind").is_null())["usual_s"][0]
        wall_s = (
            jobs.select("kind")
            .join(self._usual, on="kind", how="left", maintain_order="left")["usual_s"]
            .fill_null(overall)
            .to_numpy()
        )
        cores = jobs["cores"].cast(pl.Float64).to_numpy()
        memory = self.quantity == "memory"
        return cheapest(
            bounds,
            levels=self.levels,
            ladder=self.ladder,
            prices=self.prices,
            tail=self.tail,
            amount=amount_per_unit(self.quantity, wall_s=wall_s, cores=cores),
            cores=cores,
            core_hours=cores * wall_s / HOUR_S if memory else 0.0,
            wait_s=self.wait_s,
        )


def _usual_wall(jobs: pl.DataFrame | None) -> pl.DataFrame:
    """Return the mean duration of each kind and, under null, of all: ``kind, usual_s``."""
    if jobs is None or jobs.is_empty():
        return pl.DataFrame({"kind": [None], "usual_s": [float(HOUR_S)]}, schema_overrides={"kind": pl.String})  # fmt: skip
    mean = pl.col("wall_s").mean()
    everything = jobs.select(kind=pl.lit(None, pl.String), usual_s=mean)
    kinds = jobs.drop_nulls("kind").group_by("kind").agg(usual_s=mean).sort("kind")
    return pl.concat([everything, kinds])
