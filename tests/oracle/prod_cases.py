"""Recorded cases of the production job brokerage as input tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import dataframely as dy
import polars as pl

from brokerlab.brokerage.contracts import TABLES
from brokerlab.gdpconfig import Config

Case = dict[str, Any]

EMPTY = {name: contract.create_empty() for name, contract in TABLES.items()}
TIMES = ("frozentime", "master_creationtime", "master_modificationtime")


def settings(rows: list[dict[str, Any]]) -> Config:
    """Return the configuration of a case: rows ``component, key, value`` of app jedi."""
    return Config.empty().with_values(
        {f"jedi/{row['component']}/{row['key']}": row["value"] for row in rows}
    )


def time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def task_row(inputs: Case, at: str = "2026-06-01T12:00:00") -> Case:
    """Return the task and its chunk as one row."""
    chunk = dict(inputs.get("chunk", {}))
    if "ramcount" in chunk:
        chunk["chunk_ramcount"] = chunk.pop("ramcount")
    row = {**inputs["task"], **chunk, "at": time(at)}
    row |= {name: time(row.get(name)) for name in TIMES}
    return row | {"n_ready_events": inputs.get("n_ready_events")}


def frame(rows: list[Case]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None)


def tables(inputs: Case) -> dict[str, pl.DataFrame]:
    """Return the tables of a recorded brokerage."""
    found = dict(EMPTY)
    found["tasks"] = frame([task_row(inputs, inputs["now"])])
    for name, rows in inputs.items():
        if name in TABLES and isinstance(rows, list) and rows:
            if name == "sw_tags":
                rows = [{**row, "data": json.dumps(row["data"])} for row in rows]  # noqa: PLW2901
            found[name] = frame(rows)
    return narrowed(found, TABLES)


def narrowed(
    tables: dict[str, pl.DataFrame], contracts: Mapping[str, type[dy.Schema]]
) -> dict[str, pl.DataFrame]:
    """Return tables with the columns that the library reads."""
    return {
        name: table.select(key for key in contracts[name].columns() if key in table.columns)
        for name, table in tables.items()
    }
