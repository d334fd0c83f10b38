"""A random world as frames for the library, and what its decisions have differently from the twin's."""

from __future__ import annotations

import json
import math
from typing import Any

import polars as pl

from brokerlab.brokerage.contracts import TABLES
from brokerlab.gdpconfig import Config
from tests.twins.world import when

TIMES = ("at", "frozentime", "master_creationtime", "master_modificationtime")
REL = 1e-12
EXACT = ("rank", "nrunning", "nqueuedjobs", "nrunningjobscap", "platform")
FLOAT = ("weight", "network_weight", "maxwdir")

Tables = dict[str, Any]
Row = dict[str, Any]


def frames(tables: Tables) -> dict[str, pl.DataFrame]:
    """Return the tables that the library reads; those without rows are known to have none."""
    found = {}
    for name, contract in TABLES.items():
        rows = tables.get(name) or []
        if name == "sw_tags":
            rows = [row | {"data": json.dumps(row["data"])} for row in rows]
        if name == "tasks":
            rows = [row | {column: when(row.get(column)) for column in TIMES} for row in rows]
        frame = pl.DataFrame(rows, infer_schema_length=None)
        found[name] = frame.select(key for key in contract.columns() if key in frame.columns)
    return found


def config(tables: Tables) -> Config:
    """Return the settings of a world."""
    rows = tables.get("gdpconfig") or []
    return Config.empty().with_values(
        {f"jedi/{row['component']}/{row['key']}": row["value"] for row in rows}
    )


def differences(
    twin: list[Row], queues: list[Row], tasks: list[Row], parents: set[str]
) -> list[str]:
    """Return what is decided differently, one line each.

    Args:
        twin: What ``production_jobs.decide_all`` returned.
        queues: Rows of the library: ``jeditaskid, snapshot, panda_queue, check, weight, rank``, and what else of
            ``EXACT`` and ``FLOAT`` is to be compared.
        tasks: Rows of the library: ``jeditaskid, snapshot, outcome``.
        parents: Names of unified parents: one that is skipped need not have a row.
    """
    outcomes = {(row["jeditaskid"], row["snapshot"]): row["outcome"] for row in tasks}
    rows: dict[tuple[int, int], dict[str, Row]] = {}
    for row in queues:
        rows.setdefault((row["jeditaskid"], row["snapshot"]), {})[row["panda_queue"]] = row
    found = []
    for one in twin:
        task = one["jeditaskid"], one["snapshot"]
        if outcomes[task] != one["outcome"]:
            found.append(f"{task}: outcome {outcomes[task]}, twin {one['outcome']}")
        if one["outcome"] in ("unknown_nucleus", "input_incomplete"):
            continue
        theirs = {row["panda_queue"]: row for row in one["queues"]}
        ours = rows.get(task, {})
        alone = (ours.keys() ^ theirs.keys()) - parents
        found += [f"{task} {name}: only on one side" for name in sorted(alone)]
        for name in sorted(ours.keys() & theirs.keys()):
            found += [f"{task} {name}: {what}" for what in _of_queue(ours[name], theirs[name])]
    return found


def _of_queue(ours: Row, theirs: Row) -> list[str]:
    if ours["check"] != theirs["check"]:
        return [f"{ours['check']}, twin {theirs['check']}"]
    if ours["check"] is not None:
        return []
    differ = [name for name in EXACT if name in ours and ours[name] != theirs.get(name)]
    differ += [name for name in FLOAT if name in ours and not _close(ours[name], theirs.get(name))]
    return [f"{name} {ours[name]}, twin {theirs.get(name)}" for name in differ]


def _close(ours: float | None, theirs: float | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return math.isclose(ours, theirs, rel_tol=REL)
