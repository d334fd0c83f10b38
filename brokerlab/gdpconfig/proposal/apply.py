"""What puts proposals into effect and takes them back, as files in every form."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from brokerlab.errors import ProposalError
from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.proposal import patch
from brokerlab.gdpconfig.proposal.document import Proposal
from brokerlab.gdpconfig.proposal.statements import Form, render
from brokerlab.gdpconfig.proposal.text import dumps

ENDINGS: MappingProxyType[Form, str] = MappingProxyType(
    {"sql": "sql", "patch": "patch.json", "json": "json"}
)
BASE = "base.json"
"""The present configuration as the document that the patches fit."""


@dataclass(frozen=True)
class ApplyFiles:
    """The files of one proposal.

    Attributes:
        name: What the files are called: ``NAME.sql``, ``NAME-take-back.sql`` and so on.
        files: Name of a file to its text; without the forms that a value cannot stand in.
        sql: What sets the values, with what takes them back behind it; null: it cannot stand in SQL text.
        refused: Why not; empty where it can.
    """

    name: str
    files: dict[str, str]
    sql: str | None
    refused: str


def apply_files(name: str, document: Proposal, config: Config) -> ApplyFiles:
    """Write what puts a change into effect, and what takes it back, in every form that can hold its values.

    Of a merged proposal the document itself is among the files. Keys that it does not touch may differ from its base.
    """
    after = document.applied_to(config, touched_only=True)
    back = document.revert(after, created_at=document.created_at)
    files: dict[str, str] = {}
    refused = ""
    for form, ending in ENDINGS.items():
        try:
            there = render(document, config, form=form, touched_only=True)
            undo = render(back, after, form=form)
        except ProposalError as error:
            refused = str(error)
            continue
        files |= {f"{name}.{ending}": there, f"{name}-take-back.{ending}": undo}
    if document.sources:
        files[f"{name}.proposal.json"] = dumps(document)
    return ApplyFiles(name, files, files.get(f"{name}.sql"), refused)


def write_apply_files(sets: Iterable[ApplyFiles], config: Config, folder: str | Path) -> list[str]:
    """Write files into a folder, which is made, with the base of the patches, and return their names; nothing without files."""
    files = {name: text for one in sets for name, text in one.files.items()}
    if not files:
        return []
    base = json.dumps(patch.document(config), indent=2, ensure_ascii=False) + "\n"
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, text in ({BASE: base} | files).items():
        (target / name).write_text(text, encoding="utf-8")
    return [BASE, *files]
