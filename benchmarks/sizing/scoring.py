"""What a run's attempts waste: the scoring rules of the published comparison."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.sizing.sizer import Run, Sizer
from brokerlab.errors import DataError

GBH = 1e9 * 3.6e6  # bytes x ms in a GB x hour
MAX_ATTEMPTS = 200


@dataclass(frozen=True, slots=True)
class Score:
    """One run, scored.

    Attributes:
        first_b: First allocation [bytes].
        last_b: The allocation that was enough [bytes].
        failures: Attempts that were killed.
        waste: Sum over the attempts of what was allocated and not used [bytes x ms]; a killed attempt
            lasts as long as the run and loses all of its allocation.
    """

    first_b: float
    last_b: float
    failures: int
    waste: float


def score(sizer: Sizer, run: Run, memory_b: float, runtime_ms: float) -> Score:
    """Let a method allocate until the run fits, and add up the waste.

    Args:
        sizer: The method; its truth is not revealed here.
        run: What it may know.
        memory_b: What the run needs [bytes].
        runtime_ms: How long each of its attempts lasts [ms].

    Raises:
        DataError: The method names an allocation that is not larger than the one that failed.

    Source: sizing.md, section 3.
    """
    allocation = first = float(sizer.allocate(run))
    waste, failed = 0.0, []
    while not allocation >= memory_b:
        waste += allocation * runtime_ms
        failed.append(allocation)
        allocation = float(sizer.retry(run, failed))
        if not allocation > failed[-1] or len(failed) >= MAX_ATTEMPTS:
            raise DataError(
                f"{type(sizer).__name__}: attempt {len(failed) + 1} gets {allocation:.6g} bytes after"
                f" {failed[-1]:.6g} failed; every retry must be larger"
            )
    waste += (allocation - memory_b) * runtime_ms
    return Score(first, allocation, len(failed), waste)
