"""Stabilizer, overload, marks and weights of queues that are left (analysis-jobs.md 4, 5 and 7)."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.twins.analysis_checks import Loop, exempt
from tests.twins.analysis_task import Task
from tests.twins.analysis_throttle import task_class
from tests.twins.analysis_world import QUEUED, Row
from tests.twins.weights import slots_lookup

CLASSED = ("User Analysis", "Express Analysis")
TINY = 2.0**-20
EPSILON_1, EPSILON_2 = 0.05, 0.002
LEAST = 0.001
ROUNDING = 1e-9
"""What is less than this part of a sum is what rounding left of 0."""
GB = 1024**3
PAGE: dict[int, dict[int, float | None]] = {
    2: {1: None, 0: EPSILON_1, -1: EPSILON_2},
    1: {1: None, 0: EPSILON_1, -1: EPSILON_2},
    0: {1: EPSILON_2, 0: None, -1: EPSILON_1},
    -1: {1: EPSILON_2, 0: EPSILON_1, -1: None},
}
"""Task class -> site class -> W_s of the page's table; none stands for N_j."""


@dataclass
class State:
    """What the stabilizer knows of a user at a unified queue (5)."""

    parent: str
    nq: int
    nr: int
    user_queued: int
    user_running: int
    exempt: bool
    max_q_len: float
    marks: set[str] = field(default_factory=set)
    running: int = 0
    orig: float = 0.0
    new: float = 0.0

    @property
    def rest(self) -> float:
        return max(self.max_q_len - self.user_queued, 0)


def state_of(task: Task, parent: str) -> State:
    """Return the state of one queue: steps 1 to 7."""
    world, broker = task.world, task.world.broker
    nq, nr = world.queued(parent, task.gshare), world.running(parent, task.gshare)
    rate = world.rates.get(parent, 0)
    if world.rules.trr_scaled:
        everywhere = world.running_everywhere[parent]
        rate = nr * rate / everywhere if everywhere else 0
    users = world.users.get((parent, task.gshare), {})
    own = users.get(task.user or "")
    exempt = (
        nq < broker("BASE_QUEUE_LENGTH_PER_PQ")
        or nq < broker("BASE_EXPECTED_WAIT_HOUR_ON_PQ") * rate
        or (own is None and world.rules.bad_jobs_mode == "after_stabilizer")
    )
    own = own or {}
    running = nr
    if users and world.rules.stabilizer_running == "users":
        running = sum(row.get("nrunning") or 0 for row in users.values())
    most = max(
        broker("BASE_QUEUE_LENGTH_PER_PQ"),
        broker("STATIC_MAX_QUEUE_RUNNING_RATIO") * running,
        broker("MAX_EXPECTED_WAIT_HOUR") * rate,
    )
    number = len(users) + (1 if world.rules.count_total_row else 0) if users else 1
    user_running = own.get("nrunning") or 0
    share = max(1 / number, user_running / running if running > 0 else 0)
    longest = max(
        broker("BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER"),
        broker("BASE_QUEUE_RATIO_ON_PQ") * running,
        most * share,
    )
    return State(parent, nq, nr, own.get("nqueue") or 0, user_running, exempt, longest)


def overloaded(loop: Loop, parents: list[str]) -> dict[str, str]:
    """Return the overloaded queues with the name of the check, kept ones left out (4.13)."""
    task, world = loop.task, loop.task.world
    rules = world.rules
    if exempt(task, task.merging):
        return {}
    all_queued, all_running = world.share_totals.get(task.gshare, (0, 0))
    found = {}
    for parent in parents:
        nq, nr = world.queued(parent, task.gshare), world.running(parent, task.gshare)
        if nq <= world.broker("OVERLOAD_MIN_QUEUE"):
            continue
        if nr == 0 or nq / nr > all_queued / all_running * world.broker("OVERLOAD_RATIO_OFFSET"):
            own_data = parent in loop.without_vp or loop.second or not loop.has_input
            if rules.overload_scope == "vp":
                own_data = parent not in world.vp_queues
            found[parent] = "overloaded" if own_data else "overloaded_vp"
    if len(found) < len(parents) and rules.overload_scope == "all":
        return found
    return {parent: check for parent, check in found.items() if check == "overloaded_vp"}


def mark(task: Task, state: State) -> None:
    """Note what makes a queue problematic (checks 23 to 25)."""
    if exempt(task, task.merging):
        return
    broker, every = task.world.broker, task.world.rules.overload_scope == "all"
    if every and state.nr == 0 and state.nq > broker("OVERLOAD_MIN_QUEUE"):
        state.marks.add("no_running")
    if not state.exempt and state.user_queued > state.max_q_len:
        state.marks.add("user_queue")
    bad = task.ended_at(state.parent, "failed") + task.ended_at(state.parent, "closed")
    limit = max(2 * task.ended_at(state.parent, "finished"), broker("MIN_BAD_JOBS_TO_SKIP_PQ"))
    if task.world.rules.bad_jobs_mode == "all":
        too_many = bad >= limit
    else:
        too_many = bad > limit and not state.exempt
    if too_many:
        state.marks.add("bad_jobs")


def weigh(task: Task, states: list[State], rows: dict[str, list[Row]]) -> None:
    """Set the basic weights of the candidates (6.1, 6.2).

    Args:
        task: The task.
        states: Unified queues.
        rows: Their pseudo-queues that are left.
    """
    for state in states:
        state.running = _running(task, state, rows[state.parent])
        waiting = sum(task.world.counted(state.parent, task.gshare, status) for status in QUEUED)
        state.orig = (state.running + 1) / (waiting + 1)
    level = task_class(task.world, task.row)
    new = _by_budgets if task.world.rules.new_weight == "budgets" else _by_page
    new(task, states, 1 if level is None else level)


def _running(task: Task, state: State, rows: list[Row]) -> int:
    """Return R of the original weight (6.1)."""
    world, parent = task.world, state.parent
    running = world.counted(parent, task.gshare, "running")
    workers = min(20, world.active_workers(parent))
    counted = world.pilots(parent) > 0 or not world.rules.workers_need_pilots
    if counted and running < 20 and workers > running:
        running = workers
    slots = slots_lookup(world.slots.get(parent, []), task.gshare, task.row.get("resource_type"))
    if slots is None or slots < 0:
        return running
    if slots == 0:
        starting = world.counted(parent, task.gshare, "starting")
        return (
            running + starting if world.rules.slots_zero_mode == "sum" else max(running, starting)
        )
    if world.rules.slots_per_core:
        slots = int(slots / max(row.get("corecount") or 1 for row in rows))
    return max(slots, running)


def _queue_weight(state: State, jobs: float, rest: float, number: int, *, merging: bool) -> float:
    """Return W_q among queues with so much room in all."""
    room = max(state.rest - jobs / number, LEAST * jobs)
    if rest - jobs > ROUNDING * rest and not merging:
        return room / (rest - jobs)
    return state.rest / rest if rest > 0 else 1 / number


def _by_page(task: Task, states: list[State], level: int) -> None:
    """W_s of the page's table, W_q over every candidate."""
    rest = sum(state.rest for state in states)
    for state in states:
        by_site: float = task.jobs
        if task.gshare in CLASSED:
            found = PAGE[level][task.world.classes.get(state.parent, 0)]
            by_site = task.jobs if found is None else found
        state.new = by_site * _queue_weight(
            state, task.jobs, rest, len(states), merging=task.merging
        )


def budgets(jobs: float, rest: dict[int, float], level: int) -> dict[int, float]:
    """Return M of each site class: how many jobs are meant for it."""
    found = dict.fromkeys((1, 0, -1), LEAST)
    jobs = min(jobs, sum(rest.values()))
    if level == -1:
        found[-1] = jobs
    elif level == 0:
        found[0] = min(jobs, rest[0])
        found[-1] = jobs - found[0]
        if found[0] > 0:
            found[0] -= 0.1
            found[-1] += 0.1
    else:
        found[1] = min(jobs, rest[1])
        found[0] = min(jobs - found[1], rest[0])
        found[-1] = jobs - found[1] - found[0]
        if found[1] > 0:
            found[1] -= 0.052
            found[0] += 0.05
            found[-1] += 0.002
    return found


def _by_budgets(task: Task, states: list[State], level: int) -> None:
    """W_s and W_q by class, what the preferred class cannot take goes to the next."""
    if task.gshare not in CLASSED:
        _by_page(task, states, level)
    else:
        classes = {state.parent: task.world.classes.get(state.parent, 0) for state in states}
        rest = dict.fromkeys((1, 0, -1), 0.0)
        number = dict.fromkeys((1, 0, -1), 0)
        for state in states:
            rest[classes[state.parent]] += state.rest
            number[classes[state.parent]] += 1
        meant = budgets(task.jobs, rest, level)
        for state in states:
            c = classes[state.parent]
            of_queue = _queue_weight(state, meant[c], rest[c], number[c], merging=task.merging)
            state.new = meant[c] * of_queue
    for state in states:
        state.new += TINY


def data_factor(loop: Loop, parent: str, data_weights: dict[str, float]) -> float:
    """Return the factor for data at a queue (6.4)."""
    if not loop.task.world.rules.data_factor:
        return 1
    if not loop.second and not loop.union:
        return data_weights.get(parent, 1)
    task = loop.task
    files = task.world.task_rows("files", task.id)
    total = int(sum(row.get("fsize") or 0 for row in files) // GB)
    if total <= 0:
        return 1
    sizes = {(row["datasetname"], row["lfn"]): row.get("fsize") or 0 for row in files}
    there = {
        (row["datasetname"], row["lfn"])
        for row in task.world.task_rows("file_locations", task.id)
        if row["panda_queue"] == parent and row["kind"] == "localdisk"
    }
    return 1 + int(sum(sizes.get(key, 0) for key in there) // GB) / 10
