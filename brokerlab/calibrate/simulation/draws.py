"""Random numbers that belong to an attempt of a job, whatever happens around it.

Two settings are compared on common random numbers: the draw of (seed, pandaid, attempt, purpose) is a hash of these
four, so that neither the order of events nor another job changes it.

Source: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014, doi:10.1145/2660193.2660195
(SplitMix64, with Stafford's variant 13 of the mixing function).
"""

from __future__ import annotations

import numpy as np

from brokerlab.compiled import compiled
from brokerlab.numerics import FloatArray, IntArray

STARTUP, MEMORY, PLACEMENT = 1, 2, 3  # purposes


@compiled
def mix(word: np.uint64) -> np.uint64:
    """Return the word with every bit depending on every bit."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@compiled
def uniform(seed: int, pandaid: int, attempt: int, purpose: int) -> float:
    """Return a number of [0, 1), the same for the same four numbers."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    word = mix(np.uint64(seed) + golden)
    word = mix((word ^ np.uint64(pandaid)) + golden)
    word = mix((word ^ np.uint64(attempt)) + golden)
    word = mix((word ^ np.uint64(purpose)) + golden)
    return float(word >> np.uint64(11)) * 2.0**-53


@compiled
def placements(seed: int, pandaid: IntArray, number: IntArray) -> FloatArray:
    """Return the draw of every placement: of seed, pandaid and how often the job was placed."""
    drawn = np.empty(len(pandaid))
    for row in range(len(pandaid)):
        drawn[row] = uniform(seed, pandaid[row], number[row], PLACEMENT)
    return drawn
