"""What started at each queue in the last hours, at one instant or many.

Source: docs/rules/classes.md 3.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.engines import collect, microseconds
from brokerlab.lifecycle.classification import spans
from brokerlab.lifecycle.classification.instants import At, Instants
from brokerlab.lifecycle.classification.levels import levels, place_of_cell, with_cells
from brokerlab.lifecycle.classification.wait_stats import USER
from brokerlab.numerics import IntArray
from brokerlab.units import DAY_S, HOUR_S

RATE_STATUSES = ("running", "holding", "transferring", "finished", "cancelled")
"""Jobs of these statuses count for the slot to-running rate."""
GRID_S = 600  # windows of the rate are rounded down to this [s]
DELAY_S = 300  # starts of the last moments are not known yet [s]
WINDOWS = {"strr_6h": 6 * HOUR_S, "strr_1d": DAY_S}
_US = 1_000_000


def queue_activity(jobs: Any, *, at: At, vo: str | None = None) -> pl.DataFrame:
    """Count what each queue started in the last 24 and 6 hours.

    ``strr_W`` = cores of all jobs that started in ``[floor10(t - W), floor10(t - 300 s))`` per hour of that window,
    ``floor10`` rounding down to ten minutes. Of an archive, a job counts as running from its start to its end.
    The job-sized part is one query per measure in the engine of ``jobs``.

    One row per instant and queue with a start in the last 24 h, sorted: ``snapshot, at, computingsite, strr_6h,
    strr_1d`` (cores per hour), ``analysis_starts_1d`` (jobs labelled user that started in the 24 h to the instant;
    null in every row if no job has a label).

    ``jobs``: ``computingsite, jobstatus, corecount`` (null and 0 contribute nothing), ``starttime``, perhaps ``vo, prodsourcelabel,
    statechangetime, modificationtime``; ``vo`` None: all jobs.

    Source: docs/rules/classes.md 3, under the table.
    """
    instants = Instants.of(at)
    table, _ = spans.read(jobs, None)
    keys = ["snapshot", "at", "computingsite"]
    names = [*WINDOWS, "analysis_starts_1d"]
    if not len(instants):
        kinds: list[Any] = [
            pl.Int64,
            pl.Datetime("us"),
            pl.String,
            pl.Float64,
            pl.Float64,
            pl.Int64,
        ]
        return pl.DataFrame(schema=dict(zip([*keys, *names], kinds, strict=True)))
    known = ~nw.col("computingsite").is_null() & ~nw.col("starttime").is_null()
    started = table.filter(known if vo is None else known & (nw.col("vo") == vo))
    starts = _rate_starts(started, instants)
    parts = [_rate(starts, instants, name, seconds) for name, seconds in WINDOWS.items()]
    parts.append(_analysis_starts(started, instants))
    result = parts[0].join(parts[1], on=keys, how="full", coalesce=True)
    result = result.join(parts[2], on=keys, how="full", coalesce=True)
    labelled = parts[2].height > 0 or _label(table)
    counted = pl.col(names[2]).fill_null(0) if labelled else pl.lit(None, pl.Int64)
    return result.with_columns(
        pl.col(*WINDOWS).fill_null(0.0), counted.alias("analysis_starts_1d")
    ).sort(keys)


def _label(jobs: nw.LazyFrame[Any]) -> bool:
    """Whether any job says what kind of job it is."""
    known = jobs.filter(~nw.col("prodsourcelabel").is_null()).select("prodsourcelabel")
    return collect(known.head(1)).height > 0


def _recent(jobs: nw.LazyFrame[Any], instants: Instants) -> nw.LazyFrame[Any]:
    """Keep the jobs that started within a day and some minutes of an instant."""
    early = instants.at_us[0] - (DAY_S + GRID_S) * _US
    earliest = pl.Series([early]).cast(pl.Datetime("us"))[0]
    began = nw.col("starttime")
    return jobs.filter((began >= nw.lit(earliest)) & (began <= nw.lit(instants.last)))


def _rate_starts(jobs: nw.LazyFrame[Any], instants: Instants) -> pl.DataFrame:
    """Sum the cores by queue, ten minutes of the start, and the instant from which they do not count."""
    counted = nw.col("jobstatus").is_in(list(RATE_STATUSES))
    # a job whose last status does not count ran until then; without a time of it, the status always held
    last = nw.coalesce(spans.changed(), "starttime")
    rows = (
        _recent(jobs, instants)
        .filter(nw.col("corecount") > 0)
        .select("computingsite", "corecount", "starttime", leave=nw.when(~counted).then(last))
    )
    grid = (microseconds(rows, nw.col("starttime")) // (GRID_S * _US)).cast(nw.Int64())
    placed = with_cells(rows.with_columns(grid=grid), instants, "leave")
    summed = placed.group_by("computingsite", "grid", "leave").agg(
        nw.col("corecount").sum().cast(nw.Int64()).alias("cores")
    )
    return collect(summed)


def _rate(starts: pl.DataFrame, instants: Instants, name: str, seconds: int) -> pl.DataFrame:
    """Return cores per hour of one window by instant and queue."""
    first, end = _window(instants, seconds)
    grid = starts["grid"].to_numpy()
    gone = place_of_cell(starts["leave"], instants, null=len(instants))
    past = np.searchsorted(first, grid, side="right")
    enter = np.searchsorted(end, grid, side="right")
    changes = starts.with_columns(enter=enter, leave=np.minimum(past, gone))
    result = levels(changes, ["computingsite"], ["cores"], instants)
    place = np.searchsorted(instants.at_us, result["at"].cast(pl.Int64).to_numpy())
    hours = (end - first)[place] * GRID_S / HOUR_S
    rate = pl.Series(name, result["cores"].to_numpy() / hours, dtype=pl.Float64)
    return result.drop("cores").with_columns(rate)


def _window(instants: Instants, seconds: int) -> tuple[IntArray, IntArray]:
    """Return first and end of a window, in steps of ten minutes since 1970."""
    step = GRID_S * _US
    return (instants.at_us - seconds * _US) // step, (instants.at_us - DELAY_S * _US) // step


def _analysis_starts(jobs: nw.LazyFrame[Any], instants: Instants) -> pl.DataFrame:
    """Count the analysis jobs of each queue that started in the 24 hours to each instant."""
    began = nw.col("starttime")
    user = _recent(jobs, instants).filter(nw.col("prodsourcelabel") == USER)
    day = nw.lit(timedelta(seconds=DAY_S))
    rows = user.select("computingsite", enter=began, leave=began + day)
    placed = with_cells(rows, instants, "enter", "leave")
    counted = placed.group_by("computingsite", "enter", "leave").agg(
        nw.len().cast(nw.Int64()).alias("analysis_starts_1d")
    )
    result = collect(counted)
    places = {name: place_of_cell(result[name], instants, null=0) for name in ("enter", "leave")}
    return levels(
        result.with_columns(**places), ["computingsite"], ["analysis_starts_1d"], instants
    )
