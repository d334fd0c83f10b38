"""The functions of ``prod_functions`` about derived inputs and the network weight, called as the vectors call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from brokerlab.brokerage.inputs import units
from brokerlab.brokerage.inputs.completeness import dataset_completeness
from brokerlab.brokerage.inputs.endpoints import endpoint_status
from brokerlab.brokerage.inputs.pseudo_queues import derived_rows
from brokerlab.brokerage.inputs.slots import slots_lookup
from brokerlab.brokerage.rules import ProductionRules

PRODUCTION = ProductionRules("production")

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "disk_sizes": units.disk_sizes,
    "cputime_seconds": units.cputime_seconds,
    "file_measures": units.file_measures,
    "direct_io": lambda **inputs: {"direct": units.is_direct_io(**inputs)},
    "endpoint_status": lambda **inputs: {"skip": endpoint_status(rules=PRODUCTION, **inputs)},
    "input_completeness": lambda **inputs: dataset_completeness(rules=PRODUCTION, **inputs),
    "pseudo_queues": lambda **inputs: {"queues": derived_rows(**inputs)},
    "slots_lookup": lambda **inputs: {"numslots": slots_lookup(**inputs)},
    "ram_compensation": lambda ramcount: {"ramcount": units.ram_compensation(ramcount)},
}
