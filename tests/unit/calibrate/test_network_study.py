"""The study of the network weight's curves: parts agree with each other, a change needs proof, the document says why."""

from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl
import pytest

from brokerlab.brokerage.network_weight import NetworkSettings
from brokerlab.calibrate.network_curve import (
    Judgement,
    beside_document,
    bounds_of,
    corners,
    exchange_keys,
    later_by_step,
    marks,
    propose_importance,
    read_links,
    study_curve,
    study_exchange,
    study_fallback,
)
from brokerlab.calibrate.network_curve.study import proposed_importance
from brokerlab.errors import DataError, InsufficientDataError
from tests.unit.calibrate import network_toys as toys

QUICK = {"n_boot": 20}
SETTINGS = NetworkSettings()


@pytest.fixture(scope="module")
def links(tmp_path_factory):
    source = tmp_path_factory.mktemp("links") / "network_matrix.parquet"
    toys.snapshots(links=240).write_parquet(source)
    return read_links(source)


@pytest.fixture(scope="module")
def curve(links):
    return study_curve(links.evidence["metrics"], **QUICK)


@pytest.fixture(scope="module")
def exchange(links):
    return study_exchange(links.evidence["metrics"], SETTINGS, **QUICK)


def judged(outcome: str) -> Judgement:
    return Judgement(outcome, diff=0.1, diff_lo=0.04, diff_hi=0.16, value=0.7, reference=0.6)


def test_the_curve_is_scored_on_links_that_it_never_saw(links, curve):
    groups = links.evidence["metrics"].rows["group"].n_unique()
    assert curve.fit.n_links + curve.scores.n_links <= groups
    assert curve.judgement.diff == curve.scores.of("fitted")["diff"]
    assert curve.scores.of("production")["diff"] == 0  # one height differs: the order does not
    assert curve.checks["side"].to_list()[0] == "proof"
    assert curve.checks["diff"][0] == curve.judgement.diff
    assert curve.checks.filter(side="proof_by_source")["resampled"].to_list() == ["src"]
    wide = curve.scores.by_weight()
    assert wide.filter(name="fitted")["spearman"].item() == curve.judgement.value
    assert wide.filter(name="fitted")["ndcg_top_lo"].item() == curve.scores.of("fitted", "ndcg_top")["value_lo"]  # fmt: skip


def test_every_step_of_the_document_says_what_its_links_would_weigh(curve):
    steps = curve.steps.filter(curve="document", n_rows=pl.col("n_rows"))
    assert steps["share"].sum() == pytest.approx(1)
    known = steps.filter(pl.col("n_rows") > 0)
    assert (known["fitted_lo"] <= known["fitted"] + 1e-12).all()
    assert (known["fitted"] <= known["fitted_hi"] + 1e-12).all()
    assert curve.steps.filter(curve="fitted")["fitted"].null_count() == len(curve.fit.steps)
    assert curve.pairs["curve"].to_list() == ["document", "fitted"]


def test_the_fewest_steps_for_a_part_of_the_gain(curve):
    error = curve.fit.by_size["error"].to_list()
    few = curve.fit.steps_for(0.5)
    half = error[0] - 0.5 * (error[0] - min(error))
    assert error[few] <= half
    assert all(value > half for value in error[:few])


def test_a_change_of_the_exchange_needs_proof(exchange):
    fit = replace(exchange.fit, files=50.0, files_lo=40.0, files_hi=60.0, at_edge=False)
    better = judged("better")
    assert proposed_importance(fit, better, SETTINGS, later=True) == 0.75
    assert proposed_importance(fit, better, SETTINGS, later=False) is None
    assert proposed_importance(fit, judged("not_proven"), SETTINGS, later=True) is None
    assert proposed_importance(replace(fit, at_edge=True), better, SETTINGS, later=True) is None
    assert proposed_importance(replace(fit, files=1.0), better, SETTINGS, later=True) is None
    assert proposed_importance(replace(fit, files=150.0), better, SETTINGS, later=True) is None


def test_the_document_says_what_was_proven_and_on_what(links, exchange):
    fit = replace(exchange.fit, files=50.0, files_lo=40.0, files_hi=60.0)
    change = replace(exchange, fit=fit, judgement=judged("better"), proposed=0.75)
    made = {"created_at": toys.NOON, "n_boot": 20, "seed": 1}
    proposal = propose_importance(change, links, **made)
    assert (proposal.kind, proposal.changes[0].new) == ("change", 0.75)
    assert proposal.evidence.verdict.startswith(
        "Raise NW_QUEUE_IMPORTANCE from 0.5 to 0.75 (50 (40 to 60) waiting files per unit"
    )
    assert "rises by 0.100 (0.040 to 0.160), proven later" in proposal.evidence.verdict
    choice, proof = proposal.evidence.windows
    assert (choice.name, choice.start, choice.end) == ("choice", toys.NOON, proof.start)
    assert proof.end == toys.NOON + timedelta(days=7)
    for outcome, later, reason in (
        ("worse", True, "ranks other links worse"),
        ("worse_at_top", True, "best tenth of other links worse"),
        ("not_proven", True, "includes 0"),
        ("better", True, "leaves both parts a say"),
        ("better", False, "one snapshot cannot prove"),
    ):
        kept = replace(change, judgement=judged(outcome), later=later, proposed=None)
        document = propose_importance(kept, links, **made)
        assert document.kind == "keep"
        assert reason in document.evidence.verdict


def test_one_exchange_in_either_key(exchange):
    fit = replace(exchange.fit, current=150.0, files=50.0, files_lo=40.0, files_hi=60.0)
    now, best = exchange_keys(fit, SETTINGS).to_dicts()
    assert (now["importance"], now["cap"], now["files_lo"]) == (0.5, 150, None)
    assert (best["importance"], best["cap"]) == (0.75, 50)
    assert best["importance_lo"] < best["importance"] < best["importance_hi"]
    assert exchange_keys(fit, NetworkSettings(1.0))["cap"].null_count() == 2


def test_the_fallback_is_judged_like_the_curve(links):
    found = study_fallback(links.evidence["metrics"], **QUICK)
    assert found.judgement.diff == found.scores.of("fitted")["diff"]
    assert found.scores.of("nothing_hidden")["value"] >= found.scores.of("line")["value"]


def test_curves_for_drawing(curve):
    mbps = pl.Series([0.02, 3.0, None, 40.0])
    low, high = bounds_of(mbps)
    assert (low, high) == pytest.approx((0.01, 1000))
    drawn = corners(curve.fit.curve, low, high)
    assert drawn["mbps"].is_sorted()
    assert drawn["weight"].is_sorted()
    assert drawn["weight"][-1] == curve.fit.curve.of(high)


def test_links_are_read_within_bounds_and_sources_that_are_not_there_are_refused(links, tmp_path):
    source = tmp_path / "network_matrix.parquet"
    toys.snapshots(links=60).write_parquet(source)
    days = {"start": toys.NOON + timedelta(days=1), "end": toys.NOON + timedelta(days=7)}
    first, _ = read_links(source, **days).evidence["metrics"].spans["choice"]
    assert first == days["start"]
    assert (
        "snapshots at" in read_links(source, end=toys.NOON + timedelta(days=2)).refused["metrics"]
    )
    assert not links.synthetic
    assert not links.active
    with pytest.raises(DataError, match="no such archive"):
        read_links(tmp_path / "nowhere")
    with pytest.raises(InsufficientDataError, match="neither metrics of links nor transfers"):
        read_links()


def test_transfers_alone_have_no_other_facts(tmp_path):
    source = tmp_path / "transfers.parquet"
    toys.dumped_windows(links=400).write_parquet(source)
    found = read_links(source)
    assert set(found.evidence) == {"transfers"}
    evidence = found.evidence["transfers"]
    assert evidence.spans["proof"] == (datetime(2026, 3, 15), datetime(2026, 3, 29))
    assert (evidence.facts["n_periods"], evidence.facts["n_local"]) == (3, 0)
    assert study_curve(evidence, **QUICK).judgement.outcome in {"better", "demand", "not_proven"}


def test_frames_for_charts_hold_what_was_found(links, curve):
    rows = links.evidence["metrics"].rows
    both = beside_document(curve.fit, rows["mbps"], fitted="proposed")
    assert set(both["curve"]) == {"current", "proposed"}
    assert (
        both.filter(curve="current")["weight_lo"].null_count()
        == both.filter(curve="current").height
    )
    later = later_by_step(curve.steps)
    assert later.height == curve.steps["q50"].count()
    assert (later["later_lo"] <= later["later_hi"]).all()
    assert later["step"][0] == "lowest"
    assert set(later["step"][1:]) >= {"above 1"}


def test_words_of_scores_say_what_is_current_and_what_is_better(curve):
    rows = {row["name"]: row for row in curve.scores.by_weight().to_dicts()}
    assert (rows["document"]["weight"], rows["document"]["mark"]) == ("document's curve", "current")
    for name in rows.keys() - {"document"}:
        assert (rows[name]["mark"] == "better") == (rows[name]["diff_lo"] > 0)
    assert curve.checks["name"][0] == "later, unseen links (the proof)"


def test_the_closeness_line_stands_above_the_fitted_weights(links):
    fit = study_fallback(links.evidence["metrics"], **QUICK).fit
    drawn = fit.by_setting("proposed")
    assert drawn["setting"].unique(maintain_order=True).to_list() == ["current", "proposed"]
    assert drawn.filter(setting="current")["weight"].to_list() == fit.table["line"].to_list()
    assert (
        drawn.filter(setting="proposed")["weight_lo"].to_list() == fit.table["weight_lo"].to_list()
    )
    assert not drawn["level"].null_count()


def test_the_answer_and_the_marks_of_an_exchange(exchange):
    found = {row["label"]: row["files"] for row in marks(exchange.fit, "best").to_dicts()}
    assert found["current"] == exchange.fit.current
    assert found.get("best", exchange.fit.current) == exchange.fit.files
    better = replace(exchange, judgement=judged("better"), proposed=None)
    assert replace(better, proposed=0.7).answer == "better"
    assert replace(better, later=True).answer == "one_part"
    assert replace(better, later=False).answer == "snapshot"
    assert replace(better, judgement=judged("worse")).answer == "worse"
