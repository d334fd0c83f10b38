"""The validation of the simulation on a small synthetic archive: its numbers, page, tables and failures."""

import json

import polars as pl
import pytest

from brokerlab.errors import ConfigError
from brokerlab.report import run
from brokerlab.report import simulation_validation as report


@pytest.fixture(scope="module")
def done(archive, tmp_path_factory):
    """One run with few repeats."""
    given = {"archive": str(archive), "n_boot": 20, "limits": '{"least_jobs": 40}'}
    return run("simulation-validation", given, out_root=tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="module")
def numbers(done):
    return json.loads((done.folder / "results.json").read_text())["numbers"]


def test_an_archive_whose_waits_are_drawn_gives_no_answer(done, numbers):
    page = done.results["page"]
    assert page["verdict"]["kind"] == "no_answer"
    assert page["verdict"]["sentence"].startswith("The simulation does not reproduce waiting times")
    assert numbers["ok"] is False
    assert numbers["limits"]["least_jobs"] == 40
    assert {row["reason"] for row in numbers["reasons"]} >= {"unexplained"}
    assert page["cannot_tell"][0].startswith("The archive is synthetic")


def test_numbers_add_up(done, numbers):
    queues = pl.read_parquet(done.folder / "tables" / "queues.parquet")
    quantiles = pl.read_parquet(done.folder / "tables" / "quantiles.parquet")
    assert queues["n_jobs"].sum() == quantiles.filter(rank=50.0)["n"].sum()
    judged = queues.filter(pl.col("judged"))
    assert judged["n_jobs"].min() >= 40
    assert numbers["queues_judged"] == judged.height > 0
    good = judged.filter(pl.col("fails") == "")
    assert numbers["passed_share"] == pytest.approx(good["n_jobs"].sum() / judged["n_jobs"].sum())
    assert queues["utilisation_observed"].max() <= 1


def test_the_page_says_it_all(done):
    html = (done.folder / "index.html").read_text()
    for said in ("What the simulation is held to", "Who is worst", "By gshare", "too long to be a"):
        assert said in html
    assert "brokerlab report simulation-validation -p archive=" in html
    assert sorted(path.stem for path in (done.folder / "charts").glob("*.svg")) == [
        "reasons",
        "waits",
    ]


@pytest.mark.filterwarnings("ignore:software matching")  # a queue of the archive says too little
def test_the_brokerage_may_be_replayed(archive, tmp_path):
    study = report.study(
        archive,
        start="2026-03-08",
        end="2026-03-09",
        brokerage="replayed",
        cycle="6h",
        n_boot=20,
        limits={"least_jobs": 20},
    )
    page = report.write(study, tmp_path)["page"]
    assert page["verdict"]["sentence"].startswith("The simulation does not reproduce placement")
    assert study.validation.queues["n_simulated"].sum() > 100
    told = " ".join(page["cannot_tell"])
    assert "The brokerage placed" in told
    assert "Placement is as observed" not in told
    limits = next(block for block in page["parts"][0]["before_after"] if block["name"] == "limits")
    assert limits["rows"][0]["cells"]["limit"] == "placement"


def test_impossible_parameters_are_refused(archive, tmp_path):
    with pytest.raises(ConfigError):
        run("simulation-validation", {"scale": "1"}, out_root=tmp_path)
    wrong = {
        "limits": {"kill": 1},
        "fit": "best",
        "window": "soon",
        "quantile": 2,
        "n_boot": 1,
        "seed": -1,
        "brokerage": "mine",
        "cycle": "often",
    }
    with pytest.raises(ConfigError) as caught:
        report.check(**wrong)
    for said in (
        "did you mean 'kills'",
        "fit is 'best'",
        "window='soon'",
        "quantile is 2",
        "n_boot=1",
        "seed=-1",
        "brokerage='mine'",
        "cycle='often'",
    ):
        assert said in str(caught.value)
