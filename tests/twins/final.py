"""Weights, caps and ranking of the queues that every check left (production-jobs.md 2, and 6)."""

from __future__ import annotations

from dataclasses import dataclass

from tests.twins import weights
from tests.twins.checks import cores, scaled_wdir
from tests.twins.network import network_weight
from tests.twins.task import Task
from tests.twins.weights import Counts

MB = 1024 * 1024


@dataclass
class Weighed:
    """What is known of one queue when it is weighed."""

    name: str
    local: bool
    counts: Counts
    running: int
    by_type: tuple[int, int] | None
    network_weight: float | None = None
    weight: float = 0.0
    platform: str | None = None
    check: str | None = None


def to_move(task: Task, parent: str, *, tape: bool = False) -> tuple[int, int]:
    """Return what is not at a queue: MB and files (6.1)."""
    size, number = task.available(parent, tape=tape)
    return int((task.total - size) / MB), task.nfiles - number


def first_checks(task: Task, name: str) -> str | None:
    """Checks 44 and 45."""
    if not task.world.rules.code_only_checks:
        return None
    if name in task.locked:
        return "locked"
    size, number = to_move(task, task.world.parent[name])
    only_local = task.world.catchall[name].use_only_local_data
    if only_local and task.total > 0 and (size > 0 or number > 0):
        return "local_data_only"
    return None


def weigh(task: Task, name: str) -> Weighed:
    """Return running jobs (6.2) and weight (6.3) of a queue."""
    world = task.world
    queue, parent = world.queues[name], world.parent[name]
    counts = task.counts(parent, queue)
    available = task.available(parent)[0]
    local = task.total == 0 or available >= task.total
    running = weights.running(
        counts,
        workers=world.active_workers(parent),
        slots=task.slots(parent),
        corecount=cores(queue),
        streams=streams(task, name),
        low_priority=is_low(task),
        rules=world.rules,
    )
    by_type = weights.by_resource_type(
        task.counts_by_type(parent), task.types_at(parent), local=local
    )
    found = Weighed(name, local, counts, running, by_type)
    found.weight = weights.plain_weight(running, counts, local=local, rules=world.rules)
    if task.total > 0:
        found.weight *= weights.data_factor(task.total, available, to_move(task, parent)[1])
    if world.rules.nucleus_preferred and task.is_near_nucleus(parent):
        found.weight *= task.t1_factor()
    if task.nucleus is not None:
        site = world.storage_site.get(parent)
        link = None if site is None else task.links.get(site)
        found.network_weight = network_weight(site, task.nucleus, link, task.express, world)
        if world.network_counts():
            found.weight *= found.network_weight
    software = task.software(world.queues.get(parent, queue))
    if world.rules.hardware_preferred:
        found.weight *= software.preference
    found.platform = software.platform
    return found


def streams(task: Task, name: str) -> bool:
    """Say whether workers count as running: pilots seen by check 42, ucore and pull_ups (6.2)."""
    queue, pilots = task.world.queues[name], task.world.pilots(task.world.parent[name])
    seen = pilots > 0 and not task.single_or_list
    return seen and queue.get("capability") == "ucore" and queue.get("workflow") == "pull_ups"


def is_low(task: Task) -> bool:
    """Say whether the priority is low enough to bootstrap."""
    return bool(task.prio <= task.world.setting("MAX_PRIO_TO_BOOTSTRAP"))


def is_ucore(task: Task, name: str) -> bool:
    return task.world.queues[name].get("capability") == "ucore"


def queue_limit(task: Task) -> int:
    """Return L, the number of jobs that may always wait (6.4)."""
    if task.world.rules.cap_mode == "twice_running":
        return 0
    key = ("jobbroker", f"NQUEUELIMITSITE_{task.row.get('gshare')}")
    return int(task.world.config.get(key) or 20)


def cap(task: Task, found: Weighed) -> str | None:
    """Checks 46 to 48 (6.4)."""
    world = task.world
    if _too_many_queued(task, found):
        return "queued_cap"
    if task.express and found.network_weight is not None and world.network_counts():
        least = world.setting("NW_THRESHOLD") * world.setting("NW_WEIGHT_MULTIPLIER")
        if found.network_weight < least:
            return "network_weight_low"
    by_type = found.by_type if world.rules.cap_mode == "limit" else None
    if not task.express and by_type is not None:
        running, waiting = by_type
        if waiting > max(queue_limit(task), 2 * max(running, found.running)):
            return "queued_cap_rt"
    return None


def _too_many_queued(task: Task, found: Weighed) -> bool:
    """Check 46; the page's form counts defined jobs too, at every queue and for every task, and has no least number."""
    queued = weights.queued(found.counts, local=found.local)
    if task.world.rules.cap_mode == "twice_running":
        return queued + found.counts.defined > 2 * found.running
    limit = max(queue_limit(task), 2 * found.running)
    return queued > limit and not is_ucore(task, found.name) and not task.express


def candidate_counts(task: Task, found: Weighed) -> dict[str, float | None]:
    """Return the numbers that go with a candidate (6.4); no cap for express work."""
    limit, queue = queue_limit(task), task.world.queues[found.name]
    queue = task.world.queues.get(task.world.parent[found.name], queue)
    anywhere = task.world.rules.cap_mode == "twice_running"
    if anywhere:
        running = found.running
        queued = weights.queued(found.counts, local=found.local) + found.counts.defined
    elif is_ucore(task, found.name):
        running, queued = found.by_type or (0, 0)
        running = max(running, found.running) if found.by_type else 0
    else:
        running, queued = found.running, weights.queued(found.counts, local=found.local)
    return {
        "nrunning": found.running,
        "nqueuedjobs": queued,
        "nrunningjobscap": None if task.express and not anywhere else max(limit, 2 * running),
        "maxwdir": scaled_wdir(task, queue) if queue.get("maxwdir") else None,
    }


def bootstraps(task: Task, found: Weighed) -> bool:
    """Say whether a queue without any job becomes a candidate of weight 0 (6.5)."""
    nothing = found.running == 0 and found.counts.idle()
    plain = not task.merging and not task.express
    return bool(task.world.rules.bootstrap_first and nothing and is_low(task) and plain)


def least_weight(task: Task) -> float:
    """Return MIN_WEIGHT of label and share, or of the label; 0 is off (check 50)."""
    if not task.world.rules.code_only_checks:
        return 0
    label, share = task.label, task.row.get("gshare")
    for key in (f"MIN_WEIGHT_{label}_{share}", f"MIN_WEIGHT_{label}"):
        found = task.world.config.get(("jobbroker", key))
        if found is not None:
            return float(found)
    return 0


class LargestOnly:
    """Check 51: of the queues that reach it, the one with the most running jobs stays (6.6)."""

    def __init__(self, task: Task):
        self.task = task
        self.applies = task.stays_at_nucleus() and task.world.rules.single_t1_queue
        self.largest: tuple[int, str] | None = None

    def evicts(self, name: str, bootstrap: list[str]) -> list[str]:
        """Return who has to go when a queue reaches the check: itself, or those met before."""
        number = self.task.world.all_shares[self.task.world.parent[name], "running"]
        if self.largest is not None and number <= self.largest[0]:
            return [name]
        before = [] if self.largest is None else [self.largest[1]]
        self.largest = (number, name)
        return before + bootstrap
