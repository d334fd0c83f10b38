"""Which percentile ranks, margins and minima the scouts should use: back-test, judge, comparison.

::

    data = load("archive")
    made = study(data, "ramcount", kills(0.02), ranks=range(50, 100))
    made.verdict.sentence, made.comparison.table, made.verdict.proposal
"""

from brokerlab.calibrate.percentiles.backtest import Backtest, backtest
from brokerlab.calibrate.percentiles.frames import compare
from brokerlab.calibrate.percentiles.history import Inputs, load
from brokerlab.calibrate.percentiles.parameters import (
    PARAMETERS,
    Assumptions,
    LossWeights,
    Setting,
    current_setting,
)
from brokerlab.calibrate.percentiles.study import Study, kills, propose, scored_tasks, study

__all__ = [
    "PARAMETERS",
    "Assumptions",
    "Backtest",
    "Inputs",
    "LossWeights",
    "Setting",
    "Study",
    "backtest",
    "compare",
    "current_setting",
    "kills",
    "load",
    "propose",
    "scored_tasks",
    "study",
]
