"""The functions of ``prod_functions`` about derived inputs and the network weight, called as the vectors call them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import polars as pl

from brokerlab.brokerage.inputs import units
from brokerlab.brokerage.inputs.atoms import atoms
from brokerlab.brokerage.inputs.completeness import dataset_completeness
from brokerlab.brokerage.inputs.pseudo_queues import derived_rows
from brokerlab.brokerage.inputs.slots import slots_lookup
from brokerlab.brokerage.network_weight import (
    network_weight,
    throughput_curve,
    throughput_weight,
)
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config

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
    weight = network_weight(
        rows, at=_time(now), config=settings(gdpconfig), rules=PRODUCTION, **link
    )
    return {"network_weight": weight}


def atom(
    *,
    task: dict[str, Any],
    is_merging: bool,
    datasets: list[dict[str, Any]],
    files: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return the atom of one task whose datasets and files stand in their order."""
    table = atoms(
        pl.DataFrame(
            [{**task, "jeditaskid": 0, "is_merging": is_merging}], infer_schema_length=None
        ),
        pl.DataFrame(datasets, infer_schema_length=None).with_row_index("position")
        if datasets
        else None,
        pl.DataFrame(files, infer_schema_length=None).with_row_index("position") if files else None,
    )
    return table.drop("jeditaskid").row(0, named=True)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "throughput_weight": lambda mbps: {
        "weight": throughput_weight(mbps, throughput_curve(PRODUCTION))
    },
    "network_weight": _network_weight,
    "atom": atom,
    "disk_sizes": units.disk_sizes,
    "cputime_seconds": units.cputime_seconds,
    "file_measures": units.file_measures,
    "input_completeness": lambda **inputs: dataset_completeness(rules=PRODUCTION, **inputs),
    "pseudo_queues": lambda **inputs: {"queues": derived_rows(**inputs)},
    "slots_lookup": lambda **inputs: {"numslots": slots_lookup(**inputs)},
}
