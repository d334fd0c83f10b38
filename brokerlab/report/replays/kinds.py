"""The job brokerages that a report may replay, and where they differ."""

from brokerlab.brokerage.studies.kinds import ANALYSIS, PRODUCTION, JobDecisions, Kind, kind_of

__all__ = ["ANALYSIS", "PRODUCTION", "JobDecisions", "Kind", "kind_of"]
