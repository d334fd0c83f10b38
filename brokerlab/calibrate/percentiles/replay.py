"""One history made ready to be replayed, task by task: under any setting, or with allocations of its own for every job.

A request is a rounded straight line in the task's estimate x. Solving it for x once per job, the smallest estimate under
which it would not have been killed, makes every setting a comparison of whole numbers. In the ledger jobs are sorted once by
task and this need, and their amounts summed up along the way; an estimate then splits a task's jobs in two, and every
quantity is a difference of two running sums. `Reach` says which queues can still take a task that asks for so much.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from brokerlab.calibrate.percentiles.history import Sample
from brokerlab.calibrate.percentiles.parameters import (
    COMPONENTS,
    Assumptions,
    Line,
    LossWeights,
    Parameter,
    Setting,
    column,
)
from brokerlab.errors import ConfigError
from brokerlab.frames import columns_of
from brokerlab.numerics import FloatArray, IntArray, SortedGroups
from brokerlab.scouts import ScoutRules
from brokerlab.slots import Offers
from brokerlab.units import HOUR_S

QUEUE_COLUMNS: dict[str, pl.DataType] = {
    "panda_queue": pl.String(),
    **dict.fromkeys(["corecount", "maxrss", "memory", "maxtime", "maxwdir"], pl.Int64()),
    "corepower": pl.Float64(),
}


@dataclass(frozen=True)
class Reach:
    """Capacities of the queues and what a task asks of them, as a straight line in its estimate.

    Attributes:
        slope: (n_tasks,) demand per unit of the estimate.
        offset: (n_tasks,) demand besides.
        kind: (n_tasks,) which of the ``offers`` holds for the task.
    """

    slope: FloatArray
    offset: FloatArray
    kind: IntArray
    offers: tuple[Offers, ...]

    def shares(self, estimate: IntArray, tasks: slice) -> tuple[FloatArray, FloatArray]:
        """Return the share of queues and of slots that can take each task: (n_tasks, n_settings) each."""
        demand = estimate * self.slope[tasks][:, None] + self.offset[tasks][:, None]
        return self.of_demand(demand, tasks)

    def of_demand(
        self, demand: FloatArray, tasks: slice = slice(None)
    ) -> tuple[FloatArray, FloatArray]:
        """Return the same for what each task asks of a queue, (n_tasks, ...)."""
        queues, slots = np.ones_like(demand), np.ones_like(demand)
        kinds = self.kind[tasks]
        for kind in np.unique(kinds):  # one per distinct base time; one in all for memory and disk
            rows = kinds == kind
            queues[rows], slots[rows] = self.offers[kind].shares(demand[rows])
        return queues, slots


def reach_of(
    task: pl.Series, line: Line, queues: pl.DataFrame, slots: pl.DataFrame, parameter: Parameter
) -> Reach:
    """Describe what the typical job of each task, the median over its scored jobs, asks of a queue."""
    sizes = queues.select("panda_queue").join(
        slots, left_on="panda_queue", right_on="computingsite", how="left", maintain_order="left"
    )
    weights = sizes["coreh"].fill_null(0.0).to_numpy()
    demand = (
        pl.DataFrame({"task": task, "a": line.demand, "b": line.demand_besides, "c": line.base_s})
        .group_by("task")
        .agg(pl.col("a", "b").median(), pl.col("c").first())
        .sort("task")
    )
    base, kind = np.unique(demand["c"].to_numpy(), return_inverse=True)
    return Reach(
        slope=demand["a"].to_numpy(),
        offset=demand["b"].to_numpy(),
        kind=np.asarray(kind, dtype=np.int64),
        offers=tuple(Offers.of(offered(queues, parameter, float(b)), weights) for b in base),
    )


def offered(queues: pl.DataFrame, parameter: Parameter, base_s: float = 0.0) -> FloatArray:
    """Return what each queue can give, in the unit of the demand; infinite without a limit."""
    value = parameter.offered.cast(pl.Float64).fill_null(float("inf"))
    known = columns_of(queues, QUEUE_COLUMNS).with_columns(base_s=pl.lit(base_s))
    return known.select(offered=value)["offered"].to_numpy()


def slots_by_queue(quantities: pl.DataFrame) -> pl.DataFrame:
    """Sum the core-hours seen at each queue, whoever used them: the size of a queue as the archive knows it."""
    coreh = pl.col("cores") * pl.col("duration_s") / HOUR_S
    known = quantities.filter(pl.col("computingsite").is_not_null())
    return total([known.select("computingsite", coreh=coreh.fill_null(0.0))])


def total(slots: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Add up core-hours by ``computingsite``, in one order: the same bits whatever order, threads or engine rows came from."""
    rows = pl.concat(slots).sort("computingsite", "coreh")
    return rows.group_by("computingsite", maintain_order=True).agg(pl.col("coreh").sum())


# --- what attempts come to --------------------------------------------------------------------------------------------


KEY_BITS = 40  # of a need; leaves 23 bits for the number of a task in one int64 key
NEVER = 2**KEY_BITS - 1  # above every estimate, larger ones are cut
COUNT, SLOPE, OFFSET, USED, COREH = range(5)
CELLS = 300_000  # tasks x settings at a time: about 100 MB


def _least(wanted: FloatArray, line: Line, factor: float) -> IntArray:
    """Return the smallest whole estimate of which the request, times a factor, is enough.

    The solution in reals is off by rounding only: one step down and one up settle it.
    """

    def enough(x: FloatArray) -> Any:
        return line.asked(x) * factor >= wanted

    with np.errstate(divide="ignore", invalid="ignore"):  # a slope of 0: no estimate is enough
        about = (wanted / factor - line.offset) / line.slope
        x = np.clip(np.ceil(np.nan_to_num(about, nan=0.0, posinf=NEVER)), 0, NEVER)
        x = np.where((x > 0) & enough(x - 1), x - 1, x)
        x = np.where(~enough(x), x + 1, x)
    return np.asarray(np.clip(x, 0, NEVER), dtype=np.int64)


def _wanted(line: Line, jobs: pl.DataFrame) -> FloatArray:
    """Return what jobs must be given: a limit is cut to whole MB, s or bytes; who was killed at it needs one more."""
    return np.asarray(np.ceil(line.used) + jobs["censored"].to_numpy())


class Ledger:
    """Running sums of the jobs' amounts, in the order of their need, one ordering per attempt."""

    def __init__(
        self, jobs: pl.DataFrame, line: Line, parameter: Parameter, made: Assumptions, n_tasks: int
    ) -> None:
        """Solve the request of every job for the estimate, and sort.

        A retry gets the stated multiple of the first request. Amounts reserved are taken before truncation, at most 1 MB or
        1 s per job above.
        """
        self.factors = (1.0, *made.retry_factors)
        if not all(a < b < np.inf for a, b in pairwise(self.factors)):
            raise ConfigError(
                f"retry_factors={made.retry_factors}: allowed are rising factors above 1"
            )
        self.killed_at_limit = parameter.killed_at_limit
        self.killed_share = 1.0 if self.killed_at_limit else made.killed_after
        task, coreh = jobs["task"].to_numpy(), jobs["coreh"].to_numpy()
        self.n_jobs: IntArray = np.bincount(task, minlength=n_tasks).astype(np.int64)
        self.start = np.concatenate(([0], np.cumsum(self.n_jobs)))
        reserved = (line.slope * line.amount, line.offset * line.amount, line.used * line.amount)
        amounts = np.column_stack([np.ones(task.size), *reserved, coreh])
        self.keys: list[IntArray] = []
        self.sums: list[FloatArray] = []
        wanted = _wanted(line, jobs)
        for factor in self.factors:
            key = (task << KEY_BITS) + _least(wanted, line, factor)
            order = np.argsort(key, kind="stable")
            self.keys.append(key[order])
            zero = np.zeros((1, amounts.shape[1]))
            self.sums.append(np.concatenate([zero, np.cumsum(amounts[order], axis=0)]))
        self.totals: FloatArray = np.diff(self.sums[0][self.start], axis=0)
        used = line.used_at_least
        self.headroom_slope = np.bincount(task, line.slope / used, minlength=n_tasks)
        self.headroom_offset = np.bincount(task, line.offset / used - 1, minlength=n_tasks)

    @property
    def coreh(self) -> FloatArray:
        """Core-hours of one complete run of every scored job, (n_tasks,)."""
        return np.asarray(self.totals[:, COREH])

    def outcomes(self, estimate: IntArray, tasks: slice) -> dict[str, FloatArray]:
        """Return what (n_tasks_in_slice, n_settings) whole estimates would have done, sums over the jobs of each task.

        Arrays of the same shape: ``n_exceed`` (jobs whose first attempt is killed), ``n_lost`` (killed in
        every attempt), ``used`` (by the jobs that finish in some attempt), ``over`` (reserved and not used by that
        attempt), ``waste`` (reserved by killed attempts; reserved in all is the sum of the three) [amount unit],
        ``killed_coreh`` (of killed attempts), ``headroom`` (first request / use - 1, of all jobs).
        """
        numbers = np.arange(self.n_jobs.size)[tasks]
        x = estimate.astype(np.float64)
        totals = self.totals[tasks][:, None, :]
        served = np.zeros((*x.shape, totals.shape[2]))  # of the jobs done before this attempt
        over, waste, killed = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
        exceed: list[FloatArray] = []
        for attempt, factor in enumerate(self.factors):
            done = self._done(attempt, estimate, numbers)
            gain = done - served
            over += factor * _reserved(x, gain) - gain[..., USED]
            left = totals - done
            lost = factor * _reserved(x, left) * self.killed_share
            waste += lost
            killed += lost if self.killed_at_limit else left[..., COREH] * self.killed_share
            exceed.append(left[..., COUNT])
            served = done
        slope, offset = self.headroom_slope[tasks], self.headroom_offset[tasks]
        return {
            "n_exceed": exceed[0],
            "n_lost": exceed[-1],
            "used": served[..., USED],
            "over": over,
            "waste": waste,
            "killed_coreh": killed,
            "headroom": x * slope[:, None] + offset[:, None],
        }

    def _done(self, attempt: int, estimate: IntArray, numbers: IntArray) -> FloatArray:
        """Sum the amounts of the jobs that an attempt serves: those with need <= x."""
        key = (numbers[:, None] << KEY_BITS) + np.clip(estimate, 0, NEVER - 1)
        at = np.searchsorted(self.keys[attempt], key.ravel(), side="right").reshape(key.shape)
        sums = self.sums[attempt]
        return np.asarray(sums[at] - sums[self.start[numbers]][:, None, :])


def _reserved(x: FloatArray, amounts: FloatArray) -> FloatArray:
    """Return the amount reserved for one attempt of the given jobs at the first factor."""
    return np.asarray(x * amounts[..., SLOPE] + amounts[..., OFFSET])


@dataclass(frozen=True)
class Replay:
    """The scored jobs of some tasks of a back-test, which may be none.

    `line` is what they ask for, `ledger` what an estimate would have done, `reach` which queues can take a task (None: queues
    are not known); ``tasks, scouts, gap, counts`` are those of a `Sample`, ``jobs`` has ``pandaid, task, censored, coreh`` of its
    scored jobs, ``sites`` their queues.
    """

    tasks: pl.DataFrame
    scouts: SortedGroups
    jobs: pl.DataFrame
    line: Line
    ledger: Ledger
    reach: Reach | None
    parameter: Parameter
    rules: ScoutRules
    gap: pl.DataFrame
    counts: dict[str, int]
    sites: set[str]

    @classmethod
    def of(
        cls,
        sample: Sample,
        queues: pl.DataFrame,
        slots: pl.DataFrame,
        parameter: Parameter,
        made: Assumptions,
    ) -> Replay:
        """Sort the jobs of a sample once; ``slots`` of `slots_by_queue`."""
        scored, line = sample.scored, parameter.line(sample.scored, made)
        coreh = column(scored, "cores") * column(scored, "duration_s") / HOUR_S
        jobs = scored.select("pandaid", "task", "censored", coreh=pl.Series(coreh))
        reach = None
        if queues.height:
            reach = reach_of(jobs["task"], line, queues, slots, parameter)
        return cls(
            tasks=sample.tasks,
            scouts=sample.values,
            jobs=jobs,
            line=line,
            ledger=Ledger(jobs, line, parameter, made, sample.tasks.height),
            reach=reach,
            parameter=parameter,
            rules=made.rules,
            gap=sample.gap,
            counts=sample.counts,
            sites=set(scored["computingsite"].drop_nulls()),
        )

    def estimates(self, settings: Sequence[Setting], tasks: slice = slice(None)) -> IntArray:
        """Return what every task is told under every setting, as the whole number that is written: (n_tasks, n_settings).

        MB (ramcount; per core if the task's unit is), mHS06 s per event (cputime), kB per event or per MB (outdiskcount). Tasks
        without scouts: 0.
        """
        scouts = SortedGroups(self.scouts.values, self.scouts.start[tasks], self.scouts.size[tasks])
        ranks = np.array([setting.rank for setting in settings], dtype=np.int64)
        margins = np.array([setting.margin_pct for setting in settings], dtype=np.int64)
        minima = np.array([-np.inf if s.minimum_mb is None else s.minimum_mb for s in settings])
        result = np.zeros((scouts.size.size, ranks.size), dtype=np.int64)
        for rank in np.unique(ranks):  # at most a hundred; tasks and the rest are vectorised
            at = np.flatnonzero(ranks == rank)
            values = self.parameter.estimate(scouts, int(rank), margins[at], minima[at], self.rules)
            result[:, at] = np.nan_to_num(values, nan=0.0).astype(np.int64)
        return result

    def cells(
        self, settings: Sequence[Setting], tasks: slice = slice(None)
    ) -> dict[str, FloatArray]:
        """Return every outcome of some tasks under all settings, (n_tasks, n_settings) each."""
        estimate = self.estimates(settings, tasks)
        queues = slots = np.full(estimate.shape, np.nan)
        if self.reach is not None:
            queues, slots = self.reach.shares(estimate, tasks)
        return {
            **self.ledger.outcomes(estimate, tasks),
            "estimate": estimate,
            "queues_share": queues,
            "slots_share": slots,
            "unreachable_coreh": (1 - slots) * self.ledger.coreh[tasks][:, None],
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
        """Return the cells and ``cost_coreh`` (of the loss), summed over the tasks.

        (n_settings,) each, as many tasks at a time as fit in memory; those of different tasks add up.
        """
        size = max(1, CELLS // len(settings))
        parts = []
        for first in range(0, max(self.tasks.height, 1), size):
            tasks = slice(first, first + size)
            cells = self.cells(settings, tasks)
            cells["cost_coreh"] = _cost(cells, weights)
            parts.append({name: values.sum(axis=0) for name, values in cells.items()})
        return {name: np.asarray(sum(part[name] for part in parts)) for name in parts[0]}

    def by_task(self, settings: Sequence[Setting], weights: LossWeights) -> pl.DataFrame:
        """Return one row per (task, setting); see ``Backtest.under``."""
        n, height = len(settings), self.tasks.height
        cells = {name: values.ravel() for name, values in self.cells(settings).items()}
        columns = frame_of(settings)[np.tile(np.arange(n), height)]
        return (
            self._rows(np.repeat(np.arange(height), n), cells, weights)
            .with_columns(*columns, estimate=pl.Series(cells["estimate"]))
            .sort("jeditaskid", *Setting._fields)
        )

    def requests(self, setting: Setting) -> FloatArray:
        """Return what each job would ask for under a setting [MB, s or bytes], not yet truncated."""
        estimate = self.estimates([setting])[:, 0]
        return self.line.asked(estimate[self.jobs["task"].to_numpy()].astype(np.float64))

    def by_allocation(self, allocated: FloatArray, weights: LossWeights) -> pl.DataFrame:
        """Return one row per task, sorted, with each job given what is stated; columns of `by_task` that are of no setting.

        A killed job is tried again with the stated multiples of its allocation, as under a setting. What slots cannot take is
        that of the typical job of a task. ``allocated`` is in the order of ``jobs``, finite [MB or s].
        """
        task, n = self.jobs["task"].to_numpy(), self.tasks.height
        cells: dict[str, FloatArray] = {
            name: np.bincount(task, values, minlength=n).astype(np.float64)
            for name, values in self._attempts(allocated).items()
        }
        cells["queues_share"] = cells["slots_share"] = np.full(n, np.nan)
        if self.reach is not None:
            line = self.line
            asked = (allocated - line.offset) * (line.demand / line.slope) + line.demand_besides
            # the quotient is off by rounding: what just fits shall fit
            jobs = pl.DataFrame({"task": task, "demand": np.round(asked, 6)})
            demand = jobs.group_by("task").agg(pl.col("demand").median()).sort("task")["demand"]
            cells["queues_share"], cells["slots_share"] = self.reach.of_demand(demand.to_numpy())
        cells["unreachable_coreh"] = (1 - cells["slots_share"]) * self.ledger.coreh
        return self._rows(np.arange(n), cells, weights)

    def _attempts(self, allocated: FloatArray) -> dict[str, FloatArray]:
        """Return what each job's attempts come to."""
        line, ledger, coreh = self.line, self.ledger, self.jobs["coreh"].to_numpy()
        used = line.used * line.amount
        wanted = _wanted(line, self.jobs)
        failing = np.ones(allocated.size, dtype=bool)
        out = {name: np.zeros(allocated.size) for name in ("used", "over", "waste", "killed_coreh")}
        for factor in ledger.factors:
            given = allocated * factor
            served, lost = failing & (given >= wanted), failing & (given < wanted)
            reserved = given * line.amount
            burnt = reserved if ledger.killed_at_limit else coreh * ledger.killed_share
            out["used"] += np.where(served, used, 0.0)
            out["over"] += np.where(served, reserved - used, 0.0)
            out["waste"] += np.where(lost, reserved * ledger.killed_share, 0.0)
            out["killed_coreh"] += np.where(lost, burnt, 0.0)
            failing = lost
            out.setdefault("n_exceed", lost.astype(np.float64))
        headroom = allocated / line.used_at_least - 1
        return {**out, "n_lost": failing.astype(np.float64), "headroom": headroom}

    def _rows(
        self, places: IntArray, cells: Mapping[str, FloatArray], weights: LossWeights
    ) -> pl.DataFrame:
        """Lay outcomes out as rows of tasks, those of ``Backtest.under`` that are not of a setting."""
        jobs, work = self.ledger.n_jobs[places], self.ledger.coreh[places]
        return (
            self.tasks[places]
            .drop("task")
            .with_columns(
                **outcome_columns(cells, jobs, work, self.parameter),
                unreachable_coreh=pl.Series(cells["unreachable_coreh"], nan_to_null=True),
                cost_coreh=_cost(cells, weights),
            )
        )


def frame_of(settings: Sequence[Setting]) -> pl.DataFrame:
    """Return settings as ``rank, margin_pct, minimum_mb``."""
    schema = dict.fromkeys(Setting._fields, pl.Int64)
    return pl.DataFrame([tuple(each) for each in settings], schema=schema, orient="row")


def outcome_columns(
    cells: Mapping[str, FloatArray], jobs: Any, work: Any, parameter: Parameter
) -> dict[str, Any]:
    """Return outcomes of so many scored jobs, with so much work [core h], as columns; reserved is the sum of its parts."""
    amounts = {name: cells[name] for name in ("used", "over", "waste")}
    amounts["reserved"] = amounts["used"] + amounts["over"] + amounts["waste"]
    return {
        **{name: cells[name].astype(np.int64) for name in ("n_exceed", "n_lost")},
        "exceed_rate": cells["n_exceed"] / jobs,
        **{f"{name}_{parameter.amount}": amount for name, amount in amounts.items()},
        "killed_coreh": cells["killed_coreh"],
        "work_coreh": work,
        "headroom_mean": cells["headroom"] / jobs,
        "queues_share": pl.Series(cells["queues_share"], nan_to_null=True),
        "slots_share": pl.Series(cells["slots_share"], nan_to_null=True),
    }


def _cost(parts: Mapping[str, FloatArray], weights: LossWeights) -> FloatArray:
    """Return the weighted sum of the parts of the loss; what is not known costs nothing."""
    return np.asarray(sum(w * np.nan_to_num(parts[n]) for n, w in weights.to_dict().items()))
