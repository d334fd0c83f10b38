"""Judge estimators on the same jobs, by the rules of the sizing chapter."""

from brokerlab.estimators.scoring.comparison import Comparison, all_levels, compare
from brokerlab.estimators.scoring.settings import GRID
from brokerlab.estimators.scoring.tables import Slots

__all__ = ["GRID", "Comparison", "Slots", "all_levels", "compare"]
