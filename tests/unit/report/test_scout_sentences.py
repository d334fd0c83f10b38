"""The words of the scout percentile report, number by number."""

from types import SimpleNamespace

import polars as pl
import pytest

from brokerlab.calibrate.parameters import PARAMETERS
from brokerlab.errors import ConfigError
from brokerlab.report.scout_percentiles import sentences as say
from brokerlab.report.scout_percentiles import strata
from brokerlab.report.scout_percentiles.study import Unanswered, grid, parameters_named

RAM = PARAMETERS["ramcount"]


def proof(**quantities):
    return SimpleNamespace(quantity=lambda name: quantities[name], current=(75, 10), n_tasks=1904)


def study(reserved, exceed):
    return SimpleNamespace(
        parameter=RAM,
        proof=proof(reserved_gbh=reserved, exceed_rate=exceed),
        choice=SimpleNamespace(max_exceed=0.02),
    )


def line(value, low, high):
    return {"diff_pct": value, "diff_pct_lo": low, "diff_pct_hi": high}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (line(-4.1, -5.0, -3.2), "4.1 % less memory reserved (3.2 to 5.0)"),
        (line(4.1, 3.2, 5.0), "4.1 % more memory reserved (3.2 to 5.0)"),
        (line(-1.0, -2.4, 0.4), "memory reserved changes by −1.0 % (−2.4 to 0.4)"),
        (line(-1.0, None, None), "memory reserved changes by −1.00 %"),
        (line(None, None, None), "memory reserved unknown"),
    ],
)
def test_reserved_is_less_or_more_only_beyond_doubt(row, words):
    assert say.reserved_words(study(row, {})) == words


def test_kills_with_interval_and_limit():
    exceed = {"before": 0.009, "after": 0.012, "after_lo": 0.009, "after_hi": 0.016}
    assert say.kills_move(study({}, exceed)) == (
        "kills rise from 0.90 % to 1.20 % (0.90 to 1.60) of jobs (limit 2 %)"
    )


def test_gap_says_which_way():
    def late(ratio, low, high):
        row = {"measure": "ratio_median", "ratio": ratio, "lo": low, "hi": high}
        return SimpleNamespace(gap_summary=pl.DataFrame([row]))

    assert say.gap(late(1.014, 1.004, 1.025)).startswith("Scouts are 1.4 % (0.4 to 2.5) heavier")
    assert say.gap(late(0.9, 0.85, 0.96)).startswith("Scouts are 10.0 % (4.0 to 15.0) lighter")
    assert "cannot be compared" in say.gap(late(None, None, None))


def test_exchange_in_words():
    rows = [
        {"quantity": "exceed_rate", "level": "all", "alike": False, "difference": 0.037, "lo": 0.014, "hi": 0.061},
        {"quantity": "log_gap", "level": "all", "alike": True, "difference": 0.0, "lo": -0.1, "hi": 0.1},
    ]  # fmt: skip
    words = say.exchange(pl.DataFrame(rows))
    assert "not alike in kills (mean over tasks, later minus earlier: 3.7 % (1.4 to 6.1))" in words
    assert words.endswith("and alike in how scouts differ from the rest.")
    unknown = pl.DataFrame([{**row, "alike": None} for row in rows])
    assert "cannot be said" in say.exchange(unknown)


def test_too_little_data_is_no_answer_and_comes_after_the_rest():
    thin = Unanswered(parameter=RAM, reason="none of 3 tasks has 20 other jobs")
    verdict = say.verdict(thin)
    assert (verdict.kind, verdict.subject) == ("no_answer", "ramCount")
    assert verdict.sentence == "No answer: none of 3 tasks has 20 other jobs"
    assert say.cannot_tell([thin])[-1].startswith("Waiting:")


def test_caveats_of_one_parameter_are_named():
    late = SimpleNamespace(caveats=("Both.", "Only here."))
    alike = pl.DataFrame({"level": ["all"], "alike": [True]})
    first = SimpleNamespace(parameter=RAM, late=late, alike=alike)
    second = SimpleNamespace(
        parameter=PARAMETERS["cputime"], late=SimpleNamespace(caveats=("Both.",)), alike=alike
    )
    assert say.cannot_tell([first, second])[:2] == ("Both.", "ramCount: Only here.")


def test_grid_and_names():
    assert list(grid([50, 52], name="ranks")) == [50, 51, 52]
    with pytest.raises(ConfigError, match=r"ranks=\[99, 50\]: must be the first and the last"):
        grid([99, 50], name="ranks")
    assert parameters_named("all") == ["ramcount", "cputime", "outdiskcount"]
    with pytest.raises(ConfigError, match="did you mean 'cputime'"):
        parameters_named("cputme")


def test_worst_level_needs_tasks_and_is_no_number_of_scouts():
    levels = pl.DataFrame(
        {
            "stratum": ["processingtype", "gshare", "n_scouts", "cores"],
            "level": ["reco", "MC", "2", "8"],
            "n_tasks": [30, 30, 30, 2],
            "n_scored": [100, 100, 100, 100],
            "after": [0.03, 0.03, 0.5, 0.9],
        }
    )
    worst = strata.worst_level(levels)
    assert worst is not None
    assert worst["level"] == "reco"
    assert strata.worst_level(levels.filter(pl.col("n_tasks") < 5)) is None


def test_the_worst_level_is_shown_however_small():
    sizes = [1000, 900, 800, 10]
    levels = pl.DataFrame(
        {
            "stratum": ["gshare"] * 4,
            "level": list("abcd"),
            "n_tasks": [30, 30, 30, 6],
            "n_scored": sizes,
            "after": [0.01, 0.01, 0.01, 0.2],
        }
    )
    assert strata.shown_levels(levels, most=2)["level"].to_list() == ["a", "b", "d"]
