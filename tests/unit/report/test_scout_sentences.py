"""The words of the scout percentile report, number by number."""

from types import SimpleNamespace

import polars as pl
import pytest

from brokerlab.calibrate.parameters import PARAMETERS
from brokerlab.errors import ConfigError
from brokerlab.report.scout_percentiles import promises, strata, tables
from brokerlab.report.scout_percentiles import sentences as say
from brokerlab.report.scout_percentiles.check import check
from brokerlab.report.scout_percentiles.study import (
    Unanswered,
    differ,
    grid,
    parameters_named,
)

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
    assert say.gap(late(0.996, 0.985, 1.007)).endswith(
        "do not differ from the rest of their task beyond doubt: they are heavier by −0.4 % (−1.5 to 0.7)"
    )
    assert "cannot be compared" in say.gap(late(None, None, None))


def test_other_weights_in_words():
    moved = {
        "weight": ["over", "unreachable_coreh", "n_lost"],
        "factor": [0.5, 2.0, 2.0],
        "rank": [51, 51, 96],
        "margin_pct": [23, 23, 17],
    }
    choice = SimpleNamespace(
        status="change", stable=False, setting=(96, 17), sensitivity=pl.DataFrame(moved)
    )
    study = SimpleNamespace(choice=choice, parameter=PARAMETERS["ramcount"])
    assert say.sensitivity(study) == (
        "The choice depends on the weights of the loss: rank 51, margin 23 % would be chosen with half the "
        "weight of what is reserved and not used or twice the weight of work that a part of the slots cannot "
        "take."
    )


@pytest.mark.parametrize(
    ("unit", "interval", "places"),
    [
        ("GB h", (32564, -40495, 151442), -3),
        ("GB h", (479, None, None), 0),
        ("GB", (0, 0, 0), -3),
        ("jobs", (5983, 4074, 8233), 0),
        ("share of jobs", (6.5, 4.5, 9.0), 1),
        ("core h per core h of work", (-0.003, -0.051, 0.038), 3),
        ("core h per core h of work", (-0.0006, -0.0016, 0.0003), 4),
    ],
)
def test_digits_that_the_difference_supports(unit, interval, places):
    assert tables._places(unit, 2284361.0, *interval) == places


def test_coverages_with_one_outcome_share_a_line():
    tried = pl.DataFrame(
        {
            "rank": [75, 90, 95, 75, 90],
            "margin_pct": [0, 0, 0, 10, 10],
            "n_fallback": [0, 9, 9, 0, 9],
            "exceed_rate": [0.2, 0.2, 0.2, 0.1, 0.1],
            "loss": [0.3, 0.3, 0.3, 0.2, 0.2],
        }
    )
    assert [(c, row["margin_pct"]) for c, row in tables._same_conformal(tried)] == [
        ([75], 0),
        ([90, 95], 0),
        ([75], 10),
        ([90], 10),
    ]


GIVEN = {
    "parameter": "all",
    "ranks": [50, 99],
    "margins": [0, 30],
    "loss": {},
    "alpha": 0.02,
    "limit_on": "upper",
    "early_share": 0.5,
    "rules": "document",
    "n_boot": 2000,
    "seed": 1,
}


def test_wrong_parameters_are_named_at_once():
    check(**GIVEN)
    wrong = {
        "parameter": "ramcuont",
        "ranks": [0, 200],
        "margins": [30, 0],
        "loss": {"ovr": 1},
        "alpha": float("nan"),
        "limit_on": "lower",
        "early_share": 1.0,
        "rules": "doc",
        "n_boot": -3,
        "seed": -1,
        "window_start": "yesterday",
    }
    with pytest.raises(ConfigError) as caught:
        check(**wrong)
    assert str(caught.value).split("; ") == [
        "parameter='ramcuont': did you mean 'ramcount'?",
        "ranks=[0, 200]: must be whole numbers from 0 to 100",
        "margins=[30, 0]: must be the first and the last, such as 50,99",
        "no such loss weight: ovr: did you mean 'over'?",
        "scout rules: rules='doc': allowed: document, production",
        "window_start='yesterday': must be ISO 8601, such as 2026-03-01T00:00",
        "alpha=nan: must be a share from 0 to 1, such as 0.02",
        "limit_on='lower': must be upper or point",
        "early_share=1.0: must be a share between 0 and 1, such as 0.5",
        "n_boot=-3: must be 20 or more",
        "seed=-1: must be 0 or more",
    ]


def test_exchange_in_words():
    rows = [
        {"quantity": "exceed_rate", "level": "all", "alike": False, "difference": 0.037, "lo": 0.014, "hi": 0.061},
        {"quantity": "log_gap", "level": "all", "alike": True, "difference": 0.0, "lo": -0.1, "hi": 0.1},
    ]  # fmt: skip
    words = say.exchange(pl.DataFrame(rows))
    assert words == (
        "Under the current setting the two periods are not alike in kills: from the earlier to the later one the "
        "mean over tasks changes by 3.7 (1.4 to 6.1) percentage points. In how scouts differ from the rest of "
        "their task they are alike."
    )
    unknown = pl.DataFrame([{**row, "alike": None} for row in rows])
    assert "cannot be said" in say.exchange(unknown)


def test_too_little_data_is_no_answer_and_comes_after_the_rest():
    thin = Unanswered(parameter=RAM, reason="none of 3 tasks has 20 other jobs")
    verdict = say.verdict(thin)
    assert (verdict.kind, verdict.subject) == ("no_answer", "ramCount")
    assert verdict.sentence == "No answer: none of 3 tasks has 20 other jobs"
    assert say.cannot_tell([thin])[-1].startswith("Waiting:")


def test_caveats_of_one_parameter_are_named():
    both = told("ramcount", "Both.", "Only here."), told("cputime", "Both.")
    assert say.cannot_tell(both)[:2] == ("Both.", "ramCount: Only here.")


def told(name, *caveats, status="change", of_choice=()):
    return SimpleNamespace(
        parameter=PARAMETERS[name],
        late=SimpleNamespace(caveats=caveats),
        alike=pl.DataFrame({"level": ["all"], "alike": [True]}),
        choice=SimpleNamespace(status=status, caveats=of_choice),
        divided=True,
    )


def test_cannot_tell_has_the_caveats_of_the_choice_and_of_the_periods():
    few = "60 tasks are few for a limit of 2 %."
    found = say.cannot_tell([told("ramcount", of_choice=(few,))], n_overlapping=1234)
    assert found[0] == few
    assert found[1].startswith(
        "1,234 jobs of the calibration's tasks ended when the proof period had begun"
    )
    nothing_chosen = say.cannot_tell([told("ramcount", status="no_answer", of_choice=(few,))])
    assert len(nothing_chosen) == 1
    assert nothing_chosen[0].startswith("Waiting:")


def chosen(low, *, asked="upper", alike=True):
    row = {"loss_diff": 0.021, "loss_diff_lo": low, "loss_diff_hi": 0.037}
    return SimpleNamespace(
        parameter=RAM,
        chosen=(96, 17),
        early=SimpleNamespace(setting=lambda *_: row),
        choice=SimpleNamespace(max_exceed=0.02, limit_on=asked),
        proof=SimpleNamespace(max_exceed=0.02, quantity=lambda _: {"after_hi": 0.029}),
        alike=pl.DataFrame({"level": ["all", "all"], "alike": [alike, True]}),
    )


def test_a_dearer_choice_is_called_so_only_beyond_doubt():
    words = say.dearer(chosen(0.005))
    assert (
        "of rank 96, margin 17 % is higher than the current one beyond doubt, by 0.021 (0.005 to 0.037)"
        in words
    )
    assert words.endswith("only the limit of 2 % speaks for it.")
    assert say.dearer(chosen(-0.005)) == ""
    assert say.dearer(SimpleNamespace(chosen=None)) == ""


def test_what_the_proof_had_to_meet():
    said = say.asked_of_the_proof(chosen(0.0))
    assert said.endswith("its upper bound was asked of the choice.")
    assert "as in the choice" in say.asked_of_the_proof(chosen(0.0, asked="point"))
    assert say.asked_of_the_proof(chosen(0.0, alike=False)).endswith(
        "The periods are not alike; the upper bound on the proof period does not meet it."
    )
    assert say.asked_of_the_proof(SimpleNamespace(chosen=None)) == ""


@pytest.mark.parametrize(
    ("alike", "expected"),
    [([True, True], False), ([True, None], False), ([True, False], True), ([None, None], False)],
)
def test_periods_differ_if_either_quantity_does(alike, expected):
    rows = pl.DataFrame(
        {"level": ["all", "all"], "alike": alike}, schema_overrides={"alike": pl.Boolean}
    )
    assert differ(rows) is expected
    assert differ(None) is False


def scouts(counts, rank=75, limit=0.02, gap=(1.01, 1.03)):
    """A study whose proof has so many tasks by number of scouts."""
    used = [n for n, tasks in counts.items() for _ in range(tasks)]
    summary = {"measure": ["ratio_median"], "lo": [gap[0]], "hi": [gap[1]]}
    late = SimpleNamespace(
        by_task=pl.DataFrame({"n_scouts": used}).with_columns(rank=rank, margin_pct=10),
        current=(rank, 10),
        gap_summary=pl.DataFrame(summary),
        assumptions=SimpleNamespace(trigger_period_s=0),
    )
    return SimpleNamespace(parameter=RAM, late=late, choice=SimpleNamespace(max_exceed=limit))


def test_a_promise_is_conditional_and_on_average():
    words = promises.sentence(scouts({5: 30, 4: 2}))
    assert words.startswith(
        "If scouts were like the rest of their task, rank 75 of 5 scouts alone would promise"
    )
    assert "that 66.7 % of the jobs stay below, on average over tasks" in words
    assert "here they are not like the rest" in words
    assert "fewer than 49 scouts could promise 98 %" in words
    assert "every 10 minutes and has 5 to 10 scouts" in words
    between = promises.sentence(scouts({5: 30}, rank=95, gap=(0.9, 1.1)))
    assert (
        "a rank between two of the 5 scouts, would promise that between 66.7 and 83.3 %" in between
    )
    assert "here they are not" not in between


def test_the_table_of_promises_says_which_rank_would_do_or_that_none_can():
    table = promises.table(scouts({5: 30, 3: 2, 24: 7}, limit=0.1))
    assert table is not None
    rows = {row.cells["scouts"]: row.cells for row in table.rows}
    assert list(rows) == ["3", "5", "6", "7", "8", "9", "10", "24"]
    assert rows["5"]["rank_75"] == "66.7"
    assert rows["10"]["rank_75"] == "63.6 to 72.7"
    assert (rows["8"]["needed"], rows["9"]["needed"], rows["24"]["needed"]) == ("none", "100", "96")
    assert (rows["24"]["tasks"].value, rows["6"]["tasks"].value) == (7, 0)
    assert promises.table(scouts({5: 30}, limit=0.0)) is None


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
            "verdict": ["gains", "open", "open", "open"],
        }
    )
    assert strata.shown_levels(levels, most=2)["level"].to_list() == ["a", "b", "d"]
    loses = levels.with_columns(verdict=pl.Series(["gains", "open", "loses", "open"]))
    assert strata.shown_levels(loses, most=1)["level"].to_list() == ["a", "c", "d"]


def test_the_same_split_under_two_names_is_found():
    tasks = pl.DataFrame(
        {
            "jeditaskid": [1, 1, 2, 3, 4],
            "processingtype": ["reco", "reco", "evgen", "evgen", None],
            "gshare": ["MC", "MC", "EV", "EV", "Test"],
            "cores": [8, 8, 8, 1, 1],
        }
    )
    assert strata.repeated(tasks) == {"gshare": "processingtype"}
    assert strata.repeated(tasks.with_columns(gshare=pl.lit("all"))) == {}


def test_levels_above_the_limit_are_named():
    levels = pl.DataFrame(
        {
            "stratum": ["gshare"] * 3 + ["n_scouts"],
            "level": ["MC", "User", "tiny", "5"],
            "n_tasks": [30, 30, 2, 62],
            "after": [0.01, 0.05, 0.3, 0.03],
            "after_lo": [0.005, 0.03, 0.01, 0.025],
            "after_hi": [0.02, 0.08, 0.9, 0.04],
        }
    )
    words = strata.above_limit(chosen(0.0), levels)
    assert (
        "above the limit of 2 % of jobs in: gshare User, 5.0 % (3.0 to 8.0), beyond doubt; 1 level of"
        in words
    )
    assert "MC" not in words
    assert "scouts used" not in words
    assert strata.above_limit(chosen(0.0), levels.head(1)) == ""
