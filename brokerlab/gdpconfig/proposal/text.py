"""Proposals as JSON: a versioned shape, checked on reading with every problem at once.

Source: design, idea 6; ``proposal-1.schema.json`` beside this file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from brokerlab.errors import ProposalError, reading
from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.proposal.characters import character_problems
from brokerlab.gdpconfig.proposal.document import NOTES, Proposal, reject
from brokerlab.gdpconfig.proposal.parts import (
    Affected,
    Change,
    Digests,
    Effect,
    Evidence,
    Source,
    Stored,
    Window,
)
from brokerlab.gdpconfig.values import digest_of
from brokerlab.schemas import jsonschema

SCHEMA_NAME = "brokerlab/proposal/"
VERSION = 1
_OPTIONAL = ("sources", "takes_back", *NOTES)


def dumps(proposal: Proposal) -> str:
    """Return a proposal as JSON, with a digest of its own content; NaN and infinity are refused."""
    document = _document(proposal)
    try:
        document["digest"] = _digest(document)
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError as error:
        raise ProposalError(
            "the proposal contains NaN or infinity; use null for 'unknown'"
        ) from error


def digest(proposal: Proposal) -> str:
    """Return the digest that :func:`dumps` writes into the document."""
    return _digest(_document(proposal))


def _document(proposal: Proposal) -> dict[str, Any]:
    """Return the document but for its digest; what only few proposals have is left out of the others."""
    document: dict[str, Any] = _plain({"schema": f"{SCHEMA_NAME}{VERSION}", **asdict(proposal)})
    parts = [(document["evidence"], "filters")]
    parts += [(effect, "coverage") for effect in document["evidence"]["effects"]]
    for part, name in parts:
        if part[name] is None:
            del part[name]
    return {name: value for name, value in document.items() if name not in _OPTIONAL or value}


def loads(text: str, source: str = "the proposal") -> Proposal:
    """Read a proposal from JSON.

    Raises:
        ProposalError: No JSON, another or newer schema, fields that are missing, unknown or of a wrong type,
            contents that contradict each other, or a document that was edited; everything at once.
    """
    proposal, problems = examine(text, source)
    reject(problems, f"{source} is not sound")
    return proposal


def examine(text: str, source: str = "the proposal") -> tuple[Proposal, list[str]]:
    """As :func:`loads`, but return what is wrong with the contents of a document that has the right shape."""
    try:
        document = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ProposalError(f"{source} is no proper JSON: {error}") from error
    _check_version(document, source)
    reject(character_problems(document), f"{source} has characters that cannot be seen")
    reject(_shape_problems(document), f"{source} does not have the shape of a proposal")
    proposal = _proposal(document)
    problems = proposal.problems()
    if _digest(document) != document["digest"]:
        problems.append(
            "digest: does not fit the content; the file was edited, and its evidence is not about what it "
            "says now: make a new proposal"
        )
    return proposal, problems


def _no_number(name: str) -> None:
    """Refuse what Python reads and JSON has not."""
    raise ValueError(f"{name} is no number; null stands for what is not known")


def read(path: str | Path) -> Proposal:
    """Read a proposal from a file; as :func:`loads`."""
    with reading(path):
        return loads(text_of(path), str(path))


def verified(
    paths: Iterable[str | Path], config: Config | None, *, touched_only: bool = False
) -> list[Proposal]:
    """Read proposals, and refuse those that are not sound or were made for another configuration, everything wrong at once.

    A null configuration is not known, see :meth:`.Proposal.differences`.
    """
    documents, wrong = [], []
    acting = (
        "the configuration is"
        if config is not None
        else "no configuration is given, and the defaults are"
    )
    for path in paths:
        try:
            document, problems = examine(text_of(path), str(path))
            checks = (
                (problems, f"{path} is not sound"),
                (
                    document.differences(config, touched_only=touched_only),
                    f"{acting} not the base of {document.title!r}",
                ),
            )
            wrong += ["\n  ".join([f"{what}:", *result]) for result, what in checks if result]
            documents.append(document)
        except ProposalError as error:
            wrong.append(str(error))
    if wrong:
        raise ProposalError("\n".join(wrong))
    return documents


def text_of(path: str | Path) -> str:
    """Return the text of a file; refuse one that cannot be read or is not UTF-8."""
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ProposalError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ProposalError(f"{path} is not UTF-8 at byte {error.start}") from error


def write(text: str, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a text to a new file, completely or not at all; one that exists is refused unless ``overwrite`` is set."""
    file = Path(path)
    if file.is_dir():
        raise ProposalError(f"{file} is a folder; name a file")
    if file.exists() and not overwrite:
        raise ProposalError(f"{file} exists; choose another name or allow to overwrite it")
    part = file.with_name(f"{file.name}.part{os.getpid()}")
    try:
        part.write_text(text, "utf-8")
        part.replace(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise ProposalError(f"{file} cannot be written: {error.strerror}") from error


def _digest(document: Mapping[str, Any]) -> str:
    """Return the digest of a document but for its field "digest" and notes; 50.0 and 50 are the same number."""

    def same(value: Any) -> Any:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, dict):
            return {key: same(item) for key, item in value.items()}
        return [same(item) for item in value] if isinstance(value, list) else value

    return digest_of(
        {key: same(value) for key, value in document.items() if key not in ("digest", *NOTES)}
    )


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: times as text, tuples as lists."""
    if isinstance(value, datetime):
        return value.isoformat() + "Z"
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)


def _check_version(document: Any, source: str) -> None:
    name = document.get("schema") if isinstance(document, dict) else None
    if name == f"{SCHEMA_NAME}{VERSION}":
        return
    hint = (
        "it may have been written by a newer brokerlab" if str(name).startswith(SCHEMA_NAME) else ""
    )
    raise ProposalError(
        f"{source}: schema: found {name!r}, this brokerlab reads '{SCHEMA_NAME}{VERSION}'"
        + (f"; {hint}" if hint else "; is it a proposal at all?")
    )


@cache
def _schema() -> dict[str, Any]:
    folder = resources.files("brokerlab.gdpconfig.proposal")
    text = folder.joinpath(f"proposal-{VERSION}.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _shape_problems(document: Any) -> list[str]:
    schemas = jsonschema()
    checker = schemas.FormatChecker(formats=())
    checker.checks("date-time", raises=(ValueError, OverflowError))(_is_time)
    validator = schemas.Draft202012Validator(_schema(), format_checker=checker)
    errors = sorted(
        validator.iter_errors(document), key=lambda error: list(map(str, error.absolute_path))
    )
    return [
        f"{'.'.join(map(str, error.absolute_path)) or 'document'}: {error.message[:200]}"
        for error in errors
    ]


def _is_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    has_zone = datetime.fromisoformat(value).tzinfo is not None
    return has_zone and _time(value) is not None  # in UTC it may be before the first year


def _stored(item: dict[str, Any] | None) -> Stored | None:
    return None if item is None else Stored(**item)


def _change(item: dict[str, Any]) -> Change:
    contents = {"before": _stored(item["before"]), "after": _stored(item["after"])}
    return Change(**{**item, **contents})


def _evidence(item: dict[str, Any]) -> Evidence:
    return Evidence(
        verdict=item["verdict"],
        effects=tuple(Effect(**effect) for effect in item["effects"]),
        windows=tuple(
            Window(window["name"], _time(window["start"]), _time(window["end"]))
            for window in item["windows"]
        ),
        helps=tuple(Affected(**affected) for affected in item["helps"]),
        hurts=tuple(Affected(**affected) for affected in item["hurts"]),
        numbers=item["numbers"],
        synthetic=item["synthetic"],
        filters=item.get("filters"),
    )


def _proposal(document: dict[str, Any]) -> Proposal:
    return Proposal(
        kind=document["kind"],
        title=document["title"],
        created_at=_time(document["created_at"]),
        changes=tuple(_change(item) for item in document["changes"]),
        evidence=_evidence(document["evidence"]),
        digests=Digests(**document["digests"]),
        places=document["places"],
        sources=tuple(
            Source(**{**item, "keys": tuple(item["keys"])}) for item in document.get("sources", ())
        ),
        takes_back=document.get("takes_back"),
        **{name: document.get(name) for name in NOTES},
    )
