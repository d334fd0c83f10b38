"""Where a model should not be trusted: checks of what it expected against what came.

Each check returns a frame with the statistic, its interval or p-value, and a verdict in words.
"""

from brokerlab.estimators.trust.drift import bet_against, largest_deviation
from brokerlab.estimators.trust.judged import judged, places
from brokerlab.estimators.trust.scouts import scouts_against_rest
from brokerlab.estimators.trust.strata import coverage_by
from brokerlab.estimators.trust.support import support

__all__ = [
    "bet_against",
    "coverage_by",
    "judged",
    "largest_deviation",
    "places",
    "scouts_against_rest",
    "support",
]
