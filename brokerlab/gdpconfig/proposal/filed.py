"""Proposals where they lie: read with the report and the run that prove them, found in a folder of reports.

Source: design, idea 6; report-page.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from brokerlab.errors import ProposalError
from brokerlab.gdpconfig.proposal import text
from brokerlab.gdpconfig.proposal.document import Proposal
from brokerlab.gdpconfig.proposal.parts import Source

PAGE = "index.html"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Filed:
    """A proposal and where it lies.

    Attributes:
        name: What it is called in messages: the path as given.
        proposal: The document.
        report: Report that made it; null = it does not lie in the folder of a run.
        run: Run of the report; null as before.
        folder: Folder of the run, to find the page and its tables; null as before.
    """

    name: str
    proposal: Proposal
    report: str | None = None
    run: str | None = None
    folder: Path | None = None

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
    """A file that is named like a proposal and is no sound one.

    Attributes:
        name: The path as given.
        problem: What is wrong, in one line.
        report: As for :class:`Filed`.
        run: As for :class:`Filed`.
    """

    name: str
    problem: str
    report: str | None = None
    run: str | None = None


def read(path: str | Path) -> Filed:
    """Read a proposal with where it lies.

    Raises:
        ProposalError: The file cannot be read or is not a sound proposal.
    """
    file = Path(path)
    report, run, folder = _run(file)
    return Filed(str(path), text.read(file), report, run, folder)


def read_all(paths: Iterable[str | Path]) -> list[Filed]:
    """Read several proposals.

    Raises:
        ProposalError: Files that cannot be read or are not sound; all in one message.
    """
    found, problems = [], []
    for path in paths:
        try:
            found.append(read(path))
        except ProposalError as error:
            problems.append(str(error))
    if problems:
        raise ProposalError("\n".join(problems))
    return found


def find(folder: str | Path) -> list[Filed | Broken]:
    """Find the proposals of a folder of reports.

    Args:
        folder: Folder with reports, runs or proposals, at any depth; or one proposal.

    Returns:
        Every file ``proposal*.json``, sorted by path; what cannot be read is told, not left out.

    Raises:
        ProposalError: There is no such folder.
    """
    root = Path(folder)
    if not root.exists():
        raise ProposalError(f"{root}: there is no such folder")
    paths = [root] if root.is_file() else sorted(root.rglob("proposal*.json"))
    found: list[Filed | Broken] = []
    for path in paths:
        try:
            found.append(read(path))
        except ProposalError as error:
            report, run, _ = _run(path)
            found.append(Broken(str(path), " ".join(str(error).split()), report, run))
    return found


def _run(file: Path) -> tuple[str | None, str | None, Path | None]:
    """Return report, run and folder of the run that a file lies in; null = in none."""
    folder = file.resolve().parent
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        return str(manifest["report"]), str(manifest["run_id"]), folder
    except (OSError, ValueError, LookupError, TypeError):
        return None, None, None  # no run, or one that was stopped: the proposal stands for itself
