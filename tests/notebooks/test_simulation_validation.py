"""The validation of the simulation on a small synthetic archive: its numbers, page, tables and failures."""

import polars as pl
import pytest

from brokerlab.errors import ConfigError
from brokerlab.report import kit, run
from brokerlab.report import simulation_validation as report
from tests.notebooks import pages
from tests.notebooks.pages import check_page


@pytest.fixture(scope="module")
def done(archive, tmp_path_factory):
    """One run with few replicates."""
    given = {"archive": str(archive), "n_boot": 20, "limits": '{"least_jobs": 40}'}
    return run("simulation-validation", given, out_root=tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="module")
def stored(done):
    return check_page(done.folder)


def test_an_archive_whose_waits_are_drawn_gives_no_answer(stored):
    page, values = stored["page"], stored["values"]
    bad = values["queues_judged"] - values["queues_passed"]
    assert page["verdict"]["kind"] == "no_answer"
    assert page["verdict"]["sentence"].startswith(
        f"The simulation does not give back what was seen at {bad} of {values['queues_judged']} queues"
    )
    assert values["ok"] is False
    assert values["limits"]["least_jobs"] == 40
    broken = {row["limit"]: row["n_queues"] for row in stored["numbers"]["limits"]}
    assert broken["unexplained"] > 0
    assert "placement" not in broken
    assert page["cannot_tell"][0].startswith("The generator of this archive draws waits")


def test_numbers_add_up(done, stored):
    queues = pl.read_parquet(done.folder / "tables" / "all_queues.parquet")
    quantiles = pl.read_parquet(done.folder / "tables" / "quantiles.parquet")
    assert queues["n_jobs"].sum() == quantiles.filter(rank=50.0)["n"].sum()
    judged = queues.filter(pl.col("judged"))
    assert len(stored["numbers"]["queues"]) == judged.height == stored["values"]["queues_judged"]
    assert judged["n_jobs"].min() >= 40
    good = judged.filter(pl.col("fails") == "")
    passed = good["n_jobs"].sum() / judged["n_jobs"].sum()
    assert stored["values"]["passed_share"] == pytest.approx(passed)
    assert stored["page"]["numbers"][0]["value"] == pytest.approx(passed)
    assert queues["utilisation_observed"].max() <= 1


def test_the_most_distant_come_first(stored):
    rows = stored["numbers"]["queues"]
    known = [row["wasserstein_h"] for row in rows if row["wasserstein_h"] is not None]
    assert known == sorted(known, reverse=True)
    assert [row["role"] for row in rows].count("worst") == 1
    assert rows[0]["role"] == "worst"


def test_the_page_says_what_to_do_with_it(done, stored):
    html = (done.folder / "index.html").read_text()
    titles = [section["title"] for section in stored["page"]["sections"]]
    assert titles == ["What the simulation is held to", "Who is worst"]
    assert "brokerlab report simulation-validation -p archive=" in html
    assert [path.stem for path in (done.folder / "charts").glob("*.svg")] == ["waits"]
    assert "too long to be a start-up" in " ".join(stored["page"]["cannot_tell"])


@pytest.mark.filterwarnings("ignore:software matching")  # a queue of the archive says too little
def test_the_brokerage_may_be_replayed(archive, tmp_path):
    p = report.Params(
        archive=str(archive), start="2026-03-08", end="2026-03-09", brokerage="replayed", cycle="6h", n_boot=20,
        limits={"least_jobs": 20}, out_dir=str(tmp_path),
    )  # fmt: skip
    data = report.load(p)
    study = report.study(data, p)
    kit.publish(report.page(data, study, p), p)
    stored = check_page(tmp_path)
    assert stored["page"]["verdict"]["sentence"].startswith("The simulation does not give back")
    assert study.queues["n_simulated"].sum() > 100
    facts = {fact["label"]: fact["value"] for fact in stored["page"]["made"]["facts"]}
    assert "production jobs placed anew every 6h, 16 runs" in facts["Brokerage"]
    assert not any("stays at the queue" in text for text in stored["page"]["cannot_tell"])
    assert "placement" in {row["limit"] for row in stored["numbers"]["limits"]}


def test_wide_limits_are_a_finding(archive, tmp_path):
    everything = {
        "wasserstein_h": 1e6,
        "ks": 1,
        "delay_h": 1e6,
        "correlation": 0,
        "utilisation": 1,
        "kills": 1,
    }
    p = report.Params(
        archive=str(archive), n_boot=20, out_dir=str(tmp_path), limits={**everything, "queues": 0.01}
    )  # fmt: skip
    pages.run(report, p)
    verdict = check_page(tmp_path)["page"]["verdict"]
    assert verdict["kind"] == "finding"
    assert verdict["sentence"].startswith("The simulation gives back what was seen at ")


def test_impossible_parameters_are_told_at_once(tmp_path):
    with pytest.raises(ConfigError):
        run("simulation-validation", {"scale": "1"}, out_root=tmp_path)
    wrong = {
        "limits": {"kill": 1}, "fit": "best", "window": "soon", "quantile": 2, "n_boot": 1, "seed": -1, "brokerage": "mine",
        "cycle": "often",
    }  # fmt: skip
    with pytest.raises(ConfigError) as caught:
        report.Params.checked(wrong)
    for said in (
        "did you mean 'kills'", "fit='best'", "window='soon'", "quantile=2", "n_boot=1", "seed=-1", "brokerage='mine'",
        "cycle='often'",
    ):  # fmt: skip
        assert said in str(caught.value), said
    with pytest.raises(ConfigError, match="ks is -1"):
        report.Params.checked({"limits": {"ks": -1}})
