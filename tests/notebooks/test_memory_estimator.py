"""The memory-estimator report on small inputs: its numbers, page, tables, model and failures."""

import json
import math

import numpy as np
import polars as pl
import pytest

from brokerlab.archive.synthetic import synthesise
from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.estimators.saving import load as load_model
from brokerlab.report import memory_estimator as report
from brokerlab.report import run
from brokerlab.report.page import render
from tests.unit.estimators.toys import drawn

QUICK = {"seeds": [1, 2], "n_boot": 100, "models": ["hierarchy"]}
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
    runs = pl.concat([drawn(60), drawn(60, seed=1, process="b")])
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
    return json.loads((done.folder / "results.json").read_text())


def test_every_part_has_an_answer(results):
    page = results["page"]
    assert [p["name"] for p in page["parts"]] == ["tasks", "traces", "archive", "settings", "model"]
    assert page["synthetic"] is False
    assert all(part["verdict"]["sentence"] for part in page["parts"])
    assert any("The archive is generated" in told for told in page["cannot_tell"])


def test_the_ratio_is_the_geometric_mean_over_traces(results):
    numbers = results["numbers"]
    ours = [r for r in numbers["traces_drawn"] if r["method"] == "cheapest attempts"]
    ratio = math.exp(sum(math.log(r["ratio"]) for r in ours) / len(ours))
    found = numbers["traces"]["drawn"]
    assert found["ratio"] == pytest.approx(ratio)
    assert found["ratio_lo"] <= ratio <= found["ratio_hi"]
    assert set(numbers["traces"]) == {"drawn", "submitted", "published"}
    assert {r["order"] for r in numbers["traces_drawn_orders"]} == {"1", "2"}


def test_real_scouts_are_seen_and_not_judged(results):
    assert results["numbers"]["tasks"]["counts"] == {"jobs": 120, "left_out": 20, "killed": 0, "tasks": 2}  # fmt: skip
    rows = {(r["estimator"], r["level"]): r for r in results["numbers"]["tasks_submit_estimators"]}
    assert rows[DEPLOYED, None]["over_allocation"] > 0
    assert ("hierarchy", 0.95) in rows
    assert rows[OURS, None]["jobs"] == 120


def test_the_bound_is_held_to_its_promise(results):
    told = next(p for p in results["page"]["parts"] if p["name"] == "archive")["certainty"]
    said = next(block for block in told if isinstance(block, str) and "every stratum" in block)
    for clock, words in (("submit", "at submission"), ("start", "at the start")):
        rows = results["numbers"][f"archive_{clock}_strata"]
        parts = [r for r in rows if r["stratum_by"] != "all"]
        inside = sum(r["inside"] for r in parts)
        assert f"decided {words} {inside} of {len(parts)} are inside" in said


def test_nothing_lies_below_the_limit(results):
    for part in ("tasks", "archive"):
        for clock in results["numbers"][part]["clocks"].values():
            best = min(r["over_allocation_task_mean"] for r in clock["matched"])
            assert clock["limit"] <= best


def test_the_archive_is_divided_in_time(results):
    division = results["numbers"]["archive"]["division"]
    assert [part["part"] for part in division] == ["fitted", "calibrated", "tested"]
    tested_tasks, tested_jobs = division[-1]["tasks"], division[-1]["jobs"]
    counts = results["numbers"]["archive"]["counts"]
    assert counts["jobs"] + counts["left_out"] == tested_jobs
    assert counts["tasks"] <= tested_tasks  # a task of scouts only is not judged


def test_the_model_can_be_loaded(done, results):
    saved = load_model(done.folder / "model")
    assert saved.manifest["trained"]["jobs"] == 140
    assert saved.estimator.name == "hierarchy"
    assert "Where not to trust it" in (done.folder / "model" / "model_card.md").read_text()


def test_what_it_was_made_of_can_be_told_again(results):
    assert set(results["digests"]) == {"trace toy", "tasks submit", "tasks start", "archive"}
    assert all(results["digests"].values())


def test_the_page_shows_tables_and_pictures(done, results):
    page = render(results, done.folder)
    for name in ("ratios", "frontier_tasks", "frontier_archive", "known_archive"):
        assert (done.folder / "charts" / f"{name}.svg").is_file()
    assert "NaN" not in page
    assert f"{results['numbers']['traces']['drawn']['ratio']:.2f}" in page


def test_wrong_parameters_are_told_at_once():
    with pytest.raises(
        ConfigError, match=r"seeds=\[\]: .*; level=1: .*; n_boot=1: .*; models: 'boost'"
    ):
        report.check(seeds=[], level=1, n_boot=1, seed=0, models=["boost"])
    with pytest.raises(DataError, match="no such folder"):
        report.load(data="nowhere")


def test_without_anything_there_is_no_report(monkeypatch, tmp_path):
    monkeypatch.setenv("BROKERLAB_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InsufficientDataError, match="brokerlab synthesise"):
        report.load()


def test_an_archive_alone_is_said_to_be_synthetic(archive, monkeypatch, tmp_path):
    monkeypatch.setenv("BROKERLAB_DATA", str(tmp_path))
    inputs = report.load(archive=str(archive))
    assert (inputs.traces, inputs.tasks) == ((), {})
    assert inputs.synthetic
    assert inputs.caveats[0].startswith("No real data were found")
