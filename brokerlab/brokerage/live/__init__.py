"""A brokerage that stands: prepared once, asked again and again with other counts, by the very same rules."""

from __future__ import annotations

from brokerlab.brokerage.live.prepare import count_tables, prepare
from brokerlab.brokerage.live.ranked import Ranked
from brokerlab.brokerage.live.standing import Standing

__all__ = ["Ranked", "Standing", "count_tables", "prepare"]
