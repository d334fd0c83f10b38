"""Tables of a comparison: all jobs, task by task, by what was known, and against the deployed rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dataframely as dy
import numpy as np
import polars as pl

from brokerlab.estimators.records import Quantity
from brokerlab.estimators.scoring.judged import (
    COUNTED,
    FEW_TASKS,
    MEASURES,
    N_BOOT,
    PLACE,
    Entry,
    clustered,
    differences,
    exact,
    rate,
)
from brokerlab.frames import prepared
from brokerlab.numerics import FloatArray
from brokerlab.slots import Offers, memory_per_core, positive

UNITS: dict[Quantity, str] = {"memory": "gbh", "walltime": "coreh"}
STEPS = (0, 1, 5, 10, 20, 100)
"""Least finished jobs of the task known, per row of :func:`by_scouts`."""
_KEY = {"estimator": pl.String, "level": pl.Float64}


def overall(
    entries: Sequence[Entry], confidence: float, offered: Offers | None = None
) -> pl.DataFrame:
    """Judge every entry on all of its jobs.

    One row per (estimator, level) in the given order: ``jobs`` (judged), ``share_without`` (of them
    without an answer), ``unknown`` (killed below their bound: nobody knows), ``at_limit`` (killed
    exactly at it, counted as exceeding); ``coverage`` of the others with the exact binomial interval
    ``coverage_lo, coverage_hi`` and the one whose unit of chance is the task, ``cluster_lo,
    cluster_hi`` (:func:`intervals.share_interval`); ``exceed,
    exceed_task_mean``; ``over_allocation`` (sum of bound above use / sum of use) pooled and
    ``over_allocation_task_mean``; ``width`` (sum of bounds / sum of use); ``waste_gbh`` or
    ``waste_coreh`` and its part ``killed_*`` (attempts that were killed), ``waste_per_usage,
    killed_per_usage, retries, retries_per_job``; ``reachable`` (mean share of the slots that offer as
    much as jobs are given; null without queues). GB h are of 1e9 bytes, as in the chapter.

    Source: sizing.md, sections 3 and 7.
    """
    rows = [
        _overall(each, confidence)
        | {"reachable": None if offered is None else reachable(each, offered)}
        for each in entries
    ]
    return _nulls(pl.DataFrame(rows, schema_overrides={**_KEY, "reachable": pl.Float64}))


def _overall(entry: Entry, confidence: float) -> dict[str, object]:
    sums, unit = entry.sums, UNITS[entry.judged.quantity]
    total = {name: float(sums[:, PLACE[name]].sum()) for name in COUNTED}
    kept = exact(total["scored"] - total["exceed"], total["scored"], confidence)
    over_tasks = clustered(sums, confidence)
    rates = {name: rate(sums, name) for name in MEASURES}
    return {
        "estimator": entry.estimator,
        "level": entry.level,
        "jobs": int(total["jobs"]),
        "share_without": 1 - total["answered"] / total["jobs"],
        "unknown": int(total["unknown"]),
        "at_limit": int(total["at_limit"]),
        "coverage": kept.value,
        "coverage_lo": kept.lo,
        "coverage_hi": kept.hi,
        "cluster_lo": 1 - over_tasks.hi,
        "cluster_hi": 1 - over_tasks.lo,
        **{name: rates.pop(name) for name in list(rates) if not name.endswith(("_usage", "_job"))},
        f"waste_{unit}": total["waste"],
        f"killed_{unit}": total["killed"],
        "retries": int(total["retries"]),
        **rates,
    }


def per_task(entries: Sequence[Entry]) -> pl.DataFrame:
    """Judge every entry on each task alone.

    One row per (estimator, level, jeditaskid) in the given order: ``jobs, scored, exceed`` (share),
    ``over_allocation, width, waste_per_usage, killed_per_usage, retries_per_job``; null where a
    task has no such job.
    """
    names = [name for name, (_, _, averaged) in MEASURES.items() if not averaged]
    frames = [
        pl.DataFrame(
            {
                "estimator": each.estimator,
                "level": pl.repeat(
                    each.level, each.judged.tasks.size, dtype=pl.Float64, eager=True
                ),
                "jeditaskid": each.judged.tasks,
                "jobs": each.sums[:, PLACE["jobs"]].astype(np.int64),
                "scored": each.sums[:, PLACE["scored"]].astype(np.int64),
                **{name: _ratio(each.sums, name) for name in names},
            }
        )
        for each in entries
    ]
    return _nulls(pl.concat(frames))


def _ratio(sums: FloatArray, name: str) -> FloatArray:
    over, under, _ = MEASURES[name]
    bottom = sums[:, PLACE[under]]
    result = np.full(bottom.size, np.nan)
    np.divide(sums[:, PLACE[over]], bottom, out=result, where=bottom > 0)
    return result


def by_scouts(entries: Sequence[Entry], confidence: float) -> pl.DataFrame:
    """Judge every entry by how many finished jobs of the task were known when a job was decided.

    One row per (estimator, level, known) that has jobs: ``known`` (such as ``1-4``), ``known_least``,
    ``tasks, jobs, share_without, coverage, cluster_lo, cluster_hi`` (interval over tasks), ``exceed,
    over_allocation``.
    """
    rows = []
    for each in entries:
        step = np.searchsorted(STEPS, each.judged.known, side="right") - 1
        for i in np.unique(step).tolist():
            sums = each.judged.sums(each.bound, step == i)
            jobs = sums[:, PLACE["jobs"]]
            kept = clustered(sums, confidence)
            rows.append(
                {
                    "estimator": each.estimator,
                    "level": each.level,
                    "known": _step_name(i),
                    "known_least": STEPS[i],
                    "tasks": int((jobs > 0).sum()),
                    "jobs": int(jobs.sum()),
                    "share_without": float(1 - sums[:, PLACE["answered"]].sum() / jobs.sum()),
                    "coverage": 1 - kept.value,
                    "cluster_lo": 1 - kept.hi,
                    "cluster_hi": 1 - kept.lo,
                    "exceed": rate(sums, "exceed"),
                    "over_allocation": rate(sums, "over_allocation"),
                }
            )
    return _nulls(pl.DataFrame(rows, schema_overrides=_KEY))


def _nulls(frame: pl.DataFrame) -> pl.DataFrame:
    """Turn what cannot be told into null."""
    return frame.with_columns(pl.selectors.float().fill_nan(None))


def _step_name(i: int) -> str:
    if i + 1 == len(STEPS):
        return f"{STEPS[i]}+"
    last = STEPS[i + 1] - 1
    return f"{STEPS[i]}-{last}" if last > STEPS[i] else f"{STEPS[i]}"


PAIRED = (
    *("over_allocation", "over_allocation_task_mean", "exceed", "exceed_task_mean"),
    *("waste_per_usage", "killed_per_usage"),
)


def paired(
    entries: Sequence[Entry],
    reference: Entry,
    *,
    confidence: float,
    n_boot: int = N_BOOT,
    seed: int,
) -> pl.DataFrame:
    """Compare every entry with the reference, on the jobs of which both can be judged.

    One row per (estimator, level, measure): ``value, reference`` (of the deployed rule on the same
    jobs), ``difference, lo, hi``, ``ratio, ratio_lo, ratio_hi``, ``without_lo, without_hi`` (range of
    the ratio when one task is left out), ``jobs, tasks``, ``few_tasks`` (fewer than 8: the
    interval rests on hardly anything). Null where it cannot be told.

    Source: Hesterberg, The American Statistician 69 (2015) 371, doi:10.1080/00031305.2015.1089789.
    """
    judged = reference.judged
    theirs = judged.can_be_judged(reference.bound)
    rows = []
    for each in entries:
        if each is reference:
            continue
        both = theirs & judged.can_be_judged(each.bound)
        one, other = judged.sums(each.bound, both), judged.sums(reference.bound, both)
        tasks = int((one[:, PLACE["jobs"]] > 0).sum())
        if not tasks:
            continue
        compared = differences(one, other, PAIRED, confidence=confidence, n_boot=n_boot, seed=seed)
        for measure, result in zip(PAIRED, compared, strict=True):
            rows.append(
                {
                    "estimator": each.estimator,
                    "level": each.level,
                    "measure": measure,
                    **result,
                    "jobs": int(both.sum()),
                    "tasks": tasks,
                    "few_tasks": tasks < FEW_TASKS,
                }
            )
    numbers = ["value", "reference", "difference", "lo", "hi", "ratio", "ratio_lo", "ratio_hi"]
    numbers += ["without_lo", "without_hi"]
    schema = {
        **_KEY,
        "measure": pl.String,
        **dict.fromkeys(numbers, pl.Float64),
        "jobs": pl.Int64,
        "tasks": pl.Int64,
        "few_tasks": pl.Boolean,
    }
    return _nulls(pl.DataFrame(rows, schema=schema))


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
