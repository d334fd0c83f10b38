"""Releases: what ``transhome`` names, and whether a queue has it (docs/rules/matching.md 6)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from brokerlab.matching.description import ANY, Description
from brokerlab.matching.rules import MatchingRules

ATLAS, NIGHTLIES = "atlas", "nightlies"
CVMFS_ROOT = "/cvmfs"

_NIGHTLY = re.compile(r"rel_\d+(?:\n|$)|\d{4}-\d{2}-\d{2}T\d{4}$")
_NUMBERED = re.compile(r"-\d+\.\d+\.\d+$")


@dataclass(frozen=True, slots=True)
class Release:
    """What a task's ``transhome`` names."""

    repository: str  # ``atlas`` or ``nightlies``, on CVMFS
    project: str | None  # such as ``Athena``; None for a nightly
    release: str | None  # such as ``24.0.40``; None for a nightly, and where transhome has no ``-``


@lru_cache(maxsize=4096)
def parse_transhome(transhome: str) -> Release:
    """Return repository, project and release (docs/rules/matching.md 6)."""
    if _NIGHTLY.search(transhome) and not _NUMBERED.search(transhome):
        return Release(NIGHTLIES, None, None)
    project, _, rest = transhome.partition("-")
    return Release(ATLAS, project, rest.partition("-")[0] or None)


def has_container(
    container_name: str,
    description: Description,
    all_tags: Description | None,
    *,
    only_tags: bool,
    rules: MatchingRules,
) -> bool:
    """Tell whether a queue can run a fat container (docs/rules/matching.md 6.1)."""
    if only_tags:
        return container_name in description.need("tags").containers
    containers = description.need("containers")
    if ANY in containers or CVMFS_ROOT in containers:
        return True
    prefixes = tuple(containers)
    if container_name.startswith(prefixes):
        return True
    known = all_tags.tags if all_tags is not None else None
    sources = known.sources.get(container_name, ()) if known is not None else ()
    if any(source.startswith(prefixes) for source in sources):
        return True
    return rules.container_tags_always and container_name in description.need("tags").containers


def has_release(
    release: Release,
    platform: str | None,
    description: Description,
    *,
    in_container: bool,
    rules: MatchingRules,
) -> bool:
    """Tell whether a queue has a release, cache or nightly for a platform (docs/rules/matching.md 6.2)."""
    cvmfs = description.need("cvmfs")
    mounted = ANY in cvmfs or release.repository in cvmfs
    containers = description.need("containers")
    if mounted:
        if ANY in containers or CVMFS_ROOT in containers:
            return True
        bare = not (in_container and rules.base_platform_forbids_cmtconfigs)
        if bare and platform is not None and platform in description.need("cmtconfigs"):
            return True
        if not rules.tags_after_cvmfs:
            return False
    if in_container and ANY not in containers:
        return False
    wanted = (platform, release.project, release.release)
    return None not in wanted and wanted in description.need("tags").releases
