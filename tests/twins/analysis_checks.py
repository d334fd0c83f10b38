"""The checks of analysis-jobs.md 4 that look at one queue (or once at its parent), in order."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from brokerlab.matching.patterns import PatternError
from brokerlab.matching.software import is_regexp, platform_at, resolve_platform
from tests.twins import text
from tests.twins.analysis_input import Input
from tests.twins.analysis_task import DAY, Task
from tests.twins.analysis_world import Row, up

AUTO = "AUTO"


@dataclass
class Loop:
    """What distinguishes one walk over the checks from the other."""

    task: Task
    state: Input
    locality: bool
    has_input: bool
    union: bool = False
    with_data: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    without_vp: set[str] = field(default_factory=set)

    @property
    def second(self) -> bool:
        """Whether this is the walk without the check of locality, of a task that has input."""
        return self.has_input and not self.locality


Answer = str | None


def cores(queue: Row) -> int:
    return queue.get("corecount") or 0


def exempt(task: Task, who: Any) -> bool:
    """Say whether the code, and the page not, spares a task a check."""
    return bool(who) and task.world.rules.code_only_exemptions


def is_site(task: Task, queue: Row) -> bool:
    """Say whether a queue is the pre-assigned one."""
    return task.site is not None and task.world.parent[queue["panda_queue"]] == task.site


def matches(patterns: list[str], name: str) -> bool:
    """Say whether some pattern of a list holds for a unified name (4.15)."""
    for pattern in patterns:
        if not pattern:
            continue
        if "*" in pattern:
            if re.search(pattern.replace("*", ".*"), name):
                return True
        elif pattern == name:
            return True
    return False


def status(loop: Loop, queue: Row) -> Answer:
    task, given = loop.task, queue.get("status")
    listed = task.include is not None and not task.from_endpoint
    if task.world.rules.status_mode == "online":
        if listed:
            listed = matches(task.include or [], task.world.parent[queue["panda_queue"]])
        return "status" if given != "online" and not listed and not is_site(task, queue) else None
    if given == "offline":
        return "status"
    bad = given in ("brokeroff", "test")
    return "status" if bad and not listed and not is_site(task, queue) else None


def zeroshare(loop: Loop, queue: Row) -> Answer:
    task = loop.task
    if task.site or not task.world.rules.code_only_checks:
        return None
    policy, rules = queue.get("fairsharepolicy"), task.world.matching
    return "zeroshare" if text.zero_share(task.row, task.merging, policy, rules) else None


def diskio(loop: Loop, queue: Row) -> Answer:
    task, world = loop.task, loop.task.world
    need = task.row.get("diskio")
    if world.rules.diskio_per_core and need and task.multi_core and cores(queue):
        need /= cores(queue)
    own = queue.get("maxdiskio") or 0
    limit = own if own > 0 else world.setting("jobbroker", "MAX_DISKIO_DEFAULT")
    usage = world.diskio.get(queue["panda_queue"])
    return "diskio" if need and usage and limit and usage > limit and need > limit else None


def max_io_intensity(loop: Loop, queue: Row) -> Answer:
    need, limit = loop.task.row.get("iointensity"), queue.get("max_io_intensity")
    asked = loop.task.world.rules.code_only_checks
    if not asked or not need or loop.task.merging or limit is None:
        return None
    return "max_io_intensity" if need > limit else None


def avoid_vp(loop: Loop, queue: Row) -> Answer:
    task = loop.task
    avoids = task.row.get("avoidvp")
    if task.world.rules.vp_avoided_by == "more":
        avoids = avoids or task.merging or loop.state.distributed or loop.union or loop.second
    virtual = task.world.parent[queue["panda_queue"]] in task.world.vp_queues
    return "avoid_vp" if avoids and virtual else None


def cpucore(loop: Loop, queue: Row) -> Answer:
    asked, has = loop.task.cores, cores(queue)
    asked = 1 if asked is None else asked
    if (asked > 1 and has <= 1) or (asked == 1 and has > 1):
        return "cpucore"
    most = loop.task.row.get("maxcorecount")
    return "max_cpucore" if most and has and has > most else None


def architecture(loop: Loop, queue: Row) -> Answer:
    asked = loop.task.world.rules.code_only_checks
    if not asked or "gpu" not in (queue.get("catchall") or "").split(","):
        return None
    platform, world = loop.task.request.sw_platform, loop.task.world
    offered = world.software[world.parent_row(queue)["panda_queue"]]
    if not platform or offered.releases != (AUTO,) or offered.description is None:
        return "architecture"
    described = offered.description
    hardware = (described.hardware("cpu"), described.hardware("gpu"))
    if any(item is not None and item.is_exclusive for item in hardware):  # nothing is asked of it
        return "architecture"
    compared, _ = platform_at(platform, described, rules=world.matching)
    containers = set(described.containers or ())
    good = containers & {"any", "/cvmfs"} or compared in (described.cmtconfigs or ())
    return None if good else "architecture"


def closed(loop: Loop, queue: Row) -> Answer:
    task = loop.task
    if not task.world.rules.closed_skips or exempt(task, task.site) or exempt(task, task.merging):
        return None
    return "closed" if task.ended_at(queue["panda_queue"], "closed") > 0 else None


def cache(loop: Loop, queue: Row) -> Answer:
    task, world = loop.task, loop.task.world
    if exempt(task, task.site):
        return None
    offered = world.software[queue["panda_queue"]]
    if offered.releases == ("ANY",):
        return _any_queue(loop, offered)
    found = text.software(task.software, offered, world.every_tag, world.matching)
    return {"platform_unresolved": "regexpcmtconfig", "software_hardware": "cache", None: None}[found.check]  # fmt: skip


def _any_queue(loop: Loop, offered: text.SoftwareQueue) -> Answer:
    """Judge a queue that says it has any release."""
    task, request = loop.task, loop.task.request
    if not task.world.matching.any_needs_no_request:
        return None
    if task.software.unnamed or request.asks_for_hardware:
        return "cache"
    by_characters = task.world.matching.regexp_by_characters
    try:
        pattern = is_regexp(request.sw_platform, by_characters=by_characters)
        if pattern and resolve_platform(request.sw_platform, offered.description) is None:
            return "regexpcmtconfig"
    except PatternError:
        return "cache"
    return None


def memory(loop: Loop, queue: Row) -> Answer:
    need = loop.task.memory(queue.get("corecount"))
    most, least = queue.get("maxrss"), queue.get("minrss")
    if most and need and need > most:
        return "lowmemory"
    return "highmemory" if least and need and need < least else None


def remoteio(loop: Loop, queue: Row) -> Answer:
    task = loop.task
    only = task.row.get("allowinputlan") == "only" and not task.merging
    only = only and task.world.rules.code_only_checks
    direct = queue.get("direct_access_lan") or queue.get("maxinputsize") == -1
    return "remoteio" if only and not direct else None


def disk(loop: Loop, queue: Row) -> Answer:
    task, slot = loop.task, queue.get("maxwdir")
    if not slot:
        return None
    parts = cores(queue) if cores(queue) > 1 else 1
    need = task.scratch(queue)
    if task.world.rules.maxwdir_mode == "per_core":
        return "disk" if need >= slot / parts else None
    return "disk" if need > slot * (parts if task.multi_core else 1) / parts else None


def storage(loop: Loop, queue: Row) -> Answer:
    world, name = loop.task.world, queue["panda_queue"]
    outputs = world.outputs(name)
    if not outputs:
        return "storage"
    output, source = _default(outputs), _default(world.inputs(name))
    if _too_full(loop, output, world.broker("STORAGE_MIN_FREE_SIZE_OUTPUT")):
        return "storage"
    if not loop.second or name in loop.held:
        return None
    if not world.inputs(name):
        return "storage"
    if source and output and source["ddm_endpoint_name"] == output["ddm_endpoint_name"]:
        return None
    limit = world.setting("jobbroker", "STORAGE_MIN_FREE_SIZE")
    return "storage" if _too_full(loop, source, limit) else None


def _default(endpoints: list[Row]) -> Row | None:
    return next((row for row in endpoints if row.get("is_default")), None)


def _too_full(loop: Loop, endpoint: Row | None, limit: float) -> bool:
    space = endpoint.get("space_usable") if endpoint else None
    if space is None:
        return False
    return bool(space <= limit if loop.task.world.rules.space_strict else space < limit)


def blacklist(loop: Loop, queue: Row) -> Answer:
    name = queue["panda_queue"]
    inputs, outputs = loop.task.world.inputs(name), loop.task.world.outputs(name)
    good = any(up(row, "read_lan") for row in inputs) and any(
        up(row, "write_lan") for row in outputs
    )
    if name not in loop.with_data | loop.held:
        good = good and any(up(row, "write_wan") for row in inputs)
        good = good and any(up(row, "read_wan") for row in outputs) and loop.state.source
    return None if good else "blacklist"


def local_quota(loop: Loop, queue: Row) -> Answer:
    output = _default(loop.task.world.outputs(queue["panda_queue"]))
    if not loop.task.world.rules.code_only_checks:
        return None
    over = output is not None and output["ddm_endpoint_name"] in loop.task.over_quota
    return "local_quota" if over else None


def walltime(loop: Loop, queue: Row) -> Answer:
    task = loop.task
    scales = task.scales()
    need = task.walltime() if scales else task.row.get("basewalltime") or 0
    if need <= 0 or exempt(task, task.merging):
        return None
    longest, least = queue.get("maxtime") or 0, queue.get("mintime") or 0
    if longest and need > (task.capacity(queue, longest) if scales else longest):
        return "shortwalltime"
    slot = task.capacity(queue, least) if scales else least
    return "longwalltime" if least and need < slot else None


def minimum_walltime(loop: Loop, queue: Row) -> Answer:
    task = loop.task
    longest = queue.get("maxtime") or 0
    applies = (not exempt(task, task.site) and task.scout) or task.walltime_undefined()
    name = "scout_walltime" if task.scout else "min_walltime"
    if task.world.rules.min_capacity_mode == "maxtime":
        applies = applies or task.merging
        return name if applies and longest and longest < DAY else None
    capacity = task.capacity(queue, longest)
    short = capacity != 0 and capacity < DAY * 10 * (cores(queue) or 1)
    return name if applies and short else None


def nopilot(loop: Loop, queue: Row) -> Answer:
    silent = loop.task.world.pilots(queue["panda_queue"]) == 0
    test = loop.task.row.get("prodsourcelabel") == "test"
    return "nopilot" if silent and not exempt(loop.task, test) else None


def excluded(task: Task, name: str) -> Answer:
    """Check 19b without the cloud, of a unified name; AUTO keeps the others in reserve."""
    if matches(task.exclude, name):
        return "excluded"
    if task.include is not None and not matches(task.include, name):
        return AUTO if AUTO in task.include else "notincluded"
    return None


def cloudmismatch(loop: Loop, queue: Row) -> Answer:
    cloud = loop.task.row.get("cloud")
    other = cloud not in (None, "", "any") and cloud != queue.get("cloud")
    other = other and loop.task.world.rules.code_only_checks
    return "cloudmismatch" if other else None


STEPS: tuple[tuple[Callable[[Loop, Row], Answer], bool], ...] = (
    (status, False),
    (zeroshare, False),
    (diskio, True),
    (max_io_intensity, False),
    (avoid_vp, False),
    (cpucore, False),
    (architecture, False),
    (closed, True),
    (cache, True),
    (memory, False),
    (remoteio, True),
    (disk, True),
    (storage, True),
    (blacklist, True),
    (local_quota, True),
    (walltime, False),
    (minimum_walltime, False),
    (nopilot, True),
)
"""Checks 2 to 19a with whether they are asked once per parent, of the parent's row."""
