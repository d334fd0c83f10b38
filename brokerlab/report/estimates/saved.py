"""The card of a saved model on the page."""

from __future__ import annotations

from brokerlab.estimators.card import Card
from brokerlab.report.content import Block, Column, Listing, Row, Table

FOLDER = "model"


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
