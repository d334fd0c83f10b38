"""The sites of a synthetic archive and what their queues publish beside their size: roles, text rules, limits.

Everything here is drawn beside the queues of ``world``, with generators of its own, so that jobs stay as
they are whatever a site publishes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.worlds.queues import Queues, conform, draw_queues
from brokerlab.worlds.settings import SynthSettings

SITES_PER_NUCLEUS = 6
"""One site in so many is a nucleus."""
OWN_STORAGE_SHARE = 0.93
"""Share of satellites with storage of their own; the others write to the nearest nucleus."""
SLOW_SHARE = 0.05
"""Share of the satellites' queues at slow sites."""
SPECIAL = ("test", "jumbo", "es", "eshigh", "long", "short", "gpu", "no_storage")
"""What the first queues without jobs are made of, so that no job contradicts what they publish."""


@dataclass(frozen=True)
class World(Queues):
    """What a synthetic archive is made of: its queues, and the sites they stand at."""

    sites: list[str]
    nucleus: BoolArray
    active: BoolArray  # site is in state ACTIVE
    bare: list[str | None]  # ``bareNucleus`` of the site; null = a normal site
    secondary: list[str | None]  # ``secondaryNucleus`` of the site
    storage: IntArray  # site whose storage takes the outputs of each site
    site_size: FloatArray  # slots of online production queues of each site
    site: IntArray  # site of each queue
    slow: BoolArray  # queue whose outputs take hours to travel
    special: dict[str, int]  # index of the queue of each kind of ``SPECIAL`` that the archive has

    @property
    def queue_storage(self) -> IntArray:
        """Site whose storage each queue writes to; -1 = the queue has no endpoint."""
        place = self.storage[self.site].copy()
        if "no_storage" in self.special:
            place[self.special["no_storage"]] = -1
        return place


def draw_world(settings: SynthSettings) -> World:
    """Draw the queues and the sites, and complete the ``queues`` table, in the order of the queues.

    Source:
        production-jobs.md; full-chain.md 1; zero-share.md 3.
    """
    drawn = draw_queues(settings)
    rng, usual = drawn.generator(0), drawn.queues
    sites = list(dict.fromkeys(usual["atlas_site"].to_list()))
    site = np.array([sites.index(s) for s in usual["atlas_site"]], dtype=np.int64)
    nucleus = np.arange(len(sites)) % SITES_PER_NUCLEUS == 0
    in_use = np.where(drawn.usable & drawn.production, drawn.size, 0.0)
    size: FloatArray = np.bincount(site, weights=in_use, minlength=len(sites)).astype(np.float64)
    active, bare, secondary = _roles(sites, nucleus, size)
    idle = np.flatnonzero(~drawn.usable & drawn.production)
    world = World(
        **vars(drawn), sites=sites, nucleus=nucleus, active=active, bare=bare, secondary=secondary,
        storage=_storage(rng, nucleus), site_size=size, site=site, slow=_slow(drawn, nucleus[site]),
        special=dict(zip(SPECIAL, idle.tolist(), strict=False)),
    )  # fmt: skip
    columns: dict[str, Any] = {
        **_limits(rng, world),
        **_texts(rng, world),
        "catchall": _catchall(rng, world),
        "status": _status(rng, world),
        "panda_queue": _rename(world),
        "is_unified": world.ucore,
        "pandasite_state": ["ACTIVE" if active[s] else "INACTIVE" for s in site],
    }
    _make_plain(columns, world)
    frame = usual.with_columns(
        pl.Series(name, values, dtype=usual.schema[name], strict=False)
        for name, values in columns.items()
    )
    return replace(world, names=columns["panda_queue"], queues=conform("queues", frame))


def _make_plain(columns: dict[str, Any], world: World) -> None:
    """Let queues with a role publish nothing out of the ordinary beside it: jobs would pass them by for that."""
    usual: dict[str, Any] = {
        "maxwdir": world.queues["maxwdir"].to_list(),
        "minrss": 0,
        "maxdiskio": None,
        "max_io_intensity": None,
        "fairsharepolicy": None,
        "releases": RELEASES[0],
    }
    for name, value in usual.items():
        rows = list(columns[name])
        for queue in world.roles.values():
            rows[queue] = value[queue] if isinstance(value, list) else value
        columns[name] = rows
    columns["releases"][world.roles["bad"]] = '["ANY"]'


def _roles(
    sites: Sequence[str], nucleus: BoolArray, size: FloatArray
) -> tuple[BoolArray, list[str | None], list[str | None]]:
    """Say which sites are in use, bare, or gather their outputs elsewhere; the largest nucleus is normal."""
    active = np.ones(len(sites), dtype=np.bool_)
    bare: list[str | None] = [None] * len(sites)
    secondary: list[str | None] = [None] * len(sites)
    order = np.argsort(-size, kind="stable")
    nuclei = [int(s) for s in order if nucleus[s] and size[s] > 0]
    satellites = [int(s) for s in order if not nucleus[s]]
    for place in (1, 3, 4):
        if place < len(nuclei):
            bare[nuclei[place]] = "allow"
    if len(nuclei) > 4:
        secondary[nuclei[4]] = sites[nuclei[0]]
    if len(nuclei) > 6:
        active[nuclei[-2]] = False
        bare[nuclei[-1]] = "only"
    used = [s for s in satellites if size[s] > 0]
    if len(used) > 5:
        bare[used[1]], bare[used[-2]] = "allow", "only"
    return active, bare, secondary


def _storage(rng: np.random.Generator, nucleus: BoolArray) -> IntArray:
    """Return the site that takes the outputs of each site: its own, or the nucleus before it."""
    own = np.arange(len(nucleus))
    elsewhere = ~nucleus & (rng.random(len(nucleus)) >= OWN_STORAGE_SHARE)
    return np.where(elsewhere, own // SITES_PER_NUCLEUS * SITES_PER_NUCLEUS, own)


def _slow(drawn: Queues, nucleus: BoolArray) -> BoolArray:
    """Choose satellite queues whose outputs take long to reach the nucleus."""
    able = drawn.usable & drawn.production & ~nucleus
    return able & (drawn.generator(7).random(drawn.n) < SLOW_SHARE)


def _limits(rng: np.random.Generator, world: World) -> dict[str, object]:
    """Return the limits on size, traffic and transfers; most queues have ordinary ones."""
    n = world.n
    scarce = (world.cores > 1) & (rng.random(n) < 0.08)
    himem = rng.random(n) < 0.05
    usual = world.queues["maxwdir"].to_numpy()
    return {
        "maxwdir": np.where(scarce, rng.choice([6000, 12_000, 20_000], n), usual),
        "minrss": np.where(himem, 1200 * world.cores, 0),
        "transferringlimit": np.where(
            world.slow, 2, rng.choice([2000, 500, 50, 0], n, p=[0.6, 0.2, 0.1, 0.1])
        ),
        "maxdiskio": _some(rng, [200, 400, 1000], n, 0.18),
        "max_io_intensity": _some(rng, [500, 1000], n, 0.08),
    }


def _texts(rng: np.random.Generator, world: World) -> dict[str, object]:
    """Return what is published in the grammars of the matching chapters, a few of it damaged."""
    n = world.n
    usual = world.queues["wnconnectivity"].to_list()
    other = rng.choice(len(CONNECTIVITIES), n)
    plain = rng.random(n) < 0.85
    releases = rng.choice(len(RELEASES), n, p=[0.92, 0.05, 0.015, 0.015])
    policy = rng.choice(len(POLICIES), n, p=POLICY_SHARES)
    columns: dict[str, list[object]] = {
        "wnconnectivity": [u if p else CONNECTIVITIES[o] for u, p, o in zip(usual, plain, other, strict=True)],
        "releases": [RELEASES[r] for r in releases],
        "fairsharepolicy": [POLICIES[p] for p in policy],
        "workflow": rng.choice(["pull_ups", "push", "pull"], n, p=[0.6, 0.28, 0.12]).tolist(),
        "jobseed": rng.choice(["std", "all"], n, p=[0.75, 0.25]).tolist(),
        "mintime": [0] * n,
        "maxtime": world.queues["maxtime"].to_list(),
    }  # fmt: skip
    for kind, (name, value) in SPECIAL_VALUES.items():
        if kind in world.special:
            columns[name][world.special[kind]] = value
    for role in PUSHING:
        columns["workflow"][world.roles[role]] = "push"
    return dict(columns)


CONNECTIVITIES = ("full", "http#IPv4", "http#IPv6", "http", "none", "full#IPv6", None)
RELEASES = ('["AUTO"]', '["ANY"]', '["24.0.40"]', None)
POLICIES = (
    None,
    "type=any:100%",
    "type=evgen:0%,type=simul:100%,type=any:50%",
    "type=merge:0%,type=any:100%",
    "group=AP_(Higgs|Top):0%,type=any:100%",
    "gshare=MC*:80%,type=deriv:0%",
    "priority>=900:100%,type=pile:0%,type=any:20%",
    "type=any:0%",
    "type=simul:0%, type=deriv:0%",  # the blank hides the second one
    "colour=blue:type=evgen:0%",
    "group=AP_(:0%",  # an invalid pattern
)
POLICY_SHARES = (0.55, 0.18, 0.06, 0.05, 0.04, 0.04, 0.03, 0.02, 0.01, 0.01, 0.01)
SPECIAL_VALUES: dict[str, tuple[str, object]] = {
    "es": ("jobseed", "es"),
    "eshigh": ("jobseed", "eshigh"),
    "long": ("mintime", 21_600),
    "short": ("maxtime", 43_200),
    "gpu": ("releases", '["AUTO"]'),
}
"""Column and value that make a queue special."""
PUSHING = ("pushes", "starting")
"""Roles of queues that push."""
ROLE_FLAGS = (("stay", "disableReassign"), ("week", "gpu"), ("week", "use_only_local_data"))
"""Role, what its queue has in ``catchall``."""


def _catchall(rng: np.random.Generator, world: World) -> list[str | None]:
    """Return the comma lists: bare nuclei, queues of local data only, junk.

    The mode of the second bare nucleus is published by its last queue alone, so that the first queue and
    any queue say different things (full-chain.md F-6).
    """
    rest = rng.choice(4, len(world.site), p=[0.72, 0.22, 0.03, 0.03])
    texts = [None, "foo=1", "use_only_local_data", "allowWAN,foo"]
    items: list[list[str]] = [[t] if (t := texts[r]) else [] for r in rest]
    allowed = [s for s, mode in enumerate(world.bare) if mode == "allow" and world.nucleus[s]]
    for queue, site in enumerate(world.site.tolist()):
        last = queue == int(np.flatnonzero(world.site == site)[-1])
        if (mode := world.bare[site]) and (last or site not in allowed[1:2]):
            items[queue].append(f"bareNucleus={mode}")
        if other := world.secondary[site]:
            items[queue].append(f"secondaryNucleus={other}")
    if "jumbo" in world.special:
        items[world.special["jumbo"]] += ["useJumboJobs", "minEventsForJumbo=100000"]
    if "gpu" in world.special:
        items[world.special["gpu"]].append("gpu")
    for role, text in ROLE_FLAGS:
        items[world.roles[role]].append(text)
    return [",".join(i) or None for i in items]


def _status(rng: np.random.Generator, world: World) -> list[str]:
    """Return the status at the end: special queues are online, some that take no new work standby, one is paused."""
    standby = rng.random(world.n) < 0.5
    usual = world.queues["status"].to_list()
    status = ["standby" if s == "brokeroff" and b else s for s, b in zip(usual, standby, strict=True)]  # fmt: skip
    for queue in world.special.values():
        status[queue] = "online"
    status[world.roles["paused"]] = "paused"
    return status


def _rename(world: World) -> list[str]:
    """Return the names; the test queue says so."""
    names = list(world.names)
    if "test" in world.special:
        names[world.special["test"]] += "_TEST"
    return names


def _some(
    rng: np.random.Generator, values: Sequence[int], n: int, share: float
) -> list[int | None]:
    """Draw a value for a share of the queues, null for the others."""
    chosen, value = rng.random(n) < share, rng.choice(list(values), n)
    return [int(v) if c else None for v, c in zip(value, chosen, strict=True)]
