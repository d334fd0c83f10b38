"""Recorded cases of the analysis brokerage as input tables."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs.contracts import TABLES
from brokerlab.brokerage.inputs.queues import pseudo_queues
from brokerlab.gdpconfig import Config
from tests.oracle.prod_cases import frame, narrowed, time

Case = dict[str, Any]

PANDA = ("prio_mgr", "analy_eval")
"""Components whose keys the server reads."""
EMPTY = {name: contract.create_empty() for name, contract in TABLES.items()}
FLAGS = ("limitedsites", "uselocalio", "avoidvp", "allowincompleteinds")
RENAMED = {"sw_map": "sw_tags"}
COLUMNS = {
    "slots": {"pandaqueuename": "panda_queue"},
    "worker_stats": {"computingsite": "panda_queue"},
}


def settings(rows: list[Case]) -> Config:
    """Return the configuration of a case."""
    return Config.empty().with_values(
        {
            f"{'pandaserver' if row['component'] in PANDA else 'jedi'}/{row['component']}/{row['key']}": row["value"]
            for row in rows
        }
    )  # fmt: skip


def task_row(inputs: Case) -> Case:
    """Return the task, its chunk and what was derived from its input as one row."""
    task, chunk = dict(inputs["task"][0]), inputs.get("chunk", [{}])[0]
    task |= {name: bool(task[name]) for name in FLAGS if task.get(name) is not None}
    task["frozentime"] = time(task.get("frozentime"))
    derived = inputs.get("derived", [{}])[0]
    return {
        **task,
        "at": time(inputs.get("now")),
        "is_merging": chunk.get("is_merging"),
        "chunk_usescout": chunk.get("usescout"),
        "chunk_ramcount": chunk.get("ramcount"),
        "atom_size": derived.get("max_atom_size"),
        "atom_size_effective": derived.get("effective_atom_size"),
        "atom_nevents": derived.get("max_atom_events"),
        "n_jobs_to_submit": derived.get("n_jobs_to_submit"),
    }


def _queues(inputs: Case) -> pl.DataFrame:
    """Return the queues with their pseudo-queues."""
    queues = [{"type": "analysis", "status": "online", **row} for row in inputs.get("queues", [])]
    table = frame(queues)
    if "capability" not in table.columns:
        return table
    types = inputs.get("resource_types") or []
    return pseudo_queues(table, frame(types) if types else None)


def _input(inputs: Case) -> dict[str, list[Case]]:
    """Return datasets, files and where they are by the names of the datasets."""
    datasets = inputs.get("datasets", [])
    names = {row["datasetid"]: row["datasetname"] for row in datasets}
    files = [{**row, "datasetname": names[row["datasetid"]]} for row in inputs.get("files", [])]
    places = []
    for row in inputs.get("available_files", []):
        lfns = [file["lfn"] for file in files if file["datasetname"] == row["datasetname"]]
        for kind in ("localdisk", "localtape"):
            where = {
                "datasetname": row["datasetname"],
                "panda_queue": row["computingsite"],
                "kind": kind,
            }
            places += [{**where, "lfn": lfn} for lfn in lfns[: row[f"n_{kind}"]]]
    masters = [{**row, "is_master": row["masterid"] is None} for row in datasets]
    return {"datasets": masters, "files": files, "file_locations": places}


def tables(inputs: Case) -> dict[str, pl.DataFrame]:
    """Return the tables of a recorded case, with the columns that the brokerage reads."""
    return narrowed(recorded(inputs), TABLES)


def together(cases: list[Case], names: Iterable[str]) -> dict[str, pl.DataFrame]:
    """Return some tables of all cases, each at an instant (``snapshot``) of its own: the number of the case."""
    given = [tables(case["inputs"]) for case in cases]
    return {
        name: pl.concat(
            [
                some[name].with_columns(snapshot=pl.lit(number, pl.Int64))
                for number, some in enumerate(given)
            ],
            how="diagonal_relaxed",
        )
        for name in names
    }


def recorded(inputs: Case) -> dict[str, pl.DataFrame]:
    """Return the tables of a recorded case, with all that was recorded."""
    task = task_row(inputs)
    rows = {name: list(value) for name, value in inputs.items() if isinstance(value, list)}
    rows = {RENAMED.get(name, name): value for name, value in rows.items()}
    rows |= {"tasks": [task], **_input(inputs)}
    user = {"workinggroup": task.get("workinggroup")}
    if not task.get("workinggroup"):
        user = {"origusername": task.get("origusername") or task.get("username")}
    rows["user_totals"] = [{**row, **user} for row in rows.get("user_totals", [])]
    rows["sw_tags"] = [{**row, "data": json.dumps(row["data"])} for row in rows.get("sw_tags", [])]
    for table, names in COLUMNS.items():
        rows[table] = [
            {names.get(name, name): value for name, value in row.items()}
            for row in rows.get(table, [])
        ]
    found = EMPTY | {name: frame(some) for name, some in rows.items() if some and name in TABLES}
    return found | ({"queues": _queues(inputs)} if inputs.get("queues") else {})
