"""What the code cites is there: a chapter that is shipped, with the section that is named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CITED = re.compile(r"\b([A-Za-z_-]+\.md)((?:,? sections?)? (\d+(?:(?:\.\d+)*[a-z]?)))?")
NOT_CITED = {"model_card.md"}
"""Files that the library writes itself."""


def citations() -> Iterator[tuple[Path, str, str | None]]:
    """Yield every chapter named in the library and its tests, with the section."""
    for folder in ("brokerlab", "tests", "benchmarks"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            if file != Path(__file__):
                for found in CITED.finditer(file.read_text(encoding="utf-8")):
                    yield file.relative_to(ROOT), found[1], found[3]


def sections() -> dict[str, set[str]]:
    """Return the numbers of the sections of every chapter that is shipped."""
    files = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    heading = re.compile(r"^#+ (\d+)\.?", re.MULTILINE)
    return {file.name: set(heading.findall(file.read_text(encoding="utf-8"))) for file in files}


def test_every_chapter_that_is_cited_is_shipped() -> None:
    known = sections()
    wrong = {f"{file}: {name}" for file, name, _ in citations() if name not in {*known, *NOT_CITED}}
    assert not wrong


def test_every_section_that_is_cited_is_in_its_chapter() -> None:
    known = sections()
    wrong = {
        f"{file}: {name} {section}"
        for file, name, section in citations()
        if section and known.get(name) and section.split(".")[0].rstrip("abc") not in known[name]
    }
    assert not wrong


def test_no_page_of_ours_is_missing_from_the_list() -> None:
    listed = (ROOT / "docs/rules/README.md").read_text(encoding="utf-8")
    chapters = {file.name for file in (ROOT / "docs/rules").glob("*.md")} - {"README.md"}
    assert not {name for name in chapters if f"]({name})" not in listed}
