"""Quantile regression with conformal bounds: boosted trees, and lines.

Tasks are the units of calibration; jobs killed at a limit count as killed, not as finished.
"""

from brokerlab.estimators.quantiles.estimator import LinearQuantiles, QuantileBoosting

__all__ = ["LinearQuantiles", "QuantileBoosting"]
