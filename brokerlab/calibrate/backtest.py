"""Replay what every rank and margin would have told each task, and score it on the task's other jobs."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

import numpy as np
import polars as pl

from brokerlab.calibrate.assumptions import Assumptions
from brokerlab.calibrate.caveats import caveats_of
from brokerlab.calibrate.gap import gap_summary, scout_gap
from brokerlab.calibrate.judge import Outcomes
from brokerlab.calibrate.loss import LossWeights
from brokerlab.calibrate.moments import Moments, by_setting
from brokerlab.calibrate.parameters import Parameter, parameter_named
from brokerlab.calibrate.reach import slots_by_queue, total, unlimited
from brokerlab.calibrate.replay import Part, Replay, Replays, Setting, columns_of
from brokerlab.calibrate.sample import (
    History,
    JobHistory,
    check_columns,
    first_creation,
    history_of,
    nothing_left,
    sample_of,
    with_creation,
)
from brokerlab.calibrate.strata import by_stratum
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.numerics import IntArray

__all__ = ["Assumptions", "Backtest", "Setting", "backtest"]


@dataclass(frozen=True)
class Backtest:
    """What every setting would have done; frames sorted by their keys, shares between 0 and 1.

    Amount columns end in the parameter's unit: ``_gbh`` (ramcount), ``_coreh`` (cputime), ``_gb``
    (outdiskcount). ``reserved = used + over + waste``: used and over of the attempt that finished, waste
    of the attempts that were killed.

    Attributes:
        parameter: What was replayed.
        assumptions: What was taken for granted.
        weights: Of the loss columns.
        current: The setting compared with, (rank, margin_pct).
        by_setting: One row per (rank, margin_pct).
        by_task: One row per (jeditaskid, rank, margin_pct) for the settings asked in detail.
        by_stratum: One row per (stratum, level, rank, margin_pct), same settings.
        gap: Scouts against the rest, one row per task.
        gap_summary: The same over all tasks.
        counts: What was used and left out.
        caveats: What this cannot tell, in sentences.
        replay: What every other setting would have done, ready to be asked.
        created: ``jeditaskid, created_at`` (UTC; null: unknown) of the tasks.
        moments: Sums that give the loss under other weights.
    """

    parameter: Parameter
    assumptions: Assumptions
    weights: LossWeights
    current: Setting
    by_setting: pl.DataFrame
    by_task: pl.DataFrame
    by_stratum: pl.DataFrame
    gap: pl.DataFrame
    gap_summary: pl.DataFrame
    counts: dict[str, int]
    caveats: tuple[str, ...]
    replay: Replays = field(repr=False, compare=False)
    created: pl.DataFrame = field(repr=False, compare=False)
    moments: Moments = field(repr=False, compare=False)
    ranks: IntArray = field(repr=False, compare=False)
    margins: IntArray = field(repr=False, compare=False)

    @property
    def n_tasks(self) -> int:
        """Tasks scored."""
        return self.counts["n_tasks"]

    @property
    def settable(self) -> list[Setting]:
        """The settings of the grid that can be set: a margin that is fixed in the code stays as it is."""
        pairs = [(int(r), int(m)) for r, m in zip(self.ranks, self.margins, strict=True)]
        fixed = self.parameter.margin_key is None and self.parameter.rank_key is not None
        return [pair for pair in pairs if not fixed or pair[1] == self.current[1]]

    def outcomes(self) -> Outcomes:
        """Return what every setting that can be set led to, task by task, for the judge.

        Raises:
            InsufficientDataError: No task with work has a creation time.
        """
        return self.replay.outcomes(self.settable, self.current, self.weights, self.created)

    def weighed(self, weights: LossWeights) -> pl.DataFrame:
        """Return ``by_setting`` with the loss columns under other weights."""
        return by_setting(
            self.moments,
            self.ranks,
            self.margins,
            weights,
            amount=self.parameter.amount,
            confidence=self.assumptions.confidence,
        )

    def setting(self, rank: int, margin_pct: int) -> dict[str, Any]:
        """Return the row of one setting.

        Raises:
            ConfigError: It is not in the grid.
        """
        row = self.by_setting.filter(
            (pl.col("rank") == rank) & (pl.col("margin_pct") == margin_pct)
        )
        if row.is_empty():
            raise ConfigError(
                f"setting ({rank}, {margin_pct}) is not in the grid of this back-test"
            )
        return row.row(0, named=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the facts that are not tables."""
        return {
            "parameter": self.parameter.name,
            "assumptions": self.assumptions.to_dict(),
            "weights": self.weights.to_dict(),
            "weights_why": dict(self.weights.why(self.parameter.name)),
            "current": list(self.current),
            "counts": dict(self.counts),
            "caveats": list(self.caveats),
        }


def backtest(
    quantities: pl.DataFrame | History,
    tasks: pl.DataFrame,
    queues: pl.DataFrame | None = None,
    jobs: Any | None = None,
    *,
    parameter: str = "ramcount",
    ranks: Iterable[int] = range(50, 100),
    margins: Iterable[int] | None = None,
    current: Setting | None = None,
    detail: Sequence[Setting] = (),
    loss: LossWeights | None = None,
    assumptions: Assumptions | None = None,
    synthetic: bool = False,
) -> Backtest:
    """Replay a grid of ranks and margins over the history of many tasks.

    Each task's estimate comes from the scouts it really had (or, unmarked, would have had) at the first
    trigger, and is scored on its other jobs.

    Args:
        quantities: Of ``scouts.job_quantities``: finished jobs, or a history of them by chunk. Those of other tasks are not looked at, not
            even for the size of queues: a choice must not know of a later period.
        tasks: ``jeditaskid, baseramcount`` [MB]``, basewalltime`` [s]``, cpuefficiency`` [%]``,
            processingtype, gshare, cputimeunit``; tasks not in it are not scored. Null: 0, 0, the rule
            set's default, no level.
        queues: ``panda_queue, corecount, maxrss, memory, maxtime, corepower, maxwdir``; None: shares of
            queues and slots are null and cost nothing.
        jobs: The jobs table in any engine, for failed jobs and merge jobs; None: not known. A history has its own.
        parameter: ``ramcount``, ``cputime`` or ``outdiskcount``.
        ranks: Percentile ranks of the grid, whole numbers 0..100.
        margins: Margins of the grid [%]; None: those of the parameter.
        current: Setting to compare with; None: the deployed one. Added to the grid if absent.
        detail: Settings to keep task by task, besides the current one with and without its margin.
        loss: Weights; None: the parameter's defaults.
        assumptions: None: the defaults.
        synthetic: The archive was generated (for the caveats).

    Returns:
        A :class:`Backtest`.

    Raises:
        SchemaError: Columns missing.
        ConfigError: Impossible grid, parameter or setting.
        InsufficientDataError: No task can be scored.

    Source: scouts.md sections 4, 5, 7; design.md, idea 6.
    """
    chosen = parameter_named(parameter)
    made = assumptions or Assumptions()
    weights = loss or LossWeights.default(parameter)
    now = current or (chosen.rank, chosen.margin_pct)
    grid = _grid(ranks, chosen.margins if margins is None else margins, (now, *detail), chosen)
    history = history_of(quantities, jobs)
    slots = pl.concat(history.map(partial(_slots, tasks=tasks, parameter=parameter)))
    prepared = partial(
        _prepared, tasks=tasks, queues=queues, slots=total(slots), parameter=chosen, made=made
    )
    replay = Replays(history.keep(prepared))
    found = replay.parts.map(lambda part: (part.counts, part.gap, part.sites))
    counts = _added([each[0] for each in found])
    if not counts["n_tasks"]:
        raise InsufficientDataError(
            nothing_left(parameter, counts, made.min_scored, made.min_scouts)
        )
    place = grid.index(now)
    moments = reduce(operator.add, replay.each(lambda part: part.moments(grid, place)))
    all_ranks, all_margins = columns_of(grid)
    kept = sorted({now, (now[0], 0), *detail})
    by_task = replay.by_task(kept, weights)
    gap = pl.concat([each[1] for each in found]).sort("jeditaskid")
    summary = gap_summary(gap, confidence=made.confidence)
    here = (pl.col("rank") == now[0]) & (pl.col("margin_pct") == now[1])
    counts = {
        **counts,
        **_queue_counts(queues, parameter, set().union(*(each[2] for each in found))),
        "n_zero_estimates": by_task.filter(here & (pl.col("estimate") == 0)).height,
    }
    n_fallback = int(moments.total("n_fallback")[moments.current])
    return Backtest(
        parameter=chosen,
        assumptions=made,
        weights=weights,
        current=now,
        by_setting=by_setting(
            moments,
            all_ranks,
            all_margins,
            weights,
            amount=chosen.amount,
            confidence=made.confidence,
        ),
        by_task=by_task,
        by_stratum=by_stratum(by_task, amount=chosen.amount, confidence=made.confidence),
        gap=gap,
        gap_summary=summary,
        counts=counts,
        caveats=caveats_of(
            counts,
            chosen,
            killed_as=made.killed_as,
            gap_ratio=summary["ratio"][0],
            n_fallback=n_fallback,
            synthetic=synthetic,
        ),
        replay=replay,
        created=with_creation(tasks.unique("jeditaskid"), first_creation(history)).select(
            "jeditaskid", "created_at"
        ),
        moments=moments,
        ranks=all_ranks,
        margins=all_margins,
    )


def _grid(
    ranks: Iterable[int], margins: Iterable[int], more: Sequence[Setting], parameter: Parameter
) -> list[Setting]:
    """Return the settings in order, the current one and those asked in detail among them."""
    all_ranks, all_margins = sorted(set(ranks)), sorted(set(margins))
    problems = [
        f"rank {r}: allowed are whole numbers 0 to 100" for r in all_ranks if not _whole(r, 100)
    ]
    problems += [
        f"margin {m}: allowed are whole numbers 0 to 1000"
        for m in all_margins
        if not _whole(m, 1000)
    ]
    if not all_ranks or not all_margins:
        problems.append("ranks and margins must not be empty")
    if parameter.name == "outdiskcount" and any((*all_margins, *(m for _, m in more))):
        problems.append("outdiskcount has no margin: leave margins out or give 0")
    if problems:
        raise ConfigError("back-test grid: " + "; ".join(problems[:5]))
    return sorted({(r, m) for r in all_ranks for m in all_margins} | set(more))


def _whole(value: object, top: int) -> bool:
    """Tell whether a value is a whole number from 0 to top."""
    return isinstance(value, int | np.integer) and bool(0 <= value <= top)


def _slots(history: JobHistory, tasks: pl.DataFrame, parameter: str) -> pl.DataFrame:
    """Sum the core-hours of a chunk by queue, once its columns are known to be there."""
    check_columns(history.quantities, tasks, parameter)
    return slots_by_queue(history.quantities.join(tasks, on="jeditaskid", how="semi"))


def _prepared(
    history: JobHistory,
    tasks: pl.DataFrame,
    queues: pl.DataFrame | None,
    slots: pl.DataFrame,
    parameter: Parameter,
    made: Assumptions,
) -> Part:
    """Make a chunk of tasks ready to be replayed."""
    sample = sample_of(history.quantities, tasks, history.jobs, parameter.name, made)
    return Part(
        replay=Replay.of(sample, queues, slots, parameter, made) if sample.tasks.height else None,
        counts=sample.counts,
        gap=scout_gap(sample.jobs, confidence=made.confidence),
        sites=set(sample.scored["computingsite"].drop_nulls().unique()),
    )


def _added(counts: Sequence[dict[str, int]]) -> dict[str, int]:
    """Add counts over chunks; what is the same for all of them is not added."""
    same = ("n_tasks_given", "failures_known")
    return {
        name: value if name in same else sum(each[name] for each in counts)
        for name, value in counts[0].items()
    }


def _queue_counts(queues: pl.DataFrame | None, parameter: str, seen: set[str]) -> dict[str, int]:
    """Count queues, those without a limit, and those of the jobs that the table lacks."""
    if queues is None or queues.is_empty():
        return {"n_queues": 0, "n_unlimited": 0, "n_unknown_queues": 0}
    return {
        "n_queues": queues.height,
        "n_unlimited": unlimited(queues, parameter),
        "n_unknown_queues": len(seen - set(queues["panda_queue"])),
    }
