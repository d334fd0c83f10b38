"""What user tasks ask of the brokerage: places, software, how they read their input."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.numerics import IntArray
from brokerlab.worlds.production import (
    CONTAINERS,
    LINUX,
    OLD_LINUX,
    Orders,
    one_of,
    pick,
    where,
    with_tags,
)
from brokerlab.worlds.storage import endpoint
from brokerlab.worlds.world import World

ARCHITECTURES: tuple[tuple[str | None, float], ...] = (
    (LINUX, 0.50),
    (OLD_LINUX, 0.25),
    (f"{LINUX}@el9", 0.04),
    (f"{LINUX}#x86_64-intel-avx2", 0.03),
    (json.dumps({"sw_platform": LINUX, "gpu_spec": {"vendor": "nvidia", "model": "*"}}), 0.04),
    ("(x86_64|aarch64)-el9-gcc13-opt", 0.06),
    ("aarch64-el9-gcc13-opt", 0.02),
    (None, 0.10),
)
"""Platform and hardware asked for, and how often."""
RELEASES: tuple[tuple[str | None, float], ...] = (
    (None, 0.45),
    ("AnalysisTransforms-AnalysisBase_25.2.1", 0.05),
    ("AnalysisTransforms-Athena_24.0.40", 0.20),
    ("AnalysisTransforms-Athena_23.0.53", 0.15),
    ("AnalysisTransforms-Athena_main_2026-01-01T2101", 0.05),
    ("AnalysisTransforms", 0.10),
)
"""``transhome``: standalone, releases, a nightly, no release of a project (analysis-jobs.md 4)."""
PRESSING, LATEST_FROZEN_S = 2100, 120
"""Priority at which data need not be at hand; a task without progress is so since its first minutes [s]."""


@dataclass(frozen=True)
class UserRows:
    """User tasks that ask for something: ``created_s`` [s], a queue where each runs, whether it merges its outputs (1) or not (0)."""

    taskid: IntArray
    created_s: IntArray
    queue: IntArray
    cores: IntArray
    merges: IntArray


def draw_user_orders(world: World, rows: UserRows, index: int) -> Orders:
    """Draw what user tasks ask for; every rule bites at some task of a large archive.

    Jobs run where they ran before there were orders, so a replay finds most of them allowed and some not.

    Source:
        analysis-jobs.md 1 and 4.
    """
    rng = world.generator(105, index)
    n = len(rows.taskid)
    stuck = pick(rng, n, 0.06)
    pressing = pick(rng, n, 0.04)
    boxed = pick(rng, n, 0.06)
    image = rng.choice(len(CONTAINERS), n)
    columns: dict[str, object] = {
        "jeditaskid": rows.taskid,
        "architecture": one_of(rng, ARCHITECTURES, n),
        "transhome": one_of(rng, RELEASES, n),
        "container_name": [CONTAINERS[i] if b else None for i, b in zip(image, boxed, strict=True)],
        "taskpriority": [PRESSING if p else None for p in pressing],
        "frozentime": [
            world.settings.start_us + (int(s) + LATEST_FROZEN_S) * 1_000_000 if b else None
            for s, b in zip(rows.created_s, stuck, strict=True)
        ],
        **_places(rng, world, rows),
        **_reading(rng, rows),
    }
    frame = pl.DataFrame(columns, strict=False, infer_schema_length=None).with_columns(
        pl.col("frozentime").cast(pl.Int64).cast(pl.Datetime("us")),
        pl.col("taskpriority").cast(pl.Int32),
        pl.col("architecture", "transhome", "container_name", "site", "cloud").cast(pl.String),
        pl.col("mergeramcount").cast(pl.Int64),
    )
    tokens = pl.DataFrame(schema={"jeditaskid": pl.Int64, "storagetoken": pl.String})
    return Orders(tasks=with_tags(frame), tokens=tokens)


def _places(rng: np.random.Generator, world: World, rows: UserRows) -> dict[str, object]:
    """Return queue or endpoint asked for, and cloud."""
    n = len(rows.taskid)
    queue, disk = pick(rng, n, 0.05), pick(rng, n, 0.03)
    cloud = pick(rng, n, 0.06)
    clouds = rng.integers(0, 10, n)
    site: list[str | None] = []
    for i, q in enumerate(rows.queue.tolist()):
        place = int(world.queue_storage[q])
        near = endpoint(world.sites[place], "DATADISK") if place >= 0 else None
        site.append(world.names[q] if queue[i] else near if disk[i] else None)
    return {
        "site": site,
        "cloud": [f"C{c}" if b else None for c, b in zip(clouds, cloud, strict=True)],
    }


def _reading(rng: np.random.Generator, rows: UserRows) -> dict[str, object]:
    """Return the task parameters of single checks."""
    n = len(rows.taskid)
    many = rows.cores > 1
    return {
        "maxcorecount": where(pick(rng, n, 0.5, many), np.full(n, 4)),
        "allowinputlan": where(pick(rng, n, 0.15), rng.choice([1, 2], n)),
        "uselocalio": where(pick(rng, n, 0.05), np.ones(n)),
        "avoidvp": where(pick(rng, n, 0.12), np.ones(n)),
        "allowincompleteinds": where(pick(rng, n, 0.05), np.ones(n)),
        "ngbperjob": where(pick(rng, n, 0.05), rng.choice([10, 40], n)),
        "mergeramcount": where(
            pick(rng, n, 0.3, rows.merges > 0), rng.choice([3000, 9000, 40_000], n)
        ),
    }
