"""The walltime-estimator report on small inputs laid out as the real ones: its numbers, page, model and failures."""

import gzip
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from brokerlab.archive import ArchiveWriter
from brokerlab.archive.store import open_archive
from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.estimators import saving
from brokerlab.estimators.walltime.logs import BOUND, MEDIAN, LogComparison
from brokerlab.estimators.walltime.power import PowerStudy
from brokerlab.report import run
from brokerlab.report import walltime_estimator as report
from tests.notebooks import pages
from tests.notebooks.odd import synthesise_odd
from tests.notebooks.pages import check_names, check_page

QUICK = {"n_boot": 100, "max_jobs": 300, "models": ["hierarchy"]}


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
    """A small synthetic archive with odd names."""
    folder = tmp_path_factory.mktemp("archives") / "small"
    synthesise_odd(folder, jobs=1_500, days=7, seed=3)
    return str(folder)


@pytest.fixture(scope="module")
def done(data, small, tmp_path_factory):
    given = {"data": str(data), "archive": small, **QUICK}
    return run("walltime-estimator", given, out_root=tmp_path_factory.mktemp("out"))


@pytest.fixture(scope="module")
def results(done):
    check_names(done.folder)
    return check_page(done.folder)


def test_every_part_has_an_answer(results):
    page = results["page"]
    names = [part["name"] for part in page["parts"]]
    assert names == ["tasks", "archive", "logs", "power", "settings", "model"]
    assert page["synthetic"] is False
    assert page["verdict"]["sentence"].startswith("On real tasks, hierarchy + cheapest allocation")
    offers = {row["estimator"]: row["offered"] for row in results["numbers"]["tasks_offers"]}
    assert offers[report.OURS] == "default"
    assert list(offers.values()).count("default") == 1
    said = " ".join(page["cannot_tell"])
    assert "no_waits without waits" in said
    assert "Only the first jobs are taken of no_waits, toy" in said
    assert "The archive is generated" in said


def test_planted_core_power_is_found(results):
    rows = [row for row in results["numbers"]["power_all_slopes"] if row["slope"] is not None]
    assert {row["jeditaskid"] for row in rows} == {1400000, 1500000, 1600000}
    assert all(row["slope_lo"] < -1 < row["slope_hi"] for row in rows)
    sites = {row["name"]: row["x"] for row in results["numbers"]["power_all_sites"]}
    assert sites["drift moved"] == 0.5
    scaled = [row for row in results["numbers"]["power_all_gain"] if row["way"] == "slope -1"]
    assert len(scaled) == 6
    assert all(row["ratio"] < 1 for row in scaled)


def test_every_estimator_stands_in_the_tables(results):
    for at in ("submit", "start"):
        rows = results["numbers"][f"tasks_{at}_estimators"]
        names = {row["estimator"] for row in rows}
        assert {"PanDA scouts p95 x 1.5", "last two", "hierarchy", report.OURS} <= names
        assert all(row["jobs"] == 180 for row in rows)
    logs = {(row["log"], row["method"]) for row in results["numbers"]["logs_all_methods"]}
    assert len(logs) == 2 * 9


def test_the_model_can_be_used_again(done):
    kept = saving.load(done.folder / "model")
    assert kept.manifest["quantity"] == "walltime"
    assert kept.manifest["trained"]["tasks"] == 3
    assert "Where not to trust it" in (done.folder / "model" / "model_card.md").read_text()


def test_the_charts_are_there(done):
    for name in ("frontier", "logs_errors", "power_slopes"):
        assert (done.folder / "charts" / f"{name}.svg").is_file()


@pytest.fixture
def no_data(monkeypatch):
    monkeypatch.setattr("brokerlab.report.kit.USUAL", "none")
    monkeypatch.delenv("BROKERLAB_DATA", raising=False)


def asked(archive, out_dir, **more):
    return report.Params(archive=str(archive), out_dir=str(out_dir), **QUICK, **more)


def test_without_real_data_the_archive_answers(small, no_data, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "SETTING_LEVEL", 0.75)  # of which a few jobs have a bound
    results = pages.run(report, asked(small, tmp_path / "out"))
    page = results["page"]
    assert [part["name"] for part in page["parts"]] == ["archive", "power", "settings", "model"]
    settings = {row["who"] for row in results["numbers"]["settings_settings"]}
    assert settings == {"estimator", "cheapest", "nearest", "current"}
    assert page["synthetic"] is True
    assert "No real data were found: set BROKERLAB_DATA to their folder." in page["cannot_tell"]
    check_page(tmp_path / "out")


def copied(source, folder, *, synthetic, without=(), **changed):
    """Copy tables of an archive, jobs changed."""
    opened = open_archive(source)
    with ArchiveWriter(folder, synthetic=synthetic) as writer:
        for table in opened.tables:
            if table not in without:
                frame = opened.scan(table).collect()
                writer.write(table, frame.with_columns(**changed) if table == "jobs" else frame)
        writer.commit()
    return folder


def test_jobs_of_which_no_rule_can_say_anything_have_no_answer(small, no_data, tmp_path):
    """Without tasks nothing is requested; jobs that all start before the first one ended know of no other."""
    tables = [name for name in open_archive(small).tables if name != "jobs"]
    at_once = {
        "creationtime": pl.col("creationtime").min(),
        "starttime": pl.col("creationtime").min(),
        "endtime": pl.col("creationtime").min() + (pl.col("endtime") - pl.col("starttime")),
    }
    alone = copied(small, tmp_path / "alone", synthetic=True, without=tables, **at_once)
    with pytest.raises(InsufficientDataError, match="no job of the earlier tasks ended before"):
        pages.run(report, asked(alone, tmp_path / "out"))
    assert "no job of the earlier tasks ended" in (tmp_path / "out" / "index.html").read_text()


def test_only_tasks_of_the_window_are_judged(small, no_data, tmp_path):
    with pytest.raises(InsufficientDataError, match="no task begins in the window"):
        pages.run(report, asked(small, tmp_path / "out", start="2001-01-01", end="2001-01-02"))


def test_wrong_parameters_are_told_at_once(tmp_path, no_data, monkeypatch):
    wrong = {
        "models": ["hierarch"],
        "max_jobs": 1,
        "ids_per_s": 0,
        "level": 1,
        "n_boot": 1,
        "seed": -1,
    }
    with pytest.raises(ConfigError) as told:
        report.Params.checked(wrong)
    assert all(name in str(told.value) for name in wrong)
    assert "hierarchy" in str(told.value)
    with pytest.raises(DataError, match="no such folder"):
        report.load(report.Params(data="nowhere"))
    monkeypatch.setattr("brokerlab.report.estimates.DEMO", "none")
    with pytest.raises(InsufficientDataError, match="neither logs nor tasks"):
        report.load(
            report.Params(data=str(tmp_path), archive="none", out_dir=str(tmp_path / "out"))
        )


def test_a_slope_that_rises_is_not_said_to_fall():
    row = {
        "jeditaskid": 7,
        "time": "cpu",
        "queues": 9,
        "slope": 0.4,
        "slope_lo": 0.1,
        "slope_hi": 0.7,
    }
    gain = {"jeditaskid": 7, "time": "wall", "way": "slope -1", "ratio_lo": 0.9, "ratio_hi": 1.2}
    power = PowerStudy(
        slopes=pl.DataFrame([row]),
        shares=pl.DataFrame(),
        gain=pl.DataFrame([gain]),
        queues=pl.DataFrame(),
        inside=None,
        drift=None,
        analysis=None,
        synthetic=False,
    )
    part = report._power_part(power)
    assert "lies in 0 of 1 intervals, 0 in 0" in part.chart.finding
    assert "fall" not in part.chart.finding + part.chart.note + part.verdict.sentence
    none = replace(power, gain=power.gain.clear(), slopes=power.slopes.clear())
    assert report._power_part(none).verdict.kind == "no_answer"
    assert report._power_part(none).chart is None


def log_comparison(under, *, largest=1, ratio_hi=0.95):
    """One log: ours, the bound, the best rule."""
    row = {"log": "kth", "users": 5, "jobs": 1000, "best_peer": "last two", "ratio_lo": 0.8}
    methods = pl.DataFrame(
        [
            {
                **row,
                "method": MEDIAN,
                "answered": 1.0,
                "under": 0.5,
                "ratio": 0.9,
                "ratio_hi": ratio_hi,
            },
            {
                **row,
                "method": BOUND,
                "answered": 0.5,
                "under": under,
                "ratio": 1.1,
                "ratio_hi": 1.2,
            },
            {
                **row,
                "method": "last two",
                "answered": 1.0,
                "under": 0.5,
                "ratio": 1.0,
                "ratio_hi": 1.0,
            },
        ]
    )
    campaigns = pl.DataFrame({"log": ["kth"], "missed": [50], "largest": [largest]})
    return LogComparison(methods=methods, strata=pl.DataFrame(), campaigns=campaigns)


@pytest.mark.parametrize(("under", "kept"), [(0.052, 1), (0.083, 0)])
def test_a_bound_is_kept_or_not(under, kept):
    said = report._log_sentence(log_comparison(under))
    offered = "" if kept else "; not offered"
    assert said == (
        f"Like jobs err 0.9 times as much as the best rule; bound kept on {kept} of 1 logs{offered}."
    )


def test_doubt_and_campaigns_are_named():
    comparison = log_comparison(0.05, ratio_hi=1.1)
    part = report._logs_part(comparison)
    assert "on 0 of 1 logs" in part.chart.finding
    read = {"kth": SimpleNamespace(knows_waits=False, jobs=pl.DataFrame({"a": [1]}), n_read=2)}
    for largest, n in ((40, 1), (1, 0)):
        caveats = report._log_caveats(log_comparison(0.05, largest=largest), read)
        (campaign,) = [each for each in caveats if "one user on one day" in each.text]
        assert campaign.n == n
