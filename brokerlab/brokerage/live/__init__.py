"""A brokerage that stands: prepared once, asked again and again with other counts, by the very same rules."""

from __future__ import annotations

from brokerlab.brokerage.live.standing import Ranked, Standing, prepare, tables_that_change

__all__ = ["Ranked", "Standing", "prepare", "tables_that_change"]
