"""Lines through memory over input size, raised by what they missed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.sizing.sizer import History, Run


@dataclass
class Moments:
    """Count, means and centred second moments of pairs, updated one pair at a time.

    Source: Welford, Technometrics 4 (1962) 419, doi:10.1080/00401706.1962.10490022.
    """

    n: int = 0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    yy: float = 0.0

    def add(self, x: float, y: float) -> None:
        """See a pair."""
        self.n += 1
        dx, dy = x - self.x, y - self.y
        self.x += dx / self.n
        self.y += dy / self.n
        self.xx += dx * (x - self.x)
        self.xy += dx * (y - self.y)
        self.yy += dy * (y - self.y)

    def at(self, x: float) -> float:
        """Return the least-squares line at x; the mean where all x are equal."""
        slope = self.xy / self.xx if self.xx > 0 else 0.0
        return self.y + slope * (x - self.x)

    @property
    def y_std(self) -> float:
        """Return the standard deviation of y, 0 where nothing was seen."""
        return math.sqrt(self.yy / self.n) if self.n else 0.0


@dataclass
class Errors:
    """Relative errors (truth - line) / truth so far: all of them, and those of lines too low."""

    of_all: Moments = field(default_factory=Moments)
    of_low: Moments = field(default_factory=Moments)

    def add(self, error: float) -> None:
        """See one error."""
        self.of_all.add(0.0, error)
        if error > 0:
            self.of_low.add(0.0, error)


class RaisedLine:
    """Give the least-squares line over input size, raised by a share of itself.

    The share is the standard deviation of the relative errors of earlier predictions: of all, or of
    those below the truth only. Twice as much after a kill; the largest value seen where the line was
    not above 0.

    Args:
        low_only: Whether only errors below the truth count.
        errors: Where errors are kept. The published comparison keeps one list for all task types and
            both variants, so that results depend on their order and the second variant knows the errors
            that the first will make; by default each sizer has its own.
        floor: Whether the largest value seen is given at once where the line is not above 0.

    Source: Witt et al., HPCS 2019, "Feedback-based resource allocation for batch scheduling of
    scientific workflows", doi:10.1109/HPCS48598.2019.9188055; sizing.md, section 4.
    """

    def __init__(
        self, *, low_only: bool = False, errors: Errors | None = None, floor: bool = False
    ) -> None:
        self.low_only, self.floor = low_only, floor
        self.errors = Errors() if errors is None else errors

    def start(self, history: History) -> None:
        """Fit the line to the history."""
        self.line = Moments()
        self.largest = float(history.memory_b.max())
        for x, y in zip(history.input_b.tolist(), history.memory_b.tolist(), strict=True):
            self.line.add(x, y)

    def allocate(self, run: Run) -> float:
        """Return the raised line [bytes]."""
        spread = self.errors.of_low if self.low_only else self.errors.of_all
        raised = self.line.at(run.input_b) * (1 + spread.y_std)
        return self.largest if self.floor and not raised > 0 else raised

    def retry(self, _run: Run, failed_b: Sequence[float]) -> float:
        """Return twice what failed [bytes]."""
        return 2 * failed_b[-1] if failed_b[-1] > 0 else self.largest

    def reveal(self, run: Run, memory_b: float, _runtime_s: float) -> None:
        """See one run: first how far the line was off, then the run itself."""
        self.errors.add((memory_b - self.line.at(run.input_b)) / memory_b)
        self.line.add(run.input_b, memory_b)
        self.largest = max(self.largest, memory_b)
