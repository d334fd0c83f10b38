"""Choice of the nucleus of production tasks: checks, data locality, weight and draw, many tasks at once."""

from brokerlab.brokerage.production_tasks.brokerage import TaskDecisions, decide
from brokerlab.brokerage.production_tasks.ranking import checks
from brokerlab.brokerage.production_tasks.storage import remaining_work

__all__ = ["TaskDecisions", "checks", "decide", "remaining_work"]
