"""Analysis job brokerage: is a user task held back, which queues may receive its jobs, and how they are weighed.

Source: analysis-jobs.md; the brokerage page, ATLAS Analysis Job Brokerage.
"""

from brokerlab.brokerage.analysis_jobs.brokerage import decide
from brokerlab.brokerage.analysis_jobs.ranking import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.settings import AnalysisRules

__all__ = ["AnalysisDecisions", "AnalysisRules", "decide"]
