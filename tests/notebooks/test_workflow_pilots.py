"""The workflow-pilots report on a small generated load: its numbers, page, tables and failures."""

import json

import polars as pl
import pytest

from brokerlab.errors import ConfigError, DataError
from brokerlab.report import run
from brokerlab.report.page import render
from brokerlab.report.workflow_pilots import check, load

QUICK = {"times": 3, "workers": 1, "n_boot": 100, "policies": ["easy"]}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """One run without logs: load and workflows are generated."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("BROKERLAB_DATA", raising=False)
        return run("workflow-pilots", QUICK, out_root=tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="module")
def numbers(done):
    return json.loads((done.folder / "results.json").read_text())["numbers"]


def test_every_part_has_an_answer(done):
    page = done.results["page"]
    names = [part["name"] for part in page["parts"]]
    assert names == ["strategies", "rules", "waits", "example", "published"]
    assert page["synthetic"] is True
    assert page["cannot_tell"][0].startswith("The background load is generated")
    assert "rules=notes" in page["verdict"]["sentence"]


def test_all_strategies_start_from_the_same_states(done, numbers):
    runs = pl.read_parquet(done.folder / "tables" / "runs.parquet")
    assert numbers["comparison"]["n_runs"] == runs.height == 3 * 3 * 8
    assert runs.group_by("system", "instant").agg(pl.col("submit_time").n_unique())["submit_time"].unique().to_list() == [1]  # fmt: skip
    assert numbers["comparison"]["missing"] == {}


def test_the_two_rule_sets_stand_beside_each_other(done, numbers):
    assert {row["rules"] for row in numbers["ratios"]} == {"notes", "paper"}
    notes = [row for row in numbers["by_queue"] if row["strategy"] == "pilot_levels:notes"]
    assert [row["reference"] for row in notes] == ["pilot_levels:paper"]
    part = next(p for p in done.results["page"]["parts"] if p["name"] == "rules")
    assert f"{notes[0]['ratio']:.2f}" in part["verdict"]["sentence"]


def test_the_example_is_written_down(done):
    jobs, tasks = (pl.read_parquet(done.folder / "tables" / f"example_{name}.parquet") for name in ("jobs", "tasks"))  # fmt: skip
    assert jobs["strategy"].n_unique() == tasks["strategy"].n_unique() == 8
    assert tasks.group_by("strategy").len()["len"].n_unique() == 1
    assert (tasks["end"] >= tasks["start"]).all()


def test_page_shows_tables_and_pictures(done):
    page = render(json.loads((done.folder / "results.json").read_text()), done.folder)
    for name in ("where", "rules", "waits", "gantt", "turnarounds_1"):
        assert (done.folder / "charts" / f"{name}.svg").is_file()
    assert "Shapes of the published results" in page
    assert "NaN" not in page


def test_wrong_parameters_are_told_at_once():
    with pytest.raises(
        ConfigError, match=r"policies: 'easy-bf'.*strategies: 'one_jb'.*times=1.*stretch=0.*load=1"
    ):
        check(policies=["easy-bf"], strategies=["one_jb"], times=1, stretch=0, load=1, workers=2, n_boot=500, seed=1)  # fmt: skip
    with pytest.raises(DataError, match="no such folder"):
        load(data="nowhere")
