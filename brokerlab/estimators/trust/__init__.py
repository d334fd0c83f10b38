"""Where a model should not be trusted: checks of what it expected against what came.

Each check returns a frame with the statistic, its interval or p-value, and a verdict in words.
"""

from brokerlab.estimators.trust.strata import coverage_by

__all__ = ["coverage_by"]
