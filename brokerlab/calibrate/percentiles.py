"""Which percentile ranks and margins the scouts should use: back-test, judge, comparison.

tried = backtest(quantities, tasks, queues, jobs, parameter="ramcount")
outcomes = tried.outcomes()
judgement = judge(outcomes, Question(limits=(Limit(quantity="exceed_rate", most=0.02),)))
before, after = scored_tasks(tried, outcomes, judgement)
comparison = compare(before, after, tried.parameter, judgement.question)
"""

from brokerlab.calibrate.assumptions import Assumptions
from brokerlab.calibrate.backtest import Backtest, backtest
from brokerlab.calibrate.comparison import Comparison, compare
from brokerlab.calibrate.gap import gap_summary
from brokerlab.calibrate.judge import Judgement, Limit, Outcomes, Question, judge
from brokerlab.calibrate.loss import LossWeights
from brokerlab.calibrate.parameters import PARAMETERS, Parameter
from brokerlab.calibrate.percentile_study import scored_tasks

__all__ = [
    "PARAMETERS",
    "Assumptions",
    "Backtest",
    "Comparison",
    "Judgement",
    "Limit",
    "LossWeights",
    "Outcomes",
    "Parameter",
    "Question",
    "backtest",
    "compare",
    "gap_summary",
    "judge",
    "scored_tasks",
]
