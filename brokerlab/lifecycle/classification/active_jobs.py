"""Jobs by status, summed by any columns, at one instant or many: slots of users, HS06 of shares.

Source: docs/rules/classes.md 1.3 (``user_slots``) and 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.engines import INT, collect
from brokerlab.lifecycle.classification import spans
from brokerlab.lifecycle.classification.instants import At, Instants
from brokerlab.lifecycle.classification.levels import levels, placed, with_places
from brokerlab.lifecycle.classification.user_usage import TOTAL
from brokerlab.lifecycle.classification.wait_stats import MERGE, PROBE_USER, USER

KEYS = ("computingsite", "gshare", "produsername")
QUEUED = ("defined", "assigned", "activated", "starting")
"""Statuses that count as queued; a job in ``sent`` or ``holding`` counts as neither queued nor running."""
STATUSES = (*QUEUED, "running")


def user_slots(
    jobs: Any, *, status_log: Any | None = None, at: At, totals: bool = False
) -> pl.DataFrame:
    """Count the active jobs of users, without merge jobs and probes.

    One row per instant, queue, share and user with an active job, sorted: ``snapshot, at, computingsite, gshare,
    produsername``, ``n`` (jobs) and ``slots`` of ``defined, assigned, activated, starting, running``, ``nqueue``
    and ``slotsqueue`` (sum of the first four).

    ``jobs`` of any engine: ``computingsite, prodsourcelabel, gshare, processingtype, produsername, jobstatus, corecount`` (null
    counts as 0), perhaps times: without any, the statuses hold at every instant. ``status_log``: ``pandaid, jobstatus,
    modificationtime`` of the same engine; None: the jobs' own times. ``totals`` adds the sum over users as user ``_total``.

    Source: docs/rules/classes.md 1.3.
    """
    instants = Instants.of(at)
    table, log = spans.read(jobs, status_log)
    chosen = table.filter(
        (nw.col("prodsourcelabel") == USER)
        & (nw.coalesce("processingtype", nw.lit("")) != MERGE)
        & (nw.coalesce("produsername", nw.lit("")) != PROBE_USER)
        & ~nw.col("computingsite").is_null()
    )
    rows = _sums(chosen, log, instants, KEYS, "corecount", "slots")
    split = [
        pl.when(pl.col("status") == status).then(kind).otherwise(0).alias(f"{kind}{status}")
        for status in STATUSES
        for kind in ("n", "slots")
    ]
    changes = rows.select(*KEYS, *split, "enter", "leave")
    if totals:
        everyone = changes.with_columns(produsername=pl.lit(TOTAL))
        changes = pl.concat([changes, everyone])
    measures = [f"{kind}{status}" for status in STATUSES for kind in ("n", "slots")]
    result = levels(changes, KEYS, measures, instants)
    return result.with_columns(
        nqueue=pl.sum_horizontal(f"n{status}" for status in QUEUED),
        slotsqueue=pl.sum_horizontal(f"slots{status}" for status in QUEUED),
    )


def share_job_stats(jobs: Any, *, status_log: Any | None = None, at: At) -> pl.DataFrame:
    """Sum the HS06 of the active jobs of each share.

    One row per instant, share and status with an active job, sorted: ``snapshot, at, gshare, jobstatus, njobs``
    (jobs), ``hs`` [HS06].

    ``jobs`` of any engine: ``gshare, jobstatus, hs06`` [HS06] (null counts as 0), times; ``status_log`` as for `user_slots`.

    Source: docs/rules/classes.md 7.
    """
    instants = Instants.of(at)
    table, log = spans.read(jobs, status_log)
    rows = _sums(table, log, instants, ("gshare",), "hs06", "hs")
    result = levels(rows, ("gshare", "status"), ("n", "hs"), instants)
    return result.rename({"status": "jobstatus", "n": "njobs"}).with_columns(
        pl.col("hs").cast(pl.Float64)
    )


def _sums(
    jobs: nw.LazyFrame[Any],
    log: nw.LazyFrame[Any] | None,
    instants: Instants,
    keys: Sequence[str],
    column: str,
    name: str,
) -> pl.DataFrame:
    """Sum jobs and a column in the engine by key, status, and the instants of entering and leaving it."""
    numbers: dict[str, Any] = dict.fromkeys(["enter", "leave", "n", name], pl.Int64)
    if not len(instants):
        return pl.DataFrame(schema={**dict.fromkeys([*keys, "status"], pl.String), **numbers})
    during = spans.status_spans(jobs, log, [*keys, column])
    summed = (
        placed(during, instants)
        .with_columns(size=nw.coalesce(nw.col(column).cast(INT), nw.lit(0)))
        .group_by(*keys, "status", "enter", "leave")
        .agg(nw.len().alias("n"), nw.col("size").sum().alias(name))
    )
    whole = [pl.col(column).cast(dtype) for column, dtype in numbers.items()]
    return with_places(collect(summed).with_columns(whole), instants)
