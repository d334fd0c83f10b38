"""The functions of ``prod_functions`` about derived inputs and the network weight, called as the vectors call them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import polars as pl

from brokerlab.brokerage.inputs.atoms import atoms
from brokerlab.brokerage.network_weight import at_links, links, throughput_curve
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config
from tests import one_value

PRODUCTION = ProductionRules("production")


def settings(rows: list[dict[str, Any]]) -> Config:
    """Return the configuration of a vector: rows ``component, key, value`` of app jedi."""
    return Config.empty().with_values(
        {f"jedi/{row['component']}/{row['key']}": row["value"] for row in rows}
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


LINKS = {
    "network_matrix": {
        **dict.fromkeys(("src", "dst", "key"), pl.String),
        "value": pl.Float64,
        "ts": pl.Datetime("us"),
        "snapshot": pl.Int64,
    },
    "instants": {"snapshot": pl.Int64, "at": pl.Datetime("us")},
    "pairs": {
        "snapshot": pl.Int64,
        "nucleus": pl.String,
        "express": pl.Boolean,
        "storage_site": pl.String,
    },
}


def network_answers(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the weights of many links of one configuration: case n is asked at instant n, of a matrix of its own."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in LINKS}
    for number, case in enumerate(cases):
        own = {"snapshot": number}
        times = [{**row, "ts": _time(row["ts"])} | own for row in case["network_matrix"]]
        rows["network_matrix"] += times
        rows["instants"].append(own | {"at": _time(case["now"])})
        rows["pairs"].append(own | {name: case[name] for name in (*LINKS["pairs"],)[1:]})
    tables = {
        name: pl.DataFrame([{c: row.get(c) for c in kinds} for row in rows[name]], schema=kinds)
        for name, kinds in LINKS.items()
    }
    known = links(tables["network_matrix"], instants=tables["instants"], rules=PRODUCTION)
    config = settings(cases[0]["gdpconfig"])
    weighed = at_links(tables["pairs"], known, config=config, rules=PRODUCTION)
    return weighed.select("network_weight").to_dicts()


def atom(**inputs: Any) -> dict[str, Any]:
    """Return the atom of one task whose datasets and files stand in their order."""
    return atom_answers([inputs])[0]


def atom_answers(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the atoms of many tasks: case n is task n, and so are its datasets and files."""
    tasks = [{**case["task"], "is_merging": case["is_merging"]} for case in cases]
    rows = {
        name: [
            {**row, "jeditaskid": number, "position": position}
            for number, case in enumerate(cases)
            for position, row in enumerate(case[name])
        ]
        for name in ("datasets", "files")
    }
    table = atoms(
        pl.DataFrame(
            [{**task, "jeditaskid": number} for number, task in enumerate(tasks)],
            infer_schema_length=None,
        ),
        *(pl.DataFrame(some, infer_schema_length=None) if some else None for some in rows.values()),
    )
    return table.sort("jeditaskid").drop("jeditaskid").to_dicts()


def functions(cases: list[dict[str, Any]]) -> dict[str, Callable[..., Any]]:
    """Return the functions of this module, atoms and weights of links of all cases prepared."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for case in cases:
        if case["function"] in TOGETHER:
            key = case["function"], repr(case["inputs"].get("gdpconfig"))
            groups.setdefault(key, []).append(case["inputs"])
    found: dict[str, Any] = {}
    for (name, _), inputs in groups.items():
        found |= zip(map(repr, inputs), TOGETHER[name](inputs), strict=True)
    return FUNCTIONS | dict.fromkeys(TOGETHER, lambda **inputs: found[repr(inputs)])


TOGETHER = {"atom": atom_answers, "network_weight": network_answers}
"""Functions of many cases of one configuration at once."""
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "throughput_weight": lambda mbps: {"weight": throughput_curve(PRODUCTION).of(mbps)},
    "disk_sizes": one_value.disk_sizes,
    "cputime_seconds": one_value.cputime_seconds,
    "file_measures": one_value.file_measures,
    "input_completeness": lambda **inputs: one_value.dataset_completeness(
        rules=PRODUCTION, **inputs
    ),
    "pseudo_queues": lambda **inputs: {"queues": one_value.derived_rows(**inputs)},
    "slots_lookup": lambda **inputs: {"numslots": one_value.slots_lookup(**inputs)},
}
