"""Releases = AUTO: can a queue provide a task's software, container, CPU and GPU? (software-hardware-matching.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from brokerlab.matching.architecture import Request
from brokerlab.matching.cpu import match_cpu
from brokerlab.matching.description import Description, DescriptionError
from brokerlab.matching.gpu import GpuNode, match_gpu
from brokerlab.matching.patterns import PatternError
from brokerlab.matching.platform import is_regexp, platform_at, resolve_platform, with_base
from brokerlab.matching.release import Release, has_container, has_release, parse_transhome
from brokerlab.matching.rules import MatchingRules

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

AUTO_QUEUE, ANY_QUEUE = ("AUTO",), ("ANY",)


@dataclass(frozen=True, slots=True)
class SoftwareTask:
    """What a task asks for.

    Attributes:
        request: Its architecture, parsed.
        release: What its transhome names; None without a transhome, which switches the whole check off.
        container_name: Fat container; '' for none.
        only_tags: Fat containers are looked for in tags only.
    """

    request: Request
    release: Release | None
    container_name: str = ""
    only_tags: bool = False

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
    """What a queue offers.

    Attributes:
        releases: ``("AUTO",)``, ``("ANY",)`` or anything else.
        description: What it publishes; None where it publishes nothing.
        invalid: Why what it publishes cannot be read; None where it can.
        gpu_nodes: GPUs seen on its worker nodes.
        cpu_levels: Level of the CPU architecture -> share of the logical CPUs [%].
    """

    releases: tuple[str | None, ...] = ()
    description: Description | None = None
    invalid: str | None = None
    gpu_nodes: tuple[GpuNode, ...] = ()
    cpu_levels: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Match:
    """The decision for one task and one queue.

    Attributes:
        accept: Whether the queue can run the task.
        reason: Which of :data:`REASONS` rejects it; None where it is accepted.
        platform: What a regexp platform was resolved to, base platform included; None for no regexp and where
            rejected.
        preference_weight: Factor of the brokerage weight, from 1 to 2; 1 where rejected.
        problem: What cannot be read, for ``sw_description_invalid``.
    """

    accept: bool
    reason: str | None = None
    platform: str | None = None
    preference_weight: float = 1.0
    problem: str | None = None


def match_software(
    task: SoftwareTask,
    queue: SoftwareQueue,
    all_tags: Description | None = None,
    *,
    rules: MatchingRules,
) -> Match:
    """Decide whether a queue can provide a task's software and hardware.

    Args:
        task: What is asked for.
        queue: What is offered.
        all_tags: Description under the name ``ALL``, with every tag of the grid; None without one.
        rules: All switches but the one of zero share.

    Returns:
        The decision; what cannot be read rejects with ``sw_description_invalid``, nothing is raised.

    Source: software-hardware-matching.md 3.
    """
    if task.release is None:
        return Match(accept=True)
    if queue.releases == ANY_QUEUE:
        return _at_any_queue(task, queue, rules)
    if queue.releases != AUTO_QUEUE or (queue.description is None and queue.invalid is None):
        return Match(accept=False, reason="release_not_auto")
    try:
        reason, platform = _at_auto_queue(task, task.release, queue, all_tags, rules)
    except (DescriptionError, PatternError) as error:
        return Match(accept=False, reason="sw_description_invalid", problem=str(error))
    if reason is not None:
        return Match(accept=False, reason=reason)
    return Match(accept=True, platform=platform, preference_weight=_preference(task, queue))


def _at_any_queue(task: SoftwareTask, queue: SoftwareQueue, rules: MatchingRules) -> Match:
    """Decide row 1: ANY accepts, or only what asks for nothing special and has a platform to be had (H1)."""
    if not rules.any_needs_no_request:
        return Match(accept=True)
    if task.request.asks_for_hardware or (task.container_name != "" and task.only_tags):
        return Match(accept=False, reason="release_any")
    resolved = resolve_platform(task.request.sw_platform, queue.description)
    if _is_unresolved(task.request, resolved, rules):
        return Match(accept=False, reason="platform_unresolved")
    return Match(accept=True, platform=with_base(resolved, task.request.base_platform))


def _is_unresolved(request: Request, resolved: str | None, rules: MatchingRules) -> bool:
    """Decide row 12: the platform is a regexp that stands for nothing at the queue."""
    by_characters = rules.regexp_by_characters
    return resolved is None and is_regexp(request.sw_platform, by_characters=by_characters)


def _at_auto_queue(
    task: SoftwareTask,
    release: Release,
    queue: SoftwareQueue,
    all_tags: Description | None,
    rules: MatchingRules,
) -> tuple[str | None, str | None]:
    """Decide rows 3 to 12; return the reason to reject, else the resolved platform."""
    request, description = task.request, queue.description
    if description is None:
        raise DescriptionError(queue.invalid or "unreadable")
    if request.invalid is not None:
        raise DescriptionError(f"architecture of the task: {request.invalid}")
    reason = _hardware(request, description, queue.gpu_nodes, rules)
    if reason is not None:
        return reason, None
    compared, resolved = platform_at(request.sw_platform, description, rules=rules)
    if task.container_name:
        only_tags = task.only_tags
        name = task.container_name
        if not has_container(name, description, all_tags, only_tags=only_tags, rules=rules):
            return "container_unavailable", None
    else:
        in_container = request.base_platform is not None
        if not has_release(release, compared, description, in_container=in_container, rules=rules):
            return "release_unavailable", None
    if _is_unresolved(request, resolved, rules):
        return "platform_unresolved", None
    return None, with_base(resolved, request.base_platform)


def _hardware(
    request: Request,
    description: Description,
    gpu_nodes: tuple[GpuNode, ...],
    rules: MatchingRules,
) -> str | None:
    """Decide rows 3 to 8."""
    cpu, gpu = description.hardware("cpu"), description.hardware("gpu")
    if cpu is not None and cpu.is_exclusive and not request.cpu_specs:
        return "cpu_exclusive"
    if gpu is not None and gpu.is_exclusive and request.gpu_spec is None:
        return "gpu_exclusive"
    if request.asks_for_hardware and cpu is None and gpu is None:
        return "hardware_undescribed"
    if request.cpu_specs and not match_cpu(request.cpu_specs, cpu, rules=rules):
        return "cpu_mismatch"
    if request.gpu_spec is None:
        return None
    return "gpu_not_capable" if gpu is None else match_gpu(request.gpu_spec, gpu_nodes)


def _preference(task: SoftwareTask, queue: SoftwareQueue) -> float:
    """Return the factor of the brokerage weight for a preferred level of the CPU architecture (6.4)."""
    level = task.request.preferred_level
    return 1.0 if level is None else 1.0 + queue.cpu_levels.get(level, 0.0) / 100
