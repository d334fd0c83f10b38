"""Judge estimators on the same jobs, by the rules of the sizing chapter."""

from brokerlab.estimators.scoring.comparison import (
    Comparison,
    all_levels,
    compare,
    compare_predictions,
)

__all__ = ["Comparison", "all_levels", "compare", "compare_predictions"]
