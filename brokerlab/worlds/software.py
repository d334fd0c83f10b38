"""What the queues of a synthetic archive publish about software and hardware, and what is seen on their nodes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl

from brokerlab.worlds.orders import CONTAINERS, LINUX, OLD_LINUX
from brokerlab.worlds.queues import conform
from brokerlab.worlds.world import World

AUTO = '["AUTO"]'
"""``releases`` of queues whose software is described."""
TAGS: tuple[dict[str, Any], ...] = (
    {
        "cmtconfig": "x86_64-slc6-gcc62-opt", "container_name": "", "project": "AthDerivation",
        "release": "21.2.2.0", "sources": [], "tag": "VO-atlas-AthDerivation-21.2.2.0",
    },
    {
        "cmtconfig": OLD_LINUX, "container_name": "", "project": "Athena", "release": "23.0.53",
        "sources": [], "tag": "VO-atlas-Athena-23.0.53",
    },
    {
        "cmtconfig": "x86_64-el9-gcc14-opt", "container_name": "", "project": "Athena",
        "release": "24.0.40", "sources": [], "tag": "VO-atlas-Athena-24.0.40",
    },
    {
        "cmtconfig": "noarch", "container_name": "atlas-ml", "project": "ML", "release": "1.0",
        "sources": [CONTAINERS[0], "docker://atlas/ml:1.0"], "tag": "atlas-ml-1.0",
    },
)  # fmt: skip
"""Installed software; ``ALL`` has every tag."""
FULL: dict[str, Any] = {
    "cmtconfigs": [LINUX, OLD_LINUX, "x86_64-slc6-gcc62-opt"],
    "containers": ["any", "/cvmfs"],
    "cvmfs": ["atlas", "nightlies"],
    "architectures": [{"type": "cpu", "arch": ["x86_64"], "vendor": ["intel", "amd"], "instr": ["avx2"]}],
    "tags": [],
}  # fmt: skip
"""What most queues publish."""
_OLD = {"cmtconfigs": [OLD_LINUX, "x86_64-slc6-gcc62-opt"], "tags": list(TAGS[:2])}
_ARM = {"architectures": [{"type": "cpu", "arch": ["aarch64"], "vendor": ["arm"], "instr": []}]}
_MIXED = {"architectures": [{"type": "cpu", "arch": ["x86_64", "aarch64"]}]}
_EXCLUSIVE = {
    "architectures": [{"type": "cpu", "arch": ["x86_64"], "vendor": ["intel", "excl"], "instr": ["avx2"]}]
}  # fmt: skip
_GPU = {
    "architectures": [
        {"type": "cpu", "arch": ["x86_64"], "vendor": ["intel", "amd"], "instr": ["avx2"]},
        {"type": "gpu", "vendor": ["nvidia"], "model": ["a100"], "version": "12.4"},
    ]
}
KINDS: tuple[tuple[dict[str, Any] | None, float], ...] = (
    ({}, 0.62),
    ({**_OLD, "containers": ["any", "/cvmfs"]}, 0.10),
    ({**_OLD, "containers": [], "cvmfs": ["atlas"]}, 0.06),
    ({"containers": ["/cvmfs/unpacked.cern.ch"], "cvmfs": ["atlas"], "tags": list(TAGS)}, 0.05),
    ({"architectures": []}, 0.04),
    (_EXCLUSIVE, 0.02),
    (_ARM, 0.02),
    (_MIXED, 0.03),
    (_GPU, 0.03),
    ({"architectures": [{"type": "cpu", "vendor": ["intel"]}]}, 0.01),  # a CPU without arch
    (None, 0.02),  # says AUTO, publishes nothing
)
"""How a description differs from ``FULL``, and the share of queues; null = no row."""
GPUS = (
    ("NVIDIA", "NVIDIA A100-SXM4-80GB", "Ampere", 81_920, "12.4", "550.54.15"),
    ("NVIDIA", "Tesla V100-PCIE-16GB", "Volta", 16_384, "12.2", "535.104.05"),
    ("NVIDIA", "Tesla T4", "Turing", 15_360, "11.8", "520.61.05"),
)
LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")


def _kinds(world: World) -> list[dict[str, Any] | None]:
    """Draw how each queue is described; the special GPU queue has GPUs."""
    rng = world.generator(4)
    share = np.array([s for _, s in KINDS])
    kinds = [KINDS[i][0] for i in rng.choice(len(KINDS), len(world.names), p=share)]
    if "gpu" in world.special:
        kinds[world.special["gpu"]] = _GPU
    for queue in world.roles.values():
        kinds[queue] = {}
    kinds[world.roles["starting"]] = KINDS[1][0]  # old platforms, any container
    return kinds


def software_tags(world: World) -> pl.DataFrame:
    """Return ``software_tags``: the JSON of every queue that says AUTO, and ``ALL`` with every tag (matching.md 1)."""
    rows = [("ALL", {**FULL, "architectures": [], "tags": list(TAGS)})]
    described = zip(world.names, world.queues["releases"], _kinds(world), strict=True)
    rows += [(name, FULL | kind) for name, says, kind in described if says == AUTO and kind is not None]  # fmt: skip
    frame = pl.DataFrame(
        {"panda_queue": [n for n, _ in rows], "data": [json.dumps(d) for _, d in rows]}
    )
    return conform("software_tags", frame.sort("panda_queue"))


def worker_node_gpu(world: World) -> pl.DataFrame:
    """Return ``worker_node_gpu``: one or two models at queues with GPUs; one of them has none left."""
    rng = world.generator(5)
    names = [n for n, k in zip(world.names, _kinds(world), strict=True) if k is _GPU]
    rows = []
    for place, name in enumerate(names):
        first = int(rng.integers(0, len(GPUS)))
        count = 0 if place == 2 else int(rng.integers(1, 3))
        rows += [(name, *GPUS[(first + i) % len(GPUS)]) for i in range(count)]
    columns = ["panda_queue", "vendor", "model", "architecture", "vram", "framework_version",
               "driver_version"]  # fmt: skip
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return conform("worker_node_gpu", frame.sort("panda_queue", "model"))


def worker_node_cpu_level(world: World) -> pl.DataFrame:
    """Return ``worker_node_cpu_level``: shares of the CPU levels of most queues; they sum to 100."""
    rng = world.generator(6)
    n = len(world.names)
    newest = np.round(rng.beta(1.2, 2.0, n) * 100)
    middle = np.round((100 - newest) * rng.beta(4, 1.5, n))
    parts = np.column_stack([100 - newest - middle, middle, newest])
    reported = rng.random(n) < 0.85
    rows = [
        (name, level, float(part))
        for name, parts_here, known in zip(world.names, parts, reported, strict=True)
        for level, part in zip(LEVELS, parts_here, strict=True)
        if known and part > 0
    ]
    columns = ["panda_queue", "cpu_architecture_level", "pct_within_queue"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return conform("worker_node_cpu_level", frame.sort("panda_queue", "cpu_architecture_level"))
