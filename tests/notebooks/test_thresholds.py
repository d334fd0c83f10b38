"""The thresholds report: no answer where the simulation is wrong, a proposal where it is right, its page and failures."""

import json
from types import SimpleNamespace

import polars as pl
import pytest

from brokerlab.calibrate.thresholds import THRESHOLDS
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.gdpconfig.proposal import read
from brokerlab.report import kit, run
from brokerlab.report import thresholds as report
from tests.notebooks.pages import check_page
from tests.unit.calibrate.threshold_toys import CAP, CUTOFF, Toy

KEYS = [
    CAP,
    CUTOFF,
    "FREE_DISK_CUTOFF",
    "MIN_BAD_JOBS_TO_SKIP_PQ",
    "FAST_REBRO_THRESHOLD_NQUEUE_FRAC",
]
QUICK = {"points": 2, "screen_days": 1, "n_boot": 200}
RIGHT = SimpleNamespace(ok=True, sentence="The simulation reproduces waits at 12 of 12 queues.")


def params(archive, folder, **more):
    given = {"archive": str(archive), "keys": KEYS[:2], "replications": 3, **QUICK}
    return report.Params.checked({**given, "out_dir": str(folder), **more})


def publish(archive, folder, toy, **more):
    p = params(archive, folder, **more)
    data = report.load(p)
    study = report.study(data, p, what_if=toy, validation=RIGHT)
    kit.publish(report.page(data, study, p), p)
    return study, check_page(folder)


@pytest.fixture(scope="module")
def done(archive, tmp_path_factory):
    """One run of the notebook: on a generated archive the simulation is wrong."""
    given = {"archive": str(archive), "keys": json.dumps(KEYS), **QUICK}
    return run("thresholds", given, out_root=tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="module")
def proposed(archive, tmp_path_factory):
    """The same with a simulation in closed form that is believed."""
    folder = tmp_path_factory.mktemp("proposed")
    toy = Toy(best={CAP: 800.0, CUTOFF: 3000.0}, moved=0.01, fails=(10,))
    return (*publish(archive, folder, toy), folder)


def html_of(folder):
    return (folder / "index.html").read_text().replace("\u202f", " ")


def test_a_wrong_simulation_gives_no_answer_and_the_screen(done):
    stored = check_page(done.folder)
    verdict = stored["page"]["verdict"]
    assert verdict["kind"] == "no_answer"
    n = sum(row["state"] == "changes decisions" for row in stored["numbers"]["screened"])
    assert verdict["sentence"] == f"The simulation does not reproduce what was seen; {n} of 5 keys change decisions."  # fmt: skip
    assert stored["values"]["valid"] is False
    assert "does not reproduce waiting times" in stored["values"]["validation"]
    assert stored["values"]["n_simulated"] == 0
    rows = {row["key"]: row for row in stored["numbers"]["screened"]}
    assert set(rows) == set(KEYS)
    assert rows[CAP]["state"] == "changes decisions"
    assert rows[CAP]["follows"] == "simulate"
    assert {row["judged_by"] for row in rows.values()} == {"simulation", "screen"}
    assert not (done.folder / "proposal.json").exists()
    html = html_of(done.folder)
    assert rows[CAP]["grows"]
    assert rows[CAP]["shrinks"]
    assert "knows no slots" in html
    assert "brokerlab report thresholds -p archive=" in html
    assert [path.stem for path in (done.folder / "charts").glob("*.svg")] == ["screen"]


def test_the_screen_is_the_most_of_its_values(done):
    rows = pl.read_parquet(done.folder / "tables" / "screened.parquet")
    values = pl.read_parquet(done.folder / "tables" / "screen_values.parquet")
    most = values.group_by("key").agg(most=pl.col("n_tasks").max(), jobs=pl.col("n_jobs").max())
    both = rows.join(most, on="key")
    assert (both["n_tasks"].fill_null(-1) == both["most"].fill_null(-1)).all()
    assert (both["n_jobs"].fill_null(-1) == both["jobs"].fill_null(-1)).all()
    there = rows.join(values, left_on=["key", "at"], right_on=["key", "value"])
    assert there.height == rows["at"].count() > 0
    assert (there["shift"].fill_null(-1) == there["shift_right"].fill_null(-1)).all()
    chart = json.loads((done.folder / "charts" / "screen.json").read_text())
    drawn = {row["key"]: row["shift"] for data in chart["datasets"].values() for row in data}
    changing = rows.filter(pl.col("at").is_not_null(), pl.col("shift") > 0)
    shares = dict(changing.select("key", 100 * pl.col("shift")).rows())
    assert drawn == pytest.approx({key: shares[key] for key in drawn})
    nothing = rows.filter(pl.col("state") == "changes nothing")
    assert nothing["follows"].str.starts_with("keep").all()


def test_a_right_simulation_gives_a_proposal(proposed):
    study, stored, folder = proposed
    verdict = stored["page"]["verdict"]
    assert verdict["kind"] == "change"
    assert verdict["sentence"].startswith(f"Raise {CAP} from 150 to ")
    proposal = read(folder / "proposal.json")
    assert proposal.kind == "change"
    assert proposal.evidence.synthetic
    assert proposal.evidence.numbers["validation"] == RIGHT.sentence
    assert proposal.digests.archive == stored["digests"]["archive"]
    early, late = study.calibration.case.periods
    assert early.end <= late.start
    charts = sorted(path.stem for path in (folder / "charts").glob("*.svg"))
    assert charts == ["candidates"]
    drawn = {row["setting"]: row for row in stored["numbers"]["candidates_chart"]}
    (role,) = [row["role"] for name, row in drawn.items() if name == study.calibration.setting.name]
    assert role == "proposed"
    assert drawn.keys() == {row["setting"] for row in stored["numbers"]["candidates"]}


def test_the_numbers_of_a_proposal_agree(proposed):
    _, stored, _ = proposed
    proof = {row["quantity"]: row for row in stored["numbers"]["proof"]}
    assert proof["turnaround_h"]["diff_hi"] < 0
    first = stored["page"]["numbers"][0]
    assert first["value"] == pytest.approx(proof["turnaround_h"]["diff_pct"] / 100)
    assert (first["lo"], first["hi"]) == pytest.approx(
        (proof["turnaround_h"]["diff_pct_lo"] / 100, proof["turnaround_h"]["diff_pct_hi"] / 100)
    )
    chosen = [row for row in stored["numbers"]["candidates"] if row["role"] == "chosen"]
    assert [row["setting"] for row in chosen] == [
        ", ".join(f"{key} = {value}" for key, value in stored["values"]["verdict"]["setting"].items())
    ]  # fmt: skip
    assert stored["values"]["verdict"]["kind"] == "change"


def test_the_page_of_a_proposal_shows_it_all(proposed):
    _, stored, folder = proposed
    titles = [section["title"] for section in stored["page"]["sections"]]
    assert titles == ["Before and after", "Who gains, who loses", "How sure"]
    html = html_of(folder)
    for said in (
        "Queues whose use changes most",
        "Which class of users gains or loses",
        "missing (DataError: no simulation at 10)",  # a value at which it failed
        "not another history of this system",  # what the intervals do not hold
        "production job brokerage as documented",
        "95 % intervals",
    ):
        assert said in html, said


def test_nothing_better_is_a_keep(archive, tmp_path):
    _, stored = publish(archive, tmp_path, Toy(best={CAP: 150.0}), keys=[CAP])
    verdict = stored["page"]["verdict"]
    assert verdict["kind"] == "keep"
    assert verdict["sentence"].startswith(f"Keep {CAP} = 150: none of ")
    assert verdict["sentence"].endswith("less would show.")
    assert "proof" not in stored["numbers"]


def test_impossible_parameters_are_told_at_once(archive, tmp_path):
    wrong = {
        "keys": "NQUEUED_SAT_CUP", "start": "soon", "screen_days": 0, "points": 1, "objective": "speed",
        "limits": {"moved": 1}, "relevant": 2, "alpha": 0, "replications": 1, "most_replications": 0, "rounds": -1,
        "n_boot": 1, "seed": -1, "workers": 0, "stage": "tasks",
    }  # fmt: skip
    with pytest.raises(ConfigError) as caught:
        report.Params.checked(wrong)
    for said in (
        "did you mean 'NQUEUED_SAT_CAP'", "start='soon'", "screen_days=0", "points=1", "objective='speed'",
        "unknown 'moved'", "relevant=2", "alpha=0", "replications=1", "rounds=-1", "n_boot=1", "seed=-1", "workers=0",
        "stage='tasks'",
    ):  # fmt: skip
        assert said in str(caught.value), said
    p = params(archive, tmp_path, proof_start="2030-01-01")
    with pytest.raises(ConfigError, match="must follow each other"):
        report.study(report.load(p), p)


def test_too_few_tasks_are_a_page_without_an_answer(archive, tmp_path):
    p = params(archive, tmp_path, start="2026-03-08", proof_start="2026-03-08T02:00")
    with pytest.raises(InsufficientDataError, match="tasks begin in the calibration period"):
        report.study(report.load(p), p)
    verdict = check_page(tmp_path)["page"]["verdict"]
    assert verdict["kind"] == "no_answer"
    assert verdict["sentence"].endswith("tasks begin in the calibration period, 10 are needed.")


def test_the_default_is_all_thresholds():
    assert report.Params().keys == []
    assert len(THRESHOLDS) > 20


class Fickle(Toy):
    """What is best in the choice is not best where it is scored."""

    def one(self, config, seeds, period):
        best = {CAP: 800.0 if period[0].day < 10 else 60.0}
        return Toy(**{**vars(self), "best": best}).one(config, seeds, period)


def test_a_choice_that_is_not_borne_out_is_not_proposed(archive, tmp_path):
    study, stored = publish(archive, tmp_path, Fickle(), keys=[CAP])
    assert study.calibration.compared.values[0][1] > 400  # the choice of the first period
    verdict = stored["page"]["verdict"]
    assert verdict["kind"] in ("keep", "no_answer")
    assert study.calibration.proposal is None or study.calibration.proposal.kind == "keep"
    assert not any(row["role"] == "proposed" for row in stored["numbers"]["candidates_chart"])
    assert (
        stored["numbers"]["proof"][0]["diff"] > 0
    )  # the score that refutes it is shown all the same


def test_what_is_not_limited_is_said(archive, tmp_path):
    """Bytes grow with the cap, and nobody limits them: the page says both."""
    toy = Toy(best={CAP: 800.0}, moved=0.2)
    study, _ = publish(archive, tmp_path, toy, keys=[CAP], limits={"moved_pct": None})
    assert study.calibration.answer == "change"
    assert "(not limited)" in study.calibration.verdict.sentence
    assert "Without limit, as asked: moved_pct." in html_of(tmp_path)
