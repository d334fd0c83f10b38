"""One history made ready to be replayed under any setting: estimate, search, reach, task by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import polars as pl

from brokerlab.calibrate.percentiles.estimates import Estimator
from brokerlab.calibrate.percentiles.needs import Ledger, Needs
from brokerlab.calibrate.percentiles.parameters import (
    COMPONENTS,
    Assumptions,
    LossWeights,
    Parameter,
    Setting,
)
from brokerlab.calibrate.percentiles.reach import Reach, reach_of
from brokerlab.calibrate.percentiles.sample import Sample
from brokerlab.numerics import FloatArray, IntArray

CELLS = 300_000  # tasks x settings at a time: about 100 MB


@dataclass(frozen=True)
class Replay:
    """The arrays of some tasks of a back-test, ready for any setting.

    Attributes:
        tasks: See ``Sample.tasks``.
        estimator: What a setting tells each task.
        ledger: What an estimate would have done.
        reach: Which queues can take it; None: queues are not known.
        parameter: Which.
    """

    tasks: pl.DataFrame
    estimator: Estimator
    ledger: Ledger
    reach: Reach | None
    parameter: Parameter

    @classmethod
    def of(
        cls,
        sample: Sample,
        needs: Needs,
        queues: pl.DataFrame | None,
        slots: pl.DataFrame,
        parameter: Parameter,
        made: Assumptions,
    ) -> Replay:
        """Sort the needs of a sample once; ``slots`` of `slots_by_queue`."""
        reach = None
        if queues is not None and queues.height:
            reach = reach_of(sample.scored, queues, slots, parameter, made)
        return cls(
            tasks=sample.tasks,
            estimator=Estimator(parameter, sample.values, made.rules, made.rule),
            ledger=Ledger(needs, sample.tasks.height, killed_after=made.killed_after),
            reach=reach,
            parameter=parameter,
        )

    def cells(
        self, settings: Sequence[Setting], tasks: slice = slice(None)
    ) -> dict[str, FloatArray]:
        """Return every outcome of some tasks under all settings, (n_tasks, n_settings) each."""
        estimate = self.estimator.grid(settings, tasks)
        if self.reach is None:
            queues = slots = np.full(estimate.shape, np.nan)
        else:
            queues, slots = self.reach.shares(estimate, tasks)
        work = self.ledger.coreh[tasks][:, None]
        return {
            **self.ledger.outcomes(estimate, tasks),
            "estimate": estimate,
            "queues_share": queues,
            "slots_share": slots,
            "unreachable_coreh": (1 - slots) * work,
            "n_fallback": self.estimator.falls_back(settings, tasks).astype(np.float64),
        }

    def of_judge(self, settings: Sequence[Setting], weights: LossWeights) -> dict[str, FloatArray]:
        """Return what the judge looks at, (n_tasks, n_settings) each; see ``Backtest.outcomes``."""
        cells = self.cells(settings)
        with np.errstate(all="ignore"):  # tasks without work are left out by the caller
            work = self.ledger.coreh[:, None]
            parts = {name: np.nan_to_num(cells[name]) / work for name in COMPONENTS}
        return {
            "loss": _cost(parts, weights),
            "exceed_rate": cells["n_exceed"] / self.ledger.n_jobs[:, None],
            **parts,
        }

    def totals(self, settings: Sequence[Setting], weights: LossWeights) -> dict[str, FloatArray]:
        """Return the cells, ``cost_coreh`` (of the loss) and ``task_rate`` (of first attempts killed), summed over the tasks.

        (n_settings,) each, as many tasks at a time as fit in memory; those of different tasks add up.
        """
        size = max(1, CELLS // len(settings))
        parts = []
        for first in range(0, self.tasks.height, size):
            tasks = slice(first, first + size)
            cells = self.cells(settings, tasks)
            cells["cost_coreh"] = _cost(cells, weights)
            cells["task_rate"] = cells["n_exceed"] / self.ledger.n_jobs[tasks][:, None]
            parts.append({name: values.sum(axis=0) for name, values in cells.items()})
        return reduce(added, parts)

    def by_task(self, settings: Sequence[Setting], weights: LossWeights) -> pl.DataFrame:
        """Return one row per (task, setting); see ``Backtest.by_task``."""
        n, height = len(settings), self.tasks.height
        cells = {name: values.ravel() for name, values in self.cells(settings).items()}
        columns = frame_of(settings)
        return (
            task_rows(
                self.tasks[np.repeat(np.arange(height), n)],
                cells,
                np.repeat(self.ledger.n_jobs, n),
                np.repeat(self.ledger.coreh, n),
                self.parameter,
                weights,
            )
            .with_columns(
                *columns[np.tile(np.arange(n), height)],
                estimate=pl.Series(cells["estimate"]),
                fallback=pl.Series(cells["n_fallback"] > 0),
            )
            .sort("jeditaskid", "rank", "margin_pct", "minimum_mb")
        )


def frame_of(settings: Sequence[Setting]) -> pl.DataFrame:
    """Return settings as ``rank, margin_pct, minimum_mb``."""
    schema = dict.fromkeys(Setting._fields, pl.Int64)
    return pl.DataFrame([tuple(each) for each in settings], schema=schema, orient="row")


def added(one: dict[str, FloatArray], other: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the sums over the tasks of both."""
    return {name: values + other[name] for name, values in one.items()}


def _cost(parts: Mapping[str, FloatArray], weights: LossWeights) -> FloatArray:
    """Return the weighted sum of the parts of the loss; what is not known costs nothing."""
    return np.asarray(sum(w * np.nan_to_num(parts[n]) for n, w in weights.to_dict().items()))


def task_rows(
    tasks: pl.DataFrame,
    cells: Mapping[str, FloatArray],
    jobs: IntArray,
    work: FloatArray,
    parameter: Parameter,
    weights: LossWeights,
) -> pl.DataFrame:
    """Lay outcomes out as rows of tasks, those of ``Backtest.by_task`` that are not of a setting.

    Args:
        tasks: One row each, of ``Sample.tasks``.
        cells: Sums over the jobs of each, of the names of `Replay.cells`.
        jobs: Scored jobs of each.
        work: Core-hours of one complete run of them.
        parameter: Which.
        weights: Of the loss.
    """
    amounts = {name: cells[name] for name in ("used", "over", "waste")}
    amounts["reserved"] = amounts["used"] + amounts["over"] + amounts["waste"]
    return tasks.drop("task").with_columns(
        n_exceed=pl.Series(cells["n_exceed"].astype(np.int64)),
        n_lost=pl.Series(cells["n_lost"].astype(np.int64)),
        exceed_rate=pl.Series(cells["n_exceed"] / jobs),
        **{f"{name}_{parameter.amount}": pl.Series(values) for name, values in amounts.items()},
        killed_coreh=pl.Series(cells["killed_coreh"]),
        work_coreh=pl.Series(work),
        headroom_mean=pl.Series(cells["headroom"] / jobs),
        **{
            name: pl.Series(cells[name]).fill_nan(None)
            for name in ("queues_share", "slots_share", "unreachable_coreh")
        },
        cost_coreh=pl.Series(_cost(cells, weights)),
    )
