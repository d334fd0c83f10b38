"""Proposals as files: JSON of a versioned shape, checked on reading with every problem at once, found in a folder of reports.

Source: design, idea 6; ``proposal-1.schema.json`` beside this file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from brokerlab.errors import ProposalError, reading
from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.proposal.document import NOTES, Proposal, character_problems, reject
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
from brokerlab.schemas import digest_of, jsonschema

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


PAGE = "index.html"
MANIFEST = "manifest.json"
PATTERN = "proposal*.json"


@dataclass(frozen=True)
class Filed:
    """A proposal and where it lies.

    Attributes:
        name: What it is called in messages: the path as given.
        report: Report that made it; null = it does not lie in the folder of a run, as all that follow.
        folder: Folder of the run, to find the page and its tables.
        archive: Archive that the run was asked about, as given to it.
        started: Start of the run, ISO 8601.
    """

    name: str
    proposal: Proposal
    report: str | None = None
    run: str | None = None
    folder: Path | None = None
    archive: str | None = None
    started: str | None = None

    @property
    def page(self) -> str | None:
        """Page of the run relative to the folder of reports; null = there is none."""
        if self.folder is None or not (self.folder / PAGE).is_file():
            return None
        return "/".join([*self.folder.parts[-2:], PAGE])

    @property
    def sources(self) -> tuple[Source, ...]:
        """What proves it: itself, or the proposals that it was merged from."""
        if self.proposal.sources:
            return self.proposal.sources
        document = self.proposal
        return (
            Source(
                title=document.title,
                verdict=document.evidence.verdict,
                digest=document.digest,
                keys=tuple(sorted({change.place for change in document.changes})),
                report=self.report,
                run=self.run,
                page=self.page,
                archive=document.digests.archive,
                rules=document.digests.rules,
            ),
        )


@dataclass(frozen=True)
class Broken:
    """A file that is named like a proposal and is no sound one, with its path as given and, in one line, what is wrong."""

    name: str
    problem: str
    report: str | None = None
    run: str | None = None


def read_filed(path: str | Path, reports: str | Path | None = None) -> Filed:
    """Read a proposal with where it lies; one that lies in no run is looked for in a folder of reports.

    Raises:
        ProposalError: The file cannot be read or is not a sound proposal.
    """
    file = Path(path)
    proposal = read(file)
    run = run_of(file.resolve().parent)
    if run is None and reports is not None:
        run = _maker(proposal.digest, Path(reports))
    return Filed(str(path), proposal, **({} if run is None else run.fields))


def read_all(paths: Iterable[str | Path], reports: str | Path | None = None) -> list[Filed]:
    """Read several proposals as :func:`read_filed`; everything that is wrong with any of them is told at once."""
    result, problems = [], []
    for path in paths:
        try:
            result.append(read_filed(path, reports))
        except ProposalError as error:
            problems.append(str(error))
    if problems:
        raise ProposalError("\n".join(problems))
    return result


def find(folder: str | Path) -> list[Filed | Broken]:
    """Find the proposals of a folder of reports, runs or proposals, at any depth; or one proposal.

    Every file ``proposal*.json``, sorted by path, hidden folders (runs that are not finished) left out; what cannot be read, or
    was left by a run that failed, is told, not left out.

    Raises:
        ProposalError: There is no such folder.
    """
    root = Path(folder)
    if not root.exists():
        raise ProposalError(f"{root}: there is no such folder")
    result: list[Filed | Broken] = []
    for path in [root] if root.is_file() else sorted(root.rglob(PATTERN)):
        if not path.is_file() or any(part[0] == "." for part in path.relative_to(root).parts):
            continue
        run = run_of(path.resolve().parent)
        made = (None, None) if run is None else (run.report, run.run)
        try:
            filed = read_filed(path)
        except ProposalError as error:
            result.append(Broken(str(path), " ".join(str(error).split()), *made))
            continue
        if run is not None and run.state == "failed":
            result.append(Broken(str(path), "the run that wrote it failed afterwards", *made))
        else:
            result.append(filed)
    return result


def newest(filed: Iterable[Filed]) -> tuple[list[Filed], list[Filed]]:
    """Tell the newest proposals, in the order given, from those that a later run of the same report has put another in place of.

    Two are in each other's place if report, archive and name of the file are the same; what lies in no run stands for itself.
    """
    given = list(filed)
    last: dict[tuple[str, str | None, str], Filed] = {}
    for one in given:
        where = _in_place_of(one)
        if where is not None and _age(one) >= _age(last.get(where, one)):
            last[where] = one
    counts, replaced = list[Filed](), list[Filed]()
    for one in given:
        where = _in_place_of(one)
        (counts if where is None or last[where] is one else replaced).append(one)
    return counts, replaced


def _in_place_of(one: Filed) -> tuple[str, str | None, str] | None:
    return None if one.report is None else (one.report, one.archive, Path(one.name).name)


def _age(one: Filed) -> tuple[str, str]:
    return one.started or "", one.run or ""


@dataclass(frozen=True)
class Run:
    """What is known of a run: as on a :class:`Filed`, and its parameters, how it ended, and what it proposed."""

    report: str
    run: str
    folder: Path
    archive: str | None
    started: str | None
    parameters: Mapping[str, Any]
    state: str
    digests: tuple[str, ...]

    @property
    def fields(self) -> dict[str, Any]:
        """What a proposal keeps of it."""
        names = ("report", "run", "folder", "archive", "started")
        return {name: getattr(self, name) for name in names}


def run_of(folder: Path) -> Run | None:
    """Return the run of a folder; null: none, or one that was stopped, where a proposal stands for itself."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        parameters, started = manifest.get("parameters", {}), manifest.get("started")
        archive = parameters.get("archive")
        return Run(
            str(manifest["report"]),
            str(manifest["run_id"]),
            folder,
            None if archive is None else str(archive),
            None if started is None else str(started),
            parameters,
            str(manifest.get("state")),
            tuple(str(one["digest"]) for one in manifest.get("proposals", ())),
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _maker(digest: str, reports: Path) -> Run | None:
    """Return the run of a folder of reports that wrote a proposal, by its digest; null: none is there."""
    for manifest in sorted(reports.glob(f"*/*/{MANIFEST}")):
        run = run_of(manifest.resolve().parent)
        if run is not None and digest in run.digests:
            return run
    return None
