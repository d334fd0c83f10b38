"""What tasks ask of the brokerage: nucleus, places, software, connectivity, chains, how they read their input, where outputs go."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.archive.contracts.tasks import SPLIT_RULE_TAGS
from brokerlab.numerics import BoolArray, IntArray
from brokerlab.worlds.block import Block
from brokerlab.worlds.jobtypes import JOB_TYPES, of_kind
from brokerlab.worlds.storage import endpoint
from brokerlab.worlds.world import World

UNKNOWN_NUCLEUS = "SYNTH-GONE"
"""A nucleus that is no site any more."""
LINUX = "x86_64-el9-gcc13-opt"
OLD_LINUX = "x86_64-centos7-gcc11-opt"
ARCHITECTURES: tuple[tuple[str | None, float], ...] = (
    (OLD_LINUX, 0.40),
    (LINUX, 0.22),
    (f"{LINUX}@el9", 0.04),
    (f"{LINUX}#x86_64-intel-avx2", 0.03),
    (json.dumps({"sw_platform": LINUX}), 0.06),
    (json.dumps({"sw_platform": LINUX, "cpu_specs": [{"arch": "x86_64", "vendor": "*", "instr": "*"}]}), 0.10),
    (json.dumps({"sw_platform": LINUX, "cpu_pref": {"preferred_architecture_level": "x86-64-v3"}}), 0.03),
    (json.dumps({"sw_platform": LINUX, "gpu_spec": {"vendor": "nvidia", "model": "*", "version": ">=12"}}), 0.015),
    (f"{LINUX}&nvidia:vram>=16384", 0.015),
    ("(x86_64|aarch64)-el9-gcc13-opt", 0.03),
    ("x86_64-(el9|alma9)-gcc13-opt", 0.02),
    ("aarch64-el9-gcc13-opt", 0.02),
    ("x86_64-el9-gcc14-opt", 0.02),
    ('{"sw_platform": "x86_64-el9-gcc13-opt"', 0.005),  # JSON that is almost JSON
    (None, 0.015),
)  # fmt: skip
"""What tasks ask for in the grammar of matching.md 2, and how often."""
RELEASES: tuple[tuple[str | None, float], ...] = (
    ("Athena-24.0.40", 0.45),
    ("Athena-23.0.53", 0.22),
    ("AthDerivation-21.2.2.0", 0.12),
    ("AtlasProduction-rel_3", 0.03),
    ("Athena-main-2026-01-01T2101", 0.03),
    ("AnalysisBase-25.2.1", 0.09),
    (None, 0.06),
)
CONTAINERS = ("/cvmfs/unpacked.cern.ch/atlas-ml:1.0", "docker://atlas/athena:24.0.40", "atlas-ml")
TOKENS: tuple[tuple[str | None, float], ...] = (
    ("ATLASDATADISK", 0.84),
    ("dst:ATLASDATADISK", 0.06),
    ("DATADISK", 0.02),
    ("ddd:ATLASDATADISK", 0.02),
    ("ATLASGROUPDISK", 0.01),  # no nucleus has it
    (None, 0.05),
)
"""Storage tokens of outputs."""


@dataclass(frozen=True)
class Orders:
    """What the production tasks of a block ask for."""

    # ``jeditaskid``, columns of ``tasks`` that are set (null: its row says it), ``tags`` to append to ``splitrule``
    tasks: pl.DataFrame
    tokens: pl.DataFrame  # ``jeditaskid`` and ``storagetoken`` of its outputs

    def complete_tasks(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows of ``tasks`` with what production tasks ask for; the order stays."""
        tags = self.tasks.select("jeditaskid", "tags")
        full = rows.update(self.tasks.drop("tags"), on="jeditaskid")
        full = full.join(tags, on="jeditaskid", how="left", maintain_order="left")
        rule = pl.concat_str("splitrule", pl.col("tags").fill_null(""))
        return full.with_columns(splitrule=rule).drop("tags")

    def complete_jobs(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows of ``jobs`` with the nucleus and the container of their task; the order stays."""
        given = self.tasks.select("jeditaskid", pl.col("^(nucleus|container_name)$"))
        return rows.update(given, on="jeditaskid")

    def complete_datasets(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows of ``datasets`` with the storage tokens of outputs; the order stays."""
        full = rows.drop("storagetoken").join(
            self.tokens, on="jeditaskid", how="left", maintain_order="left"
        )
        out = pl.col("type").is_in(["output", "log"])
        full = full.with_columns(storagetoken=pl.when(out).then("storagetoken"))
        return full.select(rows.columns)


def draw_orders(world: World, block: Block) -> Orders:
    """Draw what the production tasks of one block ask for; every rule bites at some task.

    Jobs run where they ran before there were orders, so a replay finds most of them allowed and some not.

    Source:
        production-jobs.md; production-tasks.md 1; full-chain.md 1.
    """
    rng = world.generator(100, block.index)
    task = np.flatnonzero(block.tasks.managed)
    n = len(task)
    chained = pick(rng, n, 0.08)
    columns: dict[str, object] = {
        "jeditaskid": block.taskid[task],
        "cloud": ["WORLD"] * n,
        **_chain(rng, world, block.taskid[task], chained),
        **_software(rng, n),
        **_place(rng, world, block, task),
        **_parameters(rng, block, task),
    }
    kinds = [JOB_TYPES[k].processingtype for k in block.tasks.kind[task]]
    groups = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    columns["workinggroup"] = [
        (None, "AP_Higgs", "AP_Top")[g] if k == "deriv" else None
        for g, k in zip(groups, kinds, strict=True)
    ]
    frame = pl.DataFrame(columns, strict=False)
    tokens = pl.DataFrame(
        {"jeditaskid": block.taskid[task], "storagetoken": one_of(rng, TOKENS, n)},
        schema_overrides={"storagetoken": pl.String},
    )
    return Orders(tasks=with_tags(frame), tokens=tokens)


def with_tags(frame: pl.DataFrame) -> pl.DataFrame:
    """Add ``tags``: the task parameters of each row as they stand in the split rule."""
    known = [name for name in frame.columns if name in SPLIT_RULE_TAGS]
    tags = [pl.format(f",{SPLIT_RULE_TAGS[c]}={{}}", c).fill_null("") for c in known]
    whole = frame.with_columns(pl.col(name).cast(pl.Int64) for name in known)
    return whole.with_columns(tags=pl.concat_str(tags))


def pick(
    rng: np.random.Generator, n: int, share: float, among: BoolArray | None = None
) -> BoolArray:
    """Choose a share of the tasks, as many as the share says and at least one of 40 or more."""
    places = np.arange(n) if among is None else np.flatnonzero(among)
    order = rng.permutation(len(places))
    wanted = max(round(share * len(places)), 1 if len(places) >= 40 else 0)
    chosen = np.zeros(n, dtype=np.bool_)
    chosen[places[order[:wanted]]] = True
    return chosen


def one_of(
    rng: np.random.Generator, choices: tuple[tuple[str | None, float], ...], n: int
) -> list[str | None]:
    """Draw texts with their shares."""
    share = np.array([s for _, s in choices])
    return [choices[i][0] for i in rng.choice(len(choices), n, p=share / share.sum())]


def _chain(
    rng: np.random.Generator, world: World, taskid: IntArray, chained: BoolArray
) -> dict[str, object]:
    """Return nucleus, ``fullchain`` and parent; chained tasks keep to the bare nucleus of their parent.

    Mode ``only`` [1] goes to nuclei that are bare ``only``, the others to any bare one.
    """
    n = len(taskid)
    mode = np.array([m or "" for m in world.bare])
    usable = world.active & (world.site_size > 0)
    normal = np.flatnonzero(world.nucleus & usable & (mode != "only"))
    bare = {m: np.flatnonzero(usable & (mode == m)) for m in ("allow", "only")}
    weight = np.sqrt(world.site_size[normal])
    nucleus = rng.choice(normal, n, p=weight / weight.sum())
    parent, flag = taskid.copy(), np.zeros(n, dtype=np.int64)
    before: list[int] = []
    for i in np.flatnonzero(chained).tolist():
        flag[i] = rng.choice([1, 2, 3], p=[0.3, 0.3, 0.4])
        if before and rng.random() < 0.6:
            first = before[int(rng.integers(0, len(before)))]
            parent[i], nucleus[i], flag[i] = taskid[first], nucleus[first], flag[first]
        else:
            fitting = bare["only" if flag[i] == 1 else "allow"]
            nucleus[i] = rng.choice(fitting) if len(fitting) else nucleus[i]
        before.append(i)
    names: list[str | None] = [world.sites[s] for s in nucleus]
    for share, name in ((0.008, UNKNOWN_NUCLEUS), (0.012, None)):
        for i in np.flatnonzero(pick(rng, n, share, ~chained)).tolist():
            names[i] = name
    return {
        "nucleus": names,
        "parent_tid": parent,
        "fullchain": [int(f) if f else None for f in flag],
    }


def _software(rng: np.random.Generator, n: int) -> dict[str, object]:
    """Return platform, release and container."""
    release = one_of(rng, RELEASES, n)
    boxed = pick(rng, n, 0.06)
    image = rng.choice(len(CONTAINERS), n)
    tags_only = boxed & (rng.random(n) < 0.3)
    return {
        "architecture": one_of(rng, ARCHITECTURES, n),
        "transhome": release,
        "transuses": [None if r is None else "Atlas-" + r.split("-")[1] for r in release],
        "container_name": [CONTAINERS[i] if b else None for i, b in zip(image, boxed, strict=True)],
        "onlytagsforfc": [1 if t else None for t in tags_only],
    }


def _place(
    rng: np.random.Generator, world: World, block: Block, task: IntArray
) -> dict[str, object]:
    """Return queues asked for: for a few tasks one or several of those where they run."""
    n, slots = len(task), block.tasks.slots
    one, several = pick(rng, n, 0.015), pick(rng, n, 0.01)
    site: list[str | None] = []
    for i, t in enumerate(task.tolist()):
        count = 1 if one[i] else 3 if several[i] else 0
        used = slots.queue[t][slots.weight[t] > 0][:count]
        site.append(",".join(world.names[q] for q in used) or None)
    return {"site": site}


def _parameters(rng: np.random.Generator, block: Block, task: IntArray) -> dict[str, object]:
    """Return priorities and the task parameters of single checks."""
    n, tasks = len(task), block.tasks
    merging = tasks.merge_group[task] > 0
    low = pick(rng, n, 0.06)
    events = tasks.events[task].astype(np.int64)
    simul = of_kind(tasks.kind[task], lambda k: k.name == "simulation") > 0
    dynamic = pick(rng, n, 0.15, simul & tasks.has_events[task])
    served = pick(rng, n, 0.08, simul) | pick(rng, n, 0.3, simul & (tasks.cores[task] == 1))
    jumbo = pick(rng, n, 0.3, served)
    return {
        "currentpriority": where(low, rng.choice([100, 120, 150], n)),
        "mergecorecount": where(merging & (rng.random(n) < 0.7), np.ones(n)),
        "maxcorecount": where(pick(rng, n, 0.5, tasks.cores[task] == 0), rng.choice([4, 8], n)),
        "allowinputlan": where(pick(rng, n, 0.35), rng.choice([1, 2], n, p=[0.8, 0.2])),
        "allowinputwan": where(pick(rng, n, 0.08), np.ones(n)),
        "uselocalio": where(pick(rng, n, 0.04), np.ones(n)),
        "t1weight": where(pick(rng, n, 0.05), rng.choice([-1, 2, 10], n, p=[0.6, 0.2, 0.2])),
        "inputprestaging": where(pick(rng, n, 0.04), np.ones(n)),
        "ipconnectivity": where(pick(rng, n, 0.06), rng.choice([1, 2], n)),
        "ipstack": where(pick(rng, n, 0.02), rng.choice([4, 6], n)),
        "dynamicnumevents": where(dynamic, np.maximum(events // 10, 1)),
        "maxeventsperjob": where(dynamic, events * 2),
        "eventservice": where(served, np.ones(n)),
        "nesconsumers": where(served, np.full(n, 2)),
        "maxattemptesjob": where(served & (rng.random(n) < 0.5), np.full(n, 4)),
        "njumbojobs": where(jumbo, np.full(n, 3)),
        "usejumbo": ["W" if j else None for j in jumbo],
    }


def where(chosen: BoolArray, values: object) -> list[int | None]:
    """Return values where chosen, null elsewhere."""
    return [int(v) if c else None for v, c in zip(np.asarray(values), chosen, strict=True)]


USER_ARCHITECTURES: tuple[tuple[str | None, float], ...] = (
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
USER_RELEASES: tuple[tuple[str | None, float], ...] = (
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
        "architecture": one_of(rng, USER_ARCHITECTURES, n),
        "transhome": one_of(rng, USER_RELEASES, n),
        "container_name": [CONTAINERS[i] if b else None for i, b in zip(image, boxed, strict=True)],
        "taskpriority": [PRESSING if p else None for p in pressing],
        "frozentime": [
            world.settings.start_us + (int(s) + LATEST_FROZEN_S) * 1_000_000 if b else None
            for s, b in zip(rows.created_s, stuck, strict=True)
        ],
        **_user_places(rng, world, rows),
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


def _user_places(rng: np.random.Generator, world: World, rows: UserRows) -> dict[str, object]:
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
