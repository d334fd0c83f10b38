"""Single rules of the job brokerage on pairs made by hand: the expressions themselves, without a whole brokerage."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

from brokerlab.brokerage.inputs.queues import complete_here, endpoint_states
from brokerlab.brokerage.production_jobs.checks import compensated, reads_in_place, storage_checks
from brokerlab.brokerage.rules import AS_DEPLOYED, ProductionRules

LINK = ("panda_queue", "direction", "ddm_endpoint_name", "is_default")
STATES = (
    "s_read_lan",
    "s_write_lan",
    "s_write_wan",
    "s_read_wan",
    "s_input_disk",
    "s_output_disk",
)


def on(pair: Mapping[str, Any], rule: pl.Expr) -> Any:
    """Return what an expression says of one pair."""
    frame = pl.DataFrame([dict(pair)], infer_schema_length=None).lazy()
    return frame.select(value=rule).collect().item()


def endpoint_status(
    queue_endpoints: Collection[Mapping[str, Any]],
    *,
    nucleus_queue: bool,
    remote_source_available: bool = True,
    complete_locations: Collection[str] | None = None,
    rules: ProductionRules | None = None,
) -> str | None:
    """Return the first of the checks 22 to 27 that skips one queue with these endpoints."""
    rules = rules or ProductionRules()
    rows = pl.DataFrame(
        [{"panda_queue": "Q", "is_default": False, **row} for row in queue_endpoints],
        infer_schema_length=None,
    )
    links = rows.select(name for name in LINK if name in rows.columns) if rows.height else None
    storage = rows.unique("ddm_endpoint_name", keep="first") if rows.height else None
    states = endpoint_states(links, storage, rules=rules).to_dicts()
    state = states[0] if states else dict.fromkeys(STATES, False)
    places = pl.DataFrame(
        {"jeditaskid": 0, "ddm_endpoint_name": list(complete_locations or ())},
        schema={"jeditaskid": pl.Int64, "ddm_endpoint_name": pl.String},
    )
    pair = {
        **{name: state[name] for name in STATES},
        "s_space": None,
        "x_nucleus": nucleus_queue,
        "x_complete": complete_here(places, links, storage).height > 0,
        "t_no_complete": not complete_locations,
        "t_remote_source": remote_source_available,
        "$STORAGE_MIN_FREE_SIZE": None,
    }
    checks = storage_checks(rules)
    skips = [check for check in checks if check.name != "storage_space"]
    return next((check.name for check in skips if on(pair, check.when)), None)


def direct_io(
    *,
    is_merging: bool | None = False,
    maxinputsize: int | None = None,
    uselocalio: bool | None = False,
    allowinputlan: str | None = None,
    direct_access_lan: bool | None = False,
) -> bool:
    """Return whether jobs of one task read in place at one queue."""
    pair = {
        "t_merging": bool(is_merging),
        "t_reads_lan": bool(allowinputlan) and not uselocalio,
        "p_maxinputsize": maxinputsize or 0,
        "p_direct_lan": bool(direct_access_lan),
    }
    return bool(on(pair, reads_in_place(AS_DEPLOYED)))


def ram_compensation(ramcount: int | None) -> int | None:
    """Return the memory compared with a slot [MB]."""
    value = on({"ram": ramcount}, compensated(pl.col("ram").cast(pl.Float64()), whole=True))
    return None if value is None else int(value)


FUNCTIONS = {
    "endpoint_status": lambda **inputs: {
        "skip": endpoint_status(rules=ProductionRules("production"), **inputs)
    },
    "direct_io": lambda **inputs: {"direct": direct_io(**inputs)},
    "ram_compensation": lambda ramcount: {"ramcount": ram_compensation(ramcount)},
}
