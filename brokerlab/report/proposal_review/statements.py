"""What puts proposals in and takes them back: files beside the page, and the commands that make them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from brokerlab.errors import ProposalError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Proposal, dumps, patch, render
from brokerlab.gdpconfig.proposal.statements import Form
from brokerlab.report.proposal_review.study import Study

FOLDER = "apply"
TOGETHER = "together"
FORMS: Mapping[Form, str] = MappingProxyType({"sql": "sql", "patch": "patch.json", "json": "json"})
BASE = "base.json"
"""The present configuration as the document that the patches fit."""


@dataclass(frozen=True)
class Statements:
    """The texts of one proposal.

    Attributes:
        files: Name of a file -> its text.
        sql: What sets the values, with what takes them back behind it; null = it cannot stand in SQL text.
        refused: Why not; empty where it can.
    """

    files: Mapping[str, str]
    sql: str | None
    refused: str


def statements(study: Study) -> dict[str, Statements]:
    """Return the statements of every proposal of the agenda by its label, and of all of them together."""
    documents = {item.label: item.proposal for item in study.decide}
    if study.merged is not None:
        documents[TOGETHER] = study.merged
    return {name: _of(name, document, study.inputs.config) for name, document in documents.items()}


def _of(name: str, document: Proposal, config: Config) -> Statements:
    after = document.applied_to(config, touched_only=True)
    back = document.revert(after, created_at=document.created_at)
    files: dict[str, str] = {}
    sql, refused = None, ""
    for form, ending in FORMS.items():
        try:
            text = render(document, config, form=form, touched_only=True)
            undo = render(back, after, form=form)
        except ProposalError as error:
            refused = str(error)
            continue
        files |= {f"{name}.{ending}": text, f"{name}-take-back.{ending}": undo}
        sql = text if form == "sql" else sql
    if name == TOGETHER:
        files[f"{TOGETHER}.proposal.json"] = dumps(document)
    return Statements(files, sql, refused)


def write(found: Mapping[str, Statements], config: Config, folder: Path) -> list[str]:
    """Write every text to a file, and the base of the patches; return their names, relative to the folder of the run."""
    if not found:
        return []
    base = json.dumps(patch.document(config), indent=2, ensure_ascii=False) + "\n"
    files = {BASE: base} | {n: text for one in found.values() for n, text in one.files.items()}
    target = folder / FOLDER
    target.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (target / name).write_text(text, encoding="utf-8")
    return [f"{FOLDER}/{name}" for name in files]
