"""The recorded functions of the task brokerage and of full chain, under the production rule set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from brokerlab.brokerage.full_chain import chained_where
from brokerlab.brokerage.rules import ProductionRules
from tests.one_value import nucleus_availability, token_endpoint

RULES = ProductionRules("production")


def token_endpoint_case(
    storagetoken: str | None, nucleus_endpoints: list[dict[str, Any]]
) -> dict[str, Any]:
    endpoints = [(row["ddm_endpoint_name"], row["type"]) for row in nucleus_endpoints]
    return {"ddm_endpoint_name": token_endpoint(storagetoken, endpoints)}


def chained(fullchain: str | None, bare_mode: str | None) -> bool:
    row = pl.DataFrame({"f": [fullchain], "b": [bare_mode]}, schema=dict.fromkeys("fb", pl.String))
    return bool(row.select(chained_where(pl.col("f"), pl.col("b"))).item())


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "nucleus_availability": lambda **inputs: nucleus_availability(**inputs, rules=RULES),
    "token_endpoint": token_endpoint_case,
    "full_chain": lambda **inputs: {"chained": chained(**inputs)},
}
