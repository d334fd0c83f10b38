"""Find the proposals, and the configuration that acts now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from brokerlab import archive as archives
from brokerlab.brokerage.replay.plan import time_of
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.present import present
from brokerlab.gdpconfig.proposal import Broken, Filed, find, newest


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What lies on the table.

    Attributes:
        folder: Where the proposals were looked for.
        filed: Those that count, by report and name.
        replaced: Those that a later run of the same report has put another in place of.
        not_again: Digest of a proposal -> a later run of its report with the same parameters that did not write it again.
        n_copies: Files left out, for the same document lies in another one.
        broken: Files that are no sound proposals.
        config: The configuration that acts now.
        source: What it was read from, in words.
        at: Time of the review, UTC without zone; a gdpconfig with a history is looked at then.
    """

    folder: Path
    filed: tuple[Filed, ...]
    replaced: tuple[Filed, ...]
    not_again: Mapping[str, str]
    n_copies: int
    broken: tuple[Broken, ...]
    config: Config
    source: str
    at: datetime


def load(
    proposals: str,
    *,
    archive: str = "",
    config: str = "",
    at: str = "",
    only_newest: bool = True,
    created_at: datetime,
) -> Inputs:
    """Find the proposals of a folder, and read the configuration that acts now.

    Args:
        proposals: Folder of reports, of runs or of proposals, or one proposal.
        archive: Archive whose gdpconfig acts where no other is given; empty: none.
        config: The gdpconfig that acts now: CSV, JSON or an archive; empty: that of the archive.
        at: Time at which a gdpconfig with a history is looked at, ISO 8601, UTC; empty: that of the review.
        only_newest: Leave out what a later run of the same report has put another in place of.
        created_at: Time of the review, UTC without zone.

    Raises:
        ConfigError: A time that is not ISO 8601.
        DataError: The configuration cannot be read.
        ProposalError: There is no such folder.
    """
    found = find(proposals)
    counts, replaced = newest(one for one in found if isinstance(one, Filed))
    if not only_newest:
        counts, replaced = [*counts, *replaced], []
    once: dict[str, Filed] = {}
    for one in sorted(counts, key=lambda one: (one.report or "", one.name)):
        once.setdefault(one.proposal.digest, one)
    when = time_of(at or None, "at") or created_at
    acting, source = _acting(archive, config)
    return Inputs(
        folder=Path(proposals),
        filed=tuple(once.values()),
        replaced=tuple(replaced),
        not_again={one.proposal.digest: run for one in once.values() if (run := _not_again(one))},
        n_copies=len(counts) - len(once),
        broken=tuple(one for one in found if isinstance(one, Broken)),
        config=acting.at(when) if acting.has_history else acting,
        source=source,
        at=when,
    )


def _not_again(one: Filed) -> str | None:
    """Return the last run after that of a proposal, of the same report and with the same parameters, without it."""
    if one.folder is None:
        return None
    mine, found = _manifest(one.folder), None
    for folder in sorted(one.folder.parent.iterdir()):
        other = _manifest(folder)
        alike = all(other.get(name) == mine.get(name) for name in ("report", "parameters"))
        later = str(other.get("started", "")) > str(mine.get("started", ""))
        if alike and later and other.get("state") == "finished":
            found = None if (folder / Path(one.name).name).exists() else folder.name
    return found


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / "manifest.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _acting(archive: str, config: str) -> tuple[Config, str]:
    """Return the configuration that acts now, and where it comes from."""
    if config:
        return present(config), config
    if not archive:
        return Config.empty(), "the defaults of the catalogue (no configuration was given)"
    if not archives.open(archive).has("gdpconfig"):
        return Config.empty(), f"the defaults of the catalogue ({archive} has no gdpconfig)"
    return present(archive), f"gdpconfig of {archive}"
