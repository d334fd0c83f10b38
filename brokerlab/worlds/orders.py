"""Large tasks ask for what most queues have: the whole work of a grid does not hang on what is rare."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from brokerlab.worlds.assemble import Drawn
from brokerlab.worlds.production import OLD_LINUX, UNKNOWN_NUCLEUS, Orders, with_tags

LARGE = 150
"""Tasks with more jobs are large."""
RARE = (
    *("container_name", "onlytagsforfc", "site", "uselocalio", "t1weight", "inputprestaging"),
    *("ipconnectivity", "ipstack", "maxcorecount"),
)
"""What few queues can give."""
RELEASE = {"transhome": "Athena-24.0.40", "transuses": "Atlas-24.0.40"}


def plain(drawn: Drawn) -> Drawn:
    """Return the block with the rare wishes of its large tasks of production left out; small ones keep theirs."""
    tasks = drawn.block.tasks
    large = drawn.block.taskid[np.flatnonzero(tasks.n_jobs > LARGE)]
    rows = drawn.orders.tasks.drop("tags")
    here = pl.col("jeditaskid").is_in(pl.Series(large).implode())
    lost = pl.col("nucleus").is_null() | (pl.col("nucleus") == UNKNOWN_NUCLEUS)
    nucleus = rows.filter(~lost)["nucleus"].mode().sort().head(1)
    changes = {
        **dict.fromkeys(RARE, pl.lit(None)),
        **{name: pl.lit(value) for name, value in RELEASE.items()},
        "architecture": pl.lit(OLD_LINUX),
        "nucleus": pl.when(lost).then(pl.lit(nucleus.first())).otherwise("nucleus"),
    }
    calm = rows.with_columns(
        pl.when(here).then(value).otherwise(name).cast(rows.schema[name]).alias(name)
        for name, value in changes.items()
    )
    return replace(drawn, orders=Orders(tasks=with_tags(calm), tokens=drawn.orders.tokens))
