"""The memory-estimator report on small inputs: its numbers, page, tables, model and failures."""

import json
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from brokerlab.archive.store import open_archive
from brokerlab.archive.writer import ArchiveWriter
from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.estimators.evaluation import learners
from brokerlab.estimators.memory_tasks import OURS_OF_TRACES
from brokerlab.estimators.saving import load as load_model
from brokerlab.report import memory_estimator as report
from brokerlab.report import run
from brokerlab.worlds import synthesise
from tests.notebooks import pages
from tests.notebooks.pages import check_page
from tests.unit.estimators.toys import drawn

QUICK = {"n_boot": 100, "models": ["hierarchy"]}
DEPLOYED, OURS = "PanDA scouts p75 x 1.1", "hierarchy + cheapest allocation"


def task(number, *, jobs=60, first=0, seed=0):
    """One task as the InVEx files hold it: ten scouts, then jobs that were sent what the scouts said."""
    rng = np.random.default_rng(seed)
    n = 10 + jobs
    scout = np.arange(n) < 10
    wall = rng.integers(600, 1200, n)
    used_kb = (1e6 * rng.lognormal(0.5 * seed, 0.1, n)).astype(int)
    return pl.DataFrame(
        {
            "pandaid": first + np.where(scout, np.arange(n), 50_000 + np.arange(n)),
            "jeditaskid": number,
            "computingsite": [f"SITE_{i % 3}" for i in range(n)],
            "jobstatus": "finished",
            "actualcorecount": 1,
            "assignedpriority": np.where(scout, 901, 880),
            "currentpriority": np.where(scout, 901, 880),
            "minramcount": np.where(scout, 4000, 1500),
            "maxpss": used_kb,
            "maxcpucount": 86400,
            "cpuconsumptiontime": wall // 2,
            "cpu_eff": 0.5,
            "wall_time": wall,
            "timeExe": wall - 100,
            "timeStageIn": 50,
            "timeStageOut": 50,
            "queue_time": rng.integers(100, 2000, n),
            "hs06sec": 10 * wall,
            "inputfilebytes": 10**9,
            "nevents": 1000,
        }
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder as the real one: a trace of two task types, and two tasks."""
    folder = tmp_path_factory.mktemp("data")
    traces, tasks = folder / "nfcore-traces", folder / "panda-invex-jobs"
    traces.mkdir()
    tasks.mkdir()
    runs = pl.concat([drawn(30), drawn(30, seed=1, process="b")])
    with_tags = runs.with_columns(tag=pl.lit("sample"))
    (traces / "trace_toy.csv.gz").write_bytes(_packed(with_tags))
    for place, number in enumerate((10_000_011, 10_000_012)):
        frame = task(number, first=10**6 * (place + 1), seed=place)
        (tasks / f"job_records_{number}.csv.gz").write_bytes(_packed(frame))
    return folder


def _packed(frame):
    import gzip

    return gzip.compress(frame.write_csv().encode())


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archives") / "small"
    synthesise(folder, jobs=6_000, days=21, seed=3)
    return folder


@pytest.fixture(scope="module")
def done(data, archive, tmp_path_factory):
    given = {"data": str(data), "archive": str(archive), **QUICK}
    return run("memory-estimator", given, out_root=tmp_path_factory.mktemp("out"))


@pytest.fixture(scope="module")
def results(done):
    return check_page(done.folder)


def texts(results):
    """Everything that is said on a page, tables too."""
    return json.dumps(results["page"], ensure_ascii=False)


def test_every_part_has_an_answer(results):
    page = results["page"]
    assert [p["name"] for p in page["parts"]] == ["tasks", "traces", "archive", "settings", "model"]
    assert page["synthetic"] is False
    assert page["chart"]["chart"] == "frontier"
    assert [line["part"] for line in results["numbers"]["overview"]] == [
        "Real tasks", "The generated archive", "Workflow traces",
    ]  # fmt: skip
    for verdict in (page["verdict"], *(part["verdict"] for part in page["parts"])):
        assert 0 < len(verdict["sentence"].split()) <= 25, verdict["sentence"]  # 20 and signs
    assert any("The archive is generated" in sentence for sentence in page["cannot_tell"])
    assert any("that of survivors" in sentence for sentence in page["cannot_tell"])


def test_the_ratio_is_the_geometric_mean_over_traces(results):
    numbers = results["numbers"]
    rows = numbers["traces_methods"]
    ours = [r["waste_per_usage"] for r in rows if r["estimator"] == OURS_OF_TRACES]
    best = min(r["waste_per_usage"] for r in rows if r["estimator"] != OURS_OF_TRACES)
    assert len(ours) == 1
    assert numbers["overview"][-1]["ratio"] == pytest.approx(ours[0] / best)
    assert [r["ratio"] for r in rows if r["mark"] == "current"] == [1.0]


def test_real_scouts_are_seen_and_not_judged(results):
    counts = {"jobs": 120, "left_out": 20, "killed": 0, "tasks": 2}
    assert counts.items() <= results["values"]["tasks"].items()
    rows = {(r["estimator"], r["level"]): r for r in results["numbers"]["tasks_estimators"]}
    assert rows[DEPLOYED, None]["over_allocation"] > 0
    assert rows[DEPLOYED, None]["mark"] == "current"
    assert ("hierarchy", 0.95) in rows
    assert rows[OURS, None]["jobs"] == 120
    assert rows[OURS, None]["start_waste_per_usage"] > 0


def test_one_number_for_one_thing(results):
    """The waste of the first screen is that of the pairs of estimators, and of the overview."""
    numbers = results["numbers"]
    (pair,) = [
        row
        for row in numbers["tasks_submit_paired"]
        if (row["estimator"], row["measure"]) == (OURS, "waste_per_usage")
    ]
    shown = results["page"]["numbers"][0]
    assert shown["value"] == pytest.approx(pair["ratio"] - 1)
    assert shown["lo"] == pytest.approx(pair["without_lo"] - 1)  # two tasks have no interval
    assert numbers["overview"][0]["ratio"] == pair["ratio"]


def test_the_bound_is_held_to_its_promise(results):
    numbers = results["numbers"]
    for row in numbers["archive_coverage"]:
        strata = [r for r in numbers[f"archive_{row['at']}_strata"] if r["stratum_by"] != "all"]
        assert row["strata"] == len(strata)
        assert row["inside"] == sum(r["inside"] for r in strata)


def test_nothing_lies_below_the_limit(results):
    for part in ("tasks", "archive"):
        rows = results["numbers"][f"{part}_matched"]
        assert rows[0]["mark"] == "limit"
        assert rows[0]["over_allocation"] == min(row["over_allocation"] for row in rows)


def test_the_archive_is_divided_in_time(results):
    counts = results["values"]["archive"]
    fitted, calibrated, tested = counts["division"]
    assert [part["part"] for part in counts["division"]] == ["fitted", "calibrated", "tested"]
    assert tested["jobs"] == counts["jobs"] + counts["left_out"]
    (fact,) = [f for f in results["page"]["made"]["facts"] if f["label"] == "Tasks of the archive"]
    assert fact["value"].startswith(f"{fitted['tasks']} fitted ({fitted['jobs']} jobs)")
    assert calibrated["tasks"] > 0


def test_the_model_can_be_loaded(done, results):
    saved = load_model(done.folder / "model")
    assert saved.manifest["trained"]["jobs"] == 140
    assert saved.estimator.name == "hierarchy"
    card = (done.folder / "model" / "model_card.md").read_text()
    assert "Where not to trust it" in card
    measured = results["numbers"]["model_measured"]
    assert saved.manifest["coverage"] == {f"{r['level']:g}": r["coverage"] for r in measured}


def test_what_it_was_made_of_can_be_found_again(results):
    assert set(results["digests"]) == {"trace toy", "tasks submit", "tasks start", "archive"}
    assert all(results["digests"].values())


def test_the_page_shows_tables_and_charts(done, results):
    for name in ("frontier", "traces_ratios", "archive_known"):
        assert (done.folder / "charts" / f"{name}.svg").is_file()
    assert not any(word in texts(results) for word in ("for nothing", "beyond doubt"))


def caveat_at(over):
    """The caveat on the clock where 10, 5 and 25 jobs in a second over-allocate so much."""
    over = {"estimator": OURS, "ids_per_s": [10.0, 5.0, 25.0], "over_allocation_task_mean": over}
    return report._clock_caveats(pl.DataFrame(over))[0]


def test_a_faster_clock_is_held_against_the_one_that_is_taken():
    """Not against the slowest one, whose figure stands nowhere on the page."""
    assert "Were it 25 of them" in caveat_at([0.20, 0.10, 0.50]).text
    assert caveat_at([0.20, 0.10, 0.50]).text.endswith("50.0 % of use, not 20.0 %.")
    assert caveat_at([0.20, 0.10, 0.50]).n
    assert not caveat_at([0.20, 0.10, 0.21]).n


def test_wrong_parameters_are_named_at_once():
    with pytest.raises(ConfigError, match=r"models\[0\]='boost': .*; level=1: .*"):
        report.Params.checked({"level": 1, "models": "boost"})
    with pytest.raises(DataError, match="no such folder"):
        report.load(report.Params(data="nowhere"))
    names = report.Params.model_fields["models"].annotation.__args__[0].__args__
    assert list(names) == list(learners("memory"))


def test_without_anything_there_is_a_page_that_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("BROKERLAB_DATA", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InsufficientDataError, match="brokerlab synthesise"):
        pages.run(report, report.Params())
    page = json.loads((tmp_path / "out" / "results.json").read_text())["page"]
    assert page["verdict"]["kind"] == "no_answer"
    assert page["verdict"]["sentence"] == "Neither real data nor an archive."


def test_an_archive_alone_is_said_to_be_synthetic(archive, monkeypatch, tmp_path):
    monkeypatch.setenv("BROKERLAB_DATA", str(tmp_path / "none"))
    params = report.Params.checked({"archive": str(archive), "out_dir": str(tmp_path), **QUICK})
    page = pages.run(report, params)["page"]
    assert page["synthetic"] is True
    assert [part["name"] for part in page["parts"]] == ["archive", "settings", "model"]
    assert "No real data were found" in page["cannot_tell"][0]


def jobs_alone(archive, folder, jobs):
    """An archive that holds some jobs and nothing else."""
    with ArchiveWriter(folder) as writer:
        writer.write("jobs", jobs)
        writer.commit()
    return {"archive": str(folder), "out_dir": str(folder / "page"), **QUICK}


def test_a_rule_without_an_answer_is_no_reference(archive, monkeypatch, tmp_path):
    """Three jobs a task and no requests: the deployed rule says nothing of any job."""
    monkeypatch.setenv("BROKERLAB_DATA", str(tmp_path / "none"))
    jobs = open_archive(archive).scan("jobs").filter(pl.col("jobstatus") == "finished").collect()
    few = jobs.sort("pandaid").group_by("jeditaskid", maintain_order=True).head(3)
    few = few.with_columns(minramcount=pl.lit(None, dtype=jobs.schema["minramcount"]))
    asked = jobs_alone(archive, tmp_path / "few", few)
    page = pages.run(report, report.Params.checked(asked))["page"]
    assert page["verdict"]["kind"] == "no_answer"
    assert "too few answers" in page["verdict"]["sentence"]
    assert "None" not in json.dumps(page, ensure_ascii=False)


def test_a_window_keeps_whole_tasks(archive, monkeypatch, tmp_path):
    monkeypatch.setenv("BROKERLAB_DATA", str(tmp_path / "none"))
    every = report.load(report.Params(archive=str(archive))).later["submit"].records
    first = every.group_by("jeditaskid").agg(pl.col("decided_s").min())
    start = pl.from_epoch(pl.Series([first["decided_s"].median()]), time_unit="s")[0]
    some = report.load(report.Params(archive=str(archive), start=start)).later["submit"]
    late = first.filter(pl.col("decided_s") >= start.replace(tzinfo=UTC).timestamp())
    assert set(some.records["jeditaskid"]) == set(late["jeditaskid"])
    assert some.counts["rows"].sum() >= every.height
    with pytest.raises(InsufficientDataError, match="no task begins in the window"):
        report.load(
            report.Params(archive=str(archive), end=datetime(2000, 1, 1), out_dir=str(tmp_path))
        )
