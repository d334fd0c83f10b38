"""What stated allocations would have done, job by job, scored as the back-test scores its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from brokerlab.calibrate.assumptions import Assumptions
from brokerlab.calibrate.loss import COMPONENTS, LossWeights
from brokerlab.calibrate.nearest_setting.history import History
from brokerlab.calibrate.needs import Needs, needs_of
from brokerlab.calibrate.parameters import Parameter
from brokerlab.calibrate.reach import Reach, slots_by_queue
from brokerlab.calibrate.replay import Replay, Setting, columns_of
from brokerlab.calibrate.sample import Sample, nothing_left, sample_of
from brokerlab.errors import InsufficientDataError
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.units import HOUR_S, KB


@dataclass(frozen=True)
class Scored:
    """The jobs of some tasks, ready to be scored under settings and under allocations of their own.

    Attributes:
        sample: Tasks and jobs.
        replay: For settings.
        needs: Of the jobs, in the order of ``sample.scored``.
        parameter: What is allocated.
        made: What is taken for granted.
        weights: Of the loss.
    """

    sample: Sample
    replay: Replay
    needs: Needs
    parameter: Parameter
    made: Assumptions
    weights: LossWeights

    @classmethod
    def of(
        cls,
        history: History,
        tasks: pl.DataFrame,
        parameter: Parameter,
        made: Assumptions,
        weights: LossWeights,
    ) -> Scored:
        """Collect the jobs that a back-test of these tasks scores.

        Raises:
            InsufficientDataError: No task can be scored.
        """
        mine = history.quantities.join(tasks.select("jeditaskid"), on="jeditaskid", how="semi")
        sample = sample_of(mine, tasks, history.jobs, parameter.name, made)
        if sample.tasks.is_empty():
            raise InsufficientDataError(
                nothing_left(parameter.name, sample.counts, made.min_scored, made.min_scouts)
            )
        needs = needs_of(sample.scored, parameter.name, made)
        replay = Replay.of(sample, history.queues, slots_by_queue(mine), parameter, made)
        return cls(sample, replay, needs, parameter, made, weights)

    def under(self, minimum: int | None) -> Replay:
        """Return the replay with another SCOUT_RAMCOUNT_MIN."""
        return self.replay.under(minimum)

    def by_setting(self, setting: Setting, minimum: int | None) -> pl.DataFrame:
        """Return one row per task, sorted, under a setting of the family."""
        return self.under(minimum).by_task([setting], self.weights)

    def requests(self, setting: Setting, minimum: int | None) -> FloatArray:
        """Return what each job would ask for under a setting [MB or s], not yet truncated."""
        ranks, margins = columns_of([setting])
        everyone = slice(0, self.sample.tasks.height)
        estimate = self.under(minimum).estimator.grid(ranks, margins, everyone)[:, 0]
        x = estimate[self.needs.task].astype(np.float64)
        ratio = x * self.needs.headroom_slope + self.needs.headroom_offset + 1
        return np.asarray(ratio * _at_least_one(self.used(), self.parameter))

    def used(self) -> FloatArray:
        """Return what each job used [MB or s]."""
        jobs = self.sample.scored
        if self.parameter.name == "ramcount":
            return (jobs["maxpss_kb"].cast(pl.Float64) / KB).to_numpy()
        return jobs["duration_s"].cast(pl.Float64).to_numpy()

    def by_allocation(self, allocated: FloatArray) -> pl.DataFrame:
        """Return one row per task, sorted, with each job given what is stated for it.

        A killed job is tried again with the stated multiples of its allocation, as under a setting.

        Args:
            allocated: (n_jobs,) in the order of ``sample.scored``, finite [MB or s].

        Returns:
            The columns of ``Replay.by_task`` that are not of a setting.
        """
        outcome = self._outcome(allocated)
        task, n = self.needs.task, self.sample.tasks.height
        totals: dict[str, FloatArray] = {
            name: np.bincount(task, values, minlength=n).astype(np.float64)
            for name, values in outcome.items()
        }
        queues, slots = self._shares(allocated)
        work = self.replay.ledger.coreh
        totals["unreachable_coreh"] = (1 - slots) * work
        weights = self.weights.to_dict()
        cost = sum(weights[name] * np.nan_to_num(totals[name]) for name in COMPONENTS)
        amount = self.parameter.amount
        jobs = self.replay.ledger.n_jobs
        return self.sample.tasks.drop("task").with_columns(
            n_exceed=pl.Series(totals["n_exceed"].astype(np.int64)),
            n_lost=pl.Series(totals["n_lost"].astype(np.int64)),
            exceed_rate=pl.Series(totals["n_exceed"] / jobs),
            **{f"used_{amount}": pl.Series(totals["used"])},
            **{f"over_{amount}": pl.Series(totals["over"])},
            **{f"waste_{amount}": pl.Series(totals["waste"])},
            **{f"reserved_{amount}": pl.Series(totals["used"] + totals["over"] + totals["waste"])},
            killed_coreh=pl.Series(totals["killed_coreh"]),
            work_coreh=pl.Series(work),
            headroom_mean=pl.Series(totals["headroom"] / jobs),
            queues_share=pl.Series(queues).fill_nan(None),
            slots_share=pl.Series(slots).fill_nan(None),
            unreachable_coreh=pl.Series(totals["unreachable_coreh"]).fill_nan(None),
            cost_coreh=pl.Series(np.asarray(cost)),
        )

    def _outcome(self, allocated: FloatArray) -> dict[str, FloatArray]:
        """Return what each job's attempts come to."""
        jobs, used = self.sample.scored, self.used()
        memory = self.parameter.name == "ramcount"
        censored = jobs["censored"].to_numpy()
        coreh = self.needs.coreh
        hours = jobs["duration_s"].cast(pl.Float64).to_numpy() / HOUR_S
        cores = jobs["cores"].cast(pl.Float64).to_numpy()
        amount = hours / KB if memory else cores / HOUR_S
        wanted = (
            np.ceil(used) + censored
        )  # a limit is cut to whole MB or s: that much must be given
        share = self.made.killed_after if memory else 1.0
        failing = np.ones(used.size, dtype=bool)
        out = {name: np.zeros(used.size) for name in ("used", "over", "waste", "killed_coreh")}
        for factor in self.needs.factors:
            given = allocated * factor
            served, lost = failing & (given >= wanted), failing & (given < wanted)
            reserved = given * amount
            out["used"] += np.where(served, self.needs.used, 0.0)
            out["over"] += np.where(served, reserved - self.needs.used, 0.0)
            out["waste"] += np.where(lost, reserved * share, 0.0)
            out["killed_coreh"] += np.where(lost, coreh * share if memory else reserved, 0.0)
            failing = lost
            out.setdefault("n_exceed", lost.astype(np.float64))
        headroom = allocated / _at_least_one(used, self.parameter) - 1
        return {**out, "n_lost": failing.astype(np.float64), "headroom": headroom}

    def _shares(self, allocated: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the share of queues and slots that can take the typical job of each task."""
        n = self.sample.tasks.height
        reach = self.replay.reach
        if reach is None:
            return np.full(n, np.nan), np.full(n, np.nan)
        jobs = self.sample.scored.with_columns(pl.Series("allocated", allocated))
        demand = _demand(jobs, self.parameter)
        typical = Reach(demand, np.zeros(n), reach.kind, reach.offers)
        queues, slots = typical.shares(np.ones((n, 1), dtype=np.int64), slice(0, n))
        return queues[:, 0], slots[:, 0]


def _demand(jobs: pl.DataFrame, parameter: Parameter) -> FloatArray:
    """Return what the typical job of each task asks of a queue, in the unit of its capacity."""
    asked = pl.col("allocated") / pl.col("cores")
    if parameter.name == "cputime":
        asked = (pl.col("allocated") - pl.col("basewalltime").fill_null(0)) * pl.col("corepower")
    demand = jobs.group_by("task").agg(demand=asked.median()).sort("task")["demand"]
    return demand.to_numpy()


def _at_least_one(used: FloatArray, parameter: Parameter) -> FloatArray:
    """Return the use that head-room is a ratio to: of a run, at least a second."""
    return used if parameter.name == "ramcount" else np.maximum(used, 1.0)


def placed(
    scored: Scored, allocations: pl.DataFrame, setting: Setting, minimum: int | None
) -> tuple[FloatArray, IntArray]:
    """Return each scored job's allocation, and the places where the current setting stood in for a missing one.

    Args:
        scored: The jobs.
        allocations: ``pandaid, allocated``; null and infinite: the estimator cannot tell.
        setting: The current one.
        minimum: The current one.
    """
    told: Any = (
        scored.sample.scored.select("pandaid")
        .join(allocations, on="pandaid", how="left", maintain_order="left")["allocated"]
        .fill_null(float("inf"))
        .to_numpy()
    )
    missing = np.isinf(told)
    stood_in = np.where(missing, scored.requests(setting, minimum), told)
    return stood_in, np.flatnonzero(missing)
