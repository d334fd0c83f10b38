"""What every page must be, whatever its report: `check_page` is called by the test of each."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from brokerlab.report.kit import HEADLINE_WORDS, publish
from brokerlab.report.rendering import render
from brokerlab.words import THIN

PAGE_BYTES = 3_000_000
PROSE_WORDS, PART_WORDS = 900, 350
"""Words outside tables: of a page, and of each of several parts; the aim is 600, lists of caveats need more."""
TEXT_CHARS = 2048
"""A name longer than this is cut."""


def check_page(folder: Path) -> dict[str, Any]:
    """Hold a run's page to what all pages have in common, and return its results."""
    stored = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    html = (folder / "index.html").read_text(encoding="utf-8")
    page = stored["page"]
    assert html == render(stored, folder)  # the page and its numbers cannot differ
    assert len(html.encode()) < PAGE_BYTES
    headlines = [page["verdict"], *(part["verdict"] for part in page["parts"])]
    for verdict in headlines:
        words = re.sub(rf"[ {THIN}]%", "%", verdict["sentence"]).split()
        assert 0 < len(words) <= HEADLINE_WORDS, verdict["sentence"]
    assert len(page["numbers"]) <= 3
    for owner in (page, *page["parts"]):
        for section in owner["sections"]:
            assert section["blocks"], section["title"]
    texts = re.sub(r"<(script|style|svg|table|pre|dl)\b.*?</\1>", " ", html, flags=re.S)
    assert len(re.sub(r"<[^>]+>", " ", texts).split()) < PROSE_WORDS + PART_WORDS * len(
        page["parts"]
    )
    shown = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.S)
    for wrong in ("nan", "None", "inf", "NaN"):
        assert not re.search(rf"[>( ]{wrong}[<) ]", shown), wrong
    resources = re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="([^"]*)"', shown)
    assert resources == []
    links = [
        link for link in re.findall(r'<a [^>]*href="([^"#]+)"', html) if "index.html" not in link
    ]
    assert [link for link in links if "://" in link or not (folder / link).exists()] == []
    assert shown.count('role="img" aria-label="') == len(re.findall(r"<svg\b", shown))
    assert 'aria-label=""' not in shown
    ids = re.findall(r'\bid="([^"]+)"', shown)
    assert len(ids) == len(set(ids))
    assert shown.count("<caption>") == shown.count("<table")
    for name in stored["numbers"]:
        assert (folder / "tables" / f"{name}.parquet").exists()
    return stored


def check_names(folder: Path) -> None:
    """Hold a run's page to what it does with odd names."""
    stored = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert "<odd" not in (folder / "index.html").read_text(encoding="utf-8")
    assert [text for text in texts_of(stored["page"]) if len(text) > TEXT_CHARS] == []


def texts_of(page: object) -> Iterator[str]:
    """Yield every text of a page."""
    if isinstance(page, str):
        yield page
    elif isinstance(page, dict | list):
        for part in page.values() if isinstance(page, dict) else page:
            yield from texts_of(part)


def run(report: Any, params: Any) -> dict[str, Any]:
    """Load, study and publish, as the notebook of a report does cell by cell."""
    data = report.load(params)
    given = (data, report.study(data, params), params)
    return publish(report.page(*given[: report.page.__code__.co_argcount]), params)
