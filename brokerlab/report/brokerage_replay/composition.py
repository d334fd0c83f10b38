"""What orders the queues, with the columns that the page of before reads."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.replay import Replay
from brokerlab.brokerage.studies.weight_spread import FACTORS, factor_shares, weight_spread
from brokerlab.report.replays.shares import as_before

__all__ = ["FACTORS"]


def spread(decisions: Decisions, replay: Replay) -> pl.DataFrame:
    """Return the spread of the log weight of the queues that compete, divided among the factors."""
    return weight_spread(decisions, replay.tasks)


def composition(
    decisions: Decisions, replay: Replay, *, by: list[str], n_boot: int, seed: int
) -> pl.DataFrame:
    """Return the share of each factor in the spread of the log weight."""
    return as_before(factor_shares(spread(decisions, replay), by=by, n_boot=n_boot, seed=seed))
