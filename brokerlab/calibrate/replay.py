"""One history made ready to be replayed under any setting: estimate, search, reach, task by task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import polars as pl

from brokerlab.calibrate.assumptions import Assumptions
from brokerlab.calibrate.estimates import Estimator
from brokerlab.calibrate.judge import Outcomes, capped_weights
from brokerlab.calibrate.loss import COMPONENTS, LossWeights
from brokerlab.calibrate.moments import Moments
from brokerlab.calibrate.needs import needs_of
from brokerlab.calibrate.outcomes import Ledger
from brokerlab.calibrate.parameters import Parameter
from brokerlab.calibrate.reach import Reach, reach_of
from brokerlab.calibrate.sample import Sample
from brokerlab.carry import Chunks
from brokerlab.errors import InsufficientDataError
from brokerlab.numerics import FloatArray, IntArray

CELLS = 300_000  # tasks x settings at a time: about 100 MB
R = TypeVar("R")

Setting = tuple[int, int]
"""Percentile rank and margin [%]."""


def columns_of(settings: Sequence[Setting]) -> tuple[IntArray, IntArray]:
    """Split settings into ranks and margins."""
    pairs = np.array(settings, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


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
        queues: pl.DataFrame | None,
        slots: pl.DataFrame,
        parameter: Parameter,
        made: Assumptions,
    ) -> Replay:
        """Solve and sort the needs once; ``slots`` of `slots_by_queue`."""
        needs = needs_of(sample.scored, parameter.name, made)
        reach = None
        if queues is not None and queues.height:
            reach = reach_of(
                sample.scored,
                queues,
                slots,
                parameter.name,
                compensation=made.compensation,
                default_efficiency_pct=made.rules.default_cpu_efficiency,
            )
        return cls(
            tasks=sample.tasks,
            estimator=Estimator(
                parameter.name, sample.values, made.rules, made.rule, made.ram_min_mb
            ),
            ledger=Ledger(needs, sample.tasks.height, killed_after=made.killed_after),
            reach=reach,
            parameter=parameter,
        )

    def under(self, minimum: int | None) -> Replay:
        """Return the same tasks under another SCOUT_RAMCOUNT_MIN [MB]; None: no minimum."""
        return replace(self, estimator=replace(self.estimator, ram_min_mb=minimum))

    def cells(self, ranks: IntArray, margins: IntArray, tasks: slice) -> dict[str, FloatArray]:
        """Return every outcome of a chunk of tasks under all settings, (n_tasks, n_settings) each."""
        estimate = self.estimator.grid(ranks, margins, tasks)
        outcome = self.ledger.outcomes(estimate, tasks)
        cells = {f.name: getattr(outcome, f.name) for f in fields(outcome)}
        if self.reach is None:
            queues = slots = np.full(estimate.shape, np.nan)
        else:
            queues, slots = self.reach.shares(estimate, tasks)
        work = self.ledger.coreh[tasks][:, None]
        fallback = self.estimator.falls_back(ranks, tasks)
        return {
            **cells,
            "estimate": estimate,
            "queues_share": queues,
            "slots_share": slots,
            "unreachable_coreh": (1 - slots) * work,
            "n_fallback": fallback.astype(np.float64),
        }

    def of_judge(self, settings: Sequence[Setting], weights: LossWeights) -> dict[str, FloatArray]:
        """Return what the judge looks at, (n_tasks, n_settings) each; see ``Replays.outcomes``."""
        cells = self.cells(*columns_of(settings), slice(0, self.tasks.height))
        with np.errstate(all="ignore"):  # tasks without work are left out by the caller
            work = self.ledger.coreh[:, None]
            parts = {name: np.nan_to_num(cells[name]) / work for name in COMPONENTS}
        loss = np.asarray(sum(w * parts[name] for name, w in weights.to_dict().items()))
        return {
            "loss": loss,
            "exceed_rate": cells["n_exceed"] / self.ledger.n_jobs[:, None],
            **parts,
        }

    def moments(self, settings: Sequence[Setting], current: int) -> Moments:
        """Return the sums over the tasks, for every setting; as many tasks at a time as fit in memory."""
        ranks, margins = columns_of(settings)
        found, size = Moments(len(settings), current), max(1, CELLS // len(settings))
        for first in range(0, self.tasks.height, size):
            some = slice(first, min(first + size, self.tasks.height))
            cells = self.cells(ranks, margins, some)
            found.add(cells, self.ledger.n_jobs[some], self.ledger.coreh[some])
        return found

    def by_task(self, settings: Sequence[Setting], weights: LossWeights) -> pl.DataFrame:
        """Return one row per (task, setting); see ``Backtest.by_task``."""
        ranks, margins = columns_of(settings)
        tasks = self.tasks
        cells = self.cells(ranks, margins, slice(0, tasks.height))
        n = len(settings)
        flat = {name: values.ravel() for name, values in cells.items()}
        amount = self.parameter.amount
        w = weights.to_dict()
        parts = np.stack([w[name] * np.nan_to_num(flat[name]) for name in COMPONENTS])
        repeated = tasks.drop("task")[np.repeat(np.arange(tasks.height), n)]
        reserved = flat["used"] + flat["over"] + flat["waste"]
        jobs = np.repeat(self.ledger.n_jobs, n)
        return repeated.with_columns(
            rank=pl.Series(np.tile(ranks, tasks.height)),
            margin_pct=pl.Series(np.tile(margins, tasks.height)),
            estimate=pl.Series(flat["estimate"]),
            n_exceed=pl.Series(flat["n_exceed"].astype(np.int64)),
            n_lost=pl.Series(flat["n_lost"].astype(np.int64)),
            exceed_rate=pl.Series(flat["n_exceed"] / jobs),
            **{f"used_{amount}": pl.Series(flat["used"])},
            **{f"over_{amount}": pl.Series(flat["over"])},
            **{f"waste_{amount}": pl.Series(flat["waste"])},
            **{f"reserved_{amount}": pl.Series(reserved)},
            killed_coreh=pl.Series(flat["killed_coreh"]),
            work_coreh=pl.Series(np.repeat(self.ledger.coreh, n)),
            headroom_mean=pl.Series(flat["headroom"] / jobs),
            queues_share=pl.Series(flat["queues_share"]).fill_nan(None),
            slots_share=pl.Series(flat["slots_share"]).fill_nan(None),
            unreachable_coreh=pl.Series(flat["unreachable_coreh"]).fill_nan(None),
            cost_coreh=pl.Series(parts.sum(axis=0)),
            fallback=pl.Series(flat["n_fallback"] > 0),
        ).sort("jeditaskid", "rank", "margin_pct")


class Part(NamedTuple):
    """A chunk of tasks, ready to be replayed; without a replay where none of them can be scored."""

    replay: Replay | None
    counts: dict[str, int]
    gap: pl.DataFrame
    sites: set[str]


@dataclass(frozen=True)
class Replays:
    """All tasks of a back-test, chunk by chunk, ready for any setting.

    Attributes:
        parts: The chunks.
        minimum: Another SCOUT_RAMCOUNT_MIN than that of the assumptions [MB]; None: no minimum; empty: theirs.
    """

    parts: Chunks[Part]
    minimum: tuple[int | None, ...] = ()

    def under(self, minimum: int | None) -> Replays:
        """Return the same tasks under another SCOUT_RAMCOUNT_MIN [MB]; None: no minimum."""
        return replace(self, minimum=(minimum,))

    def each(self, function: Callable[[Replay], R]) -> list[R]:
        """Return what a function makes of each chunk with tasks, in order."""
        minimum = self.minimum

        def of(part: Part) -> R | None:
            if part.replay is None:
                return None
            return function(part.replay.under(*minimum) if minimum else part.replay)

        return [made for made in self.parts.map(of) if made is not None]

    @cached_property
    def works(self) -> pl.DataFrame:
        """Core-hours of work of each task: ``jeditaskid, work``, in the order of the chunks."""
        return pl.concat(
            self.each(
                lambda r: r.tasks.select("jeditaskid", work=pl.lit(pl.Series(r.ledger.coreh)))
            )
        )

    def by_task(self, settings: Sequence[Setting], weights: LossWeights) -> pl.DataFrame:
        """Return one row per (task, setting); see ``Backtest.by_task``."""
        rows = pl.concat(self.each(lambda replay: replay.by_task(settings, weights)))
        return rows.sort("jeditaskid", "rank", "margin_pct")

    def outcomes(
        self,
        settings: Sequence[Setting],
        current: Setting,
        weights: LossWeights,
        created: pl.DataFrame,
    ) -> Outcomes:
        """Return what the judge looks at: tasks in the order of time, under any setting.

        A task's ``loss`` is its cost per core-hour of its own work, ``exceed_rate`` the share of its scored jobs whose
        first attempt is killed; the parts of the loss are given per core-hour of work, without their weights. A task's
        weight are its core-hours, capped at those of the median task.

        Args:
            settings: The grid.
            current: One of them.
            weights: Of the loss.
            created: ``jeditaskid, created_at`` (UTC); tasks without a time, or without work, are left out.
        """
        tasks = (
            self.works.with_row_index("place")
            .join(created.select("jeditaskid", time="created_at"), on="jeditaskid", how="left")
            .filter(pl.col("time").is_not_null() & (pl.col("work") > 0))
            .sort("time", "jeditaskid")
        )
        if tasks.is_empty():
            raise InsufficientDataError("no task with work has a creation time")
        place, work = tasks["place"].to_numpy(), tasks["work"].to_numpy()

        def values(places: Sequence[int]) -> dict[str, FloatArray]:
            some = [settings[each] for each in places]
            found = self.each(lambda replay: replay.of_judge(some, weights))
            return {name: np.concatenate([f[name] for f in found])[place] for name in found[0]}

        return Outcomes(
            units=tasks.select(unit="jeditaskid", time="time", weight=capped_weights(work)),
            settings=tuple(settings),
            current=list(settings).index(current),
            values=values,
        )
