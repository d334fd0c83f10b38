"""The recorded decisions of four real PanDA tasks, made again from their real scouts (calibration.md 1)."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

import brokerlab.archive
from brokerlab import scouts
from brokerlab.archive import Archive
from tests.twins.scout_formulas import job_max_walltime

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / os.environ.get("BROKERLAB_DATA", "../shared/data") / "panda-invex-jobs"
TABLES = ("jobs", "files", "tasks", "datasets", "queues")

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the shared real data are not here"),
]


@dataclass(frozen=True)
class Decision:
    """What is given (base, compensation, finished scouts) and what came out."""

    base_mb: int
    compensation: float
    finished: tuple[int, ...]
    ramcount: int
    requests: dict[int, int]
    n_recorded: int
    hs06s: int | None


DECISIONS = {
    13332803: Decision(0, 0.95, (10,), 893, {8: 6786}, 198, 5),
    13776794: Decision(
        2000, 0.95, (5,), 2381, {4: 10_947, 6: 15_471, 8: 19_995, 16: 38_091}, 466, 1581
    ),
    14287024: Decision(0, 0.90, (6, 7, 8, 9), 275, {1: 247}, 239, 0),
    15350577: Decision(0, 0.90, (6,), 3137, {1: 2823}, 10_558, None),
}
CASES = [(task, k) for task, decision in DECISIONS.items() for k in decision.finished]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    folder = tmp_path_factory.mktemp("real")
    sources = [FOLDER / f"job_records_{task}.csv.gz" for task in DECISIONS]
    brokerlab.archive.ingest(sources, into=folder)
    return brokerlab.archive.open(folder)


def nth_end(archive: Archive, task: int, k: int) -> datetime:
    """Return the instant at which the k-th scout finished."""
    marked = pl.col("specialhandling").str.contains("sj")
    jobs = archive.scan("jobs").filter((pl.col("jeditaskid") == task) & marked).collect()
    assert jobs.height == 10
    ends = jobs["modificationtime"].sort().to_list()
    return ends[k - 1]


def at_kth_scout(archive: Archive, task: int, k: int, rules: str) -> dict[str, object]:
    """Read the scouts as they were when the k-th of them finished."""
    base = DECISIONS[task].base_mb
    jobs, files, tasks, datasets, queues = (archive.scan(name) for name in TABLES)
    one = tasks.filter(pl.col("jeditaskid") == task).with_columns(baseramcount=pl.lit(base))
    found = scouts.estimate(
        {"jobs": jobs, "files": files, "tasks": one, "datasets": datasets, "queues": queues},
        rules=scouts.ScoutRules(rules),
        at=nth_end(archive, task, k),
    )
    return found.parameters.row(0, named=True)


@pytest.mark.parametrize("rules", ["document", "production"])
@pytest.mark.parametrize(("task", "k"), CASES)
def test_memory_requests(archive: Archive, task: int, k: int, rules: str) -> None:
    decision = DECISIONS[task]
    found = at_kth_scout(archive, task, k, rules)
    assert found["n_jobs_used"] == k
    assert (found["ramcount"], found["ramunit"]) == (decision.ramcount, "MBPerCore")
    for cores, request in decision.requests.items():
        made = int((found["ramcount"] * cores + decision.base_mb) * decision.compensation)
        assert made == request


@pytest.mark.parametrize("task", DECISIONS)
def test_these_requests_are_the_recorded_ones(archive: Archive, task: int) -> None:
    """Every later job with one of these requests has the one of its number of cores."""
    decision = DECISIONS[task]
    jobs = archive.scan("jobs").filter(
        (pl.col("jeditaskid") == task) & pl.col("specialhandling").is_null()
    )
    recorded = jobs.select("actualcorecount", "minramcount").collect()
    wanted = recorded.filter(pl.col("minramcount").is_in(list(decision.requests.values())))
    assert wanted.height == decision.n_recorded
    pairs = wanted.drop_nulls("actualcorecount").select("actualcorecount", "minramcount").unique()
    assert dict(pairs.iter_rows()) == decision.requests


@pytest.mark.parametrize("rules", ["document", "production"])
@pytest.mark.parametrize(("task", "k"), [case for case in CASES if case[0] != 15350577])
def test_cpu_time(archive: Archive, task: int, k: int, rules: str) -> None:
    found = at_kth_scout(archive, task, k, rules)
    step = 1000 if found["cputimeunit"] == "mHS06sPerEvent" else 1  # the milli unit came later
    assert math.ceil(found["cputime"] / step) == DECISIONS[task].hs06s


@pytest.mark.parametrize("task", [13332803, 13776794, 14287024])
def test_limits_of_the_jobs(archive: Archive, task: int) -> None:
    """maxcpucount of every later job of the same decision follows from this cputime, at every queue."""
    decision = DECISIONS[task]
    jobs = archive.scan("jobs").filter(
        (pl.col("jeditaskid") == task)
        & pl.col("specialhandling").is_null()
        & pl.col("minramcount").is_in(list(decision.requests.values()))
    )
    placed = jobs.join(archive.scan("queues"), left_on="computingsite", right_on="panda_queue")
    rows = placed.select("nevents", "actualcorecount", "corepower", "maxcpucount").collect()
    assert rows.height == decision.n_recorded
    for nevents, cores, power, recorded in rows.unique().iter_rows():
        limit = job_max_walltime(
            cputime=decision.hs06s,
            cputimeunit="HS06sPerEvent",
            cpuefficiency=90,
            basewalltime=600,
            nevents=nevents,
            corecount=cores,
            corepower=power,
            maxtime=0,
        )
        # core powers are inferred from whole numbers: one limit in a thousand may round differently
        assert abs(limit.maxcpucount - recorded) <= 1
