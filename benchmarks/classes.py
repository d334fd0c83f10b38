"""Classes of 500 queues at 720 hourly instants from a million jobs, against a loop over sites on the same Parquet files.

``ours``      ``site_classes_at`` on DuckDB relations: all instants in one call.
``per_site``  a plain Python loop, as the deployed collector works: for each instant and site the site's jobs are
              filtered and their statistics computed; measured on a sample of sites and instants with the rows at
              hand and scaled to all of them. Its classes must be ours.

Every job is part of the samples: the worst case, an archive has many jobs that the classification does not look at.
"""

from __future__ import annotations

import math
import statistics
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.sides import Figures, Line, main, million

SIZE = 1_000_000
QUEUES = 500
HOURS = 720
SAMPLE_QUEUES = 4
SAMPLE_HOURS = range(0, HOURS, 60)
BEGIN = datetime(2026, 3, 1)  # noqa: DTZ001 - UTC without zone, as everywhere
PART_JOBS = 1_000_000


def make(folder: Path, jobs: int, seed: int = 1) -> None:
    """Write random jobs of the shapes that the classification reads; not meant to look like PanDA."""
    rng = np.random.default_rng(seed)
    names = np.array([f"QUEUE_{number:03}" for number in range(QUEUES)])
    kinds = np.where(np.arange(QUEUES) % 10 == 0, "hpc", "GRID")
    queues = pl.DataFrame({"panda_queue": names, "resource_type": kinds, "workflow": "pull"})
    queues.write_parquet(folder / "queues.parquet")
    (folder / "jobs").mkdir()
    span = (HOURS + 96) * 3600
    typical = rng.uniform(6, 10, QUEUES)
    for first in range(0, jobs, PART_JOBS):
        n = min(PART_JOBS, jobs - first)
        queue = rng.integers(0, QUEUES, n)
        created = np.datetime64(BEGIN - timedelta(days=4), "us") + _seconds(
            rng.integers(0, span, n)
        )
        wait = np.exp(rng.normal(typical[queue], 1.0)).astype(np.int64)
        started = created + _seconds(wait)
        ended = started + _seconds(np.exp(rng.normal(8, 0.8, n)))
        pl.DataFrame(
            {
                "pandaid": np.arange(first, first + n),
                "computingsite": names[queue],
                "prodsourcelabel": "user",
                "gshare": "User Analysis",
                "processingtype": "pmerge",
                "produsername": "ann",
                "jobstatus": np.where(rng.random(n) < 0.1, "failed", "finished"),
                "creationtime": created,
                "activatedtime": created,
                "starttime": started,
                "endtime": ended,
                "modificationtime": ended,
                "corecount": rng.choice([1, 8], n),
            }
        ).write_parquet(folder / "jobs" / f"part-{first:09}.parquet", row_group_size=250_000)


def _seconds(values: np.ndarray) -> np.ndarray:
    return values.astype(np.int64).astype("timedelta64[s]")


def instants() -> list[datetime]:
    return [BEGIN + timedelta(hours=hour) for hour in range(HOURS)]


def run_ours(folder: Path) -> Figures:
    """Classify every queue at every instant."""
    import duckdb

    from brokerlab.lifecycle import classification

    jobs = duckdb.connect().read_parquet(str(folder / "jobs" / "*.parquet"))
    queues = pl.read_parquet(folder / "queues.parquet")
    found = classification.site_classes_at(jobs, queues, at=instants())
    found.classes.write_parquet(folder / "ours.parquet")
    return {"classes": found.classes.height}


Job = tuple[Any, ...]


def run_per_site(folder: Path) -> Figures:
    """Compute statistics site by site, instant by instant; the seconds are those of the loop alone."""
    columns = ["jobstatus", "creationtime", "starttime", "modificationtime"]
    names = [f"QUEUE_{number:03}" for number in range(SAMPLE_QUEUES)]
    rows = pl.scan_parquet(folder / "jobs").filter(pl.col("computingsite").is_in(names)).collect()
    by_site = {
        name: rows.filter(pl.col("computingsite") == name).select(columns).rows() for name in names
    }
    found: list[dict[str, Any]] = []
    begin = time.process_time()
    for hour in SAMPLE_HOURS:
        for name, jobs in by_site.items():
            stats = site_stats(jobs, instants()[hour])
            found.append({"snapshot": hour, "computingsite": name, **stats})
    seconds = time.process_time() - begin
    return {"cpu_s": seconds, "agree": agree(found, folder / "ours.parquet")}


def site_stats(jobs: list[Job], now: datetime) -> dict[str, Any]:
    """Compute one site's statistics at one instant from all its jobs."""
    from scipy import stats

    waits, weights, queued, starts = [], [], [], 0
    for status, created, started, changed in jobs:
        if created <= now < started:
            queued.append((now - created).total_seconds())
        if now - timedelta(hours=24) < started <= now:
            starts += 1
        if status != "finished" or not now - timedelta(days=4) < changed <= now:
            continue
        waits.append((started - created).total_seconds())
        age = math.floor((now - started).total_seconds())
        weights.append(2 ** (-age / (6 * 3600)))
    total, n = sum(weights), len(waits)
    w_mean = sum(w * x for w, x in zip(weights, waits, strict=True)) / total
    square = sum(w * (x - w_mean) ** 2 for w, x in zip(weights, waits, strict=True))
    w_stdev = math.sqrt(square / total)
    mean, stdev = statistics.fmean(waits), statistics.pstdev(waits)
    limits = [
        m + s * float(stats.t.ppf(0.95, d))
        for m, s, d in ((mean, stdev, n - 1), (w_mean, w_stdev, total))
    ]
    longer = [wait for wait in queued if wait > w_mean]
    return {
        "median": statistics.median(waits),
        "cl95upp": limits[0],
        "w_cl95upp": min(limits[1], 999_999),
        "long_q_n": len(longer),
        "long_q_mean": sum(longer) / len(longer) if longer else w_mean,
        "analysis_starts_1d": starts,
    }


def agree(found: list[dict[str, Any]], ours: Path) -> int:
    """Count the rows whose numbers are ours to 1e-9; all of them have to be."""
    names = ["w_cl95upp", "long_q_n", "long_q_mean", "analysis_starts_1d"]
    keys = ["snapshot", "computingsite"]
    both = pl.DataFrame(found).join(pl.read_parquet(ours).select(*keys, *names), on=keys)
    same = both
    for name in names:
        same = same.filter((pl.col(name) / pl.col(f"{name}_right") - 1).fill_nan(0).abs() < 1e-9)
    if same.height != len(found):
        raise SystemExit(f"{len(found) - same.height} of {len(found)} rows differ from the loop's")
    return same.height


SIDES = {"ours": run_ours, "per_site": run_per_site}


def lines(figures: dict[str, Figures], size: int) -> list[Line]:
    """Compare ours with the loop, scaled to all sites and instants."""
    ours, loop = figures["ours"], figures["per_site"]
    scaled = loop["cpu_s"] * QUEUES / SAMPLE_QUEUES * HOURS / len(SAMPLE_HOURS)
    return [
        Line(
            what=f"classes of {QUEUES} queues at {HOURS} instants from {million(size)} jobs",
            ours=f"{ours['wall_s']:.1f} s",
            against=f"a loop over sites / ours (extrapolated; {loop['agree']:.0f} sampled rows agree)",
            ratio=scaled / ours["cpu_s"],
            cpu_s=ours["cpu_s"],
            peak_gb=ours["peak_gb"],
        )
    ]


if __name__ == "__main__":
    main("benchmarks.classes", __doc__)
