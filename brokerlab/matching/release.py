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
    """What a task's ``transhome`` names.

    Attributes:
        repository: ``atlas`` or ``nightlies``, on CVMFS.
        project: Such as ``Athena``; None for a nightly.
        release: Such as ``24.0.40``; None for a nightly, and where transhome has no ``-``.
    """

    repository: str
    project: str | None
    release: str | None


@lru_cache(maxsize=4096)
def parse_transhome(transhome: str) -> Release:
    """Return repository, project and release.

    Args:
        transhome: Of the task, such as ``Athena-24.0.40``.

    Source: docs/rules/matching.md 6.

    Example:
        >>> parse_transhome("AthDerivation-21.2.2.0")
        Release(repository='atlas', project='AthDerivation', release='21.2.2.0')
        >>> parse_transhome("Athena-main-2024-01-01T2101").repository
        'nightlies'
    """
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
    """Tell whether a queue can run a fat container.

    Args:
        container_name: Of the task.
        description: Of the queue.
        all_tags: Description under the name ``ALL``, with every tag of the grid; None without one.
        only_tags: The task sets ``onlytagsforfc``.
        rules: Switch ``container_tags_always``.

    Raises:
        DescriptionError: A part that is needed is missing.

    Source: docs/rules/matching.md 6.1.
    """
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
    """Tell whether a queue has a release, cache or nightly for a platform.

    Args:
        release: What the task needs.
        platform: What to look for among ``cmtconfigs`` and tags; None where a regexp could not be resolved.
        description: Of the queue.
        in_container: The task names a base platform.
        rules: Switches ``base_platform_forbids_cmtconfigs``, ``tags_after_cvmfs``.

    Raises:
        DescriptionError: A part that is needed is missing.

    Source: docs/rules/matching.md 6.2.
    """
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
