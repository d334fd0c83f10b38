"""The grid simulator as a simulation of thresholds: a wrong value in an archive that it made is found and proven."""

import json
from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl
import pytest

import brokerlab.archive
from brokerlab.archive import ArchiveWriter
from brokerlab.calibrate import simulation, thresholds
from brokerlab.calibrate.thresholds import Period
from brokerlab.calibrate.thresholds.outcomes import of_archive
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules
from brokerlab.report import run
from tests.planted_grids import BEGIN, Plan, write
from tests.recorded import record

KEY, WRONG = "NQUEUED_SAT_CAP", 30
DAY = timedelta(days=1)
PERIODS = (Period(BEGIN + DAY, BEGIN + 4 * DAY), Period(BEGIN + 4 * DAY, BEGIN + 7 * DAY))
GRID = {"cycle": "4h", "warm_up": "1d", "drain": "12h"}


@pytest.fixture(scope="module")
def plan():
    """Links with more files waiting than the value in force allows, so that most queues get nothing."""
    from tests.planted_grids import PLANTED

    return Plan(**{**vars(PLANTED[KEY][0]), "days": 7, "settings": {KEY: WRONG}})


@pytest.fixture(scope="module")
def seen(plan, tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    base = write(folder / "base", plan, seed=1)
    world = simulation.of_archive(
        base, start=BEGIN, end=BEGIN + 7 * DAY, capacity=plan.capacity, cycle="4h", warm_up="0"
    )
    record(world, base, folder / "seen", seed=1)
    return brokerlab.archive.open(folder / "seen")


@pytest.fixture(scope="module")
def what_if(seen, plan):
    """Its worlds are read once."""
    return of_archive(seen, PERIODS, capacity=plan.capacity, **GRID)


@pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
def test_a_wrong_value_is_found_on_an_archive_that_the_simulator_made(seen, what_if, tmp_path):
    options = thresholds.Options(
        keys=[KEY], limits={"moved_pct": None, "unfinished": None}, most_replications=4, rounds=0, n_boot=200, seed=0,
        workers=1,
    )  # fmt: skip
    case = thresholds.case_of(
        Config.recorded(seen, PERIODS[0].end), options, calibration=PERIODS[0], proof=PERIODS[1],
        created_at=datetime(2026, 4, 1), grids={KEY: [WRONG, 1000]},
    )  # fmt: skip
    screen = thresholds.screen(seen, case.space, PERIODS[0])
    validation = what_if.validate(PERIODS[0], seeds=range(6), repeats=10)
    found = thresholds.calibrate(
        case, what_if, screen=screen, validation=validation, store=tmp_path
    )
    assert found.validation.ok, found.validation.sentence
    assert found.screen.keys["state"].to_list() == ["changes decisions"]
    assert found.verdict.kind == "change", found.verdict.sentence
    assert dict(found.setting.values) == {KEY: 1000}
    assert found.judgement.quantity("turnaround_h")["diff_hi"] < 0
    assert found.strata["verdict"].to_list() == ["gains"]
    stated = found.proposal.evidence.numbers
    under = [stated[name] for name in ("stage", "cycle", "capacity")]
    assert under == ["jobs", "4h", "a frame, not a file"]
    for period in PERIODS:  # nothing after a period is looked at
        assert what_if.worlds[period].until <= period.end
    assert what_if.__getstate__()["worlds"] == {}  # another process reads them itself


def test_periods_must_be_longer_than_what_tasks_end_in(seen):
    with pytest.raises(ConfigError, match="must be longer than drain=3d"):
        of_archive(seen, PERIODS, drain="3d")
    assert of_archive(seen, PERIODS).digest != of_archive(seen, PERIODS, drain="2h").digest


def test_results_under_other_rules_are_not_found_again(seen, monkeypatch):
    digest = of_archive(seen, PERIODS).digest
    assert of_archive(seen, PERIODS).digest == digest
    exempt = MatchingRules.SWITCHES["tests_exempt"]
    monkeypatch.setitem(
        MatchingRules.SWITCHES, "tests_exempt", replace(exempt, values=(True, True))
    )
    assert of_archive(seen, PERIODS).digest != digest


def test_each_rule_set_has_its_own_results(seen):
    assert of_archive(seen, PERIODS, rules="production").digest != of_archive(seen, PERIODS).digest


@pytest.fixture(scope="module")
def with_slots(seen, tmp_path_factory):
    """The same archive, and the slots of its queues are set in it."""
    into = tmp_path_factory.mktemp("known") / "seen"
    slots = seen.truth("capacity").group_by(pandaqueuename="panda_queue").agg(numslots=pl.col("slots").max())  # fmt: skip
    with ArchiveWriter(into, synthetic=True) as writer:
        for name in seen.tables:
            writer.write(name, seen.scan(name).collect(), trusted=True)
        writer.write("slots", slots)
        writer.commit()
    return brokerlab.archive.open(into)


REPORT = {
    "keys": f'["{KEY}"]', "limits": '{"moved_pct": null, "unfinished": null}', "cycle": "4h", "screen_days": 1, "points": 2,
    "most_replications": 4, "rounds": 0, "n_boot": 200, "workers": 1,
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("known", [True, False])
def test_the_report_changes_a_planted_cap_or_says_that_the_capacity_is_unknown(
    seen, with_slots, known, tmp_path
):
    """calibration.md, sections 1 and 4: a cap that starves queues is changed, or the capacity is unknown; never kept."""
    archive = with_slots if known else seen
    done = run("thresholds", {"archive": str(archive.path), **REPORT}, out_root=tmp_path)
    stored = json.loads((done.folder / "results.json").read_text())
    verdict = stored["page"]["verdict"]
    assert stored["values"]["valid"], stored["values"]["validation"]
    if known:
        assert verdict["kind"] == "change"
        assert verdict["sentence"].startswith(f"Raise {KEY} from {WRONG} to ")
        assert stored["values"]["capacity_unknown"] == []
    else:
        assert verdict["kind"] == "no_answer"
        assert verdict["sentence"] == "Capacity of 6 queues unknown, and the answer depends on it."
        assert len(stored["values"]["capacity_unknown"]) == 6
        assert not (done.folder / "proposal.json").exists()
        assert "Their slots would settle it" in (done.folder / "index.html").read_text()


def test_jobs_that_were_never_made_are_counted(seen, plan, what_if):
    """Those that the archive did not see; in this one every job that was asked for was made."""
    world = what_if.world(PERIODS[0])
    assert (world.n_unmade, what_if.n_unmade) == (0, 0)
    unseen = world.seen.filter(~pl.col("pandaid").is_in(world.jobs["pandaid"].head(3).implode()))
    other = of_archive(seen, PERIODS, capacity=plan.capacity, **GRID)
    other.worlds[PERIODS[0]] = replace(world, seen=unseen)
    assert other.n_unmade == 3


def test_runs_are_added_where_few_leave_it_open(what_if):
    """Two runs refuse what more of them pass: what was seen is one run, too."""
    world = what_if.world(PERIODS[0])
    few = simulation.validate(world, seeds=(5, 6), most_runs=2, repeats=2)
    assert (few.ok, few.open, few.runs) == (False, True, 2)
    more = simulation.validate(world, seeds=(5, 6), repeats=2)
    assert more.ok
    assert 2 < more.runs <= 64
    half = replace(world, capacity=world.capacity.with_columns(pl.col("slots") // 2))
    wrong = simulation.validate(half, seeds=(3, 4, 5, 6), repeats=2)
    assert not wrong.ok
    assert (wrong.runs, wrong.open) == (4, False)  # more runs would not help
