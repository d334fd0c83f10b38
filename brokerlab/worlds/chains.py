"""Run jobs: what each attempt needs, whether it fails or is killed, and the retries that follow.

Tasks, jobs and attempts are dataclasses of arrays with one entry each, of which some are taken or several joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.worlds.jobtypes import BUILD_TYPE, MERGE
from brokerlab.worlds.queues import held
from brokerlab.worlds.tasks import LEVELS, TAIL_SCALE, TAIL_SHARE, Tasks
from brokerlab.worlds.world import World

T = TypeVar("T")
"""A dataclass of arrays, and of such dataclasses."""


def take(whole: T, index: IntArray | slice) -> T:
    """Take some of the entries."""
    return _made(lambda held: held[index], whole)


def join(parts: Sequence[T]) -> T:
    """Put several of one class one after the other."""
    return _made(lambda *held: np.concatenate(held), *parts)


def where(chosen: BoolArray, new: T, old: T) -> T:
    """Take entries of one class where chosen, of another elsewhere."""
    return _made(lambda one, other: np.where(chosen, one, other), new, old)


def _made(function: Callable[..., Any], *parts: T) -> T:
    """Apply a function to each of the arrays."""
    values: dict[str, Any] = {}
    for field in fields(parts[0]):  # type: ignore[arg-type]
        held = [getattr(part, field.name) for part in parts]
        inner = is_dataclass(held[0])
        values[field.name] = _made(function, *held) if inner else function(*held)
    return type(parts[0])(**values)


SCOUT, BULK, MERGED, BUILD = 0, 1, 2, 3
"""Phases of a task; a build comes first in time, and goes first where rows are cut."""
FINISHED, FAILED, LOST, MEMORY_KILL, WALL_KILL = 0, 1, 2, 3, 4
"""Outcomes of an attempt; LOST = failed without any record."""
MAX_ATTEMPT = 4
"""Attempts per job."""
LOST_SHARE = 0.33
"""Share of site failures without record, so that with kills a quarter of all failures have none."""
LONGEST_WAIT_S = 3 * 86_400
"""Longest time in a queue that works [s]: longer ones are closed by the system."""
SCOUT_SPREAD = 0.6
"""Scouts read the first files at one queue: their spread is smaller than the task's."""
RAISE_RAM, RAISE_WALL = 1.5, 2.0
"""Factors on the request after a kill."""


@dataclass(frozen=True)
class Roots:
    """Jobs before any attempt: what belongs to their input files, whoever runs them; ``eff``, ``out``, ``size`` are standard normal."""

    task: IntArray
    seq: IntArray  # number of the job inside task and phase (SCOUT, BULK, MERGED or BUILD)
    phase: IntArray
    created_s: FloatArray  # creation of the first attempt [s], at ``slot``
    slot: IntArray
    events: IntArray
    # ln(peak memory) against the task's value at the queue; ln(MB) for merge and build jobs
    mem: FloatArray
    wall: FloatArray  # ln(wall time) against the task's value at the queue
    eff: FloatArray
    out: FloatArray
    size: FloatArray


@dataclass(frozen=True)
class Limits:
    """Limits of each root's first attempt, infinite = none: memory, base part and per core [MB], CPU time per event [HS06 s]."""

    ram_mb: FloatArray
    ram_core_mb: FloatArray
    hs06_per_event: FloatArray


@dataclass(frozen=True)
class Attempts:
    """One entry per attempt of ``root``; ``active_s`` and ``queue_s`` are its activation and start, since its creation [s]."""

    root: IntArray
    attempt: IntArray
    slot: IntArray
    created_s: FloatArray
    active_s: IntArray
    queue_s: IntArray
    wall_s: IntArray
    cores: IntArray
    mem_mb: FloatArray
    eff: FloatArray
    outcome: IntArray
    ram_scale: FloatArray
    wall_scale: FloatArray
    report_s: IntArray
    last: BoolArray

    @property
    def done_s(self) -> FloatArray:
        """Time at which the end of the attempt is known, its ``modificationtime`` [s]."""
        begun = np.floor(self.created_s)
        return np.asarray(begun + self.queue_s + self.wall_s + self.report_s, dtype=np.float64)


def finished(
    root: IntArray,
    slot: IntArray,
    wall_s: IntArray,
    cores: IntArray,
    mem_mb: FloatArray,
    eff: FloatArray,
) -> Attempts:
    """Return first attempts that finished, of which nothing else is asked."""
    zero, one = np.zeros(len(root), np.int64), np.ones(len(root))
    return Attempts(
        root=root, attempt=zero, slot=slot, created_s=one, active_s=zero, queue_s=zero, wall_s=wall_s,
        cores=cores, mem_mb=mem_mb, eff=eff, outcome=zero, ram_scale=one, wall_scale=one, report_s=zero,
        last=np.ones(len(root), np.bool_),
    )  # fmt: skip


def draw_roots(
    tasks: Tasks,
    rng: np.random.Generator,
    *,
    phase: int,
    task: IntArray,
    seq: IntArray,
    created_s: FloatArray,
) -> Roots:
    """Draw what the input files of jobs of one phase bring with them."""
    n = len(task)
    z = rng.standard_normal((4, n))
    u = rng.random((3, n))
    tail = rng.standard_exponential((2, n))
    scouts_slot = tasks.slots.scout[task, (seq // 2) % 2]
    slot = scouts_slot if phase in (SCOUT, BUILD) else draw_slot(tasks, task, u[0])
    if phase == MERGED:
        level = np.where(u[1] < MERGE.low_share, np.log(MERGE.low_mb), np.log(MERGE.high_mb))
        mem = level + MERGE.mem_sd * z[0]
        wall = np.log(MERGE.wall_s) + MERGE.wall_sd * z[1]
        events = np.round(MERGE.events * np.exp(MERGE.events_sd * z[3]))
    elif phase == BUILD:
        mem = np.log(BUILD_TYPE.mem_mb) + BUILD_TYPE.mem_sd * z[0]
        wall = np.log(BUILD_TYPE.wall_s) + BUILD_TYPE.wall_sd * z[1]
        events = np.ones(n)
    else:
        first = 1.0 if phase == SCOUT else 0.0
        spread = SCOUT_SPREAD if first else 1.0
        light = np.where(u[1] < tasks.light_share[task], tasks.light_scale[task] * tail[0], 0.0)
        mem = spread * tasks.mem_sd[task] * z[0] - light + first * tasks.gap_mem[task]
        heavy = np.where(u[2] < TAIL_SHARE, TAIL_SCALE * tail[1], 0.0)
        wall = spread * tasks.wall_sd[task] * z[1] + heavy + first * tasks.gap_wall[task]
        z_events = tasks.events_sd[task] * LEVELS[rng.integers(0, len(LEVELS), n)]
        events = np.maximum(
            np.round(tasks.events[task] * np.exp(z_events)), tasks.files_per_job[task]
        )
    return Roots(
        task=task, seq=seq, phase=np.full(n, phase), created_s=created_s, slot=slot,
        events=events.astype(np.int64), mem=mem, wall=wall, eff=z[2], out=rng.standard_normal(n),
        size=rng.standard_normal(n),
    )  # fmt: skip


def number_in_task(tasks: Tasks, roots: Roots) -> IntArray:
    """Return the number of each scout or bulk job inside its task; scouts come first."""
    return roots.seq + np.where(roots.phase == BULK, tasks.n_scouts[roots.task], 0)


def merge_keys(tasks: Tasks, roots: Roots) -> IntArray:
    """Return the task (upper 32 bits) and the group of outputs that each job belongs to, or that it merges."""
    group = number_in_task(tasks, roots) // np.maximum(tasks.merge_group[roots.task], 1)
    return roots.task * (1 << 32) + np.where(roots.phase == MERGED, roots.seq, group)


def draw_slot(tasks: Tasks, task: IntArray, u: FloatArray) -> IntArray:
    """Choose a place by the task's weights, one uniform number per job."""
    weight = tasks.slots.weight[task]
    place = (u[:, None] >= np.cumsum(weight, axis=1)).sum(axis=1)
    return np.asarray(np.minimum(place, (weight > 0).sum(axis=1) - 1))


def needs(
    tasks: Tasks, roots: Roots, slot: IntArray
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return what jobs need at a place: cores, wall time [s], peak memory of the whole job [MB], efficiency per core."""
    t, slots = roots.task, tasks.slots
    merge, build = roots.phase == MERGED, roots.phase == BUILD
    apart = merge | build
    cores = np.where(apart, 1, slots.cores[t, slot])
    memory = (
        tasks.mem_base_mb[t]
        + tasks.mem_core_mb[t] * cores
        + tasks.mem_event_mb[t] * np.where(apart, 0, roots.events)
    )
    mem = np.where(apart, 1.0, memory) * np.exp(roots.mem + slots.mem[t, slot] * ~apart)
    scaled = (roots.events / tasks.events[t]) * (tasks.ref_cores[t] / cores)
    wall = tasks.wall_s[t] * (tasks.startup[t] + (1 - tasks.startup[t]) * scaled)
    effect = slots.wall[t, slot] * np.where(apart, 0.3, 1.0)
    wall = np.where(apart, 1.0, wall) * np.exp(roots.wall + effect)
    eff_mid = np.where(merge, MERGE.eff, np.where(build, BUILD_TYPE.eff, tasks.eff[t]))
    eff_sd = np.where(merge, MERGE.eff_sd, tasks.eff_sd[t])
    eff = np.clip(eff_mid * np.exp(slots.eff[t, slot] + eff_sd * roots.eff), 0.01, 1.02)
    return cores, np.maximum(wall, 20.0), mem, eff


def rule_events(tasks: Tasks, roots: Roots) -> IntArray:
    """Return the events the scout rule sees: files without event information count 1 each."""
    t = roots.task
    return np.where(tasks.has_events[t], roots.events, tasks.files_per_job[t])


def run(
    tasks: Tasks, world: World, rng: np.random.Generator, roots: Roots, limits: Limits
) -> Attempts:
    """Run every job until it finishes, is given up, or has used its attempts; in rounds: first attempts, second attempts, ...

    A retry after a failure of the site goes to a newly drawn queue; after a kill it stays where it
    was with a raised request. Memory and wall time belong to the input, so retries need the same.
    """
    n = len(roots.task)
    alive = np.arange(n)
    created, slot = roots.created_s.copy(), roots.slot.copy()
    ram_scale, wall_scale = np.ones(n), np.ones(n)
    rounds: list[Attempts] = []
    for attempt in range(1, MAX_ATTEMPT + 1):
        now = _round(
            tasks, world, rng, take(roots, alive), take(limits, alive),
            slot[alive], created[alive], ram_scale[alive], wall_scale[alive],
        )  # fmt: skip
        again = (now.outcome != FINISHED) & (rng.random(len(alive)) < 0.98)
        again &= attempt < MAX_ATTEMPT
        rounds.append(replace(now, root=alive, attempt=np.full(len(alive), attempt), last=~again))
        again_at = now.done_s + rng.uniform(60, 900, len(alive))
        site = (now.outcome == FAILED) | (now.outcome == LOST)
        fresh = draw_slot(tasks, roots.task[alive], rng.random(len(alive)))
        created[alive] = again_at
        slot[alive] = np.where(site & (roots.phase[alive] != SCOUT), fresh, slot[alive])
        ram_scale[alive] *= np.where(now.outcome == MEMORY_KILL, RAISE_RAM, 1.0)
        wall_scale[alive] *= np.where(now.outcome == WALL_KILL, RAISE_WALL, 1.0)
        alive = alive[again]
        if len(alive) == 0:
            break
    return join(rounds)


def _round(
    tasks: Tasks,
    world: World,
    rng: np.random.Generator,
    roots: Roots,
    limits: Limits,
    slot: IntArray,
    created_s: FloatArray,
    ram_scale: FloatArray,
    wall_scale: FloatArray,
) -> Attempts:
    """Run one attempt of every job given."""
    n = len(roots.task)
    queue = tasks.slots.queue[roots.task, slot]
    wait = np.clip(world.draw_waits(rng, queue), 30, LONGEST_WAIT_S)
    wait = held(world.spells, queue, np.floor(created_s).astype(np.int64), wait)
    queue_s = np.ceil(wait).astype(np.int64)
    ran = payloads(tasks, world, rng, roots, limits, slot, ram_scale, wall_scale)
    return Attempts(
        root=np.zeros(n, np.int64), attempt=np.zeros(n, np.int64), slot=slot, created_s=created_s,
        active_s=activation_s(queue_s), queue_s=queue_s, **vars(ran), ram_scale=ram_scale,
        wall_scale=wall_scale, report_s=rng.integers(3, 25, n), last=np.zeros(n, np.bool_),
    )  # fmt: skip


def activation_s(queue_s: IntArray) -> IntArray:
    """Return how long after its creation a job that waits so long in all is activated [s]."""
    return np.minimum(queue_s // 3, 300)


@dataclass(frozen=True)
class Payloads:
    """What attempts do once they have started, one entry per attempt; names as in `Attempts`."""

    wall_s: IntArray
    cores: IntArray
    mem_mb: FloatArray
    eff: FloatArray
    outcome: IntArray


def payloads(
    tasks: Tasks,
    world: World,
    rng: np.random.Generator,
    roots: Roots,
    limits: Limits,
    slot: IntArray,
    ram_scale: FloatArray,
    wall_scale: FloatArray,
) -> Payloads:
    """Draw how attempts end: they finish, fail for a reason of the site, or are killed at what they asked for.

    ``ram_scale`` and ``wall_scale`` times what the job was given at first is what an attempt asks for.
    """
    n = len(roots.task)
    queue = tasks.slots.queue[roots.task, slot]
    cores, wall, mem, eff = needs(tasks, roots, slot)
    u, long, part = rng.random(n), rng.standard_normal(n), rng.random((2, n))
    scout = roots.phase == SCOUT
    bad = u < world.fail[queue] * np.where(scout, 0.3, 1.0)
    outcome = np.where(bad, np.where(part[0] < LOST_SHARE, LOST, FAILED), FINISHED)
    ram_limit = (limits.ram_mb + limits.ram_core_mb * cores) * ram_scale
    power = world.corepower[queue] * cores * 0.9
    per_job = limits.hs06_per_event * rule_events(tasks, roots) / power
    limit_s = (per_job + tasks.base_wall_s[roots.task]) * wall_scale
    too_long = world.enforces_wall[queue] & (wall > limit_s) & ~bad
    too_big = world.enforces_ram[queue] & (mem > ram_limit) & ~bad
    outcome = np.where(too_long, WALL_KILL, outcome)
    outcome = np.where(too_big, MEMORY_KILL, outcome)
    factor = np.where(bad, np.exp(0.45 + 0.7 * long), 1.0)
    factor = np.where(outcome == MEMORY_KILL, 0.1 + 0.85 * part[1], factor)
    shown = np.where(outcome == MEMORY_KILL, np.minimum(mem, ram_limit * (1 + 0.05 * part[0])), mem)
    ran = np.where(outcome == WALL_KILL, limit_s + 60 * part[1], wall * factor)
    return Payloads(
        wall_s=np.floor(ran).astype(np.int64),
        cores=cores,
        mem_mb=shown * np.where(bad, 0.9 + 0.1 * part[1], 1.0),
        eff=eff,
        outcome=outcome,
    )


def no_limits(n: int) -> Limits:
    """Return limits that nothing exceeds."""
    return Limits(np.full(n, np.inf), np.zeros(n), np.full(n, np.inf))
