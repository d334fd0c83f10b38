"""What the walltime-estimator report says, case by case."""

from types import SimpleNamespace

import polars as pl
import pytest

from brokerlab.report.walltime_estimator import logs_sentences as of_logs
from brokerlab.report.walltime_estimator import power_sentences as of_power
from brokerlab.report.walltime_estimator import tasks_sentences as of_tasks
from brokerlab.report.walltime_estimator.logs import BOUND, MEDIAN, Log, LogStudy


def log_study(under, *, largest=1, ratio_hi=0.95):
    """One log: ours, the bound, the best rule."""
    row = {"log": "kth", "users": 5, "days": 9.0, "jobs": 1000, "median_s": 60.0, "accuracy": 0.5, "over_allocation": 0.2,
           "best_peer": "last two", "ratio_lo": 0.8, "under_lo": 0.04, "under_hi": 0.07}  # fmt: skip
    table = pl.DataFrame(
        [
            {**row, "method": MEDIAN, "mae_s": 3869.0, "under": 0.5, "ratio": 0.9, "ratio_hi": ratio_hi},
            {**row, "method": BOUND, "mae_s": 4900.0, "under": under, "ratio": 1.1, "ratio_hi": 1.2},
            {**row, "method": "last two", "mae_s": 4300.0, "under": 0.5, "ratio": 1.0, "ratio_hi": 1.0},
        ]
    )  # fmt: skip
    log = Log(name="kth", jobs=pl.DataFrame({"a": [1] * 1000}), n_read=2000, knows_waits=False)
    strata = pl.DataFrame({"log": ["kth"], "stratum": ["later ones"], "ratio": [1.2]})
    campaigns = pl.DataFrame({"log": ["kth"], "missed": [50], "largest": [largest]})
    return LogStudy(logs={"kth": log}, table=table, strata=strata, campaigns=campaigns)


def test_a_log_is_told_in_minutes_with_its_best_rule():
    said = of_logs.headline(log_study(0.05))
    assert "kth 64.5 against 71.7 min (ratio 0.90 (0.80 to 0.95); best rule: last two)" in said


@pytest.mark.parametrize(
    ("under", "said"), [(0.052, "keeps its level on every log: 5.2 %"), (0.083, "off its level of 5.0 % on kth 8.3 %")]
)  # fmt: skip
def test_a_bound_is_kept_or_not(under, said):
    assert said in of_logs.misses_finding(log_study(under)).replace("\u202f", " ")


def test_doubt_and_campaigns_and_losses_are_named():
    assert "beyond doubt on 0 of 1 log" in of_logs.finding(log_study(0.05, ratio_hi=1.1))
    assert "one user on one day" in of_logs.certainty(log_study(0.05, largest=40))
    assert "one user on one day" not in of_logs.certainty(log_study(0.05))
    assert "later ones on kth (1.20)" in of_logs.worst(log_study(0.05))
    told = " ".join(of_logs.cannot_tell(log_study(0.05)))
    assert "does not say how long jobs waited" in told
    assert "first 1,000 of 2,000 jobs" in told


def slopes(**changed):
    row = {"jeditaskid": 7, "time": "cpu", "jobs": 10, "queues": 9, "slope": -0.9, "slope_lo": -1.2, "slope_hi": -0.6, "missing": None}  # fmt: skip
    return pl.DataFrame([row | changed])


def power_study(found):
    gain = pl.DataFrame(
        [
            {"jeditaskid": 7, "time": "wall", "way": way, "queues": 9, "ratio": ratio, "ratio_lo": lo, "ratio_hi": hi}
            for way, ratio, lo, hi in (("slope -1", 0.9, 0.8, 0.99), ("own queue", 0.5, 0.4, 0.6))
        ]
    )  # fmt: skip
    return SimpleNamespace(slopes=found, gain=gain, synthetic=True)


def test_a_slope_is_held_against_the_rule_and_against_none():
    said = of_power.slopes(power_study(slopes()))
    assert "-0.90 (-1.20 to -0.60) over 9 queues of task 7".replace("-", "−") in said
    assert "-1 lies in 1 of 1 interval, 0 in 0" in said
    assert "0.90 (0.80 to 0.99) times (task 7)" in of_power.worth(power_study(slopes()))
    assert "better beyond doubt for 1 of 1 task" in of_power.meaning(power_study(slopes()))


def test_a_slope_that_rises_is_not_said_to_fall():
    rising = slopes(slope=0.4, slope_lo=0.1, slope_hi=0.7)
    assert "falls" not in of_power.finding(power_study(rising))


def test_no_slope_says_why():
    none = slopes(slope=None, slope_lo=None, slope_hi=None, missing="2 queues, 5 are needed")
    assert "No task ran at enough queues" in of_power.slopes(power_study(none))
    told = " ".join(of_power.cannot_tell(power_study(none)))
    assert "7 (2 queues, 5 are needed)" in told
    assert "generated" in told


def test_a_ratio_of_few_tasks_has_the_range_without_one_of_them():
    row = {"ratio": 0.8, "ratio_lo": 0.1, "ratio_hi": 9.0, "few_tasks": True, "without_lo": 0.7, "without_hi": 0.9}  # fmt: skip
    assert of_tasks.ratio_of(row) == "0.80 (0.70 to 0.90)"
    assert of_tasks.ratio_of(row | {"few_tasks": False}) == "0.80 (0.10 to 9.00)"
    assert of_tasks.ratio_of(None) == "an unknown number of times"
