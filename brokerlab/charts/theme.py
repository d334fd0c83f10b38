"""One look for every chart: colours with a fixed meaning, fonts that exist offline, files that last.

Grey is the current setting, blue the proposed one, red the limit; the same in every chart and page. The
three differ in lightness and in dash or shape too, so that print and colour-blind readers lose nothing.
"""

import json
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import altair as alt
from altair.utils.mimebundle import spec_to_mimebundle

from brokerlab.words import THIN

CURRENT = "#6e6e6e"
"""The setting in use."""
PROPOSED = "#0065a8"
"""The setting proposed."""
LIMIT = "#b3261e"
"""A limit that must not be passed."""
OTHER = "#b9c4cf"
"""Everything else: settings looked at and not chosen."""
INK = "#1b1f23"
SOFT = "#57606a"
GRID = "#e3e7eb"
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""Liberation Sans is bundled with the renderer and as wide as Arial: text fits wherever it is read."""

WIDTH = 600
"""Width of a chart's plotting area [px]; with axis and labels it fits an A4 page."""
TITLE_COLUMNS = 82
"""Characters of a title or subtitle per line."""

SETTINGS = {
    "current": (CURRENT, "circle"),
    "proposed": (PROPOSED, "diamond"),
}
"""Colour and shape of every value of a column ``setting``."""


PALETTE = (
    *("#d98c00", "#00856a", "#33475b", "#4aa3df", "#7a5aa6"),
    *("#8a6d3b", "#5e8c31", "#b5588f", "#98a2ad"),
)
"""Colours of everything that has no fixed one; none is red, and their lightness differs."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ([1, 0], [6, 3], [2, 2], [9, 3, 2, 3])


def colours(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each name: current grey, proposed blue, all others by their order.

    Example:
        >>> colours(["b", "proposed", "current"]) == {"current": CURRENT, "proposed": PROPOSED, "b": PALETTE[0]}
        True
    """
    fixed, others = _order(names)
    result = {name: SETTINGS[name][0] for name in fixed}
    return result | {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(others)}


def shapes(names: Iterable[str]) -> dict[str, str]:
    """Return a shape for each name: current a circle, proposed a diamond, all others by their order."""
    fixed, others = _order(names)
    result = {name: SETTINGS[name][1] for name in fixed}
    return result | {name: SHAPES[i % len(SHAPES)] for i, name in enumerate(others)}


def dashes(names: Iterable[str]) -> dict[str, list[int]]:
    """Return a dash for each line: current dashed, proposed solid, all others by their order."""
    fixed, others = _order(names)
    result = {name: [5, 3] if name == "current" else [1, 0] for name in fixed}
    return result | {name: DASHES[i // len(PALETTE) % len(DASHES)] for i, name in enumerate(others)}


def _order(names: Iterable[str]) -> tuple[list[str], list[str]]:
    known = list(dict.fromkeys(names))
    return [n for n in SETTINGS if n in known], [n for n in known if n not in SETTINGS]


NAME = "brokerlab"
"""Name of the theme for ``alt.theme.enable``."""


@alt.theme.register(NAME, enable=False)
def brokerlab() -> alt.theme.ThemeConfig:
    """Return the theme; `save` uses it, a notebook turns it on with ``alt.theme.enable``."""
    axis = {
        "gridColor": GRID,
        "domainColor": SOFT,
        "tickColor": SOFT,
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "labelLimit": 260,
    }
    numbers = {"decimal": ".", "thousands": THIN, "grouping": [3], "currency": ["", ""]}
    config: Any = {
        "background": "white",
        "locale": {"number": numbers},
        "aria": False,  # the page announces each chart as one picture with its finding
        "font": FONT,
        "view": {"stroke": None},
        "axis": axis,
        "axisX": {"labelOverlap": "greedy", "labelSeparation": 8},
        "legend": {
            "labelFontSize": 12,
            "titleFontSize": 12,
            "orient": "top",
            "offset": 4,
            "columns": 5,
            "labelLimit": 240,
        },
        "header": {"labelFontSize": 12, "titleFontSize": 13, "labelFontWeight": "bold"},
        "title": {
            "anchor": "start",
            "frame": "group",
            "fontSize": 15,
            "subtitleFontSize": 12,
            "subtitleColor": SOFT,
            "color": INK,
            "offset": 12,
        },
        "text": {"fontSize": 12, "color": INK},
    }
    return {"config": config}


def title(finding: str, sample: str) -> alt.Title:
    """Return a chart's title: the finding, and the sample behind it below.

    Example:
        >>> title("Waste falls", "n = 12 tasks").subtitle
        ['n = 12 tasks']
    """
    return alt.Title(
        text=_wrap(finding, TITLE_COLUMNS - 8), subtitle=_wrap(sample, TITLE_COLUMNS + 12)
    )


def _wrap(text: str, columns: int) -> list[str]:
    return textwrap.wrap(text, columns) or [""]


def save(chart: alt.TopLevelMixin, folder: str | Path, name: str) -> Path:
    """Write a chart as ``name.svg`` and as its JSON specification, data inside; return the path of the SVG."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    data = alt.data_transformers
    with alt.theme.enable(NAME), data.enable("default"), data.disable_max_rows():
        specification = chart.to_dict()  # once: to check it takes longer than to draw it
    picture = spec_to_mimebundle(specification, "svg", mode="vega-lite")["image/svg+xml"]
    path = target / f"{name}.svg"
    path.write_text(picture, encoding="utf-8")
    (target / f"{name}.json").write_text(json.dumps(specification), encoding="utf-8")
    return path
