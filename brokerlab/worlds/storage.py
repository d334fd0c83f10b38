"""Storage of a synthetic archive: endpoints with their history, which queues read and write them, and where the input of tasks lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.units import DAY_S
from brokerlab.worlds.queues import conform
from brokerlab.worlds.world import World

HISTORY = 5
"""Times at which the endpoints are measured, over the period."""
TYPES = ("DATADISK", "SCRATCHDISK", "DATATAPE", "VP_DISK")
"""Kinds of endpoints; the last one holds data virtually: it is read through a cache from elsewhere."""
STATUSES = ("ON", "OFF", "TEST", None)
STATUS_SHARES = (0.955, 0.020, 0.010, 0.015)
TIGHT_SHARE = 0.07
"""Share of satellites' endpoints that are nearly full at a time."""


def endpoint(site: str, kind: str) -> str:
    """Return the name of an endpoint."""
    return f"{site}_{kind}"


def has_tape(world: World) -> BoolArray:
    """Return which sites have tape: the nuclei, and every twentieth site."""
    return np.asarray(world.nucleus | (np.arange(len(world.sites)) % 20 == 7))


def vp_sites(world: World) -> IntArray:
    """Return the sites with virtual placement: every eleventh satellite, and where the role ``virtual`` writes to."""
    number = np.arange(len(world.sites))
    own = ~world.nucleus & (world.storage == number) & (number % 11 == 4)
    return np.flatnonzero(own | (number == world.storage[world.site[world.roles["virtual"]]]))


def walled_site(world: World) -> int:
    """Return the satellite whose disk is never read from outside: the largest that has its own storage."""
    own = ~world.nucleus & (world.storage == np.arange(len(world.sites)))
    return int(np.argmax(np.where(own, world.site_size, -1.0)))


def ddm_endpoints(world: World) -> pl.DataFrame:
    """Return ``ddm_endpoints``, by time and name: every endpoint at ``HISTORY`` times, the first at the start of the period."""
    rng = world.generator(1)
    owners, tape = np.unique(world.storage), has_tape(world)
    virtual = set(vp_sites(world).tolist())
    has: dict[int, list[bool]] = {
        2: tape.tolist(),
        3: [s in virtual for s in range(len(world.sites))],
    }
    places = [(int(s), k) for s in owners for k in range(4) if k < 2 or has[k][s]]
    site = np.tile([s for s, _ in places], HISTORY)
    kind = np.tile([k for _, k in places], HISTORY)
    when = np.repeat(np.arange(HISTORY), len(places))
    seconds = (when * world.settings.days * DAY_S / HISTORY).astype(np.int64)
    at = world.times(seconds)
    status = _statuses(rng, world, site, kind, when)
    frame = pl.DataFrame(
        {
            "ddm_endpoint_name": [endpoint(world.sites[s], TYPES[k]) for s, k in zip(site, kind, strict=True)],
            "site_name": [world.sites[s] for s in site],
            "type": [TYPES[k] for k in kind],
            "is_tape": kind == 2,
            **_space(rng, world, site, kind, len(places)),
            "space_timestamp": at,
            **status,
            "ts": at,
        }
    )  # fmt: skip
    frame = frame.with_columns(
        blacklisted=False,
        blacklisted_read=pl.col("read_wan").eq_missing("OFF") & pl.col("read_lan").eq_missing("OFF"),
        blacklisted_write=pl.col("write_wan").eq_missing("OFF"),
        delete=pl.lit("ON"),
    )  # fmt: skip
    return conform("ddm_endpoints", frame.sort("ts", "ddm_endpoint_name"))


def _statuses(
    rng: np.random.Generator, world: World, site: IntArray, kind: IntArray, when: IntArray
) -> dict[str, list[str | None]]:
    """Draw the four statuses; one nucleus cannot be written, another not read, for a fifth of the time."""
    n = len(site)
    drawn = {
        name: rng.choice(len(STATUSES), n, p=STATUS_SHARES)
        for name in ("read_lan", "write_lan", "read_wan", "write_wan")
    }
    nuclei = np.flatnonzero(world.nucleus & world.active)
    first = np.argsort(-world.site_size[nuclei], kind="stable")
    for name, place, moment in (("write_wan", 1, 2), ("read_wan", 2, 3)):
        if place < len(nuclei):
            hit = (site == nuclei[first[place]]) & (kind == 0) & (when == moment)
            drawn[name] = np.where(hit, 1, drawn[name])
    largest = (site == nuclei[first[0]]) & (kind == 0)  # some place always works
    drawn = {name: np.where(largest, 0, codes) for name, codes in drawn.items()}
    walled = (site == walled_site(world)) & (kind == 0)
    drawn["read_wan"] = np.where(walled, 1, drawn["read_wan"])
    drawn["read_lan"] = np.where(walled, 0, drawn["read_lan"])
    return {name: [STATUSES[c] for c in codes] for name, codes in drawn.items()}


def _space(
    rng: np.random.Generator, world: World, site: IntArray, kind: IntArray, per_time: int
) -> dict[str, FloatArray]:
    """Draw the space [GB]: nuclei have petabytes and a few hundred TB free, satellites less, a few hardly any."""
    n, again = len(site), np.tile(np.arange(per_time), HISTORY)
    large = world.nucleus[site]
    level = np.where(large, np.log(8e6), np.log(1.2e6)) + np.where(kind == 1, -2.5, 0.0)
    total = np.exp(level + np.where(large, 0.35, 0.7) * rng.standard_normal(per_time)[again])
    usual = np.where(large, 0.035, 0.05) * np.exp(0.5 * rng.standard_normal(per_time)[again])
    part = np.minimum(usual * np.exp(0.35 * rng.standard_normal(n)), 0.6)
    tight = ~large & (rng.random(n) < TIGHT_SHARE)
    free = np.where(tight, rng.uniform(20, 400, n), total * part)
    expired = free * rng.uniform(0, 0.5, n)
    unavailable = np.where(rng.random(n) < 0.1, 0.1 * free, 0.0)
    rounded = {
        "space_total": total,
        "space_free": free,
        "space_used": total - free,
        "space_expired": np.where(tight, 0.0, expired),
        "space_min_free": np.where(large, 0.002 * total, 0.0),
        "space_unavailable": unavailable,
    }
    return {name: np.round(values) for name, values in rounded.items()}


def queue_endpoints(world: World) -> pl.DataFrame:
    """Return ``queue_endpoints``, by key: disk, scratch and tape of the queue's storage, for some a remote or virtual one too."""
    rng = world.generator(2)
    remote = rng.random(len(world.site)) < 0.08
    nuclei = np.flatnonzero(world.nucleus)
    near = nuclei[rng.integers(0, len(nuclei), len(world.site))]
    tape = has_tape(world)
    rows: list[tuple[str, str, str, str, int | None, int | None, bool, bool]] = []
    types, virtual = world.queues["type"].to_list(), set(vp_sites(world).tolist())
    for queue, place in enumerate(world.queue_storage.tolist()):
        if place < 0:
            continue
        name, site = world.names[queue], world.sites[place]
        disk, scratch = endpoint(site, "DATADISK"), endpoint(site, "SCRATCHDISK")
        for scope in SCOPES[types[queue]]:
            written = disk if scope == "default" else scratch
            rows += [
                (name, disk, "input", scope, 1, None, True, True),
                (name, scratch, "input", scope, 2, None, False, True),
                (name, written, "output", scope, None, 1, True, True),
            ]
            if tape[place]:
                rows.append((name, endpoint(site, "DATATAPE"), "input", scope, 3, None, False, True))  # fmt: skip
            if place in virtual:
                rows.append((name, endpoint(site, "VP_DISK"), "input", scope, 5, None, False, True))
            if remote[queue] and near[queue] != place:
                away = endpoint(world.sites[near[queue]], "DATADISK")
                rows.append((name, away, "input", scope, 4, None, False, False))
    names = ["panda_queue", "ddm_endpoint_name", "direction", "scope", "order_read", "order_write",
             "is_default", "is_local"]  # fmt: skip
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return conform("queue_endpoints", frame.sort(names[:4]))


SCOPES = {
    "production": ("default",),
    "analysis": ("analysis", "default"),
    "unified": ("default", "analysis"),
}
"""Scopes of the endpoints of each type of queue."""


def queue_storage_site(world: World) -> pl.DataFrame:
    """Return ``queue_storage_site``; a queue without endpoint has no row."""
    rows = [
        (name, world.sites[s])
        for name, s in zip(world.names, world.queue_storage.tolist(), strict=True)
        if s >= 0
    ]
    frame = pl.DataFrame(rows, schema=["panda_queue", "site_name"], orient="row")
    return conform("queue_storage_site", frame.sort("panda_queue"))


NOWHERE_SHARE, WALLED_SHARE, HOME_SHARE, TAPE_SHARE = 0.02, 0.012, 0.55, 0.30
"""Shares of datasets: without complete copy, only at the walled site, at their nucleus, on tape."""
COMPLETE_SHARE = 0.9
"""Share of the copies on disk that are complete."""
WIDE_SHARE, WIDE_SITES = 0.25, 18
"""Share of the datasets of users that many sites have, and how many."""
VIRTUAL_SHARE, USER_TAPE_SHARE = 0.3, 0.06
"""Shares of the datasets of users that are placed virtually as well, and that are on tape alone."""

Place = tuple[int, str]
"""Site and type of an endpoint."""


@dataclass(frozen=True)
class Reader:
    """A task that reads files."""

    queues: Sequence[int]  # queues where it runs, the most important ones first
    production: bool = True
    nucleus: str | None = None  # where it gathers its outputs
    chained: bool = False  # its input was made at the nucleus of its chain
    # how the queues have the input, see ``Story.copies``; None = that is drawn
    copies: str | None = None


def replicas(
    world: World, index: int, files: pl.DataFrame, readers: Mapping[int, Reader]
) -> pl.DataFrame:
    """Draw the copies of the input: at the task's nucleus, where it is read, on tape, elsewhere; by dataset and endpoint.

    Most tasks have a complete copy on disk; some only on tape, few nowhere. Incomplete copies miss
    a few files, or most of them. Of what users read many sites have a copy, or few. Number and bytes of a dataset are those
    of its distinct files.
    """
    rng = world.generator(101, index)
    number = {name: s for s, name in enumerate(world.sites)}
    rows = []
    for taskid, total, size in _contents(files).iter_rows():
        reader = readers[taskid]
        if reader.production:
            home = number.get(reader.nucleus or "")
            places = _places(rng, world, reader.queues, home, chained=reader.chained)
        elif reader.copies is not None:
            places = _places_of_story(rng, world, reader.queues, reader.copies)
        else:
            places = _user_places(rng, world, reader.queues)
        for (site, kind), complete in places.items():
            some = 0 if reader.copies == "none" else _part(rng, total)
            result = total if complete else some
            share = min(result / total * rng.uniform(0.9, 2.5), 1.0) if result < total else 1.0
            tape, virtual = kind == "DATATAPE", bool(rng.random() < 0.02) or kind == "VP_DISK"
            rse = endpoint(world.sites[site], kind)
            rows.append(
                (f"synth.{taskid}.input", rse, result, total, round(size * share), tape, virtual)
            )
    names = ["datasetname", "ddm_endpoint_name", "found", "total", "bytes", "is_tape", "vp"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return conform("replicas", frame.sort("datasetname", "ddm_endpoint_name"))


def unmerged_replicas(
    world: World, files: pl.DataFrame, readers: Mapping[int, Reader]
) -> pl.DataFrame:
    """Return the copies of what user tasks merge: all of it where most of their jobs run."""
    rows = []
    made = files.filter(pl.col("type") == "trn_output").group_by("jeditaskid")
    sums = made.agg(total=pl.len().cast(pl.Int64), bytes=pl.col("fsize").sum()).sort("jeditaskid")
    for taskid, total, size in sums.iter_rows():
        if (reader := readers[taskid]).production:
            continue
        for site in _stores(world, reader.queues[:3]):
            rse = endpoint(world.sites[site], "DATADISK")
            rows.append((f"synth.{taskid}.trn_output", rse, total, total, size))
    names = ["datasetname", "ddm_endpoint_name", "found", "total", "bytes"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return conform(
        "replicas", frame.with_columns(is_tape=pl.lit(value=False), vp=pl.lit(value=False))
    )


def _places_of_story(
    rng: np.random.Generator, world: World, queues: Sequence[int], copies: str
) -> dict[Place, bool]:
    """Return the endpoints of the dataset of a story and whether its copy there is complete."""
    sites = _stores(world, queues)
    if copies == "whole":
        return {(s, "DATADISK"): True for s in sites}
    if copies == "none":
        return {(s, "DATADISK"): False for s in sites}
    nuclei = np.flatnonzero(world.nucleus)
    tape: Place = (int(rng.choice(nuclei[has_tape(world)[nuclei]])), "DATATAPE")
    if copies == "tape":
        return {tape: True}
    if copies == "virtual":
        return {tape: True, **{(int(s), "VP_DISK"): True for s in vp_sites(world)}}
    return {tape: True, **{(s, "DATADISK"): False for s in sites}}


def _contents(files: pl.DataFrame) -> pl.DataFrame:
    """Return number and bytes of the input files of each task that reads files."""
    return (
        files.lazy()
        .filter(pl.col("type") == "input")
        .unique(["jeditaskid", "lfn"], keep="first", maintain_order=True)
        .group_by("jeditaskid")
        .agg(total=pl.len().cast(pl.Int64), bytes=pl.col("fsize").sum())
        .sort("jeditaskid")
        .collect()
    )


def _stores(world: World, queues: Sequence[int]) -> list[int]:
    """Return the sites whose storage queues read, each once."""
    return list(dict.fromkeys(int(world.storage[world.site[q]]) for q in queues))


def _places(
    rng: np.random.Generator,
    world: World,
    queues: Sequence[int],
    home: int | None,
    *,
    chained: bool,
) -> dict[Place, bool]:
    """Draw the endpoints of one dataset of production and whether its copy there is complete.

    The input of a full chain was made at the nucleus of the chain.
    """
    nuclei = np.flatnonzero(world.nucleus)
    u = rng.random(6)
    if u[0] < WALLED_SHARE and not chained:
        return {(walled_site(world), "DATADISK"): True}
    lost = u[0] > 1 - NOWHERE_SHARE
    places: dict[Place, bool] = {}
    if (chained or u[1] < HOME_SHARE) and home is not None:
        places[int(world.storage[home]), "DATADISK"] = True
    if u[2] < 0.35:
        places[int(rng.choice(nuclei)), "DATADISK"] = bool(rng.random() < COMPLETE_SHARE)
    if u[3] < TAPE_SHARE:
        places[int(rng.choice(nuclei[has_tape(world)[nuclei]])), "DATATAPE"] = True
    for queue in queues[: int(u[4] * 4)]:
        site = int(world.storage[world.site[queue]])
        places[site, "DATADISK"] = bool(rng.random() < COMPLETE_SHARE)
    if not any(places.values()):
        places[int(nuclei[int(u[5] * len(nuclei))]), "DATADISK"] = True
    return {place: complete and not lost for place, complete in places.items()}


def _user_places(
    rng: np.random.Generator, world: World, queues: Sequence[int]
) -> dict[Place, bool]:
    """Draw the endpoints of one dataset that a user reads and whether its copy there is complete."""
    owners, nuclei = np.unique(world.storage), np.flatnonzero(world.nucleus)
    u = rng.random(4)
    if u[0] < USER_TAPE_SHARE:
        return {(int(rng.choice(nuclei[has_tape(world)[nuclei]])), "DATATAPE"): True}
    sites = _stores(world, queues)[: 1 + int(u[1] * 5)]
    if u[2] < WIDE_SHARE:
        sites += rng.choice(owners, min(WIDE_SITES, len(owners)), replace=False).tolist()
    places: dict[Place, bool] = {
        (int(s), "DATADISK"): bool(rng.random() < COMPLETE_SHARE) for s in sites
    }
    virtual = vp_sites(world)
    if u[3] < VIRTUAL_SHARE and len(virtual):
        places[int(rng.choice(virtual)), "VP_DISK"] = True
    if u[0] > 1 - NOWHERE_SHARE:
        return dict.fromkeys(places, False)
    if not any(places.values()):
        places[int(rng.choice(owners)), "DATADISK"] = True
    return places


def _part(rng: np.random.Generator, total: int) -> int:
    """Draw how many files an incomplete copy has: most often nearly all."""
    few = rng.random() < 0.6
    missing = int(rng.integers(1, 12)) if few else round(total * rng.uniform(0.15, 0.98))
    return max(total - max(missing, 1), 0)
