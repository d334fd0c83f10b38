"""What stated allocations would have done, job by job, beside settings on the same jobs by the same loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from brokerlab.calibrate.judge import MIN_UNITS, Question, capped_weights
from brokerlab.calibrate.percentiles.backtest import Backtest, counts_added
from brokerlab.calibrate.percentiles.comparison import judged_values
from brokerlab.calibrate.percentiles.history import History, JobHistory
from brokerlab.calibrate.percentiles.needs import Needs, needs_of
from brokerlab.calibrate.percentiles.parameters import Assumptions, LossWeights, Parameter, Setting
from brokerlab.calibrate.percentiles.reach import Reach
from brokerlab.calibrate.percentiles.replay import Replay, task_rows
from brokerlab.calibrate.percentiles.requests import Line
from brokerlab.calibrate.percentiles.sample import Sample, nothing_left, sample_of
from brokerlab.errors import InsufficientDataError
from brokerlab.numerics import FloatArray, IntArray

Who = Literal["estimator", "cheapest", "nearest", "current"]
Difference = Literal["restriction", "limit", "setting", "estimator"]
WHO: tuple[Who, ...] = ("estimator", "cheapest", "nearest", "current")
DIFFERENCES: dict[Difference, tuple[Who, Who]] = {
    "restriction": ("cheapest", "estimator"),
    "limit": ("nearest", "cheapest"),
    "setting": ("current", "nearest"),
    "estimator": ("current", "estimator"),
}
"""Difference -> of whom, against whom: lost by setting a rule, by its limit; gained by the rule, by the estimator."""


@dataclass(frozen=True)
class Scored:
    """The jobs of some tasks, ready to be scored under settings and under allocations of their own.

    Attributes:
        sample: Tasks and jobs.
        line: What the jobs ask for under an estimate, in the order of ``sample.scored``.
        needs: Of the jobs, in the order of ``sample.scored``.
        replay: For settings.
        made: What is taken for granted.
        weights: Of the loss.
    """

    sample: Sample
    line: Line
    needs: Needs
    replay: Replay
    made: Assumptions
    weights: LossWeights

    @classmethod
    def of(
        cls,
        sample: Sample,
        parameter: Parameter,
        made: Assumptions,
        weights: LossWeights,
        queues: pl.DataFrame | None,
        slots: pl.DataFrame,
    ) -> Scored:
        """Make a sample ready; ``slots`` of `slots_by_queue`."""
        needs = needs_of(sample.scored, parameter, made)
        replay = Replay.of(sample, needs, queues, slots, parameter, made)
        return cls(sample, parameter.line(sample.scored, made), needs, replay, made, weights)

    @property
    def parameter(self) -> Parameter:
        """What is allocated."""
        return self.replay.parameter

    def by_setting(self, setting: Setting) -> pl.DataFrame:
        """Return one row per task, sorted, under a setting."""
        return self.replay.by_task([setting], self.weights)

    def requests(self, setting: Setting) -> FloatArray:
        """Return what each job would ask for under a setting [MB or s], not yet truncated."""
        estimate = self.replay.estimator.grid([setting], slice(None))[:, 0]
        return self.line.asked(estimate[self.needs.task].astype(np.float64))

    def by_allocation(self, allocated: FloatArray) -> pl.DataFrame:
        """Return one row per task, sorted, with each job given what is stated for it.

        A killed job is tried again with the stated multiples of its allocation, as under a setting.

        Args:
            allocated: (n_jobs,) in the order of ``sample.scored``, finite [MB or s].

        Returns:
            The columns of ``Replay.by_task`` that are not of a setting.
        """
        task, n = self.needs.task, self.sample.tasks.height
        cells: dict[str, FloatArray] = {
            name: np.bincount(task, values, minlength=n).astype(np.float64)
            for name, values in self._outcome(allocated).items()
        }
        cells["queues_share"], cells["slots_share"] = self._shares(allocated)
        work = self.replay.ledger.coreh
        cells["unreachable_coreh"] = (1 - cells["slots_share"]) * work
        jobs = self.replay.ledger.n_jobs
        return task_rows(self.sample.tasks, cells, jobs, work, self.parameter, self.weights)

    def _outcome(self, allocated: FloatArray) -> dict[str, FloatArray]:
        """Return what each job's attempts come to."""
        line, needs = self.line, self.needs
        share = 1.0 if needs.killed_at_limit else self.made.killed_after
        # a limit is cut to whole MB or s: that much must be given
        wanted = np.ceil(line.used) + self.sample.scored["censored"].to_numpy()
        failing = np.ones(allocated.size, dtype=bool)
        out = {name: np.zeros(allocated.size) for name in ("used", "over", "waste", "killed_coreh")}
        for factor in needs.factors:
            given = allocated * factor
            served, lost = failing & (given >= wanted), failing & (given < wanted)
            reserved = given * line.amount
            burnt = reserved if needs.killed_at_limit else needs.coreh * share
            out["used"] += np.where(served, needs.used, 0.0)
            out["over"] += np.where(served, reserved - needs.used, 0.0)
            out["waste"] += np.where(lost, reserved * share, 0.0)
            out["killed_coreh"] += np.where(lost, burnt, 0.0)
            failing = lost
            out.setdefault("n_exceed", lost.astype(np.float64))
        headroom = allocated / np.where(line.used > 0, line.used, 1.0) - 1
        return {**out, "n_lost": failing.astype(np.float64), "headroom": headroom}

    def _shares(self, allocated: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the share of queues and slots that can take the typical job of each task."""
        n, line = self.sample.tasks.height, self.line
        reach = self.replay.reach
        if reach is None:
            return np.full(n, np.nan), np.full(n, np.nan)
        asked = (allocated - line.offset) * (line.demand / line.slope) + line.demand_besides
        exact = np.round(asked, 6)  # the quotient is off by rounding: what just fits shall fit
        jobs = pl.DataFrame({"task": self.needs.task, "demand": exact})
        demand = jobs.group_by("task").agg(pl.col("demand").median()).sort("task")["demand"]
        typical = Reach(demand.to_numpy(), np.zeros(n), reach.kind, reach.offers)
        queues, slots = typical.shares(np.ones((n, 1), dtype=np.int64), slice(0, n))
        return queues[:, 0], slots[:, 0]


def placed(
    scored: Scored, allocations: pl.DataFrame, setting: Setting
) -> tuple[FloatArray, IntArray]:
    """Return each scored job's allocation, and the places where the current setting stood in for a missing one.

    Args:
        scored: The jobs.
        allocations: ``pandaid, allocated``; null and infinite: the estimator cannot tell.
        setting: The current one.
    """
    stated: Any = (
        scored.sample.scored.select("pandaid")
        .join(allocations, on="pandaid", how="left", maintain_order="left")["allocated"]
        .fill_null(float("inf"))
        .to_numpy()
    )
    missing = np.isinf(stated)
    stood_in = np.where(missing, scored.requests(setting), stated)
    return stood_in, np.flatnonzero(missing)


@dataclass(frozen=True)
class Sides:
    """Results on the same tasks: ``rows``, one per task under each, sorted by task; and how many jobs had allocations."""

    rows: Mapping[Who, pl.DataFrame]
    n_jobs: int
    n_missing: int


def score_sides(
    tried: Backtest,
    history: History,
    tasks: pl.DataFrame,
    queues: pl.DataFrame | None,
    allocations: pl.DataFrame,
    settings: Mapping[Who, Setting],
) -> Sides:
    """Score allocations and settings on the same tasks, as a back-test scores its settings.

    Args:
        tried: Of which parameter, under which assumptions and weights; the current setting stands in for what has no allocation.
        history: Of the jobs.
        tasks: Those that are compared.
        queues: Null: not known.
        allocations: ``pandaid, allocated`` [MB or s].
        settings: Of all sides but the estimator's.

    Raises:
        InsufficientDataError: No task can be scored.
    """
    parameter, made, weights = tried.parameter, tried.assumptions, tried.weights
    current, slots = tried.current, tried.slots

    def score(part: JobHistory) -> tuple[dict[str, int], Sides | None]:
        sample = sample_of(part.quantities, tasks, part.jobs, parameter, made)
        if sample.tasks.is_empty():
            return sample.counts, None
        scored = Scored.of(sample, parameter, made, weights, queues, slots)
        allocated, missing = placed(scored, allocations, current)
        rows = {who: scored.by_setting(setting) for who, setting in settings.items()}
        rows["estimator"] = scored.by_allocation(allocated)
        return sample.counts, Sides(rows, allocated.size, missing.size)

    parts = history.map(score)
    found = [sides for _, sides in parts if sides is not None]
    if not found:
        counts = counts_added([each for each, _ in parts])
        raise InsufficientDataError(nothing_left(parameter, counts, made))
    return Sides(
        {who: pl.concat([one.rows[who] for one in found]).sort("jeditaskid") for who in WHO},
        sum(one.n_jobs for one in found),
        sum(one.n_missing for one in found),
    )


def compared(
    sides: Mapping[Who, pl.DataFrame],
    labels: Mapping[Who, str],
    parameter: Parameter,
    question: Question,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Lay results on the same tasks side by side.

    Loss and kill rate are means over tasks with the weights that the judge gives them, and its intervals; below `MIN_UNITS`
    tasks there are none. The rest are sums over all jobs.

    Args:
        sides: One row per task each, sorted by it.
        labels: What each is called.
        parameter: What is allocated.
        question: Of the judge: confidence, replicates, seed; the same draws for all.

    Returns:
        ``table``, one row per side, and ``differences``, one row per entry of ``DIFFERENCES``; columns as in
        :class:`Translation`.

    Raises:
        InsufficientDataError: No task has work.
    """
    working = {who: side.filter(pl.col("work_coreh") > 0) for who, side in sides.items()}
    weights = capped_weights(working["current"]["work_coreh"].to_numpy())
    if not weights.size:
        raise InsufficientDataError(
            "no task with allocations has work: there is nothing to compare"
        )

    def mean(name: str, values: FloatArray, *, share: bool = False) -> dict[str, float | None]:
        enough = weights.size >= MIN_UNITS
        return question.interval(name, values, weights, share=share, enough=enough)

    judged = {who: judged_values(working[who]) for who in WHO}
    rows = [
        pl.DataFrame(
            [
                {"who": who, "label": labels[who]}
                | mean("loss", judged[who]["loss"])
                | mean("exceed_rate", judged[who]["exceed_rate"], share=True)
            ],
            schema_overrides=ENDS,
        ).hstack(_sums(sides[who], parameter))
        for who in WHO
    ]
    table = pl.concat(rows)
    now = table.filter(who="current")["loss"].item()
    differences = []
    for name, (of, against) in DIFFERENCES.items():
        gap = mean("loss", judged[of]["loss"] - judged[against]["loss"])
        differences.append({"difference": name, "of": of, "against": against} | gap)
    share = 100 * pl.col("loss") / pl.when(pl.lit(now) != 0).then(pl.lit(now))
    return table, pl.DataFrame(differences, schema_overrides=ENDS).with_columns(
        pct_of_current=share
    )


ENDS = dict.fromkeys(["loss_lo", "loss_hi", "exceed_rate_lo", "exceed_rate_hi"], pl.Float64)


def _sums(side: pl.DataFrame, parameter: Parameter) -> pl.DataFrame:
    """Sum one side over its tasks."""
    used, over, *rest = (
        f"{name}_{parameter.amount}" for name in ("used", "over", "waste", "reserved")
    )
    return side.select(
        pl.len().cast(pl.Int64).alias("n_tasks"),
        pl.col("n_scored", "n_exceed", "n_lost").sum(),
        pl.col(used, over, *rest, "killed_coreh", "work_coreh").sum(),
        pl.col("slots_share").mean(),
        exceed_rate_jobs=pl.col("n_exceed").sum() / pl.col("n_scored").sum(),
        over_allocation=pl.col(over).sum()
        / pl.when(pl.col(used).sum() > 0).then(pl.col(used).sum()),
    )
