"""A fitted model together with what a trial showed of it: its card, and its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from brokerlab.estimators.card import Card, Measured
from brokerlab.estimators.records import Quantity
from brokerlab.estimators.saving import About, Saveable, Trained, save, versions
from brokerlab.estimators.trial import Trial

FEATURES: Mapping[Quantity, tuple[str, ...]] = {
    "memory": ("jeditaskid", "kind", "queue", "cores", "events", "input_mb", "requested"),
    "walltime": (
        *("jeditaskid", "kind", "queue", "cores", "events", "input_mb", "corepower", "requested"),
    ),
}
"""What the hierarchy reads of a job, and of the finished jobs of its task."""


def card_of(
    trial: Trial, model: str, learnt: pl.DataFrame, *, source: str, doubts: Sequence[str]
) -> Card:
    """Return the card of a model as it was tested in a trial."""
    table = trial.comparison.table.filter(
        pl.col("estimator") == model, pl.col("level").is_not_null()
    )
    quantity = trial.quantity
    return Card(
        name=model,
        quantity=quantity,
        intended_use=(
            f"Upper bounds of the {quantity} of single jobs at a stated level, updated as the jobs of their tasks finish.",
            "`brokerlab predict` holds them to their level by what they missed, and refuses one where too few jobs of the task are known or too many promises are open; so it was measured.",
            "To be held beside the rule that is deployed before anything is changed; not to judge users, sites or people.",
        ),
        trained_on=(
            f"{learnt.height} finished jobs of {learnt['jeditaskid'].n_unique()} tasks: {source}.",
        ),
        features=FEATURES[quantity],
        measured=tuple(
            Measured(
                level=row["level"],
                jobs=round(row["jobs"] * (1 - row["share_without"])),
                coverage=row["coverage"],
                over_allocation=row["over_allocation"],
            )
            for row in table.iter_rows(named=True)
            if row["coverage"] is not None
        ),
        do_not_trust=tuple(doubts),
        versions=versions(),
    )


def save_tested(
    estimator: Saveable, folder: Path, card: Card, learnt: pl.DataFrame, *, level: float
) -> Path:
    """Save a model with its manifest and card into a new folder."""
    about = About(
        levels=tuple(sorted({level, *(each.level for each in card.measured)})),
        features=card.features,
        trained=Trained.of(learnt),
        coverage={f"{each.level:g}": each.coverage for each in card.measured},
        card=card,
    )
    return save(estimator, folder, about=about)
