"""From a back-test to a verdict on scout percentiles: judge, comparison, sentence, proposal."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

from brokerlab.calibrate import current_setting, propose
from brokerlab.calibrate.judge import Question, cap_weights, judge
from brokerlab.calibrate.percentiles.backtest import at_setting
from brokerlab.calibrate.percentiles.frames import compare
from brokerlab.calibrate.percentiles.parameters import COMPONENTS, LossWeights, Setting
from brokerlab.calibrate.percentiles.study import Study, kills
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.scouts import ScoutRules
from brokerlab.words import days_of, short_percent
from tests.unit.calibrate import toys
from tests.unit.calibrate.toys import backtest

NOW = datetime(2026, 11, 21)
GRID = {"ranks": [55, 65, 75, 85, 95], "margins": [0, 10, 15, 20, 30]}


def judged(history, *, limit=0.03, loss=None, **how) -> Study:
    jobs, tasks, queues = history
    tried = backtest(jobs, tasks, queues, loss=loss, **{**GRID, **how})
    question = kills(limit, n_boot=300)
    found = judge(tried.outcomes(), question, also=COMPONENTS)
    return Study(tried=tried, judgement=found, created_at=NOW)


def under(made: Study, **inputs: Any) -> Study:
    """The same study of other inputs."""
    tried = replace(made.tried, inputs=replace(made.inputs, **inputs))
    return replace(made, tried=tried)


@pytest.fixture(scope="module")
def history():
    """200 tasks whose memory spreads by 8 %: p75 x 1.10 kills about 7 % of the jobs."""
    return toys.quantities(200, 60, seed=7, hours_between=6), toys.tasks(200), toys.queues()


@pytest.fixture(scope="module")
def made(history):
    return judged(history)


def test_what_is_given_in_place_of_a_study_or_a_configuration_is_said(history):
    with pytest.raises(ConfigError, match=r"given is a dict; allowed is a study, such as"):
        propose({})
    with pytest.raises(ConfigError, match=r"given is a dict; allowed is a configuration"):
        current_setting({})
    with pytest.raises(ConfigError, match=r"ranks = 75: allowed are several whole numbers"):
        judged(history, ranks=75)


def test_a_setting_within_the_limit_replaces_one_that_breaks_it(made):
    j = made.judgement
    assert (j.kind, j.current) == ("change", Setting(75, 10))
    assert j.quantity("exceed_rate")["after"] <= 0.03 < j.quantity("exceed_rate")["before"]
    kept = j.candidates.filter("kept")
    assert j.settings[kept.sort("loss")["place"][0]] == j.cheapest_within


def test_the_judge_sees_what_the_back_test_says_of_every_task(made):
    """Loss and kill rate of a setting are the weighted means over the rows of the tasks."""
    best = made.judgement.best
    rows = made.tried.under([best])
    weights = cap_weights(rows["work_coreh"].to_numpy())
    place = made.judgement.settings.index(best)
    row = made.judgement.candidates.filter(place=place).row(0, named=True)
    for name, values in {
        "loss": rows["cost_coreh"] / rows["work_coreh"],
        "exceed_rate": rows["n_exceed"] / rows["n_scored"],
    }.items():
        assert row[name] == pytest.approx((weights @ values.to_numpy()) / weights.sum())


def test_the_comparison_is_of_the_scored_tasks_and_agrees_with_the_judge(made):
    assert made.comparison.n_tasks == made.judgement.n_scored == 150
    for name in ("loss", "exceed_rate"):
        judge_says, table = made.judgement.quantity(name), made.comparison.quantity(name)
        ends = [
            f"{side}{end}" for side in ("before", "after", "diff") for end in ("", "_lo", "_hi")
        ]
        assert [table[end] for end in ends] == pytest.approx([judge_says[end] for end in ends])
    first = made.inputs.tasks.sort("created_at").head(50)["jeditaskid"]
    before, after = made.scored
    assert not before["jeditaskid"].is_in(first.implode()).any()
    assert before["jeditaskid"].equals(after["jeditaskid"])
    chosen = set(after.select(Setting._fields).rows())
    blocks = made.judgement.blocks["place"].drop_nulls()
    assert chosen == {made.judgement.settings[place] for place in blocks}


def test_amounts_add_up_and_say_how_far_their_intervals_are_to_be_trusted(made):
    table = made.comparison.table
    for row in table.drop_nulls("diff_lo").iter_rows(named=True):
        assert row["after"] - row["before"] == pytest.approx(row["diff"])
        assert row["diff_lo"] - 1e-9 <= row["diff"] <= row["diff_hi"] + 1e-9, row["quantity"]
    rows = {row["quantity"]: row for row in table.iter_rows(named=True)}
    parts = sum(rows[f"{name}_gbh"]["after"] for name in ("used", "over", "waste"))
    assert rows["reserved_gbh"]["after"] == pytest.approx(parts)
    killed = made.scored[0]["n_exceed"].sum()
    assert rows["n_exceed"]["before"] == killed
    assert rows["exceed_rate_jobs"]["before"] == pytest.approx(killed / made.comparison.n_scored)
    assert rows["loss"]["coverage"] > rows["reserved_gbh"]["coverage"]
    assert [name for name, row in rows.items() if row["judged"]] == ["exceed_rate", "loss"]
    assert set(made.comparison.by_stratum["verdict"]) <= {"gains", "loses", "open"}
    assert made.comparison.by_stratum.filter(pl.col("n_tasks") < 20)["loss_diff_lo"].is_null().all()


def test_other_tasks_cannot_be_compared(made):
    before, after = made.scored
    with pytest.raises(ConfigError, match="not of the same tasks"):
        compare(made.judgement.table, before, after.head(3), made.tried.parameter, Question())
    with pytest.raises(ConfigError, match="no quantity 'exceedrate': did you mean 'exceed_rate'"):
        made.comparison.quantity("exceedrate")


def test_weights_decide(history):
    thrifty = LossWeights(over=100, killed_coreh=0, n_exceed=0, n_lost=0, unreachable_coreh=0)
    careful = LossWeights(over=0.0, killed_coreh=1.0, n_exceed=1.0)
    low, high = (judged(history, limit=1.0, loss=w) for w in (thrifty, careful))
    # retries at twice the request cost more than the head-room they save: not the lowest setting
    reserved, killed = (
        [toys.row_of(one.tried, *one.judgement.best.pair)[name] for one in (low, high)]
        for name in ("over_gbh", "exceed_rate")
    )
    assert reserved[0] < reserved[1]
    assert killed[0] > killed[1]
    assert low.judgement.rechoose(careful.to_dict()) == high.judgement.best


def test_another_minimum_is_another_choice(made):
    other = made.best._replace(minimum_mb=500)

    class Another:
        best = made.judgement.best

        def rechoose(self, _weights):
            return other

    moved = replace(made, judgement=Another())
    assert set(moved.rechosen.values()) == {other}
    assert not moved.stable


def test_weights_are_checked():
    with pytest.raises(ConfigError, match="n_lost=-1"):
        LossWeights(over=1, n_lost=-1)
    with pytest.raises(ConfigError, match="did you mean 'n_lost'"):
        LossWeights.default("ramcount", n_loss=3)
    assert all(LossWeights.default("cputime").why("cputime").values())


def test_the_paired_reach_of_a_candidate_is_that_of_the_task_rows(history):
    """The loss and its paired interval, summed over blocks, are those of the rows of the tasks."""
    other = Setting(85, 15)
    tried = backtest(*history, ranks=[75, 85], margins=[10, 15])
    outcomes = tried.outcomes()
    candidates = judge(outcomes, kills()).candidates
    rows = tried.under([tried.current, other])
    one, two = (at_setting(rows, each) for each in (tried.current, other))
    weights = cap_weights(one["work_coreh"].to_numpy())
    gain = ((one["cost_coreh"] - two["cost_coreh"]) / one["work_coreh"]).to_numpy()
    mean = weights @ gain / weights.sum()
    n = weights.size
    error = np.sqrt(n / (n - 1) * (weights**2 @ (gain - mean) ** 2)) / weights.sum()
    row = candidates.row(outcomes.settings.index(other), named=True)
    assert (mean - row["gain_lo"]) / error == pytest.approx(1.972, abs=0.01)
    now = candidates.row(outcomes.current, named=True)
    assert row["gain"] == pytest.approx(mean / now["loss"])
    assert now["gain_lo"] == 0.0
    whole = toys.row_of(tried, *other.pair)
    assert whole["loss"] == pytest.approx(two["cost_coreh"].sum() / two["work_coreh"].sum())


def test_only_settable_margins_of_cputime(history):
    tried = backtest(*history, parameter="cputime", ranks=[90, 95])
    assert set(tried.outcomes().settings) == {Setting(90, 50), Setting(95, 50)}


def test_tasks_without_a_creation_time_begin_with_their_first_job(history):
    jobs, tasks, queues = history
    undated = tasks.with_columns(creationdate=pl.lit(None, pl.Datetime("us")))
    times = backtest(jobs, undated, queues, **GRID).outcomes().units["time"]
    assert times.equals(jobs.group_by("jeditaskid").agg(pl.col("creationtime").min()).sort("jeditaskid")["creationtime"].rename("time"))  # fmt: skip
    lost = jobs.with_columns(creationtime=pl.lit(None, pl.Datetime("us")))
    with pytest.raises(InsufficientDataError, match="no task with work has a creation time"):
        backtest(lost, undated, queues, **GRID).outcomes()


def test_the_sentence_names_keys_numbers_and_limit(made):
    verdict, setting = made.verdict, made.judgement.setting
    assert verdict.kind == "change"
    assert f"SCOUT_RAMCOUNT_MARGIN from 10 to {setting.margin_pct}" in verdict.sentence
    assert "memory reserved" in verdict.sentence
    assert "limit 3 %" in verdict.sentence
    assert "judged on 150 tasks" in verdict.sentence
    document = verdict.proposal
    applied = document.applied_to(Config.empty())
    assert current_setting(applied, "ramcount") == setting
    rules = ScoutRules()
    assert document.digests.rules == rules.digest
    assert rules.digest != ScoutRules(leak_exhausts=not rules.leak_exhausts).digest
    assert [w.name for w in document.evidence.windows] == ["first choice", "scored"]
    assert document.evidence.windows[0].end <= document.evidence.windows[1].start
    with pytest.raises(ConfigError, match=r"run it with current="):
        propose(under(made, config=applied))


def test_evidence_from_a_part_of_the_tasks_proposes_nothing_for_all(made):
    """A run on one global share once proposed 75 to 62 for every task of the system."""
    part = under(made, filters={"gshare": "MC"})
    verdict = part.verdict
    assert (verdict.kind, verdict.proposal) == ("change", None)
    assert verdict.sentence.startswith(
        "Measured on tasks with gshare MC only, so nothing is proposed"
    )
    kept = replace(made.judgement, kind="keep", case="nothing_better", setting=Setting(75, 10))
    document = replace(part, judgement=kept).verdict.proposal
    assert document.evidence.filters == {"gshare": "MC"}
    assert made.verdict.proposal.evidence.filters == {}


CASES = {
    "fewer_breaches": ("change", "the current setting breaks the limit"),
    "better_not_within": ("improve", "the limit is still not kept"),
    "nothing_better": ("keep", "Keep SCOUT_RAMCOUNT_RANK = 75"),
    "imprecise": ("no_answer", "about 12 tasks more would do"),
    "breach": ("no_answer", "No answer: the current setting breaks the limit"),
    "unconfirmed": ("no_answer", "none is shown to do so on all tasks"),
    "no_other": ("no_answer", "no other setting that was tried keeps the limit on all tasks and"),
    "few": ("no_answer", "20 are needed"),
}


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_its_sentence_and_document(made, case):
    kind, words = CASES[case]
    setting = made.judgement.best if kind in ("change", "improve") else Setting(75, 10)
    forced = replace(
        made.judgement, kind=kind, case=case, setting=setting, smallest_seen=0.031, units_missing=12
    )
    verdict = replace(made, judgement=forced).verdict
    assert words in verdict.sentence
    document = verdict.proposal
    assert (document is None) == (kind == "no_answer")
    unknown = replace(made, judgement=replace(forced, units_missing=0)).verdict.sentence
    assert ("not excluded; more tasks would do." in unknown) == (case == "imprecise")
    if document:
        assert document.kind == ("keep" if kind == "keep" else "change")
        assert (document.evidence.effects == ()) == (kind == "keep")


def test_what_would_keep_the_limit_and_its_price_are_said(made):
    forced = replace(
        made.judgement, kind="improve", case="better_not_within", cheapest_within=Setting(95, 30)
    )
    sentence = replace(made, judgement=forced).verdict.sentence
    candidates = made.judgement.candidates
    place = made.judgement.settings.index(Setting(95, 30))
    price = candidates.filter(place=place)["loss"][0] - candidates.filter("is_best")["loss"][0]
    assert forced.setting == made.judgement.best
    assert (
        f"rank 95 with margin 30 % would keep it on all tasks (stated loss {price:+.3f})"
        in sentence
    )
    never = replace(forced, cheapest_within=None)
    assert (
        "no setting of the grid does with certainty"
        in replace(made, judgement=never).verdict.sentence
    )


def test_the_sentence_admits_what_the_interval_leaves_open(made):
    here = pl.col("quantity")
    table = made.judgement.table.with_columns(
        after_hi=pl.when(here == "exceed_rate").then(0.04).otherwise("after_hi"),
        diff_hi=pl.when(here == "loss").then(0.01).otherwise("diff_hi"),
    )
    doubtful = replace(made, judgement=replace(made.judgement, table=table)).verdict.sentence
    assert "limit 3 %, inside the interval)" in doubtful
    assert "+0.010; the limit decides)" in doubtful


def test_a_fixed_rank_is_information_for_developers(history):
    how = {"parameter": "outdiskcount", "ranks": [60, 75, 90], "margins": None}
    verdict = judged(history, limit=0.99, **how).verdict
    assert verdict.information_only
    assert verdict.proposal is None


def test_wording():
    assert (
        days_of(datetime(2025, 12, 30), datetime(2026, 1, 2))
        == "30 December 2025 to 2 January 2026"
    )
    assert short_percent(0.0995) == "9.95 %"
