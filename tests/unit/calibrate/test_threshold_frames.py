"""A calibration as frames: the proof against its limits, what was judged; and the periods of an archive."""

from datetime import datetime
from types import SimpleNamespace

import polars as pl
import pytest

from brokerlab.calibrate.thresholds import Period, Screen
from brokerlab.calibrate.thresholds.archive_study import split_periods
from brokerlab.errors import ConfigError, InsufficientDataError
from tests.unit.calibrate.threshold_toys import CAP, CUTOFF, EARLY, LATE, Toy, calibrate_toy

QUICK = {"n_boot": 200, "replications": 3, "most_replications": 3, "rounds": 0}


@pytest.fixture(scope="module")
def found():
    toy = Toy(best={CAP: 800.0, CUTOFF: 3000.0}, moved=0.01, fails=(10,))
    grids = {CAP: [10, 400, 800], CUTOFF: [100, 3000]}
    return calibrate_toy(toy, keys=[CAP, CUTOFF], grids=grids, seed=0, workers=1, **QUICK)


@pytest.fixture(scope="module")
def kept():
    return calibrate_toy(Toy(best={CAP: 150.0}), keys=[CAP], grids={CAP: [100, 150]}, **QUICK)


def test_why_the_answer_is_what_it_is(found, kept):
    assert found.answer == "change"
    assert kept.answer == "keep"
    assert calibrate_toy(Toy(n_tasks=8), keys=[CAP], **QUICK).answer == "few"

    def screened(state):
        frame = pl.DataFrame({"key": [CAP], "state": [state], "simulate": [False]})
        screen = Screen(Period(*EARLY), frame, pl.DataFrame())
        return calibrate_toy(Toy(), keys=[CAP], screen=screen, **QUICK)

    silent = screened("changes nothing")
    assert (silent.answer, silent.verdict.kind, silent.proposal.kind) == ("unchanged", "keep", "keep")  # fmt: skip
    assert screened("not told").answer == "nothing"
    wrong = SimpleNamespace(ok=False, sentence="No answer: waits differ.")
    assert calibrate_toy(Toy(), keys=[CAP], validation=wrong, **QUICK).answer == "invalid"


def test_the_proof_stands_against_its_limits(found):
    rows = {row["quantity"]: row for row in found.proof.to_dicts()}
    assert rows["turnaround_h"]["role"] == "objective"
    assert (rows["moved_tb"]["limit"], rows["moved_tb"]["limit_unit"]) == (5.0, "% of now")
    assert (rows["unfairness"]["limit"], rows["unfairness"]["limit_unit"]) == (0.02, "1")
    assert rows["waiting_h"]["limit"] is None
    assert found.strata["role"].drop_nulls().to_list() == ["worst"]
    assert found.candidates["role"].drop_nulls().to_list() == ["chosen"]


class Later(Toy):
    """Bytes moved grow with the cap in the second period alone."""

    def one(self, config, seeds, period):
        moved = 0.2 if period[0] >= LATE[0] else 0.0
        return Toy(moved=moved).one(config, seeds, period)


def test_a_limit_that_is_broken_where_it_is_scored_is_marked_and_nothing_is_proposed():
    beyond = calibrate_toy(
        Later(), keys=[CAP], grids={CAP: [150, 800]}, seed=0, workers=1, **QUICK
    )  # fmt: skip
    assert beyond.verdict.kind == "no_answer"
    assert beyond.proposal is None
    rows = {row["quantity"]: row["role"] for row in beyond.proof.to_dicts()}
    assert rows["moved_tb"] == "beyond its limit"


def test_nothing_proven_gives_empty_frames(kept):
    assert kept.verdict.kind == "keep"
    assert kept.proof.is_empty()
    assert kept.strata.is_empty()
    assert kept.unknown_quantities == []
    assert kept.unfinished_share == 0


def archive_of(*made: datetime | None) -> SimpleNamespace:
    jobs = pl.DataFrame({"creationtime": list(made)}, schema={"creationtime": pl.Datetime("us")})
    return SimpleNamespace(scan=lambda _: jobs.lazy())


def test_an_archive_is_halved_its_first_day_left_out():
    early, late = split_periods(archive_of(datetime(2026, 3, 1, 7), datetime(2026, 3, 12, 5)))
    assert early == (datetime(2026, 3, 2), datetime(2026, 3, 7))
    assert late == (datetime(2026, 3, 7), datetime(2026, 3, 12))
    asked = split_periods(archive_of(datetime(2026, 3, 1), datetime(2026, 3, 12)), proof_start=datetime(2026, 3, 4))  # fmt: skip
    assert asked[1].start == datetime(2026, 3, 4)


def test_too_few_days_are_too_few_data_and_wrong_ones_wrong_parameters():
    with pytest.raises(InsufficientDataError, match="too few days, 6 are needed"):
        split_periods(archive_of(datetime(2026, 3, 1), datetime(2026, 3, 5)))
    with pytest.raises(InsufficientDataError, match="no job has a creation time"):
        split_periods(archive_of(None))
    with pytest.raises(ConfigError, match="must follow each other"):
        split_periods(archive_of(datetime(2026, 3, 1), datetime(2026, 3, 30)), proof_start=datetime(2027, 3, 1))  # fmt: skip
