"""Facts that the worlds of ``prod_jobbrokerage`` show besides the decision: chunks, pseudo-queues, link weights."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl
import pytest

from brokerlab.brokerage.inputs.data import completeness
from brokerlab.brokerage.inputs.queues import pseudo_queues
from brokerlab.brokerage.network_weight import at_links, links
from tests.oracle import vectors
from tests.oracle.prod_facts import PRODUCTION, atom, settings

Inputs = dict[str, Any]


def table(rows: list[dict[str, Any]] | None) -> pl.DataFrame | None:
    return pl.DataFrame(rows, infer_schema_length=None) if rows else None


def chunk_agrees(inputs: Inputs, _: dict[str, Any]) -> bool:
    chunk = inputs["chunk"]
    found = atom(
        task=inputs["task"],
        is_merging=chunk["is_merging"],
        datasets=inputs["datasets"],
        files=inputs["files"],
    )
    return vectors.agrees(found, {name: chunk[name] for name in found})


def pseudo_queues_agree(inputs: Inputs, _: dict[str, Any]) -> bool:
    columns = ["panda_queue", "unified_name", "is_unified", "corecount", "maxrss", "minrss"]
    given = (
        pl.DataFrame(inputs["queues"], infer_schema_length=None)
        .select(*columns, "capability")
        .sort("panda_queue")
    )
    parents = given.filter(pl.col("unified_name") == pl.col("panda_queue")).drop("is_unified")
    found = pseudo_queues(parents, table(inputs["resource_types"]))
    kinds = {"corecount": pl.Int64, "maxrss": pl.Float64, "minrss": pl.Float64}
    return found.select(columns).cast(kinds).equals(given.select(columns).cast(kinds))


def outcome_agrees(inputs: Inputs, expected: dict[str, Any]) -> bool:
    task = inputs["task"] | {"snapshot": 0}
    found = completeness(
        pl.DataFrame([task], infer_schema_length=None).select(
            "jeditaskid", "snapshot", "vo", "inputprestaging"
        ),
        table(inputs["datasets"]),
        table(inputs.get("replicas")),
        table(inputs["storage_endpoints"]),
        config=settings(inputs.get("gdpconfig") or []),
        rules=PRODUCTION,
    )
    incomplete = found.tasks["outcome"].item() is not None
    unknown = expected["outcome"] == "unknown_nucleus"  # decided before the input is looked at
    return unknown or incomplete == (expected["outcome"] == "input_incomplete")


def link_weights_agree(inputs: Inputs, expected: dict[str, Any]) -> bool:
    task = inputs["task"]
    weighed = [row for row in expected["queues"] if row.get("network_weight") is not None]
    if not weighed:
        return True
    sites = {row["panda_queue"]: row["site_name"] for row in inputs["queue_storage_site"]}
    parents = {row["panda_queue"]: row["unified_name"] for row in inputs["queues"]}
    matrix = table(inputs.get("network_matrix"))
    now = datetime.fromisoformat(inputs["now"])
    rest = {"config": settings(inputs.get("gdpconfig") or []), "rules": PRODUCTION}
    known = links(
        None if matrix is None else matrix.with_columns(pl.col("ts").str.to_datetime()),
        instants=pl.DataFrame({"snapshot": [0], "at": [now]}),
        rules=PRODUCTION,
    )
    pairs = pl.DataFrame(
        {
            "snapshot": 0,
            "nucleus": task["nucleus"],
            "express": task["processingtype"] == "urgent" or task["currentpriority"] > 1000,
            "storage_site": [sites.get(parents[row["panda_queue"]]) for row in weighed],
        },
        schema_overrides={"snapshot": pl.Int64, "storage_site": pl.String},
    )
    found = at_links(pairs, known, **rest)["network_weight"].to_list()
    return found == pytest.approx([row["network_weight"] for row in weighed], rel=1e-12)


@pytest.mark.parametrize(
    "check", [chunk_agrees, pseudo_queues_agree, outcome_agrees, link_weights_agree]
)
def test_facts_of_whole_worlds(check):
    cases = vectors.load("prod_jobbrokerage")
    wrong = [case["id"] for case in cases if not check(case["inputs"], case["expected"])]
    vectors.report(f"prod_jobbrokerage, {check.__name__}", len(cases), len(cases) - len(wrong))
    assert not wrong
