"""Which percentile ranks, margins and minima the scouts should use: back-test, judge, comparison.

::

    data = load("archive")
    made = study(data, "ramcount", kills(0.02), ranks=range(50, 100))
    made.verdict.sentence, made.comparison.table, made.verdict.proposal
"""

from brokerlab.calibrate.percentiles.backtest import Backtest, backtest, gap_summary
from brokerlab.calibrate.percentiles.comparison import Comparison, compare
from brokerlab.calibrate.percentiles.history import Inputs, load
from brokerlab.calibrate.percentiles.parameters import (
    PARAMETERS,
    Assumptions,
    LossWeights,
    Parameter,
    Setting,
    current_setting,
)
from brokerlab.calibrate.percentiles.retries import Retries, judge_retries
from brokerlab.calibrate.percentiles.study import Study, kills, propose, scored_tasks, study

__all__ = [
    "PARAMETERS",
    "Assumptions",
    "Backtest",
    "Comparison",
    "Inputs",
    "LossWeights",
    "Parameter",
    "Retries",
    "Setting",
    "Study",
    "backtest",
    "compare",
    "current_setting",
    "gap_summary",
    "judge_retries",
    "kills",
    "load",
    "propose",
    "scored_tasks",
    "study",
]
