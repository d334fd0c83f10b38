"""Production job brokerage: which queues may receive the jobs of a task, and how they rank.

Source: production-jobs.md; the brokerage page, ATLAS Production Job Brokerage.
"""

from brokerlab.brokerage.production_jobs.brokerage import decide, hint_queues
from brokerlab.brokerage.production_jobs.ranking import Decisions

__all__ = ["Decisions", "decide", "hint_queues"]
