"""The truth of a synthetic archive says how often bounds are missed, without the chance of each job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from brokerlab import archive as archives
from brokerlab.archive import Archive
from brokerlab.errors import DataError
from brokerlab.estimators.records import Quantity, checked
from brokerlab.estimators.sources import of_archive
from brokerlab.estimators.sources.source import check_choices
from brokerlab.numerics import FloatArray, noise_cdf
from brokerlab.worlds import synthesise


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("truth")
    synthesise(folder, jobs=6_000, days=7, seed=3)
    return folder


@pytest.mark.parametrize("quantity", ["memory", "walltime"])
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_jobs_miss_bounds_as_often_as_the_truth_says(archive, quantity, factor):
    records = of_archive(archive, quantity).records.filter(~pl.col("censored"))
    bounds = records.select(pl.col("used").median().over("jeditaskid") * factor)["used"].to_numpy()
    misses = true_misses(archive, records, bounds, quantity)
    known = records.with_columns(misses["miss"], over=records["used"].to_numpy() > bounds)
    known = known.drop_nulls("miss")
    assert not known["is_scout"].any()
    assert known.height > 0.8 * records.height
    miss = known["miss"].to_numpy()
    deviation = np.sqrt((miss * (1 - miss)).sum())
    assert abs(known["over"].sum() - miss.sum()) < 3.5 * deviation


def test_no_bound_at_all_is_never_missed_and_none_is_always(archive):
    records = of_archive(archive, "memory").records
    never = true_misses(archive, records, np.full(records.height, np.inf), "memory")["miss"]
    always = true_misses(archive, records, np.zeros(records.height), "memory")["miss"]
    assert never.max() == 0
    assert always.min() == 1


def test_bounds_and_records_of_something_else_are_refused(archive):
    records = of_archive(archive, "memory").records
    with pytest.raises(DataError, match="one per record"):
        true_misses(archive, records, np.zeros(3), "memory")
    other = records.with_columns(jeditaskid=pl.lit(1, pl.Int64))
    with pytest.raises(DataError, match="none of 1 tasks has a truth"):
        true_misses(archive, other, np.zeros(records.height), "memory")


_PLACE = ("jeditaskid", "queue", "cores")
_UPWARD, _DOWNWARD = 1, -1


def true_misses(
    archive: Archive | str | Path, records: Any, bounds: FloatArray, quantity: Quantity
) -> pl.DataFrame:
    """Compute the true probability that jobs of a synthetic archive use more than their bounds.

    The probability is that of a job of this task, at this queue, with these cores and events: what an
    estimator could know at best. Its mean over jobs tells a coverage without the chance of each job.

    ``pandaid, miss`` (0 to 1) in the order of the records. Null where the truth does not say: of
    scouts, which have a gap and spread of their own, of jobs whose events are not known, and of tasks
    that were laid out one by one.
    """
    check_choices(quantity, "submit")
    opened = archive if isinstance(archive, Archive) else archives.open(archive)
    frame = checked(records)
    bounds = np.asarray(bounds, dtype=np.float64)
    if bounds.shape != (frame.height,):
        raise DataError(f"bounds: {bounds.shape} given, ({frame.height},) needed: one per record")
    tasks, queues = opened.truth("tasks"), opened.truth("queues")
    if frame.join(tasks, on="jeditaskid", how="semi").is_empty():
        raise DataError(
            f"records.jeditaskid: none of {frame['jeditaskid'].n_unique()} tasks has a truth in"
            f" {opened.path}; is it their archive?"
        )
    places = queues.rename({"panda_queue": "queue"}).cast({"cores": pl.Int64})
    places = places.unique(_PLACE, keep="first", maintain_order=True).drop("corepower")
    rows = frame.join(tasks, on="jeditaskid", how="left", maintain_order="left")
    rows = rows.join(places, on=_PLACE, how="left", maintain_order="left")
    share = (_memory if quantity == "memory" else _walltime)(rows, bounds)
    known = ~pl.col("is_scout") & pl.col("miss").is_not_nan()
    return rows.select("pandaid", "is_scout", miss=pl.Series(share)).select(
        "pandaid", miss=pl.when(known).then("miss")
    )


def _memory(rows: pl.DataFrame, bounds_mb: FloatArray) -> FloatArray:
    """Return the probability of more memory; NaN where events or queue are not known."""
    get = _getter(rows)
    size = get("maxpss_base_mb") + get("maxpss_core_mb") * get("cores")
    per_event = get("maxpss_event_mb")
    size += np.where(per_event > 0, per_event * _events(rows), 0.0)
    ln_mean = np.log(size) + get("maxpss_effect")
    tail = get("maxpss_light_share"), get("maxpss_light_scale")
    return _above(bounds_mb, ln_mean, get("maxpss_ln_sd"), *tail, _DOWNWARD)


def _walltime(rows: pl.DataFrame, bounds_s: FloatArray) -> FloatArray:
    """Return the probability of a longer run; NaN where events or queue are not known."""
    get = _getter(rows)
    scaled = _events(rows) / get("events_per_job") * get("ref_cores") / get("cores")
    wall_s = get("wall_s_right") * (get("wall_startup") + (1 - get("wall_startup")) * scaled)
    ln_mean = np.log(wall_s) + get("wall_effect")
    tail = get("wall_tail_share"), get("wall_tail_scale")
    return _above(bounds_s, ln_mean, get("wall_ln_sd"), *tail, _UPWARD)


def _events(rows: pl.DataFrame) -> FloatArray:
    """Return the events of each job: recorded, or those of every job of the task; else NaN."""
    get = _getter(rows)
    same = np.where(get("events_ln_sd") == 0, get("events_per_job"), np.nan)
    return np.where(rows["has_events"].fill_null(value=False).to_numpy(), get("events"), same)


def _above(bounds: FloatArray, ln_mean: FloatArray, *noise: Any) -> FloatArray:
    """Return the probability of more than a bound, of a logarithm with this mean and noise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = np.log(bounds) - ln_mean
        at_most = noise_cdf(beyond[:, None], *noise)[:, 0]
    at_most = np.where(np.isposinf(bounds), 1.0, np.where(bounds <= 0, 0.0, at_most))
    return np.where(np.isnan(ln_mean), np.nan, np.clip(1 - at_most, 0, 1))


def _getter(rows: pl.DataFrame) -> Any:
    return lambda name: rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
