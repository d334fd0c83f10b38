"""What every sizing method of the published comparison does: predict, be scored, see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from brokerlab.estimators.mixture import Run
from brokerlab.numerics import FloatArray

__all__ = ["History", "Run", "Sizer"]


@dataclass(frozen=True)
class History:
    """Finished runs of one task type, all arrays of one length.

    Attributes:
        input_b: (n,) size of the input [bytes].
        request_b: (n,) the author's request [bytes], NaN when none.
        memory_b: (n,) memory used [bytes], > 0.
        runtime_s: (n,) duration [s], > 0.
        tags: (n,) what their authors call them.
        usual_gbh: Mean usage of past runs of all task types [GB h]: the scale of a price per failure.
    """

    input_b: FloatArray
    request_b: FloatArray
    memory_b: FloatArray
    runtime_s: FloatArray
    tags: tuple[str, ...]
    usual_gbh: float


class Sizer(Protocol):
    """Sizes the runs of one task type, in the order in which they arrive."""

    def start(self, history: History, /) -> None:
        """Learn from the runs that finished before the first arrival; at least one."""
        ...

    def allocate(self, run: Run, /) -> float:
        """Return the memory of the first attempt [bytes]; nothing of this run's truth is known."""
        ...

    def retry(self, run: Run, failed_b: Sequence[float], /) -> float:
        """Return the memory of the next attempt [bytes] after all of ``failed_b`` were too small."""
        ...

    def reveal(self, run: Run, memory_b: float, runtime_s: float, /) -> None:
        """See what the run of the last ``allocate`` used in the end."""
        ...
