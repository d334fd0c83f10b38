"""The model of a report, kept beside its outputs, and its card on the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from brokerlab.estimators.card import Card, Measured
from brokerlab.estimators.records import Quantity
from brokerlab.estimators.saving import About, Saveable, Trained, save, versions
from brokerlab.report.content import Block, Column, Listing, Row, Table
from brokerlab.report.estimates.trial import Trial

FOLDER = "model"
FEATURES: dict[Quantity, tuple[str, ...]] = {
    "memory": ("jeditaskid", "kind", "queue", "cores", "events", "input_mb", "requested"),
    "walltime": ("jeditaskid", "kind", "queue", "cores", "events", "input_mb", "corepower", "requested"),
}  # fmt: skip
"""What the hierarchy reads of a job, and of the finished jobs of its task."""


def card_of(
    trial: Trial, model: str, learnt: pl.DataFrame, *, source: str, doubts: Sequence[str]
) -> Card:
    """Return the card of a model as it was tested in a trial.

    Args:
        trial: The trial.
        model: Name of the model.
        learnt: The records that the saved model has learnt from.
        source: Whose jobs these are, in words.
        doubts: Where it should not be trusted, in sentences.
    """
    table = trial.comparison.table.filter(
        pl.col("estimator") == model, pl.col("level").is_not_null()
    )
    quantity = trial.quantity
    return Card(
        name=model,
        quantity=quantity,
        intended_use=(
            f"Upper bounds of the {quantity} of single jobs at a stated level, updated as the jobs of their tasks finish.",
            "To be held beside the rule that is deployed before anything is changed; not to judge users, sites or people.",
        ),
        trained_on=(
            f"{learnt.height} finished jobs of {learnt['jeditaskid'].n_unique()} tasks: {source}.",
        ),
        features=FEATURES[quantity],
        measured=tuple(
            Measured(
                level=row["level"],
                jobs=row["jobs"],
                coverage=row["coverage"],
                over_allocation=row["over_allocation"],
            )
            for row in table.iter_rows(named=True)
            if row["coverage"] is not None
        ),
        do_not_trust=tuple(doubts),
        versions=versions(),
    )


def keep(
    estimator: Saveable, folder: Path, card: Card, learnt: pl.DataFrame, *, level: float
) -> Path:
    """Save a model with its manifest and card into a new folder.

    Args:
        estimator: Fitted.
        folder: Does not exist yet.
        card: Of the model.
        learnt: The records of its fit and calibration.
        level: At which it was tested, beside those of the card.
    """
    measured = {f"{each.level:g}": each.coverage for each in card.measured}
    levels = tuple(sorted({level, *(each.level for each in card.measured)}))
    about = About(
        levels=levels,
        features=card.features,
        trained=Trained.of(learnt),
        coverage=measured,
        card=card,
    )
    return save(estimator, folder, about=about)


def shown(card: Card, *, name: str, command: str) -> tuple[Block, ...]:
    """Lay out a card as the blocks of a page.

    Args:
        card: The card.
        name: Beginning of its tables' names.
        command: That predicts with the saved model.
    """
    found: list[Block] = []
    for place, section in enumerate(card.sections()):
        if section.columns:
            found.append(
                Table(
                    name=f"{name}_{place}",
                    caption=section.title,
                    columns=tuple(Column(key=key, label=key.capitalize()) for key in section.columns),
                    rows=tuple(
                        Row(cells=dict(zip(section.columns, row, strict=True))) for row in section.rows
                    ),
                )
            )  # fmt: skip
        else:
            found.append(f"{section.title}: {' '.join(section.sentences)}")
    found.append(Listing(caption="Predict with it", text=command))
    return tuple(found)
