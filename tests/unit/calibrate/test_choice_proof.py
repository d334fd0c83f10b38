from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest

from brokerlab.calibrate import current_setting, propose
from brokerlab.calibrate.percentiles import (
    Assumptions,
    LossWeights,
    backtest,
    choose,
    exchangeability,
    prove,
    split_periods,
)
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.scouts import ScoutRules
from brokerlab.words import days_of, short_percent
from tests.unit.calibrate import toys

NOW = datetime(2026, 11, 21)


@pytest.fixture(scope="module")
def history():
    """200 tasks whose memory spreads by 8 %: p75 x 1.10 kills about 7 % of the jobs."""
    return toys.quantities(200, 60, seed=7, hours_between=6), toys.tasks(200), toys.queues()


@pytest.fixture(scope="module")
def periods(history):
    return split_periods(history[1], history[0])


def run(history, tasks, **how):
    return backtest(history[0], tasks, history[2], **how)


@pytest.fixture(scope="module")
def early(history, periods):
    return run(history, periods.early)


@pytest.fixture(scope="module")
def choice(early):
    return choose(early, max_exceed=0.03)


@pytest.fixture(scope="module")
def late(history, periods, choice):
    return run(history, periods.late, detail=[choice.setting])


def test_least_loss_under_the_limit(early, choice):
    assert choice.status == "change"
    frame = choice.candidates
    assert frame.filter("meets_limit")["exceed_hi"].max() <= 0.03
    best = frame.filter("meets_limit")["loss"].min()
    rank, margin = choice.setting
    chosen = frame.filter((pl.col("rank") == rank) & (pl.col("margin_pct") == margin))
    assert chosen["loss"].item() == pytest.approx(best, rel=1e-9)
    assert "meets the limit, which the current setting breaks" in choice.reason
    assert choice.sensitivity.height == 10
    assert choose(early, max_exceed=0.03).setting == choice.setting


def test_weights_decide(early):
    thrifty = LossWeights(
        over=100.0, killed_coreh=0.0, n_exceed=0.0, n_lost=0.0, unreachable_coreh=0.0
    )
    careful = LossWeights(over=0.0, killed_coreh=1.0, n_exceed=1.0)
    low, high = (choose(early, max_exceed=1.0, loss=w) for w in (thrifty, careful))
    # retries at twice the request cost more than the head-room they save: not the lowest setting
    assert early.setting(*low.setting)["over_gbh"] < early.setting(*high.setting)["over_gbh"]
    assert early.setting(*high.setting)["exceed_rate"] < early.setting(*low.setting)["exceed_rate"]


def test_moments_equal_the_sums_over_tasks(early, history, periods):
    """The streamed loss and its paired interval are those of the task rows."""
    other = (85, 15)
    tried = run(history, periods.early, ranks=[75, 85], margins=[10, 15], detail=[other])
    rows = tried.by_task.sort("jeditaskid")
    one, two = (
        rows.filter((pl.col("rank") == r) & (pl.col("margin_pct") == m))
        for r, m in [(75, 10), other]
    )
    work = one["work_coreh"].to_numpy()
    gain = (two["cost_coreh"] - one["cost_coreh"]).to_numpy()
    ratio = gain.sum() / work.sum()
    n = work.size
    error = np.sqrt(n / (n - 1) * ((gain - ratio * work) ** 2).sum()) / work.sum()
    row = tried.setting(*other)
    assert row["loss_diff"] == pytest.approx(ratio)
    assert (row["loss_diff_hi"] - row["loss_diff"]) / error == pytest.approx(
        1.984, abs=0.01
    )  # t, 99
    assert tried.setting(75, 10)["loss_diff_hi"] == 0.0


def test_keep_when_nothing_is_better_beyond_doubt(history):
    few = run(history, history[1].head(12), ranks=[74, 75, 76], margins=[10])
    choice = choose(few, max_exceed=0.9)
    assert choice.status == "keep"
    assert choice.setting == (75, 10)
    assert "more than its own uncertainty" in choice.reason


def test_no_answer_when_no_setting_meets_the_limit(early):
    choice = choose(early, max_exceed=0.0)
    assert choice.status == "no_answer"
    assert "No setting of the grid" in choice.reason


def test_only_settable_margins_of_cputime(history, periods):
    tried = run(history, periods.early, parameter="cputime")
    assert set(choose(tried, max_exceed=1).candidates["margin_pct"]) == {50}
    assert (
        choose(tried, max_exceed=1, settable_only=False).candidates.height
        == tried.by_setting.height
    )


@pytest.mark.parametrize("how", [{"max_exceed": 1.5}, {"limit_on": "mean"}])
def test_impossible_limits(early, how):
    with pytest.raises(ConfigError, match="allowed are a share from 0 to 1"):
        choose(early, **how)


def test_weights_are_checked():
    with pytest.raises(ConfigError, match="n_lost=-1"):
        LossWeights(over=1, n_lost=-1)
    with pytest.raises(ConfigError, match="did you mean 'n_lost'"):
        LossWeights.default("ramcount", n_loss=3)
    assert all(LossWeights.default("cputime").why("cputime").values())


def test_proof_is_paired_seeded_and_adds_up(late, choice):
    proof = prove(late, choice.setting, max_exceed=0.03, n_boot=500, seed=3)
    again = prove(late, choice.setting, max_exceed=0.03, n_boot=500, seed=3)
    assert proof.table.equals(again.table)
    assert proof.status == "proven"
    for row in proof.table.drop_nulls("diff_lo").iter_rows(named=True):
        assert row["after"] - row["before"] == pytest.approx(row["diff"])
        assert row["diff_lo"] - 1e-9 <= row["diff"] <= row["diff_hi"] + 1e-9, row["quantity"]
    loss = proof.quantity("loss")
    # paired: the difference is known far better than either side
    assert loss["diff_hi"] - loss["diff_lo"] < loss["before_hi"] - loss["before_lo"]
    before = late.setting(*late.current)
    assert proof.quantity("exceed_rate")["before"] == pytest.approx(before["exceed_rate"])
    assert loss["before"] == pytest.approx(before["loss"])
    assert set(proof.by_stratum["stratum"]) == {"processingtype", "gshare", "cores", "n_scouts"}
    assert set(proof.by_stratum["verdict"]) <= {"gains", "loses", "open"}


def test_proof_needs_the_setting_in_detail(late):
    with pytest.raises(ConfigError, match=r"give detail=\[\(99, 30\)\]"):
        prove(late, (99, 30))


def test_a_choice_that_is_not_borne_out(late, choice, periods):
    refuted = prove(late, choice.setting, max_exceed=0.001)
    assert refuted.status == "not_proven"
    proof = replace(refuted, max_exceed=1.0)  # a limit that the current setting meets
    verdict = propose(choice, proof, late, periods, Config.empty(), created_at=NOW)
    assert verdict.kind == "keep"
    assert "is not borne out" in verdict.sentence
    assert verdict.proposal is not None
    assert verdict.proposal.kind == "keep"


def test_a_setting_that_breaks_the_limit_is_not_advised(late, choice, periods):
    proof = prove(late, choice.setting, max_exceed=0.001)
    verdict = propose(choice, proof, late, periods, Config.empty(), created_at=NOW)
    assert verdict.kind == "no_answer"
    assert verdict.proposal is None
    assert "the current setting does not meet the limit (" in verdict.sentence


def test_the_upper_bound_can_be_asked_of_the_proof(late, choice, periods):
    exceed = prove(late, choice.setting, max_exceed=0.5).quantity("exceed_rate")
    between = (exceed["after"] + exceed["after_hi"]) / 2
    assert prove(late, choice.setting, max_exceed=between).status == "proven"
    proof = prove(late, choice.setting, max_exceed=between, limit_on="upper")
    assert proof.status == "not_proven"
    assert "the upper bound of the exceed rate is above the limit" in proof.reason
    assert "is not met" not in proof.reason


def test_the_verdict_names_keys_numbers_limit_and_period(late, choice, periods):
    proof = prove(late, choice.setting, max_exceed=0.03)
    verdict = propose(choice, proof, late, periods, Config.empty(), created_at=NOW, synthetic=True)
    assert verdict.kind == "change"
    rank, margin = choice.setting
    assert f"SCOUT_RAMCOUNT_MARGIN from 10 to {margin}" in verdict.sentence
    assert "memory reserved" in verdict.sentence
    assert "limit 3 %" in verdict.sentence
    assert "100 tasks" in verdict.sentence
    applied = verdict.proposal.applied_to(Config.empty())
    assert current_setting(applied, "ramcount") == (rank, margin)
    assert verdict.proposal.evidence.synthetic
    rules = ScoutRules()
    assert verdict.proposal.digests.rules == rules.digest
    assert rules.digest != ScoutRules(leak_exhausts=not rules.leak_exhausts).digest
    assert {w.name for w in verdict.proposal.evidence.windows} == {"choice", "proof"}
    with pytest.raises(ConfigError, match=r"run the back-tests with current"):
        propose(choice, proof, late, periods, applied, created_at=NOW)


def test_the_verdict_admits_what_is_not_beyond_doubt(late, choice, periods):
    proof = prove(late, choice.setting, max_exceed=0.03)
    change = lambda p: propose(choice, p, late, periods, Config.empty(), created_at=NOW).sentence  # noqa: E731
    plain = change(proof)
    assert "), proven on" in plain
    assert "stated loss" not in plain
    here = pl.col("quantity")
    doubtful = proof.table.with_columns(
        after_hi=pl.when(here == "exceed_rate").then(0.04).otherwise("after_hi"),
        diff_hi=pl.when(here == "loss").then(0.01).otherwise("diff_hi"),
    )
    sentence = change(replace(proof, table=doubtful))
    assert "limit 3 %, inside the interval)" in sentence
    assert "+0.010; the limit decides), held on" in sentence


def test_the_proposal_carries_the_caveats_of_its_choice(late, choice, periods):
    proof = prove(late, choice.setting, max_exceed=0.03)
    warned = replace(choice, caveats=("Few tasks.",))
    made = [
        propose(c, proof, late, periods, Config.empty(), created_at=NOW).proposal.evidence.numbers
        for c in (choice, warned)
    ]
    assert "caveats_of_choice" not in made[0]
    assert made[1]["caveats_of_choice"] == "Few tasks."


def test_a_choice_on_few_tasks_says_so(early):
    assert choose(early, max_exceed=0.03).caveats == ()  # 100 tasks: enough from 2.5 % on
    (few,) = choose(early, max_exceed=0.01).caveats
    assert few.startswith("100 tasks are few for a limit of 1 %: with fewer than 250")
    (point,) = choose(early, max_exceed=0.03, limit_on="point").caveats
    assert "about as often as not" in point
    assert choose(early, max_exceed=0).caveats == ()


def test_jobs_of_early_tasks_that_end_in_the_late_period_are_counted(history):
    jobs, tasks, _ = history
    ends = jobs.filter(pl.col("jeditaskid") == 100)["finish_time"].sort()
    at = ends[40]  # the only early task has 60 jobs
    divided = split_periods(tasks, jobs, at=at)
    assert (divided.early.height, divided.n_overlapping) == (1, 20)


def test_a_fixed_rank_is_information_for_developers(history, periods):
    tried, later = (
        run(history, side, parameter="outdiskcount") for side in (periods.early, periods.late)
    )
    choice = choose(tried, max_exceed=0.99)
    later = run(history, periods.late, parameter="outdiskcount", detail=[choice.setting])
    proof = prove(later, choice.setting, max_exceed=0.99)
    verdict = propose(choice, proof, later, periods, Config.empty(), created_at=NOW)
    assert verdict.information_only
    assert verdict.proposal is None
    assert "(fixed in the code)" in verdict.sentence


def test_periods_do_not_overlap(history, periods):
    assert periods.early.height == periods.late.height == 100
    assert periods.early["creationdate"].max() < periods.at <= periods.late["creationdate"].min()
    at = toys.T0 + timedelta(days=50)
    assert split_periods(history[1], at=at).early.height == 50
    with pytest.raises(ConfigError, match="fraction=1"):
        split_periods(history[1], fraction=1)
    undated = history[1].with_columns(creationdate=pl.lit(None, pl.Datetime("us")))
    with pytest.raises(InsufficientDataError, match="no task with jobs has a creation time"):
        split_periods(undated)
    assert split_periods(undated, history[0]).n_undated == 0  # the first job's creation stands in


def test_alike_periods_are_called_alike_and_a_shift_is_seen(history, periods, early):
    jobs, _, queues = history
    same = exchangeability(early, backtest(jobs, periods.late, queues))
    everything = same.filter(pl.col("level") == "all")
    assert everything["alike"].all()
    heavier = jobs.with_columns(
        pl.when("is_scout")
        .then("maxpss_kb")
        .otherwise(pl.col("maxpss_kb") * 1.1)
        .alias("maxpss_kb"),
        pl.when("is_scout").then("ram_kb").otherwise(pl.col("ram_kb") * 1.1).alias("ram_kb"),
    )
    other = exchangeability(early, backtest(heavier, periods.late, queues))
    assert not other.filter(pl.col("level") == "all")["alike"].any()
    assert other.filter(pl.col("level") == "all")["ks_pvalue"].max() < 0.01


def test_wording():
    assert (
        days_of(datetime(2025, 12, 30), datetime(2026, 1, 2))
        == "30 December 2025 to 2 January 2026"
    )
    assert short_percent(0.0995) == "9.95 %"


def test_conformal_rule_competes_on_the_same_terms(history, periods):
    made = Assumptions(rule="conformal", scouts_used="all")
    tried = run(history, periods.early, ranks=range(70, 100, 5), margins=(0, 10), assumptions=made)
    covered = 1 - tried.setting(80, 0)["exceed_rate_task_mean"]
    assert covered == pytest.approx(9 / 11, abs=0.03)  # order 9 of ten: exchangeable scouts
    assert tried.setting(95, 0)["n_fallback"] == 100
