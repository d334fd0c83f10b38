"""Storage of a synthetic archive: endpoints with their history, and which queues read and write them."""

from __future__ import annotations

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


def _owners(world: World) -> IntArray:
    """Return the sites that have storage."""
    return np.unique(world.storage)


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
    owners, tape = _owners(world), has_tape(world)
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
