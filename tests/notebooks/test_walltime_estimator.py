"""The walltime-estimator report on small inputs laid out as the real ones: its numbers, page, model and failures."""

import gzip
import json

import numpy as np
import polars as pl
import pytest

from brokerlab.archive.synthetic import synthesise
from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.estimators import saving
from brokerlab.report import run
from brokerlab.report.page import render
from brokerlab.report.walltime_estimator import check, load
from brokerlab.report.walltime_estimator.tasks import CHEAPEST

QUICK = {"n_boot": 100, "max_jobs": 300, "estimators": ["hierarchy"]}


def swf(n, *, waits):
    """A log of three users that ask for a few times what they need."""
    rng = np.random.default_rng(4)
    user = rng.integers(1, 4, n)
    run_s = np.ceil(rng.lognormal(6 + user, 0.5))
    columns = {
        "job": np.arange(1, n + 1), "submit": np.cumsum(rng.integers(1, 2000, n)),
        "wait": rng.integers(0, 500, n) if waits else np.full(n, -1), "run": run_s.astype(int),
        "used": np.ones(n, int), "cpu": np.full(n, -1), "memory": np.full(n, -1), "asked": np.ones(n, int),
        "requested": np.ceil(run_s * rng.choice([1.5, 4, 10], n)).astype(int), "mem": np.full(n, -1),
        "status": np.ones(n, int), "user": user,
    }  # fmt: skip
    rest = " ".join(["-1"] * 6)
    return "".join(f"{' '.join(map(str, row))} {rest}\n" for row in zip(*columns.values(), strict=True))  # fmt: skip


def task(number, middle_s, *, queues=6, jobs=60):
    """Records of a task: ten scouts at the first queue, the rest spread over queues of their own core power."""
    rng = np.random.default_rng(number)
    n = 10 + jobs
    at = np.concatenate([np.zeros(10, int), rng.integers(0, queues, jobs)])
    power = 8.0 + 2 * at
    wall = np.ceil(middle_s * 10 / power * rng.lognormal(0, 0.15, n)).astype(int)
    return pl.DataFrame(
        {
            "pandaid": number * 10_000 + np.arange(n) * np.where(np.arange(n) < 10, 1, 3),
            "computingsite": [f"Q{number}_{k}" for k in at],
            "jobstatus": ["finished"] * n,
            "actualcorecount": [1] * n,
            "assignedpriority": [901] * 10 + [500] * jobs,
            "minramcount": [2000] * n,
            "maxcpucount": [86400] * 10 + [7200] * jobs,
            "maxpss": [1_500_000] * n,
            "cpuconsumptiontime": (0.9 * wall).astype(int),
            "wall_time": wall,
            "queue_time": rng.integers(60, 4000, n),
            "hs06sec": np.floor(power * wall).astype(int),
            "inputfilebytes": [10**9] * n,
            "nevents": [1000] * n,
        }
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder as the real one."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("swf-logs", "panda-invex-jobs", "gridka-node-benchmarks-2000", "osg-apel-monthly", "atlas-user-jobs-cputime-2000"):  # fmt: skip
        (folder / name).mkdir()
    for name, waits in (("toy", True), ("no_waits", False)):
        with gzip.open(folder / "swf-logs" / f"{name}.swf.gz", "wt") as file:
            file.write(swf(320, waits=waits))
    for number, middle_s in ((14, 900.0), (15, 1500.0), (16, 4000.0)):
        task(number, middle_s).write_csv(
            folder / "panda-invex-jobs" / f"job_records_{number}00000.csv"
        )
    pl.DataFrame({"jobslots": [10, 20], "hs06": [100.0, 300.0], "cores": [5, 10]}).write_csv(
        folder / "gridka-node-benchmarks-2000" / "nodes.csv"
    )
    for month in (1, 2):
        pl.DataFrame(
            {"Site": ["A", "B"], "Year": [2015, 2015], "Month": [month, month],
             "WallDuration": [10**6, 10**6], "NormalisedWallDuration": [10**7 * month, 12 * 10**6]}
        ).write_parquet(folder / "osg-apel-monthly" / f"apel_{month}.parquet")  # fmt: skip
    cpu = {"SITE": [f"Q{k % 6}" for k in range(60)], "CPU_CONSUMPTION_TIME": [10.0 + k for k in range(60)]}  # fmt: skip
    pl.DataFrame(cpu).write_parquet(folder / "atlas-user-jobs-cputime-2000" / "cputime.parquet")
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small synthetic archive."""
    folder = tmp_path_factory.mktemp("archives") / "small"
    synthesise(folder, jobs=1_500, days=7, seed=3)
    return str(folder)


@pytest.fixture(scope="module")
def done(data, small, tmp_path_factory):
    given = {"data": str(data), "archive": small, **QUICK}
    return run("walltime-estimator", given, out_root=tmp_path_factory.mktemp("out"))


@pytest.fixture(scope="module")
def results(done):
    return json.loads((done.folder / "results.json").read_text())


def test_every_part_has_an_answer(results):
    page = results["page"]
    names = [part["name"] for part in page["parts"]]
    assert names == ["tasks", "archive", "logs", "power", "settings", "model"]
    assert page["synthetic"] is False
    assert "Batch logs" in page["verdict"]["sentence"]
    said = " ".join(page["cannot_tell"])
    assert "no_waits does not say how long jobs waited" in said
    assert "first 300 of 320 jobs" in said


def test_planted_core_power_is_found(results):
    rows = [row for row in results["numbers"]["power_slopes"] if row["slope"] is not None]
    assert {row["jeditaskid"] for row in rows} == {1400000, 1500000, 1600000}
    assert all(row["slope_lo"] < -1 < row["slope_hi"] for row in rows)
    assert results["numbers"]["power"]["drift"]["moved"] == 0.5
    scaled = [row for row in results["numbers"]["power_gain"] if row["way"] == "slope -1"]
    assert all(row["ratio"] < 1 for row in scaled)


def test_every_estimator_stands_in_the_tables(results):
    for at in ("submit", "start"):
        rows = results["numbers"][f"tasks_{at}"]
        names = {row["estimator"] for row in rows}
        assert {"PanDA scouts p95 x 1.5", "last two", "hierarchy", CHEAPEST} <= names
        assert all(row["jobs"] == 180 for row in rows)
    logs = {(row["log"], row["method"]) for row in results["numbers"]["logs"]}
    assert len(logs) == 2 * 11


def test_the_model_can_be_used_again(done):
    kept = saving.load(done.folder / "model")
    assert kept.manifest["quantity"] == "walltime"
    assert kept.manifest["trained"]["tasks"] == 3
    assert "Where not to trust it" in (done.folder / "model" / "model_card.md").read_text()


def test_page_shows_tables_and_pictures(done, results):
    page = render(results, done.folder)
    for name in ("frontier_tasks", "errors", "misses", "power"):
        assert (done.folder / "charts" / f"{name}.svg").is_file()
    tables = [block["name"] for part in results["page"]["parts"] for key in ("before_after", "gains", "certainty")
              for block in part[key] if isinstance(block, dict) and "name" in block]  # fmt: skip
    assert len(set(tables)) == len(tables) > 10
    assert "NaN" not in page


def test_without_real_data_the_archive_answers(small, monkeypatch):
    monkeypatch.setattr("brokerlab.report.estimates.USUAL", "none")
    monkeypatch.delenv("BROKERLAB_DATA", raising=False)
    inputs = load(archive=small)
    assert inputs.synthetic
    assert list(inputs.tasks) == ["archive"]
    assert not inputs.logs
    assert inputs.power.synthetic
    assert "No folder of real data" in inputs.caveats[0]


def test_wrong_parameters_are_told_at_once(tmp_path, monkeypatch):
    with pytest.raises(
        ConfigError,
        match=r"estimators: 'hierarch'.*must be one.*max_jobs=1.*ids_per_s=0.*level=1.*n_boot=1.*seed=-1",
    ):
        check(estimators=["hierarch"], max_jobs=1, ids_per_s=0, level=1, n_boot=1, seed=-1)
    with pytest.raises(DataError, match="no such folder"):
        load(data="nowhere")
    monkeypatch.setattr("brokerlab.report.estimates.DEMO", "none")
    with pytest.raises(InsufficientDataError, match="neither logs nor tasks"):
        load(data=str(tmp_path))
