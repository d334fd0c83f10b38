"""Rules of one line: the request, the largest value seen, percentiles with a margin."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence

import numpy as np

from benchmarks.sizing.sizer import History, Run
from brokerlab.errors import ConfigError, DataError
from brokerlab.numerics import percentile

NODE_B = 128e9


class _Seen:
    """Keeps the memory of all runs seen, sorted; doubles what failed."""

    def start(self, history: History) -> None:
        self.seen: list[float] = sorted(history.memory_b.tolist())

    def retry(self, _run: Run, failed_b: Sequence[float]) -> float:
        return 2 * failed_b[-1]

    def reveal(self, _run: Run, memory_b: float, _runtime_s: float) -> None:
        insort(self.seen, memory_b)


class Presets(_Seen):
    """Give what the author asked for; twice as much after a kill."""

    def allocate(self, run: Run) -> float:
        """Return the author's request [bytes].

        Raises:
            DataError: There is none.
        """
        if not run.request_b > 0:
            raise DataError(
                f"memory request {run.request_b}: presets need one, > 0 bytes, for every run"
            )
        return run.request_b


class LargestSeen(_Seen):
    """Give the largest value seen; twice as much after a kill."""

    def allocate(self, _run: Run) -> float:
        """Return the largest value seen [bytes]."""
        return self.seen[-1]


class Percentile(_Seen):
    """Give a percentile of the values seen times a margin; twice as much after a kill.

    Args:
        rank: Percentile rank, 0 to 100; interpolated linearly.
        margin: Factor above 0.

    Source: sizing.md, sections 4 (Witt percentile: 95 x 1) and 6 (PanDA: 75 x 1.1).
    """

    def __init__(self, rank: float, margin: float = 1.0) -> None:
        if not 0 <= rank <= 100 or not margin > 0:
            raise ConfigError(f"rank {rank}, margin {margin}: a rank is 0 to 100, a margin above 0")
        self.rank, self.margin = rank, margin

    def allocate(self, _run: Run) -> float:
        """Return the percentile times the margin [bytes]."""
        return percentile(self.seen, self.rank)[0] * self.margin


class ConformalBound(_Seen):
    """Give the order statistic that bounds the next exchangeable value at a level.

    With too few values for the level: 1.1 times the largest. Twice as much after a kill.

    Args:
        level: Above 0, below 1.

    Source: sizing.md, section 5 ("conformal 95 %"); the factor from its printed figures.
    """

    def __init__(self, level: float) -> None:
        if not 0 < level < 1:
            raise ConfigError(f"level {level}: allowed is above 0 and below 1")
        self.level = level

    def allocate(self, _run: Run) -> float:
        """Return the bound [bytes]."""
        place = math.ceil((len(self.seen) + 1) * self.level)
        return self.seen[place - 1] if place <= len(self.seen) else 1.1 * self.seen[-1]


class FirstAllocation:
    """Give the value seen that would have wasted least, with the largest seen as second attempt.

    The value a minimises a E[t] + max E[t; m > a]; of equals the largest. After the largest failed
    the whole node: 128 GB.

    Source: Tovar et al., IEEE TPDS 29 (2018) 240, doi:10.1109/TPDS.2017.2762310, equation 1;
    sizing.md, section 4.
    """

    def start(self, history: History) -> None:
        """Learn the history: time spent per value."""
        self.seconds: dict[float, float] = {}
        for memory_b, runtime_s in zip(history.memory_b, history.runtime_s, strict=True):
            self._see(float(memory_b), float(runtime_s))

    def _see(self, memory_b: float, runtime_s: float) -> None:
        self.seconds[memory_b] = self.seconds.get(memory_b, 0.0) + runtime_s

    def allocate(self, _run: Run) -> float:
        """Return the value of least waste [bytes]."""
        values = np.array(sorted(self.seconds))[::-1]
        seconds = np.array([self.seconds[value] for value in values.tolist()])
        above = np.cumsum(seconds) - seconds
        return float(values[np.argmin(values * seconds.sum() + values[0] * above)])

    def retry(self, _run: Run, failed_b: Sequence[float]) -> float:
        """Return the largest value seen, then the node [bytes]."""
        largest = max(self.seconds)
        return largest if failed_b[-1] < largest else max(NODE_B, 2 * failed_b[-1])

    def reveal(self, _run: Run, memory_b: float, runtime_s: float) -> None:
        """See one run."""
        self._see(memory_b, runtime_s)
