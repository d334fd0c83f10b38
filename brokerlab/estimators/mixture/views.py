"""What the next run may need: views of earlier runs, mixed by how well each foresaw what came."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from brokerlab.errors import ConfigError
from brokerlab.estimators.mixture import kernels
from brokerlab.numerics import FloatArray, IntArray

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
    View(kernels.LOG_LINE, 1.0),  # like all runs of its type
    View(kernels.LOG_LINE, 1.0, sloped=True),
    View(kernels.LEVEL_LINE, 1.0, sloped=True),
    View(kernels.LOG_LINE, 0.3, sloped=True),  # a line through those of like input
    View(kernels.LEVEL_LINE, 0.3, sloped=True),
    View(kernels.LOG_LINE, 0.3),
    View(kernels.LOG_LINE, 0.1),
    View(kernels.LOG_LINE, 0.1, sloped=True),
    View(kernels.TAGS, 100.0),
    View(kernels.TAGS, 10.0),
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
        self.foreseen: Run | None = None

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
        shape = (self.kinds.size, self.n - first)
        self.atoms, self.weights = np.empty(shape), np.empty(shape)
        self.shapes = np.empty((self.kinds.size, 2))
        self.centre = float(seen[2].mean())
        kernels.foresee(
            seen[0],
            seen[1],
            seen[2],
            seen[3],
            self.tags[first : self.n],
            run.input_b,
            math.log(run.input_b + INPUT_UNIT_B),
            self._tag(run.tag),
            self.kinds,
            self.settings,
            self.sloped,
            self.atoms,
            self.weights,
            self.shapes,
        )
        self.foreseen = run

    def predict(self, run: Run) -> Distribution:
        """Return the distribution of a run's memory; at least one run was seen."""
        self._foresee(run)
        memory_b, mass = np.empty(CELLS), np.empty(CELLS)
        kernels.on_grid(
            self.atoms, self.weights, self.shapes, WIDTHS, self.shares(), memory_b, mass
        )
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
            if self.foreseen is not run:
                self._foresee(run)
            kernels.log_scores(
                math.log(memory_b),
                self.atoms,
                self.weights,
                self.shapes,
                WIDTHS,
                self.centre,
                self.scores,
            )
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
        self.foreseen = None
