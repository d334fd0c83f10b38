"""Text rules at one queue: they come from ``brokerlab.matching``, which has worked examples and vectors of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from brokerlab.matching.architecture import parse_architecture
from brokerlab.matching.description import Description, DescriptionError, read_description
from brokerlab.matching.hardware import GpuNode
from brokerlab.matching.patterns import PatternError
from brokerlab.matching.rules import MatchingRules
from brokerlab.matching.software import SoftwareQueue, SoftwareTask, match_software
from brokerlab.matching.zero_share import parse, processing_group

Row = dict[str, Any]
GPU_COLUMNS = (
    "vendor", "model", "vram", "architecture", "framework_version", "driver_version",
)  # fmt: skip


@dataclass
class Software:
    """What the software and hardware chapter says of a task at a queue."""

    check: str | None = None
    platform: str | None = None
    preference: float = 1.0


@lru_cache(maxsize=4)
def matching_rules(name: str) -> MatchingRules:
    return MatchingRules(name)


def zero_share(task: Row, merging: bool, policy: str | None, rules: MatchingRules) -> bool:
    """Say whether a fairsharepolicy forbids a task: the first sub-policy that holds decides (zero-share.md 2)."""
    group = processing_group(task.get("processingtype"))
    if not policy or (rules.tests_exempt and group == "test"):
        return False
    values = {
        "type": group,
        "group": task.get("workinggroup"),
        "gshare": task.get("gshare"),
        "priority": task.get("currentpriority"),
    }
    for subpolicy in parse(policy).subpolicies:
        for clause in subpolicy.clauses:
            if clause.key == "priority" and merging:
                holds: bool | None = rules.merge_priority == "match"
            else:
                try:
                    holds = clause.holds(values[clause.key])
                except PatternError:
                    return False
            if holds is False:
                break
        else:
            return subpolicy.is_zero
    return False


def software_task(task: Row) -> SoftwareTask:
    return SoftwareTask.of(
        parse_architecture(task.get("architecture")),
        task.get("transhome"),
        task.get("container_name"),
        only_tags=task.get("onlytagsforfc"),
    )


def description(data: Any) -> tuple[Description | None, str | None]:
    """Return what a queue publishes, or why it cannot be read."""
    try:
        return read_description(data if isinstance(data, str) else json.dumps(data)), None
    except DescriptionError as error:
        return None, str(error)


def software_queue(
    queue: Row, tags: dict[str, Any], gpus: list[Row], levels: list[Row]
) -> SoftwareQueue:
    """Return what a parent queue offers."""
    found, invalid = None, None
    if queue["panda_queue"] in tags:
        found, invalid = description(tags[queue["panda_queue"]])
    nodes = tuple(GpuNode(*(row.get(column) for column in GPU_COLUMNS)) for row in gpus)
    percent = {row["cpu_architecture_level"]: row["pct_within_queue"] or 0 for row in levels}
    return SoftwareQueue(tuple(queue.get("releases") or ()), found, invalid, nodes, percent)


def software(
    task: SoftwareTask, queue: SoftwareQueue, every_tag: Description | None, rules: MatchingRules
) -> Software:
    """Return what checks 15 and 16 say, and what the weight takes from them."""
    match = match_software(task, queue, every_tag, rules=rules)
    if match.accept:
        return Software(None, match.platform, match.preference_weight)
    unresolved = match.reason == "platform_unresolved"
    return Software("platform_unresolved" if unresolved else "software_hardware")


def connectivity(text: str | None) -> tuple[str, str]:
    """Return network and ip stack of ``network#stack``, '' where not given (chapter 1.4)."""
    parts = (text or "").split("#")
    return parts[0], parts[1] if len(parts) == 2 else ""
