"""Where the input of production tasks lies."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.archive.synthetic.block import Block
from brokerlab.archive.synthetic.grid import Grid, generator
from brokerlab.archive.synthetic.jobtypes import per_type
from brokerlab.archive.synthetic.settings import SynthSettings
from brokerlab.archive.synthetic.storage import endpoint, has_tape, walled_site
from brokerlab.archive.synthetic.world import conform
from brokerlab.numerics import IntArray

NOWHERE_SHARE, WALLED_SHARE, HOME_SHARE, TAPE_SHARE = 0.02, 0.012, 0.55, 0.30
"""Shares of datasets: without complete copy, only at the walled site, at their nucleus, on tape."""
COMPLETE_SHARE = 0.9
"""Share of the copies on disk that are complete."""

Place = tuple[int, str]
"""Site and type of an endpoint."""


def replicas(
    settings: SynthSettings, grid: Grid, block: Block, files: pl.DataFrame, nuclei: pl.DataFrame
) -> pl.DataFrame:
    """Draw the copies of the input: at the task's nucleus, where it is read, on tape, elsewhere.

    Most tasks have a complete copy on disk; some only on tape, few nowhere. Incomplete copies miss
    a few files, or most of them.

    Args:
        settings: The seed.
        grid: The sites.
        block: The block.
        files: Its rows of ``files``; number and bytes of a dataset are those of its distinct files.
        nuclei: ``jeditaskid, nucleus, fullchain`` of its production tasks.

    Returns:
        All columns of ``replicas``, sorted by dataset and endpoint.
    """
    rng = generator(settings, 101, block.index)
    number = {name: s for s, name in enumerate(grid.sites)}
    wanted = nuclei.select("jeditaskid", "nucleus", pl.col("fullchain").is_not_null())
    chosen = {taskid: (name, chained) for taskid, name, chained in wanted.iter_rows()}
    queue = block.tasks.slots.queue
    rows = []
    for taskid, total, size in _contents(block, files).iter_rows():
        nucleus, chained = chosen[taskid]
        home = number.get(nucleus)
        near = queue[taskid - block.taskid[0]]
        places = _places(rng, grid, near, home, chained=chained)
        for (site, kind), complete in places.items():
            found = total if complete else _part(rng, total)
            share = min(found / total * rng.uniform(0.9, 2.5), 1.0) if found < total else 1.0
            rse = endpoint(grid.sites[site], kind)
            tape, virtual = kind == "DATATAPE", bool(rng.random() < 0.02)
            rows.append(
                (f"synth.{taskid}.input", rse, found, total, round(size * share), tape, virtual)
            )
    names = ["datasetname", "ddm_endpoint_name", "found", "total", "bytes", "is_tape", "vp"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return conform("replicas", frame.sort("datasetname", "ddm_endpoint_name"))


def _contents(block: Block, files: pl.DataFrame) -> pl.DataFrame:
    """Return number and bytes of the input files of each production task that reads files."""
    reads = per_type(lambda k: (k.label == "managed") and not k.pseudo)[block.tasks.kind] > 0
    mine = pl.Series(block.taskid[reads])
    return (
        files.lazy()
        .filter(pl.col("type") == "input", pl.col("jeditaskid").is_in(mine.implode()))
        .unique(["jeditaskid", "lfn"], keep="first", maintain_order=True)
        .group_by("jeditaskid")
        .agg(total=pl.len().cast(pl.Int64), bytes=pl.col("fsize").sum())
        .sort("jeditaskid")
        .collect()
    )


def _places(
    rng: np.random.Generator, grid: Grid, queues: IntArray, home: int | None, *, chained: bool
) -> dict[Place, bool]:
    """Draw the endpoints of one dataset and whether its copy there is complete.

    The input of a full chain was made at the nucleus of the chain.
    """
    nuclei = np.flatnonzero(grid.nucleus)
    u = rng.random(6)
    if u[0] < WALLED_SHARE and not chained:
        return {(walled_site(grid), "DATADISK"): True}
    lost = u[0] > 1 - NOWHERE_SHARE
    places: dict[Place, bool] = {}
    if (chained or u[1] < HOME_SHARE) and home is not None:
        places[int(grid.storage[home]), "DATADISK"] = True
    if u[2] < 0.35:
        places[int(rng.choice(nuclei)), "DATADISK"] = bool(rng.random() < COMPLETE_SHARE)
    if u[3] < TAPE_SHARE:
        places[int(rng.choice(nuclei[has_tape(grid)[nuclei]])), "DATATAPE"] = True
    for queue in queues[: int(u[4] * 4)].tolist():
        site = int(grid.storage[grid.site[queue]])
        places[site, "DATADISK"] = bool(rng.random() < COMPLETE_SHARE)
    if not any(places.values()):
        places[int(nuclei[int(u[5] * len(nuclei))]), "DATADISK"] = True
    return {place: complete and not lost for place, complete in places.items()}


def _part(rng: np.random.Generator, total: int) -> int:
    """Draw how many files an incomplete copy has: most often nearly all."""
    few = rng.random() < 0.6
    missing = int(rng.integers(1, 12)) if few else round(total * rng.uniform(0.15, 0.98))
    return max(total - max(missing, 1), 0)
