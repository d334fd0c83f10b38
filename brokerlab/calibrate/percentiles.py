"""Which percentile ranks and margins the scouts should use: back-test, choice, proof.

early, late = split_periods(tasks, quantities, fraction=0.5)
tried = backtest(quantities, early, queues, jobs, parameter="ramcount")
choice = choose(tried, max_exceed=0.02)
proven = prove(backtest(quantities, late, ..., detail=[choice.setting]), ...)
"""

from brokerlab.calibrate.backtest import Assumptions, Backtest, backtest
from brokerlab.calibrate.loss import LossWeights
from brokerlab.calibrate.parameters import PARAMETERS, Parameter

__all__ = [
    "PARAMETERS",
    "Assumptions",
    "Backtest",
    "LossWeights",
    "Parameter",
    "backtest",
]
