"""Which share of the slots jobs can reach with what they are given."""

from __future__ import annotations

from typing import Any

import dataframely as dy
import numpy as np
import polars as pl

from brokerlab.estimators.records import Quantity
from brokerlab.estimators.scoring.entries import Entry
from brokerlab.frames import prepared
from brokerlab.numerics import FloatArray
from brokerlab.slots import Offers, memory_per_core, positive


class Slots(dy.Schema):
    """One row per queue."""

    panda_queue = dy.String()
    corecount = dy.Int64(nullable=True, metadata={"unit": "cores", "meaning": "null or 0: 1"})
    maxrss = dy.Int64(
        nullable=True, metadata={"unit": "MB", "meaning": "of a slot; null or 0: no limit"}
    )
    memory = dy.Int64(
        nullable=True, metadata={"unit": "MB", "meaning": "the same where maxrss is unknown"}
    )
    maxtime = dy.Int64(
        nullable=True, metadata={"unit": "s", "meaning": "of a job; null or 0: no limit"}
    )
    slots = dy.Float64(nullable=True, metadata={"meaning": "size of the queue; null: 0"})


def offers(queues: Any, quantity: Quantity) -> Offers:
    """Sort queues by memory per core or by the time of a job (production-jobs.md, checks on memory and walltime)."""
    frame = prepared({"queues": queues}, {"queues": Slots})["queues"]
    offered = memory_per_core() if quantity == "memory" else positive("maxtime")
    result = frame.select(
        offered=offered.cast(pl.Float64).fill_null(np.inf), slots=pl.col("slots").fill_null(0.0)
    )
    return Offers.of(result["offered"].to_numpy(), result["slots"].to_numpy())


def reachable(entry: Entry, offered: Offers) -> float:
    """Return the mean share of slots that offer what the judged jobs are given; no answer reaches none."""
    bound: FloatArray = entry.bound
    if entry.judged.quantity == "memory":
        bound = bound / entry.judged.cores
    shares = offered.shares(bound)[1]
    return float(np.where(np.isfinite(bound), shares, 0.0).mean())
