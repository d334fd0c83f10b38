"""The fixed part of a synthetic archive: queues, those at which something goes wrong, resource types, global shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from brokerlab.archive.contracts import polars_schema
from brokerlab.frames import columns_of
from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.units import DAY_S
from brokerlab.worlds.jobtypes import EXPRESS, TEST_SHARE, USER_SHARE
from brokerlab.worlds.settings import SynthSettings

NAMES = (
    *("pile", "crowd", "own", "virtual", "stay", "paused", "hospital"),
    *("week", "bad", "pushes", "late", "stuck", "starting"),
)
"""Roles, those of the smallest queues first: little else runs at these."""
SMALLEST = 7
"""So many of the roles are those of the smallest queues; the others are spread over the sizes."""
SPELLS = (
    ("stuck", "activated", 0.22, 2.6),
    ("starting", "starting", 0.48, 3.1),
    ("week", "activated", 0.10, 8.6),
)
"""Role, status in which jobs hang, begin as a part of the period, length [days]."""
LONGEST_PART = 0.4
"""Longest spell as a part of the period."""
AFTER = 0.2
"""Once a spell is over, jobs start after this part of their ordinary wait."""


@dataclass(frozen=True)
class Spell:
    """A time [s] in which a queue starts nothing and jobs hang in ``activated`` or ``starting``."""

    queue: int
    status: str
    begin_s: int
    end_s: int

    def holds(self, queue: int | IntArray, second: int | IntArray) -> BoolArray:
        """Decide whether jobs created then at a queue hang."""
        inside = (second >= self.begin_s) & (second < self.end_s)
        return np.asarray((queue == self.queue) & inside)


def choose_roles(size: FloatArray, able: BoolArray) -> dict[str, int]:
    """Choose a queue for each of ``NAMES`` among the able ones (online, production and analysis, one core); few queues have several."""
    order = np.argsort(np.where(able, size, np.inf), kind="stable")[: max(int(able.sum()), 1)]
    wide = np.linspace(0.2, 0.7, len(NAMES) - SMALLEST) * len(order)
    places = [*range(SMALLEST), *np.maximum(wide, SMALLEST).astype(np.int64).tolist()]
    return {name: int(order[place % len(order)]) for name, place in zip(NAMES, places, strict=True)}


def draw_spells(settings: SynthSettings, roles: dict[str, int]) -> tuple[Spell, ...]:
    """Return the spells in which queues start nothing."""
    result = []
    for role, status, begin, days in SPELLS:
        first = int(begin * settings.submit_s)
        length = min(days * DAY_S, LONGEST_PART * settings.submit_s)
        result.append(Spell(roles[role], status, first, first + int(length)))
    return tuple(result)


def held(
    spells: Sequence[Spell], queue: IntArray, second: IntArray, wait_s: FloatArray
) -> FloatArray:
    """Let jobs wait [s] until the spell of their queue is over."""
    for spell in spells:
        longer = spell.end_s - second + AFTER * wait_s
        wait_s = np.where(spell.holds(queue, second), np.maximum(wait_s, longer), wait_s)
    return wait_s


def truth_spells(
    settings: SynthSettings, spells: Sequence[Spell], names: Sequence[str]
) -> pl.DataFrame:
    """Return when which queue starts nothing: ``panda_queue, status, begin, end``."""
    micro = [(s.begin_s, s.end_s) for s in spells]
    stamps = pl.DataFrame(micro, schema=["begin", "end"], orient="row")
    return pl.DataFrame(
        {"panda_queue": [names[s.queue] for s in spells], "status": [s.status for s in spells]}
    ).hstack(stamps.select((pl.all() * 1_000_000 + settings.start_us).cast(pl.Datetime("us"))))


TextArray = npt.NDArray[np.str_]
"""One text per entry."""
NODES_PER_QUEUE = 30
"""Worker nodes drawn per queue, for host names and CPU models."""
CPU_MODELS = (
    "Intel(R) Xeon(R) CPU E5-2630 v4 @ 2.20GHz 25600 KB",
    "Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz 22528 KB",
    "AMD EPYC 7302 16-Core Processor 512 KB",
    "AMD EPYC 7763 64-Core Processor 512 KB",
)
SITE_FAILURES = 0.021
"""Share of attempts that fail for a reason of the site; kills come on top."""
ANALYSIS_PREFIX, HOSPITAL_SUFFIX = "ANALY_", "_HOSPITAL"
"""How names of queues for analysis alone begin, whose pilots are counted apart, and how that of a hospital ends."""
RESOURCE_TYPES = ("SCORE", "SCORE_HIMEM", "MCORE", "MCORE_HIMEM")
"""Single and multi core, each with ordinary and with high memory."""
HIMEM_MB = 2000
"""Memory per core above which a job counts as high memory [MB]."""


@dataclass(frozen=True)
class Queues:
    """Queues as arrays (one entry per queue) and the effects that work feels at them."""

    settings: SynthSettings
    names: list[str]
    cores: IntArray
    ucore: BoolArray  # queue takes any core count up to its own
    corepower: FloatArray  # HS06 per core, as configured
    maxrss_mb: IntArray
    maxtime_s: IntArray
    size: FloatArray  # relative number of slots
    usable: BoolArray  # queue is in use (online or brokeroff)
    production: BoolArray
    analysis: BoolArray
    queue_ln_mean: FloatArray  # mean of ln(queue time / s)
    queue_ln_sd: FloatArray  # sd of the same inside the queue
    fail: FloatArray  # probability that a job fails for a reason of the site
    enforces_ram: BoolArray  # queue kills jobs above their memory request; most only reserve it
    enforces_wall: BoolArray  # queue kills jobs above their time limit
    z_power: FloatArray  # standardised ln(core power)
    z_mem: FloatArray  # standard normal effect on memory
    z_wall: FloatArray  # standard normal effect on wall time, beside the core power
    node_model: IntArray  # (queues, nodes) CPU model of each worker node
    queues: pl.DataFrame  # the ``queues`` table; so far, until the sites are drawn
    roles: dict[str, int]  # queues at which something goes wrong, by `NAMES`
    spells: tuple[Spell, ...]  # when which of them start nothing

    @property
    def n(self) -> int:
        """Number of queues."""
        return len(self.names)

    def generator(self, *part: int) -> np.random.Generator:
        """Return the random numbers of one part of the world, independent of those of other parts."""
        return generator(self.settings, 2, *part)

    def draw_waits(self, rng: np.random.Generator, queue: IntArray) -> FloatArray:
        """Draw how long jobs wait at their queues, as long as these start jobs [s]."""
        spread = self.queue_ln_sd[queue] * rng.standard_normal(len(queue))
        return np.asarray(np.exp(self.queue_ln_mean[queue] + spread))

    def times(self, seconds: IntArray) -> pl.Series:
        """Turn seconds from the first instant into naive UTC time stamps."""
        return pl.Series(self.settings.start_us + seconds * 1_000_000).cast(pl.Datetime("us"))


def generator(settings: SynthSettings, *part: int) -> np.random.Generator:
    """Return random numbers that are independent of those of any other part."""
    return np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=part))


def draw_queues(settings: SynthSettings) -> Queues:
    """Draw the queues and their effects (statistics sections 4, 5 and 10)."""
    rng, n = generator(settings, 0), settings.queues
    cores = rng.choice([1, 8, 8, 4, 6, 16], n, p=[0.36, 0.22, 0.30, 0.05, 0.03, 0.04])
    cores[: min(n, 12)] = np.resize([8, 1, 8, 8, 1, 4], min(n, 12))  # every kind of work has a home
    ucore = (cores == 8) & (rng.random(n) < 0.6)
    ucore[0] = True
    ln_power = 2.545 + 0.223 * np.clip(rng.standard_normal(n), -1.7, 2.2)
    power = np.where(rng.random(n) < 0.12, 10.0, np.round(np.exp(ln_power), 2))
    per_core = rng.choice([2000, 3000, 4000, 6000, 8000], n, p=[0.2, 0.33, 0.3, 0.12, 0.05])
    per_core[:12] = np.maximum(per_core[:12], 4000)
    status = rng.choice(["online", "brokeroff", "test", "offline"], n, p=[0.88, 0.05, 0.03, 0.04])
    status[:12] = "online"
    kind = rng.choice(["unified", "production", "analysis"], n, p=[0.7, 0.18, 0.12])
    kind[:12] = "unified"
    size = np.exp(rng.normal(7.3, 1.0, n))
    slow = rng.random(n) < 0.05
    slow[:3] = False
    wait = np.where(slow, np.log(rng.uniform(3, 20, n) * 3600), rng.normal(7.55, 0.75, n))
    fail = _failure_shares(rng, size)
    z_power = (np.log(power) - np.log(power).mean()) / np.log(power).std()
    effects = rng.standard_normal((2, n))
    usable = np.isin(status, ["online", "brokeroff"])
    able = (status == "online") & (kind == "unified") & ((cores == 1) | ucore)
    later = able & (np.arange(n) >= 12)  # the first ones are needed for every kind of work
    roles = choose_roles(size, later if later.sum() >= 12 else able)
    names, frame = _queue_frame(
        rng, settings, cores=cores, ucore=ucore, power=power, per_core=per_core,
        status=status, kind=kind, size=size, hospital=roles["hospital"],
    )  # fmt: skip
    return Queues(
        settings=settings,
        names=names,
        cores=cores.astype(np.int64),
        ucore=ucore,
        corepower=power,
        maxrss_mb=(per_core * cores).astype(np.int64),
        maxtime_s=frame["maxtime"].to_numpy().astype(np.int64),
        size=size,
        usable=usable,
        production=kind != "analysis",
        analysis=kind != "production",
        queue_ln_mean=wait,
        queue_ln_sd=rng.uniform(0.38, 0.70, n),
        fail=fail,
        enforces_ram=_some(rng, size, 0.15),
        enforces_wall=_some(rng, size, 0.07),
        z_power=z_power,
        z_mem=effects[0],
        z_wall=effects[1],
        node_model=rng.integers(0, len(CPU_MODELS), (n, NODES_PER_QUEUE)),
        queues=frame,
        roles=roles,
        spells=draw_spells(settings, roles),
    )


def _failure_shares(rng: np.random.Generator, size: FloatArray) -> FloatArray:
    """Draw the share of jobs that fail by queue: most near 0, a few at 14 to 29 %, 2.1 % overall."""
    n = len(size)
    share = np.minimum(rng.beta(0.35, 20.0, n), 0.14)
    bad = (rng.random(n) < 0.03) & (size < np.quantile(size, 0.9))
    bad[:3] = False
    share = np.where(bad, rng.uniform(0.14, 0.287, n), share)
    rest = np.where(bad, 0.0, size)
    wanted = SITE_FAILURES * size.sum() - (share * size)[bad].sum()
    scale = max(wanted, 0.3 * SITE_FAILURES * size.sum()) / (share * rest).sum()
    return np.asarray(np.where(bad, share, np.minimum(share * scale, 0.25)))


def _some(rng: np.random.Generator, size: FloatArray, share: float) -> BoolArray:
    """Choose queues at random that together have about a share of the slots."""
    order = rng.permutation(len(size))
    inside = np.cumsum(size[order]) <= share * size.sum()
    chosen = np.zeros(len(size), dtype=np.bool_)
    chosen[order[inside]] = True
    return chosen


def _queue_frame(
    rng: np.random.Generator,
    settings: SynthSettings,
    *,
    cores: IntArray,
    ucore: BoolArray,
    power: FloatArray,
    per_core: IntArray,
    status: TextArray,
    kind: TextArray,
    size: FloatArray,
    hospital: int,
) -> tuple[list[str], pl.DataFrame]:
    """Name the queues and make the ``queues`` table."""
    n = len(cores)
    site = np.arange(n) // 2
    slot = np.where(ucore, "UCORE", np.where(cores == 1, "SCORE", "MCORE"))
    again = np.where(np.arange(n) % 2 == 0, "", "_2")
    first = np.where(kind == "analysis", ANALYSIS_PREFIX, "")
    names = [
        f"{p}SYNTH-{s:03d}_{k}{a}" for p, s, k, a in zip(first, site, slot, again, strict=True)
    ]
    names[hospital] += HOSPITAL_SUFFIX
    columns = {
        "panda_queue": names,
        "type": kind,
        "status": status,
        "corecount": cores,
        "corepower": power,
        "memory": per_core * cores,
        "maxrss": per_core * cores,
        "maxtime": rng.choice([172_800, 259_200, 345_600, 0], n, p=[0.3, 0.3, 0.3, 0.1]),
        "maxwdir": 14_000 + 20_000 * cores,
        "maxinputsize": rng.choice([14_000, 60_000, 500_000, -1], n),
        "direct_access_lan": rng.random(n) < 0.5,
        "direct_access_wan": rng.random(n) < 0.2,
        "pledgedcpu": np.where(rng.random(n) < 0.1, -1, np.round(size)).astype(np.int64),
        "wnconnectivity": rng.choice(["full#IPv4", "full#IPv4+IPv6"], n),
        "capability": [None if not u else "ucore" for u in ucore],
        **_site_columns(rng, site),
    }
    at = pl.lit(settings.start_us).cast(pl.Datetime("us"))
    frame = pl.DataFrame(columns, strict=False).with_columns(last_update=at, **_SAME_EVERYWHERE)
    return names, conform("queues", frame)


_SAME_EVERYWHERE = {
    "is_unified": pl.lit(value=False),
    "pandasite_state": pl.lit("ACTIVE"),
    "minrss": pl.lit(0),
    "mintime": pl.lit(0),
    "transferringlimit": pl.lit(2000),
    "jobseed": pl.lit("std"),
    "workflow": pl.lit("pull_ups"),
    "is_cvmfs": pl.lit(value=True),
    "transtimehi": pl.lit(4),
    "transtimelo": pl.lit(4),
}
"""Columns of ``queues`` that do not vary."""


def _site_columns(rng: np.random.Generator, site: IntArray) -> dict[str, object]:
    """Return what belongs to the site of each queue."""
    return {
        "atlas_site": [f"SYNTH-{s:03d}" for s in site],
        "role": np.where(site % 6 == 0, "nucleus", "satellite"),
        "tier": np.where(site % 6 == 0, "T1", "T2"),
        "cloud": [f"C{s % 10}" for s in site],
        "region": [f"R{s % 10}" for s in site],
        "resource_type_q": rng.choice(["GRID", "hpc", "cloud"], len(site), p=[0.9, 0.06, 0.04]),
    }


def resource_types() -> pl.DataFrame:
    """Return the ``resource_types`` table: single and multi core, ordinary and high memory."""
    rows = [
        (1, 1, None, HIMEM_MB),
        (1, 1, HIMEM_MB + 1, None),
        (2, None, None, HIMEM_MB),
        (2, None, HIMEM_MB + 1, None),
    ]
    names = ["mincore", "maxcore", "minrampercore", "maxrampercore"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return conform("resource_types", frame.with_columns(resource_name=pl.Series(RESOURCE_TYPES)))


def gshares() -> pl.DataFrame:
    """Return a small tree of global shares; every kind of work has a leaf, analysis at the first level."""
    rows = [
        ("Production", 90.0, None, "managed", None),
        (EXPRESS, 1.0, None, "user", "urgent"),
        (USER_SHARE, 8.0, None, "user", None),
        (TEST_SHARE, 1.0, None, "test", None),
        ("MC Production", 60.0, "Production", "managed", None),
        ("Data reprocessing", 15.0, "Production", "managed", "pile"),
        ("Group Production", 25.0, "Production", "managed", "deriv"),
        ("MC 16 evgen", 15.0, "MC Production", "managed", "evgen"),
        ("MC 16 simul", 45.0, "MC Production", "managed", "simul"),
        ("MC 16 reco", 30.0, "MC Production", "managed", "reco"),
        ("MC merge", 10.0, "MC Production", "managed", "merge"),
    ]
    names = ["name", "value", "parent", "prodsourcelabel", "processingtype"]
    frame = pl.DataFrame(rows, schema=names, orient="row").with_columns(
        vo=pl.lit("atlas"), queue_id=pl.int_range(1, pl.len() + 1), throttled=pl.lit(value=False)
    )
    return conform("gshares", frame)


def conform(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Give a frame the columns, order and types of its contract; what is absent becomes null."""
    return columns_of(frame, polars_schema(table))
