"""Which percentile ranks and margins the scouts should use: back-test, choice, proof.

periods = split_periods(tasks, quantities)
tried = backtest(quantities, periods.early, queues, jobs, parameter="ramcount")
choice = choose(tried, max_exceed=0.02)
later = backtest(quantities, periods.late, queues, jobs, parameter="ramcount", detail=[choice.setting])
proof = prove(later, choice.setting, max_exceed=0.02)
"""

from brokerlab.calibrate.assumptions import Assumptions
from brokerlab.calibrate.backtest import Backtest, backtest
from brokerlab.calibrate.choice import Choice, choose
from brokerlab.calibrate.gap import gap_summary
from brokerlab.calibrate.loss import LossWeights
from brokerlab.calibrate.parameters import PARAMETERS, Parameter
from brokerlab.calibrate.periods import Periods, exchangeability, split_periods
from brokerlab.calibrate.proof import Proof, prove

__all__ = [
    "PARAMETERS",
    "Assumptions",
    "Backtest",
    "Choice",
    "LossWeights",
    "Parameter",
    "Periods",
    "Proof",
    "backtest",
    "choose",
    "exchangeability",
    "gap_summary",
    "prove",
    "split_periods",
]
