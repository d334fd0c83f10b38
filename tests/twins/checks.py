"""The checks of production-jobs.md 2 that look at one queue (or once at its parent), in order."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.twins import text
from tests.twins.network import queued_key
from tests.twins.storage import endpoint_problem
from tests.twins.task import Task
from tests.twins.world import Row

INACTIVE = timedelta(hours=2)
ENOUGH_HS06 = 24 * 3600 * 10

Answer = str | None


def cores(queue: Row) -> int:
    return queue.get("corecount") or 0


def name_test(task: Task, queue: Row) -> Answer:
    found = task.world.rules.drop_test_queues and "test" in queue["panda_queue"].lower()
    return "name_test" if found and not task.single_or_list else None


def spared(task: Task, flag: str) -> bool:
    """Say whether a pre-assigned queue passes unasked; ``flag`` is the property of the task that says so."""
    return bool(task.world.rules.preassigned_exempt and getattr(task, flag))


def status(task: Task, queue: Row) -> Answer:
    if task.single_or_list:
        return None
    good = ("online", "standby") if task.world.rules.standby_online else ("online",)
    if queue.get("is_unified"):
        return "parent"
    return None if queue.get("status") in good else "status_offline"


def link(task: Task, queue: Row) -> Answer:
    """Checks 3 to 6; the first two are temporary."""
    world, name = task.world, queue["panda_queue"]
    site = world.storage_site.get(name)
    if task.nucleus is None:
        return None

    def full(queued: float, key: str) -> bool:
        cap = world.setting(key)
        return bool(queued >= cap if world.rules.backlog_inclusive else queued > cap)

    overfull = full(task.nucleus_queued, "NQUEUED_NUC_CAP_FOR_JOBS")
    if site is None or site == task.nucleus:
        skips = overfull and not world.rules.backlog_spares_nucleus
        return "nucleus_backlog" if skips else None
    if task.nucleus in world.unwritable_nuclei:
        return "nucleus_unwritable"
    if overfull:
        return "nucleus_backlog"
    metrics = task.links.get(site)
    if metrics is None:
        return None
    if metrics.get("AGIS_closeness") == -1:
        return "link_blocked"
    if full(metrics.get(queued_key(task.express), 0), "NQUEUED_SAT_CAP"):
        return "link_backlog"
    return None


def opportunistic(task: Task, queue: Row) -> Answer:
    applies = task.urgent and not spared(task, "single_or_list")
    return "opportunistic" if applies and queue.get("pledgedcpu") == -1 else None


def inactive(task: Task, queue: Row) -> Answer:
    applies = task.urgent or task.merging or task.row.get("mergeoutput")
    if not applies or spared(task, "single_or_list"):
        return None
    waiting = task.world.all_shares[queue["panda_queue"], "activated"]
    if task.world.rules.inactive_counts_starting:
        waiting += task.world.all_shares[queue["panda_queue"], "starting"]
    last = task.world.laststart(queue["panda_queue"])
    old = last is not None and task.at is not None and last < task.at - INACTIVE
    return "inactive" if old and waiting > 0 else None


def zero_share(task: Task, queue: Row) -> Answer:
    applies = task.queue_name not in ("test", "validation") or (
        task.site_preassigned and task.label != "managed"
    )
    if not applies and task.world.rules.test_work_exempt:
        return None
    zero = text.zero_share(
        task.row, task.merging, queue.get("fairsharepolicy"), task.world.matching
    )
    return "zero_share" if zero else None


def jumbo(task: Task, queue: Row) -> Answer:
    if not task.world.rules.jumbo_queues:
        return None
    if task.site_preassigned or not task.world.catchall[queue["panda_queue"]].use_jumbo_jobs:
        return None
    if not task.jumbo:
        return "jumbo_only"
    least = task.world.catchall[queue["panda_queue"]].min_events_for_jumbo or 0
    ready = task.row.get("n_ready_events")
    few = ready is not None and least > ready
    return "jumbo_few_events" if few else None


def diskio(task: Task, queue: Row) -> Answer:
    need = task.row.get("diskio")
    if task.world.rules.diskio_per_core and need and _truthy_cores(task) and cores(queue):
        need = need // cores(queue) if task.world.rules.whole_numbers else need / cores(queue)
    usage = task.world.diskio.get(queue["panda_queue"])
    own = queue.get("maxdiskio") or 0
    limit = own if own > 0 else task.world.setting("MAX_DISKIO_DEFAULT")
    if need and usage and limit and usage > limit and need > limit:
        return "diskio_overload"
    return None


def _truthy_cores(task: Task) -> bool:
    asked = task.row.get("corecount")
    return asked is not None and (asked > 1 or asked < 0)


def core_count(task: Task, queue: Row) -> Answer:
    if spared(task, "site_preassigned"):
        return None
    asked = task.row.get("corecount")
    if task.merging and task.row.get("mergecorecount") is not None:
        asked = task.row["mergecorecount"]
    asked = 1 if asked is None else asked
    has = cores(queue)
    several = asked > 1 or (asked == 0 and task.first_class)
    good = has > 1 if several else asked == 0 or has in (0, 1)
    if not good:
        return "core_count"
    most = task.row.get("maxcorecount")
    return "core_count_max" if most and has > most else None


def software(task: Task, queue: Row) -> Answer:
    return task.software(queue).check


def memory(task: Task, queue: Row) -> Answer:
    need = task.memory(queue.get("corecount"))
    if need and queue.get("maxrss") and need > queue["maxrss"]:
        return "memory_max"
    if need and queue.get("minrss") and need < queue["minrss"]:
        return "memory_min"
    return None


def direct_access(task: Task, queue: Row) -> Answer:
    only = task.row.get("allowinputlan") == "only" and not task.merging
    copies = not queue.get("direct_access_lan") and queue.get("maxinputsize") != -1
    return "direct_access" if only and copies else None


def scaled_wdir(task: Task, queue: Row) -> float:
    """Return what a job may use of the working directory of a slot [MB] (4.3)."""
    slot = queue.get("maxwdir") or 0
    shares = cores(queue) or 1
    single = task.row.get("corecount") in (None, 0, 1) and not task.event_service
    taken = 1 if single or task.world.rules.maxwdir_per_core else shares
    return slot * taken / shares


def scratch_disk(task: Task, queue: Row) -> Answer:
    if not queue.get("maxwdir"):
        return None
    need, has = task.scratch(queue), scaled_wdir(task, queue)
    too_much = need > has if task.world.rules.scratch_equal_passes else need >= has
    return "scratch_disk" if too_much else None


def usable_space(endpoint: Row) -> float:
    def get(column: str) -> float:
        return endpoint.get(column) or 0

    taken = get("space_min_free") + get("space_unavailable")
    return get("space_free") + get("space_expired") - taken


def storage(task: Task, queue: Row) -> Answer:
    """Checks 21 to 27, all temporary."""
    world, name = task.world, queue["panda_queue"]
    endpoint = world.endpoints.get(world.default_output.get(name, ""))
    if endpoint is not None:
        free = world.rules.local_space == "free"
        has = (endpoint.get("space_free") or 0) if free else usable_space(endpoint)
        least = world.setting("STORAGE_MIN_FREE_SIZE")
        if has < least if world.rules.free_equal_passes else has <= least:
            return "storage_space"
    return endpoint_problem(
        world,
        world.inputs.get(name, []),
        world.outputs.get(name, []),
        name in task.nucleus_queues,
        task.input,
    )


def walltime(task: Task, queue: Row) -> Answer:
    """Checks 28 to 30, in order."""
    need, dynamic = task.walltime_need(), task.dynamic_needs()
    longest, least = queue.get("maxtime") or 0, queue.get("mintime") or 0

    def capacity(seconds: float) -> float:
        return task.capacity(queue, seconds)

    if not task.world.rules.zero_efficiency_rejects and task.hs06() and task.efficiency() == 0:
        need, dynamic = task.row.get("basewalltime") or 0, None

        def capacity(seconds: float) -> float:
            return seconds

    upper = dynamic[0] if dynamic and least else need
    if longest and upper and upper > capacity(longest):
        return "walltime_max"
    if _too_short_for_unknown(task, queue, longest):
        return "walltime_24h"
    if not least:
        return None
    if dynamic:
        short = dynamic[0] < capacity(least) and dynamic[1] < capacity(least)
    else:
        short = (
            need < capacity(least)
            if need is not None
            else task.world.rules.unknown_walltime_is_short
        )
    return "walltime_min" if short else None


def _too_short_for_unknown(task: Task, queue: Row, longest: int) -> bool:
    """Check 29: scouts and jobs of unknown length need a queue of a day."""
    rules = task.world.rules
    applies = (task.scout and not spared(task, "site_preassigned")) or task.walltime_undefined()
    if not rules.long_queue_by_capacity:
        return applies and longest != 0 and longest < 24 * 3600
    if not (applies or task.merging) or not (longest or rules.zero_maxtime_limits):
        return False
    capacity = task.capacity(queue, longest)
    return capacity != 0 and capacity < ENOUGH_HS06 * max(1, cores(queue))


def connectivity(task: Task, queue: Row) -> Answer:
    if spared(task, "site_preassigned"):
        return None
    network, stack = text.connectivity(queue.get("wnconnectivity"))
    asked, behind = text.connectivity(task.row.get("ipconnectivity"))
    asked = asked.replace("none", "")
    if asked and not (network == "full" or network == asked == "http"):
        return "connectivity"
    asked_stack = task.row.get("ipstack") or behind
    asks = bool(asked_stack)
    if task.world.rules.ip_stack_strict:
        asks = asks or bool(task.row.get("ipconnectivity"))
    return "ip_stack" if asks and asked_stack != (stack or "") else None


def event_service(task: Task, queue: Row) -> Answer:
    if spared(task, "site_preassigned"):
        return None
    seed = queue.get("jobseed") or "std"
    if not task.es:
        return "event_service_only" if seed == "es" else None
    if seed == "std":
        return "event_service_std"
    if seed == "eshigh" and not task.first_class:
        return "event_service_prio"
    pseudo = task.world.parent[queue["panda_queue"]] != queue["panda_queue"]
    return "event_service_child" if pseudo and cores(queue) == 1 else None


def transferring(task: Task, queue: Row) -> Answer:
    world, name = task.world, queue["panda_queue"]
    site = world.storage_site.get(name)
    spares = world.rules.transferring_spares
    if spares and (site is None or site == task.nucleus or task.is_near_nucleus(name)):
        return None
    bound = sum(
        row["njobs"] or 0
        for row in world.transferring_to.get(name, [])
        if row["nucleus"] in world.unwritable_nuclei
    )
    number = world.all_shares[name, "transferring"] - (bound if spares else 0)
    limit = queue.get("transferringlimit") or 2000
    limit = max(limit, 2 * world.all_shares[name, "running"])
    return "transferring" if number > limit else None


def shortage(task: Task, queue: Row) -> Answer:
    world, name = task.world, queue["panda_queue"]
    if not world.setting("WORK_SHORTAGE", "core") or spared(task, "site_preassigned"):
        return None
    pledge = queue.get("pledgedcpu") or 0
    if pledge == -1:
        return "opportunistic_shortage"
    used = world.cores[name, "running"]
    if world.rules.shortage_counts_starting:
        used += world.cores[name, "starting"]
    return "pledge_exceeded" if pledge > 0 and used > pledge else None


def t1_weight(task: Task, queue: Row) -> Answer:
    negative = task.stays_at_nucleus()
    far = not task.is_near_nucleus(task.world.parent[queue["panda_queue"]])
    return "t1_weight" if negative and far else None


def io_intensity(task: Task, queue: Row) -> Answer:
    most = queue.get("max_io_intensity")
    if (
        task.merging
        or not task.iointensity
        or most is None
        or not task.world.rules.code_only_checks
    ):
        return None
    return "io_intensity_max" if task.iointensity > most else None


def full_chain(task: Task, queue: Row) -> Answer:
    if task.hint:
        return None
    if task.chained:
        return None if queue.get("pandasite") == task.nucleus else "full_chain_outside"
    bare_only = task.world.catchall[queue["panda_queue"]].bare_mode == "only"
    return "full_chain_only" if bare_only else None


def no_pilot(task: Task, queue: Row) -> Answer:
    name = queue["panda_queue"]
    if spared(task, "single_or_list") or task.world.pilots(name) > 0:
        return None
    if not task.world.rules.pilots_excused:
        return "no_pilot"
    if "test" in task.label and not task.express:
        return None
    if task.slots(name) is not None:
        return None
    if task.jumbo and task.world.catchall[name].use_jumbo_jobs:
        return None
    return "no_pilot"


TEMPORARY = {
    "nucleus_unwritable", "nucleus_backlog", "link_backlog", "inactive", "diskio_overload", "storage_space",
    "read_lan_down", "write_lan_down", "write_wan_down", "read_wan_down", "source_down",
    "transferring", "no_pilot",
}  # fmt: skip

STEPS: tuple[tuple[Callable[[Task, Row], Any], bool], ...] = (
    (name_test, False),
    (status, False),
    (link, True),
    (opportunistic, False),
    (inactive, True),
    (zero_share, False),
    (jumbo, False),
    (diskio, True),
    (core_count, False),
    (software, True),
    (memory, False),
    (direct_access, True),
    (scratch_disk, True),
    (storage, True),
    (walltime, False),
    (connectivity, False),
    (event_service, False),
    (transferring, True),
    (shortage, True),
    (t1_weight, False),
    (io_intensity, False),
    (full_chain, False),
    (no_pilot, True),
)
"""Each step with whether it is asked once per parent, of the parent's row."""
