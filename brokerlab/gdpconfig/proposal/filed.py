"""Proposals where they lie: read with the report and the run that prove them, found in a folder of reports."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brokerlab.errors import ProposalError
from brokerlab.gdpconfig.proposal import text
from brokerlab.gdpconfig.proposal.document import Proposal
from brokerlab.gdpconfig.proposal.parts import Source

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


def read(path: str | Path, reports: str | Path | None = None) -> Filed:
    """Read a proposal with where it lies; one that lies in no run is looked for in a folder of reports.

    Raises:
        ProposalError: The file cannot be read or is not a sound proposal.
    """
    file = Path(path)
    proposal = text.read(file)
    run = _run(file.resolve().parent)
    if run is None and reports is not None:
        run = _maker(proposal.digest, Path(reports))
    return Filed(str(path), proposal, **({} if run is None else run.fields))


def read_all(paths: Iterable[str | Path], reports: str | Path | None = None) -> list[Filed]:
    """Read several proposals as :func:`read`; everything that is wrong with any of them is told at once."""
    result, problems = [], []
    for path in paths:
        try:
            result.append(read(path, reports))
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
        run = _run(path.resolve().parent)
        made = (None, None) if run is None else (run.report, run.run)
        try:
            filed = read(path)
        except ProposalError as error:
            result.append(Broken(str(path), " ".join(str(error).split()), *made))
            continue
        if run is not None and run.failed:
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
class _Run:
    """What is known of a run."""

    report: str
    run: str
    folder: Path
    archive: str | None
    started: str | None
    failed: bool
    digests: tuple[str, ...]

    @property
    def fields(self) -> dict[str, Any]:
        """What a proposal keeps of it."""
        names = ("report", "run", "folder", "archive", "started")
        return {name: getattr(self, name) for name in names}


def _run(folder: Path) -> _Run | None:
    """Return the run of a folder; null: none, or one that was stopped, where a proposal stands for itself."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        archive = manifest.get("parameters", {}).get("archive")
        started = manifest.get("started")
        return _Run(
            str(manifest["report"]),
            str(manifest["run_id"]),
            folder,
            None if archive is None else str(archive),
            None if started is None else str(started),
            manifest.get("state") == "failed",
            tuple(str(one["digest"]) for one in manifest.get("proposals", ())),
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _maker(digest: str, reports: Path) -> _Run | None:
    """Return the run of a folder of reports that wrote a proposal, by its digest; null: none is there."""
    for manifest in sorted(reports.glob(f"*/*/{MANIFEST}")):
        run = _run(manifest.resolve().parent)
        if run is not None and digest in run.digests:
            return run
    return None
