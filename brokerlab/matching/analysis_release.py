"""Releases of user tasks: what ``transhome`` and ``transuses`` ask of a queue (docs/rules/matching.md 9)."""

from __future__ import annotations

import re
from typing import Literal

from brokerlab.matching.architecture import parse_architecture
from brokerlab.matching.release import ATLAS, NIGHTLIES, Release
from brokerlab.matching.software import SoftwareTask

Mode = Literal["cache", "release", "nightly", "standalone"]

TRANSFORMS = "AnalysisTransforms"
BASE_PROJECT = "AtlasOffline"

_PREFIX = re.compile(r"^[^-]+-*")
_NIGHTLY = re.compile(r"\d{4}-\d{2}-\d{2}T\d{4}$")
_THREE_NUMBERS = re.compile(r"-\d+\.\d+\.\d+$")
_TWO_NUMBERS = re.compile(r"-\d+\.\d+$")


def release_mode(transhome: str | None, transuses: str | None) -> tuple[Mode, Release | None]:
    """Return how the release of a user task is looked for, and the release; none in mode ``standalone``, and where transhome names none.

    Source: docs/rules/matching.md 9.
    """
    home = _PREFIX.sub("", transhome or "").replace("_", "-")
    parts = home.split("-")
    numbered = _THREE_NUMBERS.search(home) is not None
    plain = transhome is not None and transhome != TRANSFORMS
    if plain and not _NIGHTLY.search(home) and not numbered:
        return "cache", _release(parts)
    based = bool(transuses) and home == ""
    if based or (numbered and (not transuses or not _TWO_NUMBERS.search(transuses))):
        if transuses:
            return "release", Release(ATLAS, BASE_PROJECT, transuses.rsplit("-", 1)[-1])
        return "release", _release(parts) if len(parts) == 2 else None
    if transhome is not None:
        return "nightly", Release(NIGHTLIES, None, None)
    return "standalone", None


def _release(parts: list[str]) -> Release | None:
    """Return project and release; none where there is no second part."""
    return Release(ATLAS, parts[0], parts[1]) if len(parts) > 1 else None


def analysis_task(
    architecture: str | None,
    transhome: str | None,
    container_name: str | None,
    transuses: str | None,
) -> SoftwareTask:
    """Return what a user task asks for."""
    mode, release = release_mode(transhome, transuses)
    return SoftwareTask(
        parse_architecture(architecture),
        release,
        container_name or "",
        analysis=True,
        unnamed=release is None and mode != "standalone",
    )
