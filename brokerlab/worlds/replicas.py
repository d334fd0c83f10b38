"""Where the input of tasks lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.worlds.queues import conform
from brokerlab.worlds.storage import endpoint, has_tape, vp_sites, walled_site
from brokerlab.worlds.world import World

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
            places = _told_places(rng, world, reader.queues, reader.copies)
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


def _told_places(
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
