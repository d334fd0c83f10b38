"""A brokerage that stands: prepared once, asked again and again with other counts, by the very same rules."""

from __future__ import annotations

from brokerlab.brokerage.live.analysis import AnalysisStanding
from brokerlab.brokerage.live.jobs import JobStanding
from brokerlab.brokerage.live.prepare import count_tables, prepare
from brokerlab.brokerage.live.ranked import Ranked

__all__ = [
    "AnalysisStanding",
    "JobStanding",
    "Ranked",
    "count_tables",
    "prepare",
]
