"""The functions of ``prod_functions`` about derived inputs and the network weight, called as the vectors call them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import polars as pl

from brokerlab.brokerage.inputs.atoms import atoms
from brokerlab.brokerage.network_weight import throughput_curve
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


def _network_weight(
    *, gdpconfig: list[dict[str, Any]], network_matrix: list[dict[str, Any]], now: str, **link: Any
) -> dict[str, Any]:
    rows = [{**row, "ts": _time(row["ts"])} for row in network_matrix]
    weight = one_value.network_weight(
        rows, at=_time(now), config=settings(gdpconfig), rules=PRODUCTION, **link
    )
    return {"network_weight": weight}


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
    """Return the functions of this module with the atoms of all cases prepared."""
    inputs = [case["inputs"] for case in cases if case["function"] == "atom"]
    found = dict(zip(map(repr, inputs), atom_answers(inputs), strict=True))
    return FUNCTIONS | {"atom": lambda **inputs: found[repr(inputs)]}


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "throughput_weight": lambda mbps: {"weight": throughput_curve(PRODUCTION).of(mbps)},
    "network_weight": _network_weight,
    "atom": atom,
    "disk_sizes": one_value.disk_sizes,
    "cputime_seconds": one_value.cputime_seconds,
    "file_measures": one_value.file_measures,
    "input_completeness": lambda **inputs: one_value.dataset_completeness(
        rules=PRODUCTION, **inputs
    ),
    "pseudo_queues": lambda **inputs: {"queues": one_value.derived_rows(**inputs)},
    "slots_lookup": lambda **inputs: {"numslots": one_value.slots_lookup(**inputs)},
}
