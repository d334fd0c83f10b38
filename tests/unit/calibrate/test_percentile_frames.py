"""Frames of a scout calibration, held to numbers worked by hand."""

from types import SimpleNamespace

import polars as pl
import pytest

from brokerlab.calibrate import percentile_frames as frames
from brokerlab.calibrate.caveats import told_once
from brokerlab.calibrate.parameters import PARAMETERS
from brokerlab.calibrate.percentile_study import (
    DIFFERENT_PERIODS,
    FIXED_RANK,
    NO_QUEUES,
    Study,
    periods_differ,
)


@pytest.mark.parametrize(
    ("alike", "expected"),
    [([True, True], False), ([True, None], False), ([True, False], True), ([None, None], False)],
)
def test_periods_differ_if_either_quantity_does(alike, expected):
    rows = pl.DataFrame(
        {"level": ["all", "all"], "alike": alike}, schema_overrides={"alike": pl.Boolean}
    )
    assert periods_differ(rows) is expected
    assert periods_differ(None) is False


@pytest.mark.parametrize(
    ("kind", "status", "within", "expected"),
    [
        (None, "change", True, "undivided"),
        ("change", "change", True, "change"),
        ("keep", "change", True, "refuted"),
        ("keep", "keep", True, "keep"),
        ("no_answer", "no_answer", True, "few"),
        ("no_answer", "no_answer", False, "unsure"),
        ("no_answer", "no_answer", None, "none"),
        ("no_answer", "change", True, "breach"),
    ],
)
def test_why_the_answer_is_what_it_is(kind, status, within, expected):
    assert answered(kind, status, within=within).case == expected


def answered(kind, status, *, within=True, **verdict):
    """A study of which only the answer and its caveats are known.

    Args:
        within: Whether a setting kills within the limit beyond doubt; null: none even by its rate.
    """
    rates = [0.5, 0.5 if within is None else 0.01]
    candidates = pl.DataFrame({"meets_limit": [False, bool(within)], "exceed_rate": rates})
    return Study(
        parameter=PARAMETERS["ramcount"],
        early=None,
        late=SimpleNamespace(caveats=("of the proof",)),
        choice=SimpleNamespace(
            status=status, candidates=candidates, max_exceed=0.02, caveats=("of the choice",)
        ),
        proof=None,
        other=(80, 10),
        verdict=kind and SimpleNamespace(**{"kind": kind, "information_only": False} | verdict),
        alike=pl.DataFrame({"level": ["all"], "alike": [kind != "change"]}),
        conformal=None,
    )


def test_caveats_are_those_that_apply():
    assert answered("keep", "keep").caveats == ["of the proof", "of the choice", NO_QUEUES]
    assert answered("no_answer", "no_answer").caveats == ["of the proof", NO_QUEUES]
    fixed = answered("change", "change", information_only=True).caveats
    assert fixed[2:] == [DIFFERENT_PERIODS, FIXED_RANK, NO_QUEUES]


def scouts(counts, rank=75, limit=0.02):
    """A study whose proof has so many tasks by number of scouts."""
    used = [n for n, tasks in counts.items() for _ in range(tasks)]
    tasks = pl.DataFrame({"n_scouts": used}).with_columns(rank=rank, margin_pct=10)
    late = SimpleNamespace(by_task=tasks, current=(rank, 10))
    return SimpleNamespace(
        parameter=PARAMETERS["ramcount"], late=late, choice=SimpleNamespace(max_exceed=limit)
    )


def test_promises_say_which_rank_would_do_or_that_none_can():
    table = frames.promises(scouts({5: 30, 3: 2, 24: 7}, limit=0.1))
    rows = {row["n_scouts"]: row for row in table.iter_rows(named=True)}
    assert list(rows) == [3, 5, 6, 7, 8, 9, 10, 24]
    ends = ("rank_75_lo", "rank_75_hi")
    assert [rows[5][end] for end in ends] == pytest.approx([2 / 3, 2 / 3])
    assert [rows[10][end] for end in ends] == pytest.approx([7 / 11, 8 / 11])
    assert rows[8]["needed"] is None
    assert rows[9]["needed"] == pytest.approx(100)
    assert 95 < rows[24]["needed"] <= 96
    assert (rows[24]["n_tasks"], rows[6]["n_tasks"]) == (7, 0)
    assert frames.promises(scouts({5: 30}, limit=0.0)).is_empty()


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
        dict.fromkeys(ends, 1.0) | {"diff_lo": 0.5, "label": "a - b", "unit": "GB h", "quantity": q}
        for q in "xy"
    ]
    rows[1]["before"] = 1e-12
    table = pl.DataFrame(rows)
    found = frames.before_after(SimpleNamespace(proof=SimpleNamespace(table=table)))
    assert found["diff_pct"].to_list() == [1.0, None]
    assert found["label"][0] == "a − b"


def test_what_several_parameters_share_is_told_once():
    told = {"a": ["1,234 of 9 jobs.", "Same."], "b": ["2.5 of 9 jobs.", "Only b."], "c": ["Same."]}
    assert told_once(told) == ["a: 1,234 of 9 jobs (b: 2.5).", "a, c: Same.", "b: Only b."]
    assert told_once({"a": ["1 job."], "b": ["1 job."]}) == ["1 job."]
    assert told_once({"a": ["1 job."], "b": ["2 jobs."]}) == ["a: 1 job.", "b: 2 jobs."]
