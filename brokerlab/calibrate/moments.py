"""Sums over tasks that the grid streams through: enough for every rate, loss and interval of every setting."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
import polars as pl

from brokerlab.calibrate.loss import COMPONENTS, LossWeights
from brokerlab.errors import InsufficientDataError
from brokerlab.intervals import ShareSums, ratio_variance, t_factor
from brokerlab.numerics import FloatArray, IntArray

SUMS = (
    *("n_exceed", "n_lost", "used", "over", "waste", "killed_coreh", "headroom"),
    *("queues_share", "slots_share", "unreachable_coreh", "task_rate", "task_rate2", "n_fallback"),
)


@dataclass
class Moments:
    """First and second moments over tasks, per setting; filled some tasks at a time, added over chunks.

    The loss is linear in its components, so the moments of the components give value and uncertainty of
    the loss under any weights, and of its paired difference to the current setting, without a second pass.

    Attributes:
        current: Place of the current setting.
        n_tasks: T.
        n_scored: Sum over tasks of scored jobs.
        work: Sum over tasks of core-hours of work D; ``work2`` its squares.
        sums: (n_sums, n_settings) in the order of ``SUMS``.
        exceeding: Sums of killed and scored jobs with their powers, for the exceed rate's interval.
        cross: (n_settings, 5, 5) sum of products of components; ``cross_work`` (n_settings, 5) with D.
        paired: (n_settings, 5, 5) the same of differences to the current setting; ``paired_work``.
    """

    n_settings: int
    current: int
    n_tasks: int = 0
    n_scored: float = 0.0
    work: float = 0.0
    work2: float = 0.0
    sums: FloatArray = field(init=False)
    exceeding: ShareSums | None = field(init=False, default=None)
    cross: FloatArray = field(init=False)
    cross_work: FloatArray = field(init=False)
    paired: FloatArray = field(init=False)
    paired_work: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        """Start every sum at 0."""
        n, k = self.n_settings, len(COMPONENTS)
        self.sums = np.zeros((len(SUMS), n))
        self.cross, self.cross_work = np.zeros((n, k, k)), np.zeros((n, k))
        self.paired, self.paired_work = np.zeros((n, k, k)), np.zeros((n, k))

    def add(self, cells: dict[str, FloatArray], n_scored: IntArray, work: FloatArray) -> None:
        """Add one chunk of tasks.

        Args:
            cells: (n_tasks, n_settings) arrays named as in ``SUMS`` (without the task rates).
            n_scored: (n_tasks,) scored jobs.
            work: (n_tasks,) core-hours of work.
        """
        n = n_scored.astype(np.float64)
        self.n_tasks += n.size
        self.n_scored += float(n.sum())
        self.work += float(work.sum())
        self.work2 += float((work**2).sum())
        rate = cells["n_exceed"] / n[:, None]
        everything = {**cells, "task_rate": rate, "task_rate2": rate**2}
        for row, name in enumerate(SUMS):
            self.sums[row] += everything[name].sum(axis=0)
        sums = ShareSums.of(cells["n_exceed"], n)
        self.exceeding = sums if self.exceeding is None else self.exceeding + sums
        parts = [np.nan_to_num(cells[name]) for name in COMPONENTS]
        _add_products(self.cross, self.cross_work, parts, work)
        differences = [part - part[:, [self.current]] for part in parts]
        _add_products(self.paired, self.paired_work, differences, work)

    def __add__(self, other: Moments) -> Moments:
        """Return the sums over the tasks of both."""
        added = Moments(self.n_settings, self.current)
        for each in fields(self)[2:]:
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if mine is None or theirs is None:
                setattr(added, each.name, theirs if mine is None else mine)
            else:
                setattr(added, each.name, mine + theirs)
        return added

    def total(self, name: str) -> FloatArray:
        """Return one of ``SUMS``, (n_settings,)."""
        return np.asarray(self.sums[SUMS.index(name)])

    def exceed(self, confidence: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the exceed rate over all scored jobs with its interval, (n_settings,) each.

        Raises:
            InsufficientDataError: No task was added.
        """
        if self.exceeding is None:
            raise InsufficientDataError("no task was scored: there is no exceed rate")
        return self.exceeding.interval(confidence)

    def loss(
        self, weights: LossWeights, confidence: float
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the loss, its half-width, its difference to the current setting and that half-width.

        The difference is paired by task: what both settings do alike does not blur it.

        Args:
            weights: Of the components.
            confidence: Two-sided.
        """
        w = np.array(list(weights.to_dict().values()))
        components = np.stack([np.nan_to_num(self.total(name)) for name in COMPONENTS], axis=1)
        loss = components @ w / self.work
        gain = loss - loss[self.current]
        factor = t_factor(self.n_tasks, confidence)
        widths = [
            factor
            * np.sqrt(
                ratio_variance(
                    w @ square @ w, mixed @ w, self.work2, self.work, value, self.n_tasks
                )
            )
            for square, mixed, value in (
                (self.cross, self.cross_work, loss),
                (self.paired, self.paired_work, gain),
            )
        ]
        return loss, widths[0], gain, np.where(np.arange(loss.size) == self.current, 0, widths[1])


def _add_products(
    square: FloatArray, mixed: FloatArray, parts: list[FloatArray], work: FloatArray
) -> None:
    """Add the sums over tasks of all products of two components, and of each with the work."""
    for i, left in enumerate(parts):
        mixed[:, i] += work @ left
        for j in range(i, len(parts)):
            product = np.einsum("ts,ts->s", left, parts[j])
            square[:, i, j] += product
            if j != i:
                square[:, j, i] += product


def by_setting(
    moments: Moments,
    ranks: IntArray,
    margins: IntArray,
    weights: LossWeights,
    *,
    amount: str,
    confidence: float,
) -> pl.DataFrame:
    """Lay the moments out as one row per setting; columns as in ``Backtest.by_setting``."""
    rate, low, high = moments.exceed(confidence)
    loss, width, gain, gain_width = moments.loss(weights, confidence)
    n_tasks = moments.n_tasks
    used, over, waste = (moments.total(name) for name in ("used", "over", "waste"))
    return pl.DataFrame(
        {
            "rank": ranks,
            "margin_pct": margins,
            "is_current": np.arange(ranks.size) == moments.current,
            "n_tasks": np.full(ranks.size, n_tasks),
            "n_scored": np.full(ranks.size, round(moments.n_scored)),
            "n_exceed": moments.total("n_exceed").astype(np.int64),
            "exceed_rate": rate,
            "exceed_lo": low,
            "exceed_hi": high,
            "exceed_rate_task_mean": moments.total("task_rate") / n_tasks,
            "n_lost": moments.total("n_lost").astype(np.int64),
            f"used_{amount}": used,
            f"over_{amount}": over,
            f"waste_{amount}": waste,
            f"reserved_{amount}": used + over + waste,
            "killed_coreh": moments.total("killed_coreh"),
            "work_coreh": np.full(ranks.size, moments.work),
            "headroom_mean": moments.total("headroom") / moments.n_scored,
            "queues_share": moments.total("queues_share") / n_tasks,
            "slots_share": moments.total("slots_share") / n_tasks,
            "loss": loss,
            "loss_lo": loss - width,
            "loss_hi": loss + width,
            "loss_diff": gain,
            "loss_diff_lo": gain - gain_width,
            "loss_diff_hi": gain + gain_width,
            "n_fallback": moments.total("n_fallback").astype(np.int64),
        }
    ).sort("rank", "margin_pct")
