"""Estimate what jobs use from several views of the earlier jobs of their task, mixed by how well each foresaw what came."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl

from brokerlab.compiled import compiled
from brokerlab.errors import ConfigError
from brokerlab.estimators.estimator import Ordered, Predicted
from brokerlab.estimators.likejobs import MEDIAN, LikeJobs
from brokerlab.estimators.records import Quantity, checked
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.units import MB

LOG_LINE, LEVEL_LINE, TAGS = 0, 1, 2
NEAR_LEAST = 8  # runs that a neighbourhood has at least
NARROWEST = 0.0004  # relative width below which no two runs are told apart
ROBUST = 0.676  # (E sqrt|z|)^2 of a standard normal z
REACH = 8.0  # widths of a kernel that are added up
LOST = 0.02  # of a run that no view foresaw


FEWEST = 3  # finished jobs of a task below which like jobs of all tasks are asked instead


class Views(Ordered):
    """Estimate memory or walltime per task by the mixture of views of its earlier jobs: see `Mixture`.

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
        self._walk(frame, np.arange(frame.height), ())
        return self

    def bound_events(
        self, frame: pl.DataFrame, events: IntArray, levels: tuple[float, ...]
    ) -> Predicted:
        """Put what the views tell in the place of what all tasks say, where enough was seen."""
        plain = self.population.bound_events(frame, events, levels)
        quantiles = self._walk(frame, events, (MEDIAN, *levels))
        bounds = np.column_stack([plain.point, plain.bounds])
        result = np.where(np.isnan(quantiles), bounds, quantiles)
        result[:, 1:] = np.maximum.accumulate(result[:, 1:], axis=1)
        return Predicted(plain.pandaid, plain.seen, levels, result[:, 1:], result[:, 0])

    def _walk(self, frame: pl.DataFrame, events: IntArray, levels: tuple[float, ...]) -> FloatArray:
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
            model = self._tasks.get(task[row])
            if event >= 0:
                if model is None:
                    model = self._tasks[task[row]] = Mixture()
                model.see(runs[row], used[row], scored=model.n >= FEWEST)
            elif model is not None and model.n >= FEWEST:
                quantiles[row] = model.predict(runs[row]).quantiles(asked)
        return quantiles


INPUT_UNIT_B = 1e4  # inputs far below this are one and the same
TAG_WORDS = 6
CELLS = 320
EVERY_VIEW = 0.03  # of the mixture is shared by all views, whatever they foresaw
WIDTHS = np.array([0.5, 1.0])
WINDOW = 2000  # latest runs that are looked at


@dataclass(frozen=True)
class View:
    """One way to read earlier runs: which of them count, and how memory follows the input."""

    kind: int  # line through logarithms, line through levels, or likeness of tags
    setting: float  # share of the runs, nearest in input, that count; of tags: times more for each leading word shared
    sloped: bool = False  # memory follows the input


VIEWS = (
    View(LOG_LINE, 1.0),  # like all runs of its type
    View(LOG_LINE, 1.0, sloped=True),
    View(LEVEL_LINE, 1.0, sloped=True),
    View(LOG_LINE, 0.3, sloped=True),  # a line through those of like input
    View(LEVEL_LINE, 0.3, sloped=True),
    View(LOG_LINE, 0.3),
    View(LOG_LINE, 0.1),
    View(LOG_LINE, 0.1, sloped=True),
    View(TAGS, 100.0),
    View(TAGS, 10.0),
)


@dataclass(frozen=True, slots=True)
class Run:
    """What is known of a run when it is submitted."""

    input_b: float  # size of its input [bytes]; 0 when none is known
    request_b: float  # what its author asked for [bytes]; NaN when nothing
    tag: str = ""  # what its author calls it, such as the sample; empty when nothing


@dataclass(frozen=True)
class Distribution:
    """What a run may need, on a grid."""

    memory_b: FloatArray  # (g,) ascending upper ends of the cells [bytes]
    mass: FloatArray  # (g,) probability of each cell; sums to 1

    def quantile(self, level: float) -> float:
        """Return the least end of a cell that is enough with at least this probability [bytes]."""
        if not 0 < level <= 1:
            raise ConfigError(f"level {level}: allowed is above 0 up to 1")
        reached = int(np.searchsorted(np.cumsum(self.mass), level - 1e-12))
        return float(self.memory_b[min(reached, self.mass.size - 1)])

    def quantiles(self, levels: FloatArray) -> FloatArray:
        """Return the least ends of cells that are enough with at least these probabilities."""
        reached = np.searchsorted(np.cumsum(self.mass), levels - 1e-12)
        result: FloatArray = self.memory_b[np.minimum(reached, self.mass.size - 1)]
        return result

    def exceeded(self) -> FloatArray:
        """Return the probability that the run needs more than each end of a cell."""
        return np.maximum(1.0 - np.cumsum(self.mass), 0.0)


class Mixture:
    """The predictive distribution of one task type, updated run by run.

    Every view expects of the next run what earlier runs used, moved to its input: atoms, smoothed by a
    Student kernel on log memory whose width follows their robust spread. Views are mixed in proportion
    to the likelihood of all runs that came after them so far (Bayesian model averaging on predictions
    made in advance), three percent shared by all, so that surprises stay possible.

    Source: own; weighting by predictions made in advance: Dawid, J. R. Stat. Soc. A 147 (1984) 278,
    doi:10.2307/2981683.
    """

    def __init__(self, views: tuple[View, ...] = VIEWS) -> None:
        self.kinds = np.array([each.kind for each in views])
        self.settings = np.array([each.setting for each in views])
        self.sloped = np.array([each.sloped for each in views], dtype=np.int64)
        self.scores = np.zeros((self.kinds.size, WIDTHS.size))
        self.words: dict[str, int] = {}
        self.n = 0
        self.columns: FloatArray = np.empty((4, 0))
        self.tags: IntArray = np.empty((0, TAG_WORDS), dtype=np.int64)
        self.run: Run | None = None  # that was foreseen last, from the present state

    def _reserve(self, rows: int) -> None:
        """Make room for runs, keeping the latest."""
        columns = (self.columns, self.tags)
        kept = min(self.n, WINDOW)
        self.columns = np.empty((4, rows))
        self.tags = np.full((rows, TAG_WORDS), -1, dtype=np.int64)
        if kept:
            self.columns[:, :kept] = columns[0][:, self.n - kept : self.n]
            self.tags[:kept] = columns[1][self.n - kept : self.n]
        self.n = kept

    def _tag(self, tag: str) -> IntArray:
        result = [word for word in re.split(r"[^A-Za-z0-9]+", tag) if word][:TAG_WORDS]
        numbers = np.full(TAG_WORDS, -1, dtype=np.int64)
        numbers[: len(result)] = [self.words.setdefault(w, len(self.words)) for w in result]
        return numbers

    def _foresee(self, run: Run) -> None:
        """Compute what all views expect of a run from the latest runs seen."""
        first = max(self.n - WINDOW, 0)
        seen = self.columns[:, first : self.n]
        atoms, weights = np.empty((2, self.kinds.size, self.n - first))
        self.foreseen = Foreseen(atoms, weights, np.empty((self.kinds.size, 2)))
        self.centre = float(seen[2].mean())
        foresee(
            Runs(seen[0], seen[1], seen[2], seen[3], self.tags[first : self.n]),
            run.input_b,
            math.log(run.input_b + INPUT_UNIT_B),
            self._tag(run.tag),
            self.kinds,
            self.settings,
            self.sloped,
            self.foreseen,
        )
        self.run = run

    def predict(self, run: Run) -> Distribution:
        """Return the distribution of a run's memory; at least one run was seen."""
        self._foresee(run)
        memory_b, mass = np.empty(CELLS), np.empty(CELLS)
        on_grid(self.foreseen, WIDTHS, self.shares(), memory_b, mass)
        return Distribution(np.exp(memory_b), mass)

    def shares(self) -> FloatArray:
        """Return the share of each (view, width) in the mixture; sums to 1."""
        likelihood = np.exp(self.scores - self.scores.max())
        return np.asarray(
            (1 - EVERY_VIEW) * likelihood / likelihood.sum() + EVERY_VIEW / likelihood.size
        )

    def see(self, run: Run, memory_b: float, *, scored: bool = True) -> None:
        """See what a run used [bytes]; the views are scored on what they expected of it."""
        if scored and self.n:
            if self.run is not run:
                self._foresee(run)
            log_scores(math.log(memory_b), self.foreseen, WIDTHS, self.centre, self.scores)
        if self.n == self.columns.shape[1]:
            self._reserve(2 * min(self.n, WINDOW) + 64)
        self.columns[:, self.n] = (
            math.log(run.input_b + INPUT_UNIT_B),
            run.input_b,
            math.log(memory_b),
            memory_b,
        )
        self.tags[self.n] = self._tag(run.tag)
        self.n += 1
        self.run = None


@compiled
def input_weights(x: FloatArray, at: float, near: float, weights: FloatArray) -> None:
    """Weigh runs by how near their input is: tricube up to the nearest ``near`` share of them."""
    n = x.size
    count = min(max(math.ceil(near * n), NEAR_LEAST), n)
    distance = np.abs(x - at)
    reach = np.partition(distance, count - 1)[count - 1] * 1.0001 + 1e-9
    total = 0.0
    for j in range(n):
        u = distance[j] / reach
        weights[j] = (1 - u * u * u) ** 3 if u < 1 else 0.0
        total += weights[j]
    if total <= 0:
        for j in range(n):
            weights[j] = 1.0 if distance[j] <= reach else 0.0


@compiled
def tag_weights(tags: IntArray, at: IntArray, base: float, weights: FloatArray) -> None:
    """Weigh runs by the leading words their tag shares with a tag: ``base`` times more for each."""
    for j in range(weights.size):
        weights[j] = 1.0
        for k in range(tags.shape[1]):
            if at[k] < 0 or tags[j, k] != at[k]:
                break
            weights[j] *= base


@compiled
def line(
    x: FloatArray, y: FloatArray, weights: FloatArray, at: float, sloped: int
) -> tuple[float, float, float, float, float]:
    """Fit a weighted line; return its value at a point, intercept, slope, runs it rests on, leverage."""
    total = sum_x = sum_y = squares = 0.0
    for j in range(x.size):
        w = weights[j]
        total += w
        sum_x += w * x[j]
        sum_y += w * y[j]
        squares += w * w
    mean_x, mean_y = sum_x / total, sum_y / total
    runs = total * total / squares
    slope = 0.0
    leverage = 1 / runs
    if sloped == 1:
        xx = xy = 0.0
        for j in range(x.size):
            d = x[j] - mean_x
            xx += weights[j] * d * d
            xy += weights[j] * d * (y[j] - mean_y)
        if xx > 1e-12 * total:
            slope = xy / xx
            leverage += (at - mean_x) ** 2 / xx * (squares / total)
            runs = max(runs - 1, 1.0)
    return mean_y + slope * (at - mean_x), mean_y - slope * mean_x, slope, runs, leverage


@compiled
def atoms_of_log_line(
    x: FloatArray, y: FloatArray, weights: FloatArray, at: float, sloped: int, atoms: FloatArray
) -> float:
    """Move every run along a line through logarithms to a point; return the runs it rests on."""
    there, intercept, slope, runs, leverage = line(x, y, weights, at, sloped)
    there = min(max(there, y.min() - 1.0), y.max() + 1.0)
    wider = math.sqrt(runs / max(runs - 1, 1.0)) * math.sqrt(1 + min(leverage, 4.0))
    for j in range(x.size):
        atoms[j] = there + (y[j] - intercept - slope * x[j]) * wider
    return runs


@compiled
def atoms_of_level_line(
    x: FloatArray, y: FloatArray, weights: FloatArray, at: float, atoms: FloatArray
) -> float:
    """Move every run along a line through levels to a point; return the runs it rests on."""
    there, intercept, slope, runs, leverage = line(x, y, weights, at, 1)
    least = 0.3 * y.min()
    there = max(there, least)
    wider = math.sqrt(runs / max(runs - 1, 1.0)) * math.sqrt(1 + leverage)
    for j in range(x.size):
        atoms[j] = math.log(max(there + (y[j] - intercept - slope * x[j]) * wider, 0.3 * least))
    return runs


@compiled
def spread_of(atoms: FloatArray, weights: FloatArray) -> float:
    """Return a robust standard deviation of weighted atoms: the squared mean root deviation."""
    total = mean = 0.0
    for j in range(atoms.size):
        total += weights[j]
        mean += weights[j] * atoms[j]
    mean /= total
    roots = 0.0
    for j in range(atoms.size):
        if weights[j] > 0:
            roots += weights[j] * math.sqrt(abs(atoms[j] - mean))
    return (roots / total) ** 2 / ROBUST


class Runs(NamedTuple):
    """The runs seen."""

    log_input: FloatArray  # (n,)
    input_b: FloatArray  # (n,)
    log_memory: FloatArray  # (n,)
    memory_b: FloatArray  # (n,)
    tags: IntArray  # (n, TAG_WORDS)


class Foreseen(NamedTuple):
    """What every view expects of a run."""

    atoms: FloatArray  # (views, n) of log memory
    weights: FloatArray  # (views, n) those of a view sum to 1
    shapes: FloatArray  # (views, 2) width of the kernel on log memory, degrees of freedom


@compiled
def foresee(
    seen: Runs,
    at_input_b: float,
    at_log_input: float,
    at_tags: IntArray,
    kinds: IntArray,
    settings: FloatArray,
    sloped: IntArray,
    foreseen: Foreseen,
) -> None:
    """Fill what every view expects of a run to come, ``at_...``; ``kinds, settings, sloped`` describe the views (`View`)."""
    atoms, weights, shapes = foreseen
    log_input, log_memory = seen.log_input, seen.log_memory
    n = log_memory.size
    ones = np.ones(n)
    for v in range(kinds.size):
        if kinds[v] == TAGS:
            tag_weights(seen.tags, at_tags, settings[v], weights[v])
            for j in range(n):
                atoms[v, j] = log_memory[j]
            total = weights[v].sum()
            runs = total * total / (weights[v] ** 2).sum()
        else:
            if settings[v] < 1:
                input_weights(log_input, at_log_input, settings[v], weights[v])
            else:
                weights[v] = ones
            if kinds[v] == LEVEL_LINE:
                runs = atoms_of_level_line(
                    seen.input_b, seen.memory_b, weights[v], at_input_b, atoms[v]
                )
            else:
                runs = atoms_of_log_line(
                    log_input, log_memory, weights[v], at_log_input, sloped[v], atoms[v]
                )
            total = weights[v].sum()
        width = 0.9 * spread_of(atoms[v], weights[v]) * runs**-0.2
        shapes[v, 0] = max(width, NARROWEST, 0.5 * 2.0**-n)
        shapes[v, 1] = min(max(4.0, runs / 4), 40.0)
        for j in range(n):
            weights[v, j] /= total


@compiled
def log_scores(
    truth: float, foreseen: Foreseen, widths: FloatArray, centre: float, scores: FloatArray
) -> None:
    """Add to each (view, width) the logarithm of the density it gave to what came."""
    atoms, weights, shapes = foreseen
    floor = LOST * math.exp(-abs(truth - centre))
    for v in range(atoms.shape[0]):
        nu = shapes[v, 1]
        scale = math.gamma((nu + 1) / 2) / math.gamma(nu / 2) / math.sqrt(math.pi * nu)
        for b in range(widths.size):
            width = shapes[v, 0] * widths[b]
            density = 0.0
            for j in range(atoms.shape[1]):
                if weights[v, j] > 0:
                    u = (truth - atoms[v, j]) / width
                    if abs(u) < 50:
                        density += weights[v, j] * (1 + u * u / nu) ** (-0.5 * nu - 0.5)
            scores[v, b] += math.log((1 - LOST) * density * scale / width + floor)


@compiled
def on_grid(
    foreseen: Foreseen,
    widths: FloatArray,
    shares: FloatArray,
    edges: FloatArray,
    mass: FloatArray,
) -> None:
    """Lay the mixture on a grid of log memory: upper edges of the cells and their probability."""
    atoms, weights, shapes = foreseen
    low, high = np.inf, -np.inf
    for v in range(atoms.shape[0]):
        reach = shapes[v, 0] * widths.max()
        for j in range(atoms.shape[1]):
            if weights[v, j] > 0:
                low = min(low, atoms[v, j] - 4 * reach)
                high = max(high, atoms[v, j] + REACH * reach)
    cells = mass.size
    step = (high - low) / (cells - 1)
    for g in range(cells):
        edges[g] = low + step * (g + 0.5)
        mass[g] = 0.0
    binned = np.empty(cells)
    for v in range(atoms.shape[0]):
        kernel = _kernel(shapes[v, 0] / step, shapes[v, 1], widths, shares[v], cells)
        reach_cells = (kernel.size - 1) // 2
        binned[:] = 0.0
        for j in range(atoms.shape[1]):
            if weights[v, j] > 0:
                binned[min(max(int((atoms[v, j] - low) / step + 0.5), 0), cells - 1)] += weights[
                    v, j
                ]
        for g in range(cells):
            if binned[g] > 0:
                for r in range(-reach_cells, reach_cells + 1):
                    mass[min(max(g + r, 0), cells - 1)] += binned[g] * kernel[r + reach_cells]
    mass /= mass.sum()


@compiled
def _kernel(
    width: float, nu: float, widths: FloatArray, shares: FloatArray, cells: int
) -> FloatArray:
    """Return Student kernels of several widths [cells], mixed by their shares."""
    reach = min(int(REACH * width * widths.max()) + 1, cells)
    kernel, one = np.zeros((2, 2 * reach + 1))
    for b in range(widths.size):
        for r in range(reach + 1):
            one[reach + r] = (1 + (r / (width * widths[b])) ** 2 / nu) ** (-0.5 * nu - 0.5)
            one[reach - r] = one[reach + r]
        total = 0.0
        for r in range(one.size):
            total += one[r]
        for r in range(one.size):
            kernel[r] += shares[b] * one[r] / total
    return kernel
