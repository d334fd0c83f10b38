"""Render a run's `results.json` as one self-contained HTML page.

Nothing is loaded from elsewhere: style and charts are inside, links go to the files beside the page.
"""

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from brokerlab.errors import ReportError
from brokerlab.report.content import KIND_WORDS, Link, Listing, Num, Page, Picture, Table
from brokerlab.words import MISSING, THIN, measured

ID_ATTRIBUTE = re.compile(r'\bid="([^"]+)"')
ID_REFERENCE = re.compile(r'(url\(#|href="#)')


def render(results: Mapping[str, Any], folder: Path) -> str:
    """Render the page of a run.

    Args:
        results: What `results.json` holds.
        folder: The run's folder; charts are read from its `charts/`.

    Returns:
        The HTML text.

    Raises:
        ReportError: The content is incomplete or a chart it names is not there.
    """
    content = Page.from_json(results["page"])
    template = environment().get_template("old-page.html.j2")
    charts = {picture.chart: inline_svg(folder, picture) for picture in _pictures(content)}
    return template.render(page=content, charts=charts, error=results.get("error"))


@functools.cache
def environment() -> Environment:
    """Return the template environment: everything is escaped, a missing name is an error."""
    made = Environment(
        loader=PackageLoader("brokerlab.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["kind_words"] = KIND_WORDS
    made.tests["picture"] = lambda block: isinstance(block, Picture)
    made.tests["table"] = lambda block: isinstance(block, Table)
    made.tests["listing"] = lambda block: isinstance(block, Listing)
    made.tests["link"] = lambda cell: isinstance(cell, Link)
    made.tests["num"] = lambda cell: isinstance(cell, Num)
    made.filters["cell"] = cell_text
    made.filters["prose"] = prose
    made.filters["after_word"] = after_word
    return made


def cell_text(cell: Num | str | None) -> str:
    """Return the text of a table cell.

    Example:
        >>> cell_text(Num(value=4.12, lo=3.21, hi=5.04)), cell_text(None), cell_text("AGLT2")
        ('4.1 (3.2 to 5.0)', '–', 'AGLT2')
    """
    if isinstance(cell, Num):
        return measured(cell.value, cell.lo, cell.hi, cell.decimals)
    return MISSING if cell is None else together(cell)


def together(text: str) -> str:
    """Keep a unit with its number and a product of units on one line.

    Example:
        >>> together("margin 10 % [GB h]").replace(THIN, "_").replace("\u00a0", "~")
        'margin 10_% [GB~h]'
    """
    return text.replace(" %", f"{THIN}%").replace(" h]", "\u00a0h]")


def after_word(sentence: str, kind: str) -> str:
    """Drop the word of a verdict from its sentence, where the word stands before it anyway.

    Example:
        >>> after_word("No answer: too few tasks.", "no_answer"), after_word("Keep rank 75.", "keep")
        ('Too few tasks.', 'Keep rank 75.')
    """
    word = f"{KIND_WORDS[kind]}: "
    rest = sentence.removeprefix(word)
    return rest if rest == sentence else rest[:1].upper() + rest[1:]


def prose(text: str) -> Markup:
    """Escape a sentence and keep its numbers, units and setting names together on a line.

    A setting such as ``SCOUT_RAMCOUNT_RANK`` is set as code; it may break at its underscores.

    Example:
        >>> str(prose("Keep SCOUT_RANK = 75 & more"))
        'Keep <code>SCOUT_<wbr>RANK</code> = 75 &amp; more'
    """
    safe = str(escape(together(text)))
    key = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Za-z0-9]+)+\b")
    return Markup(key.sub(lambda m: f"<code>{m[0].replace('_', '_<wbr>')}</code>", safe))  # noqa: S704


def inline_svg(folder: Path, picture: Picture) -> Markup:
    """Return a chart as inline SVG that a screen reader announces as one picture with its finding.

    Identifiers inside are made unique: two charts that both have a ``clip0`` would else clip each
    other.

    Args:
        folder: The run's folder.
        picture: Names the chart and says its finding.

    Raises:
        ReportError: The file is missing or is not SVG.
    """
    path = folder / "charts" / f"{picture.chart}.svg"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ReportError(
            f"the page names the chart {picture.chart!r}; {path} is missing"
        ) from None
    start = text.find("<svg")
    if start < 0:
        raise ReportError(f"{path} is not SVG")
    svg = ID_ATTRIBUTE.sub(rf'id="{picture.chart}-\1"', text[start:].strip())
    svg = ID_REFERENCE.sub(rf"\1{picture.chart}-", svg)
    label = f'<svg role="img" aria-label="{escape(picture.alt)}"'
    return Markup(svg.replace("<svg", label, 1))  # noqa: S704 - our own charts, alt text escaped


def _pictures(content: Page) -> list[Picture]:
    """Return every picture of a page."""
    blocks = [block for part in content.parts for _, section in part.sections for block in section]
    return [block for block in blocks if isinstance(block, Picture)]
