"""Rows that repeat a key: said once, and settled the same way everywhere."""

from __future__ import annotations

import polars as pl

from brokerlab.matching.notes import warn

Tables = dict[str, pl.DataFrame]

KEYS = {
    "tasks": ("jeditaskid", "snapshot"),
    "queues": ("snapshot", "panda_queue"),
    "storage_endpoints": ("snapshot", "ddm_endpoint_name"),
    "queue_storage_site": ("panda_queue",),
    "nuclei": ("nucleus",),
}
"""Tables of one row per key."""


def one_row_per_key(tables: Tables) -> Tables:
    """Return the tables with the last row of each key.

    Args:
        tables: The input tables; of these :data:`KEYS` are looked at.

    Warns:
        BrokerlabWarning: Rows that repeat a key, with their number.

    Source:
        production-jobs.md: of a repeated key the last row holds.
    """
    found, told = dict(tables), []
    for name, keys in KEYS.items():
        found[name] = tables[name].unique(keys, keep="last", maintain_order=True)
        lost = tables[name].height - found[name].height
        if lost:
            told.append(f"{name}: {lost} rows repeat {', '.join(keys)}, the last one holds")
    warn("input tables", told)
    return found
