"""Frames of a scout calibration, held to numbers worked by hand."""

from types import SimpleNamespace

import polars as pl
import pytest
from scipy import stats

from brokerlab.calibrate.percentiles import frames
from brokerlab.calibrate.percentiles.backtest import merge_sentences
from brokerlab.calibrate.percentiles.study import FIXED_RANK, NO_QUEUES, Study
from brokerlab.errors import ConfigError


def test_caveats_are_those_that_apply():
    def caveats(*, fixed, derived=()):
        made = Study(**dict.fromkeys(Study.__dataclass_fields__))
        read = SimpleNamespace(caveats=derived)
        vars(made).update(
            tried=SimpleNamespace(caveats=("of the back-test",), inputs=read),
            verdict=SimpleNamespace(information_only=fixed),
        )
        return made.caveats

    assert caveats(fixed=False) == ["of the back-test", NO_QUEUES]
    assert caveats(fixed=True) == ["of the back-test", FIXED_RANK, NO_QUEUES]
    assert caveats(fixed=False, derived=["of tables made from jobs"]) == [
        "of tables made from jobs",
        "of the back-test",
        NO_QUEUES,
    ]


def test_worst_level_needs_tasks_and_is_no_number_of_scouts():
    levels = pl.DataFrame(
        {
            "stratum": ["processingtype", "gshare", "n_scouts", "cores"],
            "level": ["reco", "MC", "2", "8"],
            "n_tasks": [30, 30, 30, 2],
            "n_scored": [100, 100, 100, 100],
            "before": [0.03, 0.04, 0.5, 0.9],
            "after": [0.03, 0.03, 0.5, 0.9],
        }
    )
    worst = frames.worst_level(levels)
    assert worst is not None
    assert worst["level"] == "reco"
    assert frames.worst_level(levels.filter(pl.col("n_tasks") < 5)) is None
    now = frames.worst_level(levels, "before")
    assert now is not None
    assert now["level"] == "MC"


def test_the_same_split_under_two_names_is_found():
    tasks = pl.DataFrame(
        {
            "jeditaskid": [1, 1, 2, 3, 4],
            "processingtype": ["reco", "reco", "evgen", "evgen", None],
            "gshare": ["MC", "MC", "EV", "EV", "Test"],
            "cores": [8, 8, 8, 1, 1],
        }
    )
    assert frames.repeated_strata(tasks) == {"gshare": "processingtype"}
    assert frames.repeated_strata(tasks.with_columns(gshare=pl.lit("all"))) == {}


def test_a_change_of_almost_nothing_has_no_percentage():
    """Where there was next to nothing before, a relative change once read 365 796 440 435.9 %."""
    ends = [f"{s}{e}" for s in ("before", "after", "diff", "diff_pct") for e in ("", "_lo", "_hi")]
    rows = [
        dict.fromkeys(ends, 1.0)
        | {"diff_lo": 0.5, "label": "a - b", "unit": "GB h", "quantity": q, "judged": False}
        for q in "xy"
    ]
    rows[1]["before"] = 1e-12
    table = pl.DataFrame(rows)
    found = frames.before_after(SimpleNamespace(comparison=SimpleNamespace(table=table)))
    assert found["diff_pct"].to_list() == [1.0, None]
    assert found["label"][0] == "a − b"


def test_what_several_parameters_share_is_merge_sentences():
    told = {"a": ["1,234 of 9 jobs.", "Same."], "b": ["2.5 of 9 jobs.", "Only b."], "c": ["Same."]}
    assert merge_sentences(told) == ["a: 1,234 of 9 jobs (b: 2.5).", "a, c: Same.", "b: Only b."]
    assert merge_sentences({"a": ["1 job."], "b": ["1 job."]}) == ["1 job."]
    assert merge_sentences({"a": ["1 job."], "b": ["2 jobs."]}) == ["a: 1 job.", "b: 2 jobs."]


# ---- what n scouts can promise


def test_the_percentile_at_a_scout_covers_the_mean_of_the_beta_distribution():
    for n in (2, 5, 10):
        for k in range(1, n + 1):
            ends = frames.percentile_coverage(n, 100 * (k - 1) / (n - 1))
            assert ends[1] == pytest.approx(stats.beta(k, n + 1 - k).mean())


def test_bounds_of_the_percentile_rule():
    assert frames.percentile_coverage(10, 100) == (10 / 11, 10 / 11, 10 / 11)
    low, middle, high = frames.percentile_coverage(5, 75)  # position 3 exactly: the fourth
    assert (low, middle, high) == (4 / 6, 4 / 6, 4 / 6)
    assert frames.percentile_coverage(1, 75) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: frames.percentile_coverage(0, 75),
        lambda: frames.percentile_coverage(10, 101),
    ],
)
def test_impossible_requests(call):
    with pytest.raises(ConfigError):
        call()
