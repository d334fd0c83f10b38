"""Render a run's `results.json` as one self-contained HTML page.

Nothing is loaded from elsewhere: style, charts and the script that makes them interactive are inside; links go to the
files beside the page. Without scripts the SVG charts stay.
"""

import contextlib
import functools
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from brokerlab.errors import ReportError
from brokerlab.report.results import KIND_WORDS
from brokerlab.words import THIN, thin

ID_ATTRIBUTE = re.compile(r'\bid="([^"]+)"')
ID_REFERENCE = re.compile(r'(url\(#|href="#)')
SETTING = re.compile(r"(?<![\w-])[A-Z][A-Z0-9]*(?:_[A-Za-z0-9]+)+\b")
LONG = re.compile(r"\w{16,}")  # names that narrow columns break
BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:h|s|min|[kMGT]B)\b)")
PAGE_BYTES = 2_900_000  # largest page; charts beyond it stay pictures
CONTENTS_FROM = 4  # A page with more sections has a table of contents


def render(results: Mapping[str, Any], folder: Path) -> str:
    """Return the page of a run as HTML below 3 MB; charts are read from ``charts/`` in its folder."""
    page = results["page"]
    charts = {chart["chart"]: chart for chart in _charts(page)}
    svgs = {name: inline_svg(folder, name, chart["finding"]) for name, chart in charts.items()}
    left = PAGE_BYTES - sum(map(len, svgs.values())) - len(json.dumps(page))
    specs, script = _interactive(folder, list(charts), left)
    template = environment().get_template("page.html.j2")
    return template.render(
        page=page,
        charts=svgs,
        specs=specs,
        script=script,
        derived=results.get("derived"),
        error=results.get("error"),
        contents=_contents(page),
    )


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
    made.filters["together"] = together
    made.filters["in_cell"] = in_cell
    made.filters["prose"] = prose
    made.filters["slug"] = slug
    return made


def together(text: str) -> str:
    r"""Keep a unit with its number and a product of units on one line; minus signs are true ones.

    Example:
        >>> together("margin -10 % [GB h], 1 h").replace(THIN, "_").replace("\u00a0", "~")
        'margin −10_% [GB~h], 1~h'
    """
    text = BEFORE_UNIT.sub("\u00a0", thin(text))
    return text.replace(" %", f"{THIN}%").replace(" h]", "\u00a0h]")


def prose(text: str) -> Markup:
    """Escape a sentence and keep its numbers, units and setting names together on a line.

    A setting such as ``SCOUT_RAMCOUNT_RANK`` is set as code; it may break at its underscores.

    Example:
        >>> str(prose("Keep SCOUT_RANK = 75 & more"))
        'Keep <code>SCOUT_<wbr>RANK</code> = 75 &amp; more'
    """
    safe = str(escape(together(text)))
    return Markup(SETTING.sub(lambda m: f"<code>{m[0].replace('_', '_<wbr>')}</code>", safe))  # noqa: S704


def in_cell(text: str) -> Markup:
    """Escape the text of a cell, a number as the kit has written it or a name as it is; long ones may break at underscores.

    Example:
        >>> str(in_cell("NQUEUED_NUC_CAP_FOR_JOBS")), str(in_cell("SITE -5"))
        ('NQUEUED_<wbr>NUC_<wbr>CAP_<wbr>FOR_<wbr>JOBS', 'SITE -5')
    """
    safe = str(escape(text))
    return Markup(LONG.sub(lambda m: m[0].replace("_", "_<wbr>"), safe))  # noqa: S704


def slug(text: str) -> str:
    """Return a heading as part of an address.

    Example:
        >>> slug("Who gains, who loses")
        'who-gains-who-loses'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def inline_svg(folder: Path, name: str, finding: str) -> Markup:
    """Return a chart as inline SVG that a screen reader announces as one picture with its finding.

    Identifiers inside are made unique: two charts that both have a ``clip0`` would else clip each
    other.
    """
    path = folder / "charts" / f"{name}.svg"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ReportError(f"the page names the chart {name!r}; {path} is missing") from None
    start = text.find("<svg")
    if start < 0:
        raise ReportError(f"{path} is not SVG")
    svg = ID_ATTRIBUTE.sub(rf'id="{name}-\1"', text[start:].strip())
    svg = ID_REFERENCE.sub(rf"\1{name}-", svg)
    label = f'<svg role="img" aria-label="{escape(finding)}"'
    return Markup(svg.replace("<svg", label, 1))  # noqa: S704 - our own charts, alt text escaped


def _interactive(folder: Path, names: list[str], left: int) -> tuple[dict[str, Markup], Markup]:
    """Return the specifications of charts that the page has room for, in its order, and the script that draws them."""
    specs: dict[str, Markup] = {}
    if not names:
        return specs, Markup()
    script = _bundle()
    left -= len(script)
    for name in names:
        path = folder / "charts" / f"{name}.json"
        text = json.dumps(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else ""
        safe = text.replace("<", "\\u003c")
        if text and len(safe) <= left:
            left -= len(safe)
            specs[name] = Markup(safe)  # noqa: S704 - JSON without an opening bracket
    return specs, script if specs else Markup()


@functools.cache
def _bundle() -> Markup:
    """Return Vega, Vega-Lite, Vega-Embed and what draws the charts of a page, as one script.

    To bundle it takes over a second: it is kept beside compiled code, where that can be written.
    """
    import vl_convert

    ours = resources.files("brokerlab.report").joinpath("templates/charts.js").read_text("utf-8")
    made_of = f"{version('vl-convert-python')}\n{ours}"
    digest = hashlib.sha256(made_of.encode()).hexdigest()[:16]
    kept = Path(__file__).parent / "__pycache__" / f"charts-{digest}.js"
    with contextlib.suppress(OSError, ValueError):
        return Markup(kept.read_text("utf-8"))  # noqa: S704 - a library's own code
    bundle = vl_convert.javascript_bundle(ours).replace("</script", "<\\/script")
    with contextlib.suppress(OSError):
        kept.parent.mkdir(exist_ok=True)
        fresh = kept.with_suffix(f".{os.getpid()}")
        fresh.write_text(bundle, "utf-8")
        fresh.replace(kept)
    return Markup(bundle)  # noqa: S704 - a library's own code


def _charts(page: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield every chart in the order of the page."""
    for owner in (page, *page["parts"]):
        if owner["chart"]:
            yield owner["chart"]
        for section in owner["sections"]:
            yield from (block for block in section["blocks"] if block["kind"] == "chart")


def _contents(page: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the lines of the table of contents; none on a short page."""
    result = [{"id": slug(s["title"]), "title": s["title"]} for s in page["sections"]]
    result += [{"id": part["name"], "title": part["title"]} for part in page["parts"]]
    result += (
        [{"id": "cannot-tell", "title": "What this cannot tell"}] if page["cannot_tell"] else []
    )
    result.append({"id": "made", "title": "How it was made"})
    return result if len(result) > CONTENTS_FROM else []
