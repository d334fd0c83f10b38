"""What bounds meant for jobs: sums per task of exceeding, over-allocation and the attempts they cost."""

from __future__ import annotations

import numpy as np

from brokerlab.compiled import compiled_in_place
from brokerlab.numerics import BoolArray, FloatArray, IntArray

COUNTED = (
    *("jobs", "answered", "unknown", "scored", "exceed", "at_limit"),
    *("used", "bound", "over", "usage", "waste", "killed", "retries"),
)
"""What is summed: see :meth:`judged.Judged.sums`."""
PLACE = {name: i for i, name in enumerate(COUNTED)}
_JOBS, _ANSWERED, _UNKNOWN, _SCORED, _EXCEED, _AT_LIMIT = range(6)
_USED, _BOUND, _OVER, _USAGE, _WASTE, _KILLED, _RETRIES = range(6, len(COUNTED))

ROUNDING = 1 + 1e-9  # a use that is larger by the last bits of a product is as large
LEAST = 1.0  # MB or s; what is doubled where an estimate was 0 or less


@compiled_in_place
def add_up(
    bound: FloatArray,
    used: FloatArray,
    censored: BoolArray,
    hours: FloatArray,
    largest: FloatArray,
    task: IntArray,
    counts: BoolArray,
    sums: FloatArray,
) -> None:
    """Add the jobs that count to the sums of their tasks, one after the other."""
    for row in range(bound.size):
        if not counts[row]:
            continue
        t, given, need = task[row], bound[row], used[row]
        sums[t, _JOBS] += 1
        if not np.isfinite(given):
            continue
        sums[t, _ANSWERED] += 1
        above = need > given * ROUNDING
        if censored[row]:
            if above or need >= given:
                sums[t, _SCORED] += 1
                sums[t, _EXCEED] += 1
                sums[t, _AT_LIMIT] += not above
            else:
                sums[t, _UNKNOWN] += 1
            continue
        sums[t, _SCORED] += 1
        sums[t, _EXCEED] += above
        sums[t, _USED] += need
        sums[t, _BOUND] += given
        sums[t, _OVER] += max(given - need, 0.0)
        sums[t, _USAGE] += need * hours[row]
        lost, last = 0.0, given
        while need > last * ROUNDING:
            lost += max(last, 0.0)
            last = largest[row] if last == given and largest[row] > given else 2 * last
            last = max(last, LEAST)
            sums[t, _RETRIES] += 1
        sums[t, _KILLED] += lost * hours[row]
        sums[t, _WASTE] += (lost + max(last - need, 0.0)) * hours[row]
