"""The resource type of a task after its memory was measured (docs/rules/scouts.md 9, last sentence but one)."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.scouts.tables import small

_I, _S = nw.Int64(), nw.String()
_TASKS = {"jeditaskid": _I, "corecount": _I, "ramcount": _I, "ramunit": _S}
_TYPES = {
    "resource_name": _S,
    **dict.fromkeys(["mincore", "maxcore", "minrampercore", "maxrampercore"], _I),
}
PER_CORE = ("MBPerCore", "MBPerCoreFixed")


def resource_types(tasks: Any, types: Any) -> pl.DataFrame:
    """Find the resource type of every task from its cores and its memory.

    A type matches where ``mincore <= cores <= maxcore`` and ``minrampercore <= memory per core <=
    maxrampercore``. The documents do not say what follows; here a null bound is open, no or 0 cores count as
    1, no memory counts as 0, and the first matching row of ``types`` is taken.

    ``jeditaskid, resource_type`` sorted by ``jeditaskid``; null where no type matches.

    Of ``tasks``: ``corecount``; ``ramcount`` [MB], per core by ``ramunit``, else of the whole job. Of ``types``: ``resource_name,
    mincore, maxcore`` [cores], ``minrampercore, maxrampercore`` [MB]. A missing column is a SchemaError.

    Source: docs/rules/scouts.md 9.
    """
    frame, table = small(tasks, "tasks", _TASKS), small(types, "resource_types", _TYPES)
    asked = pl.col("corecount").fill_null(0)
    cores = pl.when(asked > 0).then(asked).otherwise(1)
    memory = pl.col("ramcount").fill_null(0)
    # whole jobs are compared without a division
    scale = pl.when(pl.col("ramunit").is_in(PER_CORE)).then(1).otherwise(cores)
    matching = []
    for name, mincore, maxcore, minram, maxram in table.iter_rows():
        bounds = [
            cores >= (mincore or 0),
            pl.lit(value=True) if maxcore is None else cores <= maxcore,
            pl.lit(value=True) if minram is None else memory >= minram * scale,
            pl.lit(value=True) if maxram is None else memory <= maxram * scale,
        ]
        matching.append(pl.when(pl.all_horizontal(bounds)).then(pl.lit(name)))
    result = pl.coalesce(*matching, pl.lit(None, dtype=pl.String))
    return frame.select("jeditaskid", resource_type=result).sort("jeditaskid")
