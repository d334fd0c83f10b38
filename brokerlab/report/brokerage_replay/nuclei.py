"""The choice of the nucleus, with the columns that the page of before reads."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from brokerlab.brokerage.production_tasks import TaskDecisions
from brokerlab.brokerage.replay import Replay
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.studies.nuclei import FACTORS, OUTCOMES, choose_nuclei
from brokerlab.brokerage.view import NOT_REACHED
from brokerlab.report.replays.shares import as_before

__all__ = ["FACTORS", "NOT_REACHED", "OUTCOMES"]


@dataclass(frozen=True, kw_only=True)
class Nuclei:
    """What the replay says of the choice of the nucleus; see `nuclei.NucleusChoice`."""

    decisions: TaskDecisions
    by_check: pl.DataFrame
    outcomes: pl.DataFrame
    locality: pl.DataFrame
    composition: pl.DataFrame
    history: pl.DataFrame


def studied(
    replay: Replay, tasks: pl.DataFrame, *, rules: ProductionRules, n_boot: int, seed: int
) -> Nuclei:
    """Choose nuclei and sum up why."""
    result = choose_nuclei(replay, tasks, rules=rules, n_boot=n_boot, seed=seed)
    return Nuclei(
        decisions=result.decisions,
        by_check=as_before(result.checks),
        outcomes=as_before(result.outcomes),
        locality=as_before(result.locality),
        composition=as_before(result.factors),
        history=as_before(result.history),
    )
