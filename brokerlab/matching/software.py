"""Releases = AUTO: can a queue provide a task's software, container, CPU and GPU?

A platform may be a regexp, and stands for something else at each queue; a release is what ``transhome`` names.

Source: docs/rules/matching.md, 6 for platforms and releases.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from brokerlab.matching.architecture import Request
from brokerlab.matching.description import ANY, Description, DescriptionError
from brokerlab.matching.hardware import GpuNode, RequestError, match_cpu, match_gpu
from brokerlab.matching.patterns import PatternError, compile_pattern
from brokerlab.matching.rules import MatchingRules

REGEXP_CHARACTERS = frozenset("()[]|*?+\\^$")

_ALTERNATIVES = re.compile(r"\(([A-Za-z0-9_.+-]+(?:\|[A-Za-z0-9_.+-]+)*)\)([A-Za-z0-9_.+-]+)")


@lru_cache(maxsize=4096)
def is_regexp(sw_platform: str | None, *, by_characters: bool) -> bool:
    r"""Tell whether a platform is a regexp (docs/rules/matching.md 6.3)."""
    if sw_platform is None:
        return False
    if by_characters:
        return not REGEXP_CHARACTERS.isdisjoint(sw_platform)
    try:
        return not compile_pattern(sw_platform).match(sw_platform)
    except PatternError:
        return True


def resolve_platform(sw_platform: str | None, description: Description | None) -> str | None:
    """Resolve a regexp platform to what a queue has.

    The first of ``cmtconfigs`` that the regexp matches in full; else, for ``(a|b)rest``, the first alternative
    among the architectures of the queue's CPUs, with the rest. None where nothing fits, where the literal
    platform is published, or where the regexp cannot be read.

    Source: docs/rules/matching.md 6.3.
    """
    if sw_platform is None or description is None or sw_platform in description.cmtconfigs:
        return None
    try:
        pattern = compile_pattern(sw_platform)
        fitting = [platform for platform in description.cmtconfigs if pattern.fullmatch(platform)]
    except PatternError:
        fitting = []
    return fitting[0] if fitting else _by_architecture(sw_platform, description)


def _by_architecture(sw_platform: str, description: Description) -> str | None:
    """Return the first alternative of ``(a|b)rest`` that the queue's CPUs have, with the rest."""
    result = _ALTERNATIVES.fullmatch(sw_platform)
    if result is None or description.cpu is None:
        return None
    listed = description.cpu.attributes.get("arch", ())
    alternatives = result[1].split("|")
    return next((one + result[2] for one in alternatives if one in listed or ANY in listed), None)


def with_base(platform: str | None, base_platform: str | None) -> str | None:
    """Return a resolved platform with the base platform appended."""
    return f"{platform}@{base_platform}" if platform and base_platform else platform


def platform_at(
    sw_platform: str | None, description: Description, *, rules: MatchingRules
) -> tuple[str | None, str | None]:
    """Return the platform to look for among ``cmtconfigs`` and tags at a queue (None: there is none), and what it resolves to.

    A resolution is tried whether or not the platform counts as a regexp; None: nothing to resolve, or not resolved.

    Source: docs/rules/matching.md 6.2, 6.3.
    """
    resolved = resolve_platform(sw_platform, description)
    regexp = is_regexp(sw_platform, by_characters=rules.regexp_by_characters)
    if not regexp or not rules.resolve_before_compare:
        return sw_platform, resolved
    if sw_platform in description.cmtconfigs:
        return sw_platform, sw_platform
    return resolved, resolved


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


REASONS = (
    "release_any",
    "release_not_auto",
    "sw_description_invalid",
    "cpu_exclusive",
    "gpu_exclusive",
    "hardware_undescribed",
    "cpu_mismatch",
    "gpu_not_capable",
    "gpu_vendor",
    "gpu_model",
    "gpu_vram",
    "gpu_microarchitecture",
    "gpu_version",
    "gpu_driver",
    "container_unavailable",
    "release_unavailable",
    "platform_unresolved",
)
"""Every reason to reject, in the order of the decision (section 3; section 7 for the third)."""

UNPUBLISHED, UNREADABLE = "release_not_auto", "sw_description_invalid"
"""Reasons of queues of which nothing is known."""
OF_QUEUE = "sw_tags.data"  # begins the problems that are the queue's; the others are the task's

AUTO_QUEUE, ANY_QUEUE = ("AUTO",), ("ANY",)


@dataclass(frozen=True, slots=True)
class SoftwareTask:
    """What a task asks for."""

    request: Request  # its architecture, parsed
    release: Release | None  # what its transhome names; None without a transhome
    container_name: str = ""  # fat container; '' for none
    only_tags: bool = False  # fat containers are looked for in tags only
    # A user task: hardware and container are tested without a release too, and a base platform does not mean
    # that jobs run in its image
    analysis: bool = False
    unnamed: bool = False  # needs a release that its transhome does not name: no queue has it

    @property
    def asks_for_nothing(self) -> bool:
        """Whether any queue will do: no release, container or hardware is named, but perhaps a platform."""
        request = self.request
        cpu = bool(request.cpu_specs) and not request.cpu_implied
        hardware = cpu or request.gpu_spec is not None or request.invalid is not None
        software = self.release is not None or self.unnamed or bool(self.container_name)
        return not hardware and not software

    @property
    def in_container(self) -> bool:
        """Whether jobs run in the image of a base platform."""
        return self.request.base_platform is not None and not self.analysis

    @classmethod
    def of(
        cls,
        request: Request,
        transhome: str | None,
        container_name: str | None = None,
        *,
        only_tags: bool | None = None,
    ) -> SoftwareTask:
        """Return what a task asks for, from its columns."""
        release = None if transhome is None else parse_transhome(transhome)
        return cls(request, release, container_name or "", bool(only_tags))


@dataclass(frozen=True, slots=True)
class SoftwareQueue:
    """What a queue offers."""

    releases: tuple[str | None, ...] = ()  # ``("AUTO",)``, ``("ANY",)`` or anything else
    description: Description | None = None  # what it publishes; None where it publishes nothing
    invalid: str | None = None  # why what it publishes cannot be read; None where it can
    # GPUs seen on its worker nodes; None where nobody looked, and attributes of GPUs are not asked for
    gpu_nodes: tuple[GpuNode, ...] | None = ()
    # level of the CPU architecture -> share of the logical CPUs [%]
    cpu_levels: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Match:
    """The decision for one task and one queue."""

    accept: bool  # whether the queue can run the task
    reason: str | None = None  # which of :data:`REASONS` rejects it; None where it is accepted
    # what a regexp platform was resolved to, base platform included; None for no regexp and where rejected
    platform: str | None = None
    preference_weight: float = 1.0  # factor of the brokerage weight, from 1 to 2; 1 where rejected
    problem: str | None = None  # what cannot be read, for ``sw_description_invalid``


@dataclass(frozen=True, slots=True)
class Examined:
    """What holds for every task with the same architecture at one queue: hardware and platform."""

    reason: str | None = None  # which of :data:`REASONS` rejects them all; None for none
    problem: str | None = None  # what cannot be read, for ``sw_description_invalid``
    # platform to look for among ``cmtconfigs`` and tags; None where a regexp stands for nothing there
    compared: str | None = None
    # what the platform was resolved to, base platform included; None for nothing
    resolved: str | None = None


def examine(request: Request, queue: SoftwareQueue, *, rules: MatchingRules) -> Examined:
    """Decide what depends on the architecture alone: rows 1 to 8, and what the platform stands for.

    Source: docs/rules/matching.md 3, 6.3.
    """
    if queue.releases == ANY_QUEUE:
        if not rules.any_needs_no_request:
            return Examined()
        if request.asks_for_hardware:
            return Examined("release_any")
        resolved = resolve_platform(request.sw_platform, queue.description)
        return Examined(resolved=with_base(resolved, request.base_platform))
    if queue.releases != AUTO_QUEUE or (queue.description is None and queue.invalid is None):
        return Examined(UNPUBLISHED)
    try:
        description = _readable(request, queue)
        reason = _hardware(request, description, queue.gpu_nodes, rules)
    except DescriptionError as error:
        return Examined(UNREADABLE, f"{OF_QUEUE}: {error}")
    except (RequestError, PatternError) as error:
        return Examined(UNREADABLE, f"architecture: {error}")
    if reason is not None:
        return Examined(reason)
    compared, resolved = platform_at(request.sw_platform, description, rules=rules)
    return Examined(compared=compared, resolved=with_base(resolved, request.base_platform))


def _readable(request: Request, queue: SoftwareQueue) -> Description:
    """Return the description of a queue, if it and the request can be read."""
    if queue.description is None:
        raise DescriptionError(queue.invalid or "unreadable")
    if request.invalid is not None:
        raise RequestError(request.invalid)
    return queue.description


def match_software(
    task: SoftwareTask,
    queue: SoftwareQueue,
    all_tags: Description | None = None,
    *,
    rules: MatchingRules,
    examined: Examined | None = None,
) -> Match:
    """Decide whether a queue can provide a task's software and hardware; what cannot be read rejects, nothing is raised.

    Source: docs/rules/matching.md 3.
    """
    if queue.releases == ANY_QUEUE and not rules.any_needs_no_request:
        return Match(accept=True)
    if task.unnamed:
        return Match(accept=False, reason="release_unavailable")
    if task.release is None and not task.analysis and not rules.checked_without_release:
        return Match(accept=True)
    if examined is None:
        examined = examine(task.request, queue, rules=rules)
    unknown = examined.reason in (UNPUBLISHED, UNREADABLE)
    if rules.nothing_asked_passes and task.asks_for_nothing and unknown:
        return Match(accept=True)
    if examined.reason is not None:
        return Match(accept=False, reason=examined.reason, problem=examined.problem)
    try:
        reason = _software(task, queue, all_tags, examined, rules)
    except DescriptionError as error:
        return Match(accept=False, reason=UNREADABLE, problem=f"{OF_QUEUE}: {error}")
    if reason is not None:
        return Match(accept=False, reason=reason)
    level = task.request.preferred_level
    weight = 1.0 if queue.releases == ANY_QUEUE else preference(level, queue.cpu_levels)
    return Match(accept=True, platform=examined.resolved, preference_weight=weight)


def _software(
    task: SoftwareTask,
    queue: SoftwareQueue,
    all_tags: Description | None,
    examined: Examined,
    rules: MatchingRules,
) -> str | None:
    """Decide rows 10 to 12, and at an ANY queue what is left of row 1."""
    request, name = task.request, task.container_name
    if queue.releases == ANY_QUEUE:
        if name and task.only_tags:
            return "release_any"
    elif queue.description is not None and name:
        only_tags = task.only_tags
        if not has_container(name, queue.description, all_tags, only_tags=only_tags, rules=rules):
            return "container_unavailable"
    elif queue.description is not None and task.release is not None:
        result = has_release(
            task.release,
            examined.compared,
            queue.description,
            in_container=task.in_container,
            rules=rules,
        )
        if not result:
            return "release_unavailable"
    by_characters = rules.regexp_by_characters
    unresolved = examined.resolved is None and is_regexp(
        request.sw_platform, by_characters=by_characters
    )
    return "platform_unresolved" if unresolved else None


def _hardware(
    request: Request,
    description: Description,
    gpu_nodes: tuple[GpuNode, ...] | None,
    rules: MatchingRules,
) -> str | None:
    """Decide rows 3 to 8."""
    cpu, gpu = description.hardware("cpu"), description.hardware("gpu")
    if cpu is not None and cpu.is_exclusive and not request.cpu_specs:
        return "cpu_exclusive"
    if gpu is not None and gpu.is_exclusive and request.gpu_spec is None:
        return "gpu_exclusive"
    lenient = request.cpu_implied and not rules.implied_cpu_needs_description
    asks_for_cpu = bool(request.cpu_specs) and not (lenient and cpu is None)
    if (asks_for_cpu or request.gpu_spec is not None) and cpu is None and gpu is None:
        return "hardware_undescribed"
    if asks_for_cpu and not match_cpu(request.cpu_specs, cpu, rules=rules):
        return "cpu_mismatch"
    if request.gpu_spec is None:
        return None
    if gpu is None:
        return "gpu_not_capable"
    return None if gpu_nodes is None else match_gpu(request.gpu_spec, gpu_nodes)


def preference(level: str | None, at_queue: Mapping[str, float]) -> float:
    """Return the factor of the brokerage weight for a preferred level of the CPU architecture (6.4)."""
    return 1.0 if level is None else 1.0 + at_queue.get(level, 0.0) / 100
