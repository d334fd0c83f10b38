"""Draw the charts of a study and save them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import altair as alt

from brokerlab.charts import theme
from brokerlab.report.content import Picture

Drawn = tuple[alt.TopLevelMixin, str]
"""A chart and its finding."""

S = TypeVar("S")


def draw(
    study: S, drawers: Mapping[str, Callable[[S], Drawn | None]], folder: Path
) -> dict[str, Picture]:
    """Draw every chart that a study has numbers for, and save it.

    Args:
        study: The study.
        drawers: Chart to what draws it.
        folder: Where the charts go.

    Returns:
        Pictures by chart.
    """
    pictures = {}
    for name, drawer in drawers.items():
        drawn = drawer(study)
        if drawn is not None:
            theme.save(drawn[0], folder, name)
            pictures[name] = Picture(chart=name, alt=drawn[1])
    return pictures
