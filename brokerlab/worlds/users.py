"""The owners of user tasks: a few heavy users, many light ones, some in working groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.worlds.tasks import Tasks

N_USERS = 60
USERS = tuple(f"user{i:02d}" for i in range(N_USERS))
"""Invented names of the owners of user tasks, as in ``produsername``; the first ones own most of the work."""
PRODUCTION_USER = "production"
GROUPS = ("phys-higgs", "phys-susy", "phys-top", "perf-muons")
"""Working groups; user ``i`` below ``MEMBERS`` is in group ``i % 4``."""
MEMBERS = 24
HEAVY_USERS = 5
"""So many users own most of the large tasks."""
LARGE_TASK = 250
"""Tasks of more jobs are large."""
HEAVY_SHARE, GROUP_SHARE, EXPRESS_SHARE = 0.8, 0.3, 0.1
"""Shares: of large tasks with heavy users, of members' tasks for their group, of small tasks in the express share."""
RENAMED = 10
"""One user in so many is registered under a name that cleaning changes."""


def registered(user: int) -> str:
    """Return ``origusername`` of a user: most often the name itself; the last two are one person.

    Example:
        >>> registered(3), registered(7), registered(58), registered(59)
        ('user03', 'user07@synth.example', 'user58@synth.example', 'user58@synth.example')
    """
    if user >= N_USERS - 2:
        return f"{USERS[N_USERS - 2]}@synth.example"
    return f"{USERS[user]}@synth.example" if user % RENAMED == 7 else USERS[user]


@dataclass(frozen=True)
class Owners:
    """Who owns tasks: index in ``USERS`` (-1 = production), in ``GROUPS`` (-1 = none), whether in the share Express Analysis."""

    user: IntArray
    group: IntArray
    express: BoolArray


def activity() -> FloatArray:
    """Return the part of the ordinary tasks that each user owns."""
    weight = 1.0 / np.arange(1, N_USERS + 1) ** 1.1
    return np.asarray(weight / weight.sum())


def draw_users(rng: np.random.Generator, large: BoolArray) -> IntArray:
    """Draw an owner per task; large tasks belong to heavy users most of the time."""
    n = len(large)
    anyone = rng.choice(N_USERS, n, p=activity())
    heavy = rng.integers(0, HEAVY_USERS, n)
    return np.where(large & (rng.random(n) < HEAVY_SHARE), heavy, anyone).astype(np.int64)


def draw_groups(rng: np.random.Generator, user: IntArray) -> IntArray:
    """Draw whether the tasks of members are for their group."""
    chosen = (user >= 0) & (user < MEMBERS) & (rng.random(len(user)) < GROUP_SHARE)
    return np.where(chosen, user % len(GROUPS), -1)


def draw_owners(rng: np.random.Generator, tasks: Tasks) -> Owners:
    """Draw who owns the tasks of a block, with a generator of this part alone."""
    of_users, large = tasks.user, tasks.n_jobs > LARGE_TASK
    user = np.where(of_users, draw_users(rng, large), -1)
    express = of_users & ~large & (rng.random(tasks.n) < EXPRESS_SHARE)
    return Owners(user=user, group=draw_groups(rng, user), express=express)


def truth_users() -> pl.DataFrame:
    """Return the users: ``username, origusername, workinggroup`` (null = none), ``heavy``, ``share`` of small tasks."""
    return pl.DataFrame(
        {
            "username": USERS,
            "origusername": [registered(u) for u in range(N_USERS)],
            "workinggroup": [GROUPS[u % len(GROUPS)] if u < MEMBERS else None for u in range(N_USERS)],
            "heavy": [u < HEAVY_USERS for u in range(N_USERS)],
            "share": activity(),
        }
    )  # fmt: skip
