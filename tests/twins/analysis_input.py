"""Where the input of a user task is, and which queues that selects (analysis-jobs.md 4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from tests.twins.analysis_world import Row, World, is_vp, up
from tests.twins.world import when

TAPE_ONLY = 0.001


@dataclass
class Dataset:
    """One real input dataset."""

    name: str
    replicas: list[Row]
    complete_on_disk: bool = False
    distributed: bool = False


@dataclass
class Input:
    """What is known of all input before a queue is looked at."""

    datasets: list[Dataset] = field(default_factory=list)
    incomplete: bool = False
    source: bool = True
    relaxation: str | None = None

    @property
    def distributed(self) -> bool:
        return any(dataset.distributed for dataset in self.datasets)


@dataclass
class Local:
    """What the check of locality selects among some queues."""

    queues: set[str] = field(default_factory=set)
    union: bool = False
    weights: dict[str, float] = field(default_factory=dict)
    without_vp: set[str] = field(default_factory=set)


def input_of(world: World, task: Row, pool: set[str]) -> Input:
    """Return the state of the input of a task whose candidates are queues of a pool (4.1a to c)."""
    found = Input(relaxation=relaxation(world, task))
    replicas = world.task_rows("replicas", task["jeditaskid"])
    for row in world.task_rows("datasets", task["jeditaskid"]):
        if row.get("type") == "pseudo_input":
            continue
        name = row["datasetname"]
        dataset = Dataset(name, [one for one in replicas if one["datasetname"] == name])
        own = [one for one in dataset.replicas if not one.get("vp")]
        complete = {one["ddm_endpoint_name"] for one in own if truly_complete(one)}
        complete_anyhow = {
            one["ddm_endpoint_name"] for one in dataset.replicas if truly_complete(one)
        }
        dataset.complete_on_disk = any(
            not world.endpoints[name].get("is_tape") for name in complete & world.endpoints.keys()
        )
        at_queues = {
            queue
            for queue in pool
            if complete_anyhow & {endpoint["ddm_endpoint_name"] for endpoint in world.inputs(queue)}
        }
        dataset.distributed = (bool(row.get("is_distributed")) and not at_queues) or name.endswith(
            "/"
        )
        found.datasets.append(dataset)
        if dataset.distributed:
            continue
        regarded = [  # an endpoint that no queue has cannot be read
            world.endpoints[one["ddm_endpoint_name"]]
            for one in own
            if _regarded(world, one) and one["ddm_endpoint_name"] in world.endpoints
        ]
        if not any(up(one, "read_lan") or up(one, "read_wan") for one in regarded):
            found.incomplete = True
        if not any(up(one, "read_wan") for one in regarded):
            found.source = False
    if task.get("allowincompleteinds") or not world.rules.code_only_checks:
        found.incomplete = False
    return found


def truly_complete(replica: Row) -> bool:
    return replica.get("found") is not None and replica["found"] == replica.get("total")


def _regarded(world: World, replica: Row) -> bool:
    """Say whether a replica counts as complete (a)."""
    if truly_complete(replica):
        return True
    has, total = replica.get("found"), replica.get("total")
    if not has or not total:
        return False
    few = total - has <= world.broker("MAX_MISSING_INPUT_FILES")
    return bool(few or has / total * 100 >= world.broker("MIN_INPUT_COMPLETENESS"))


def relaxation(world: World, task: Row) -> str | None:
    """Return why locality may be ignored (c)."""
    if (task.get("taskpriority") or 0) >= 2000:
        return "taskpriority"
    cutoff, intensity = world.broker("IO_INTENSITY_CUTOFF_USER"), task.get("iointensity")
    known = intensity is not None if world.rules.zero_intensity_suppresses else bool(intensity)
    if cutoff and known and intensity <= cutoff:
        return "iointensity"
    hours, frozen, at = (
        world.broker("DATA_CHECK_TIMEOUT_USER"),
        when(task.get("frozentime")),
        when(task.get("at")),
    )
    if hours and frozen and at and at - frozen > timedelta(hours=hours):
        return "frozentime"
    return None


def select(world: World, state: Input, pool: set[str], *, use_vp: bool, site: str | None) -> Local:
    """Return the queues of a pool that the check of locality selects (d to f)."""
    disk, every, plain = [], [], []
    for dataset in state.datasets:
        disk.append(_holders(world, dataset, pool, tape=False, vp=use_vp))
        every.append(_holders(world, dataset, pool, tape=True, vp=True))
        plain.append(_holders(world, dataset, pool, tape=True, vp=False))
    found = Local()
    for on_disk, anywhere in zip(disk, every, strict=True):
        for queue in on_disk | anywhere:
            step = 1 if queue in on_disk else TAPE_ONLY
            found.weights[queue] = found.weights.get(queue, 0) + step
    disk_all, every_all, every_any = (
        set.intersection(*disk),
        set.intersection(*every),
        set.union(*every),
    )
    found.union = site is None and not disk_all and not every_all
    found.without_vp = set.union(*plain) if found.union else set.intersection(*plain)
    if site is not None:
        found.queues = next((some for some in (every_all, every_any) if site in some), set())
    else:
        found.queues = disk_all or every_all or set.union(*disk) or every_any
    return found


def _holders(world: World, dataset: Dataset, pool: set[str], *, tape: bool, vp: bool) -> set[str]:
    """Return the queues that have one dataset (d)."""
    last = {row["ddm_endpoint_name"]: row for row in dataset.replicas}
    complete, incomplete, plain, virtual = set(), set(), set(), set()
    for queue in pool:
        for endpoint in world.inputs(queue):
            row = last.get(endpoint["ddm_endpoint_name"])
            if row is None:
                continue
            if is_vp(endpoint):
                virtual.add(queue)
            on_tape = bool(endpoint.get("is_tape"))
            if truly_complete(row) and not on_tape and not is_vp(endpoint):
                plain.add(queue)
            if (on_tape and not tape) or (is_vp(endpoint) and not vp):
                continue
            (complete if truly_complete(row) else incomplete).add(queue)
    if plain:
        complete -= virtual
        incomplete -= virtual
    incomplete_allowed = dataset.distributed or not dataset.complete_on_disk
    if not complete:
        return incomplete
    return complete if plain or not incomplete_allowed else complete | incomplete
