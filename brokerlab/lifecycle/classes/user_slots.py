"""Jobs and slots of users by queue and share, at one instant or many.

Source: site-task-classification.md 1.3, ``user_slots``.
"""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.engines import collect
from brokerlab.lifecycle.classes import spans
from brokerlab.lifecycle.classes.instants import At, Instants
from brokerlab.lifecycle.classes.levels import levels, placed, with_places
from brokerlab.lifecycle.classes.user_usage import TOTAL
from brokerlab.lifecycle.classes.wait_stats import MERGE, PROBE_USER, USER

KEYS = ("computingsite", "gshare", "produsername")
QUEUED = ("defined", "assigned", "activated", "starting")
"""Statuses that count as queued; a job in ``sent`` or ``holding`` counts as neither queued nor running."""
STATUSES = (*QUEUED, "running")
MEASURES = tuple(f"{kind}{status}" for status in STATUSES for kind in ("n", "slots"))


def user_slots(
    jobs: Any, *, status_log: Any | None = None, at: At, totals: bool = False
) -> pl.DataFrame:
    """Count the active jobs of users, without merge jobs and probes.

    Args:
        jobs: Table ``jobs`` of any engine: ``computingsite, prodsourcelabel, gshare, processingtype, produsername,
            jobstatus, corecount`` (null counts as 0), perhaps times: without any, the statuses hold at every instant.
        status_log: ``pandaid, jobstatus, modificationtime`` of the same engine; null = the jobs' own times.
        at: The instant, several of them, or a table ``snapshot``, ``at``.
        totals: Add the sum over the users of each queue and share, as user ``_total``.

    Returns:
        One row per instant, queue, share and user with an active job, sorted: ``snapshot, at, computingsite, gshare,
        produsername``, ``n`` (jobs) and ``slots`` of ``defined, assigned, activated, starting, running``, ``nqueue``
        and ``slotsqueue`` (sum of the first four).

    Raises:
        SchemaError: Columns are missing.
        DataError: The instants are not usable, or the tables live in different engines.

    Source:
        site-task-classification.md 1.3.
    """
    instants = Instants.of(at)
    table, log = spans.read(jobs, status_log)
    chosen = table.filter(
        (nw.col("prodsourcelabel") == USER)
        & (nw.coalesce("processingtype", nw.lit("")) != MERGE)
        & (nw.coalesce("produsername", nw.lit("")) != PROBE_USER)
        & ~nw.col("computingsite").is_null()
    )
    changes = _changes(chosen, log, instants)
    if totals:
        everyone = changes.with_columns(produsername=pl.lit(TOTAL))
        changes = pl.concat([changes, everyone])
    found = levels(changes, KEYS, MEASURES, instants)
    return found.with_columns(
        nqueue=pl.sum_horizontal(f"n{status}" for status in QUEUED),
        slotsqueue=pl.sum_horizontal(f"slots{status}" for status in QUEUED),
    )


def _changes(
    jobs: nw.LazyFrame[Any], log: nw.LazyFrame[Any] | None, instants: Instants
) -> pl.DataFrame:
    """Sum jobs and cores in the engine by key, status, and the cells of entering and leaving it."""
    if not len(instants):
        names = {**dict.fromkeys(KEYS, pl.String), **dict.fromkeys(MEASURES, pl.Int64)}
        return pl.DataFrame(schema={**names, "enter": pl.Int64, "leave": pl.Int64})
    during = spans.status_spans(jobs, log, [*KEYS, "corecount"])
    summed = (
        placed(during, instants)
        .with_columns(cores=nw.coalesce("corecount", nw.lit(0)))
        .group_by(*KEYS, "status", "enter", "leave")
        .agg(
            nw.len().cast(nw.Int64()).alias("n"),
            nw.col("cores").sum().cast(nw.Int64()).alias("slots"),
        )
    )
    rows = with_places(collect(summed), instants)
    split = [
        pl.when(pl.col("status") == status).then(kind).otherwise(0).alias(f"{kind}{status}")
        for status in STATUSES
        for kind in ("n", "slots")
    ]
    return rows.select(*KEYS, *split, "enter", "leave")
