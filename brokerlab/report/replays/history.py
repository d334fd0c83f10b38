"""Compare the replay with what happened, with the columns that the pages of before read."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.studies import history
from brokerlab.brokerage.studies.history import NOT_LOOKED_AT
from brokerlab.report.replays.shares import as_before

__all__ = ["NOT_LOOKED_AT"]

placed = history.match_jobs


def agreement(matched: pl.DataFrame, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the shares of jobs that ran at a candidate, at the best three, at the first; and by chance."""
    return as_before(history.agreement_shares(matched, n_boot=n_boot, seed=seed))


def against(matched: pl.DataFrame, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the share of jobs that ran where a check of the replay says skip, check by check, largest first."""
    return as_before(history.disagreement_shares(matched, n_boot=n_boot, seed=seed))
