"""Completeness of the input and states of endpoints (production-jobs.md 1 and 2, checks 22 to 27)."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.twins.task import Task
from tests.twins.world import Row, World


@dataclass
class Input:
    """What the replicas of all input datasets say."""

    incomplete: bool = False
    remote_source_available: bool = True
    complete_locations: set[str] = field(default_factory=set)


def completeness(world: World, replicas: list[Row]) -> tuple[set[str], bool, bool]:
    """Return endpoints complete for a dataset, and whether any is readable over LAN, over WAN."""
    most_missing = world.setting("MAX_MISSING_INPUT_FILES")
    least_pct = world.setting("MIN_INPUT_COMPLETENESS")
    locations, local, remote = set(), False, False
    for row in replicas:
        found, total = row.get("found") or 0, row.get("total") or 0
        nearly = found > 0 and (total - found <= most_missing or 100 * found / total >= least_pct)
        if row.get("vp") or not (found == total or nearly):
            continue
        name = row["ddm_endpoint_name"]
        locations.add(name)
        local = local or not world.is_down(name, "read_lan")
        remote = remote or not world.is_down(name, "read_wan")
    return locations, local, remote


def input_state(task: Task) -> Input:
    """Return whether every real dataset of the input can be read, and from where."""
    state = Input()
    world = task.world
    common: set[str] | None = None
    replicas = world.task_rows("replicas", task.id)
    for dataset in task.datasets:
        if dataset.get("distributed"):
            continue
        rows = [row for row in replicas if row["datasetname"] == dataset["datasetname"]]
        locations, local, remote = completeness(world, rows)
        common = locations if common is None else common & locations
        if task.row.get("inputprestaging"):
            continue
        if not (local or remote):
            state.incomplete = True
        if locations and not remote:
            state.remote_source_available = False
    state.complete_locations = common or set()
    return state


def endpoint_problem(
    world: World, inputs: list[Row], outputs: list[Row], nucleus_queue: bool, state: Input
) -> str | None:
    """Return the first of the five endpoint checks that fails (22 to 25, 27)."""
    rules = world.rules
    ins = [row for row in inputs if row.get("type") == "DATADISK" or not rules.datadisk_only]
    outs = [row for row in outputs if row.get("type") == "DATADISK" or not rules.datadisk_only]
    home = nucleus_queue and not rules.wan_asked_at_nucleus

    def up(row: Row, access: str) -> bool:
        return not world.is_down(row, access)

    def can_receive(row: Row) -> bool:
        complete = state.complete_locations
        exempt = nucleus_queue and (not complete or row["ddm_endpoint_name"] in complete)
        return up(row, "write_wan") or exempt

    def some(goods: list[bool]) -> bool:
        return any(goods) or not (goods or rules.datadisk_only)

    if not some([up(row, "read_lan") for row in ins]):
        return "read_lan_down"
    if not some([up(row, "write_lan") for row in outs]):
        return "write_lan_down"
    if not home and not some([can_receive(row) for row in ins]):
        return "write_wan_down"
    if not home and not some([up(row, "read_wan") or nucleus_queue for row in outs]):
        return "read_wan_down"
    if home or not rules.code_only_checks:
        return None
    if not state.remote_source_available and not _exempted(world, ins, outs, nucleus_queue, state):
        return "source_down"
    return None


def _exempted(
    world: World, ins: list[Row], outs: list[Row], nucleus_queue: bool, state: Input
) -> bool:
    """Say whether an endpoint of a queue of the nucleus passed 24 or 25 by the exemption."""
    if not nucleus_queue:
        return False
    complete = state.complete_locations
    received = any(not complete or row["ddm_endpoint_name"] in complete for row in ins)
    return received or bool(outs)
