"""Jobs that never showed what they needed: killed at a limit, failed otherwise, or not in the archive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.errors import SchemaError, nearest
from brokerlab.scouts.kills import kill_cause
from brokerlab.scouts.quantities import core_count, has_scout_mark

REQUIRED = ("pandaid", "jeditaskid", "jobstatus", "creationtime", "starttime", "endtime")
OPTIONAL: dict[str, pl.DataType] = {
    **dict.fromkeys(
        ["actualcorecount", "corecount", "maxpss", "piloterrorcode", "parentid"], pl.Int64()
    ),
    **dict.fromkeys(
        ["specialhandling", "processingtype", "jobmetrics", "computingsite"], pl.String()
    ),
}

GIVEN = {"pandaid": pl.Int64(), "given": pl.Int64()}


@dataclass(frozen=True)
class Unfinished:
    """What the jobs table says beyond the finished jobs.

    Attributes:
        scouts: Failed jobs without a retry: they count among the scouts of which half must finish.
        killed: Of these, those killed at a limit: ``jeditaskid, pandaid, cause`` (``memory`` or
            ``walltime``), ``cores, duration_s, maxpss_kb, computingsite``.
        kills: ``jeditaskid, cause`` of every job killed at a limit, retried or not.
        merge: ``pandaid`` of merge jobs, which scouts do not speak of.
        given: ``pandaid, given``: the limit that finished jobs were recorded with, where there is one.
        n_failed: Failed jobs in all, retried or not.
        known: False if no jobs table was given.
    """

    scouts: pl.DataFrame | None
    killed: pl.DataFrame
    kills: pl.DataFrame
    merge: pl.Series
    given: pl.DataFrame
    n_failed: int
    known: bool


def unfinished(jobs: Any | None, tasks: pl.DataFrame, *, limit: str | None = None) -> Unfinished:
    """Collect the failed jobs of the tasks, told apart by what ended them.

    A failed job that was retried is left out: the retry says what it needed, or is itself here.

    Args:
        jobs: The jobs table in any engine; None: not given.
        tasks: ``jeditaskid`` of the tasks looked at.
        limit: Column of ``jobs`` that goes to ``given``; None, or not there: no limits.

    Raises:
        SchemaError: A required column is missing.
    """
    if jobs is None:
        no, given = _killed(_nothing()), pl.DataFrame(schema=GIVEN)
        return Unfinished(None, no, no, no["pandaid"], given, 0, known=False)
    lazy = nw.from_native(jobs).lazy()
    present = lazy.collect_schema().names()
    missing = [
        f"jobs.{c}: column missing, {nearest(c, present)}" for c in REQUIRED if c not in present
    ]
    if missing:
        raise SchemaError("the back-test cannot read its tables: " + "; ".join(missing))
    columns = [name for name in (*REQUIRED, *OPTIONAL) if name in present]
    failed = _collect(lazy.filter(nw.col("jobstatus") == "failed").select(columns))
    for name, dtype in OPTIONAL.items():
        cast = (
            pl.col(name).cast(dtype) if name in failed.columns else pl.lit(None, dtype).alias(name)
        )
        failed = failed.with_columns(cast)
    mine = failed.join(tasks.select("jeditaskid"), on="jeditaskid", how="semi")
    payload = mine.filter(pl.col("processingtype").ne_missing("pmerge"))
    final = payload
    if "parentid" in present:
        parents = _collect(
            lazy.select(nw.col("parentid").cast(nw.Int64()))
            .filter(~nw.col("parentid").is_null())
            .unique()
        )
        final = payload.join(parents, left_on="pandaid", right_on="parentid", how="anti")
    merge = pl.Series("pandaid", [], pl.Int64)
    if "processingtype" in present:
        merge = _collect(lazy.filter(nw.col("processingtype") == "pmerge").select("pandaid"))[
            "pandaid"
        ]
    scouts = final.select("jeditaskid", "pandaid", "creationtime", is_scout=has_scout_mark())
    given = pl.DataFrame(schema=GIVEN)
    if limit is not None and limit in present:
        finished = lazy.filter((nw.col("jobstatus") == "finished") & (nw.col(limit) > 0))
        given = _collect(finished.select("pandaid", nw.col(limit).cast(nw.Int64).alias("given")))
    return Unfinished(
        scouts=scouts,
        killed=_killed(final),
        kills=_killed(payload),
        merge=merge,
        given=given,
        n_failed=payload.height,
        known=True,
    )


def _killed(failed: pl.DataFrame) -> pl.DataFrame:
    """Keep what was killed at a limit, with the cause."""
    span = (pl.col("endtime") - pl.col("starttime")).dt.total_seconds()
    return (
        failed.select(
            "jeditaskid",
            "pandaid",
            "computingsite",
            cause=kill_cause(),
            cores=core_count().cast(pl.Float64),
            duration_s=span.cast(pl.Int64),
            maxpss_kb=pl.col("maxpss").cast(pl.Float64),
        )
        .filter(pl.col("cause").is_not_null())
        .sort("jeditaskid", "pandaid")
    )


def _nothing() -> pl.DataFrame:
    """Return an empty table of failed jobs."""
    times = dict.fromkeys(["creationtime", "starttime", "endtime"], pl.Datetime("us"))
    ids = dict.fromkeys(["pandaid", "jeditaskid"], pl.Int64())
    return pl.DataFrame(schema={**ids, "jobstatus": pl.String(), **times, **OPTIONAL})


def _collect(lazy: nw.LazyFrame[Any]) -> pl.DataFrame:
    """Bring a small part of a table into Polars."""
    collected: pl.DataFrame = lazy.collect("polars").to_native()
    return collected
