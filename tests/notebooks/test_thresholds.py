"""The thresholds report: no answer where the simulation is wrong, a proposal where it is right, its page and failures."""

import json
from dataclasses import replace
from datetime import datetime

import polars as pl
import pytest

from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.gdpconfig.proposal import read
from brokerlab.report import run
from brokerlab.report import thresholds as report
from brokerlab.report.page import render
from brokerlab.report.thresholds.study import Believed
from tests.unit.calibrate.threshold_toys import CAP, CUTOFF, Toy

KEYS = [
    CAP,
    CUTOFF,
    "FREE_DISK_CUTOFF",
    "MIN_BAD_JOBS_TO_SKIP_PQ",
    "FAST_REBRO_THRESHOLD_NQUEUE_FRAC",
]
QUICK = {"points": 2, "screen_days": 1, "n_boot": 200}
CREATED = datetime(2026, 4, 1)


@pytest.fixture(scope="module")
def done(archive, tmp_path_factory):
    """One run of the notebook: on a generated archive the simulation is wrong."""
    given = {"archive": str(archive), "keys": json.dumps(KEYS), **QUICK}
    return run("thresholds", given, out_root=tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="module")
def proposed(archive, tmp_path_factory):
    """The same with a simulation in closed form that is believed."""
    toy = Toy(best={CAP: 800.0, CUTOFF: 3000.0}, moved=0.01, fails=(10,))
    study = report.study(
        archive, created_at=CREATED, keys=KEYS[:2], what_if=toy, trials=3, replications=3,
        validation=Believed(ok=True, sentence="The simulation reproduces waits at 12 of 12 queues."), **QUICK,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("proposed")
    return study, report.write(study, folder), folder


def test_a_wrong_simulation_gives_no_answer_and_the_screen(done):
    page = done.results["page"]
    numbers = json.loads((done.folder / "results.json").read_text())["numbers"]
    assert page["verdict"]["kind"] == "no_answer"
    assert "does not reproduce waiting times" in page["verdict"]["sentence"]
    assert "The screen of 5 keys" in page["verdict"]["sentence"]
    assert numbers["valid"] is False
    assert numbers["n_simulated"] == 0
    rows = {row["key"]: row for row in numbers["screened"]}
    assert list(rows) == KEYS
    assert rows[CAP]["state"] == "changes decisions"
    assert rows[CAP]["simulate"] is True
    assert {row["judged_by"] for row in rows.values()} == {"simulation", "screen"}
    assert not (done.folder / "proposal.json").exists()


def test_the_screen_is_the_most_of_its_values(done):
    rows = pl.read_parquet(done.folder / "tables" / "screened.parquet")
    values = pl.read_parquet(done.folder / "tables" / "screen_values.parquet")
    most = values.group_by("key").agg(most=pl.col("n_tasks").max(), jobs=pl.col("n_jobs").max())
    both = rows.join(most, on="key")
    assert (both["n_tasks"].fill_null(-1) == both["most"].fill_null(-1)).all()
    assert (both["n_jobs"].fill_null(-1) == both["jobs"].fill_null(-1)).all()
    nothing = rows.filter(pl.col("state") == "changes nothing")
    assert nothing["told"].str.starts_with("keep").all()


def test_the_page_without_a_simulation_says_why(done):
    html = (done.folder / "index.html").read_text()
    for said in (
        "Nothing was simulated and nothing is proposed",
        "screened only",
        "synthetic",
        "What each key trades",
    ):
        assert said in html
    assert "brokerlab report thresholds -p archive=" in html
    assert [path.stem for path in (done.folder / "charts").glob("*.svg")] == ["screen"]


def test_a_right_simulation_gives_a_proposal(proposed):
    study, results, folder = proposed
    page = results["page"]
    assert page["verdict"]["kind"] == "change"
    assert CAP in page["verdict"]["sentence"]
    proposal = read(folder / "proposal.json")
    assert proposal.kind == "change"
    assert proposal.evidence.synthetic
    assert proposal.evidence.numbers["validation"].startswith("The simulation reproduces")
    assert proposal.digests.archive == study.archive.digest
    assert study.calibration.calibration.end <= study.calibration.proof_period.start
    assert sorted(path.stem for path in (folder / "charts").glob("*.svg")) == [
        "effects",
        "pareto",
        "screen",
    ]


def test_the_page_of_a_proposal_shows_it_all(proposed):
    study, results, folder = proposed
    html = render(json.loads((folder / "results.json").read_text()), folder)
    for said in (
        "As it is, and",
        "Who gains, who loses",
        "Queues whose use changes most",
        "no other beats",
        "Halving or doubling",
        "does not say of which classes of users tasks are",
        "production job brokerage as documented",
    ):
        assert said in html
    assert "missing: DataError: no simulation at 10" in html  # a value at which it failed
    numbers = results["numbers"]
    proof = {row["quantity"]: row for row in numbers["proof"]}
    assert proof["turnaround_h"]["hi"] < 0
    assert study.calibration.to_dict()["verdict"]["kind"] == "change"
    assert "NaN" not in html
    assert "p at most 0.01 of no difference" in html  # 200 bootstrap replicates tell no less
    users = report.assemble(replace(study, stage="analysis"), folder / "users")
    assert "analysis brokerage as documented (document)" in {
        fact.value for fact in users.made.facts
    }


def test_impossible_parameters_are_told_at_once(archive):
    wrong = {
        "keys": ["NQUEUED_SAT_CUP"], "calibration_start": "soon", "proof_start": "", "end": "", "screen_days": 0, "points": 1,
        "objective": "speed", "limits": {"moved": 1}, "relevant": 2, "alpha": 0, "replications": 1, "most_replications": 0,
        "trials": -1, "n_boot": 1, "seed": -1, "workers": 0,
    }  # fmt: skip
    with pytest.raises(ConfigError) as caught:
        report.check(**wrong)
    for said in (
        "did you mean 'NQUEUED_SAT_CAP'", "calibration_start='soon'", "screen_days=0", "points=1", "objective='speed'",
        "limits: unknown 'moved'", "relevant=2", "alpha=0", "replications=1", "trials=-1", "n_boot=1", "seed=-1", "workers=0",
    ):  # fmt: skip
        assert said in str(caught.value), said
    with pytest.raises(ConfigError, match="must follow each other"):
        report.study(archive, created_at=CREATED, keys=[CAP], proof_start="2030-01-01", **QUICK)
    with pytest.raises(ConfigError, match="a number, or none"):
        report.study(archive, created_at=CREATED, keys=[CAP], limits={"moved_pct": "lots"}, **QUICK)
    with pytest.raises(
        InsufficientDataError, match=r"tasks begin in the calibration period .* 10 are needed"
    ):
        report.study(
            archive,
            created_at=CREATED,
            keys=[CAP],
            calibration_start="2026-03-08",
            proof_start="2026-03-08T02:00",
            **QUICK,
        )
