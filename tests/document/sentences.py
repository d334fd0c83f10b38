"""The sentences of the documents, the cases that quote them, and the table of both.

A case is a test of this folder. The first paragraph of its docstring names page and section and quotes the sentence, or
the part of it that the case is about: ``003, cpuTime: The m prefix means that ...``. What follows is a remark.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from brokerlab.rulesets import differences

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "docs" / "rules" / "coverage.md"
INTRODUCTION = """# Sentences of the documents and the cases that hold them

Made by `python -m tests.document`; do not edit. One row per sentence that decides something; a sentence is exact under
`rules="document"`, or is a slip of the page, when every case that quotes it passes. **open** means that no case quotes it
yet. The switch is what `rules="production"` sets otherwise; `brokerlab switches` explains it. Pages: 003 is *Dynamic
Optimization of Task Parameters*, 002 *Brokerage* as it reads now, 001 an older edition of it that still holds a section.
Listed are 003 and 002 whole, and of 001 the section on fair share policies, which 002 names without holding it.
"""


@dataclass(frozen=True)
class Sentence:
    """One sentence: where it stands, what it says, which function follows it."""

    page: str
    section: str
    text: str
    rule: str

    def holds(self, source: str, quote: str) -> bool:
        """Tell whether a quote, cited by page and section, is of this sentence."""
        return f"{self.page}, {self.section}" == source and plain(quote) in plain(self.text)


@dataclass(frozen=True)
class Case:
    """One test and what it quotes."""

    file: str
    test: str
    source: str
    quote: str


def plain(text: str) -> str:
    """Return a text without what a web page and a program write differently: blanks, quotation marks, signs of products."""
    signs = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "×": "x", "`": None})
    return " ".join(text.translate(signs).split()).rstrip(".,")


def sentences() -> list[Sentence]:
    """Return the listed sentences, newest page first, in the order of their pages."""
    found = []
    for file in sorted(HERE.glob("*.toml"), reverse=True):
        rows = tomllib.loads(file.read_text(encoding="utf-8"))["sentence"]
        found += [Sentence(file.stem, **row) for row in rows]
    return found


def cases() -> Iterator[Case]:
    """Yield the tests of this folder that quote a page, from their source."""
    for file in sorted(HERE.glob("test_*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                quoted = (ast.get_docstring(node) or "").split("\n\n")[0]
                source, colon, quote = quoted.partition(": ")
                if colon and source[:3].isdigit():
                    yield Case(file.name, node.name, " ".join(source.split()), quote)


def table() -> str:
    """Return the table as Markdown."""
    every, listed, switches = list(cases()), sentences(), differences().drop_nulls("sentence")
    own = [[case for case in every if one.holds(case.source, case.quote)] for one in listed]
    n_open = sum(not found for found in own)
    lines = [INTRODUCTION, f"{len(listed)} sentences, {n_open} of them open.", ""]
    lines += ["| page | section | sentence | rule | switch | case |", "|---|---|---|---|---|---|"]
    for one, found in zip(listed, own, strict=True):
        named = [
            f"`{row['switch']}`"
            for row in switches.iter_rows(named=True)
            if one.holds(row["source"], row["sentence"])
        ]
        tests = [f"`{case.file}::{case.test}`" for case in found] or ["**open**"]
        text = one.text.replace("|", "\\|").replace("<", "&lt;")
        rule = f"`{one.rule.removeprefix('brokerlab.')}`"
        cells = (
            one.page,
            one.section,
            text,
            rule,
            ", ".join(dict.fromkeys(named)),
            ", ".join(tests),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
