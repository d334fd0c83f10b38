"""The study of the network weight's curves: parts agree with each other, a change needs proof, the document says why."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl
import pytest

from brokerlab.brokerage.network_weight import NetworkSettings, ThroughputCurve
from brokerlab.calibrate.judge import Judgement
from brokerlab.calibrate.network_curve import (
    Study,
    beside_current,
    levels_by_setting,
    marks,
    propose,
    read_links,
    study_curve,
    study_exchange,
    study_fallback,
)
from brokerlab.calibrate.network_curve.curves import bounds_of, corners, log_curve
from brokerlab.calibrate.network_curve.weights import COVERAGE
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


def as_judged(study: Study, kind: str, case: str, *, setting: str | None = None) -> Study:
    """The same study with another verdict."""
    judgement = study.judgement
    table = judgement.table.with_columns(
        before=pl.when(quantity=pl.lit("loss")).then(0.4).otherwise("before"),
        after=pl.when(quantity=pl.lit("loss")).then(0.3).otherwise("after"),
        diff=pl.when(quantity=pl.lit("loss")).then(-0.1).otherwise("diff"),
        diff_lo=pl.when(quantity=pl.lit("loss")).then(-0.16).otherwise("diff_lo"),
        diff_hi=pl.when(quantity=pl.lit("loss")).then(-0.04).otherwise("diff_hi"),
    )
    chosen = judgement.current if setting is None else setting
    other: Judgement = replace(judgement, kind=kind, case=case, table=table, setting=chosen)
    return replace(study, judgement=other, unknown=None)


def test_every_link_scores_a_weight_that_it_had_not_helped_to_choose(links, curve):
    groups = links.evidence["metrics"].rows["group"].n_unique()
    judged = curve.judgement
    assert judged.n_scored < judged.n_units <= groups
    assert judged.blocks["start"].is_sorted()
    assert judged.blocks.height == len(links.evidence["metrics"].spans) == 3
    gain = curve.of("chosen")
    assert (gain["diff"], gain["spearman"]) == (curve.gain["diff"], curve.gain["after"])
    assert curve.gain["diff"] == pytest.approx(-judged.quantity("loss")["diff"])
    assert curve.of("production")["diff"] == 0  # one height differs: the order does not
    assert curve.of("document")["mark"] == "current"


def test_every_step_of_the_document_says_what_its_links_would_weigh(curve):
    steps = curve.frames["all_steps"].filter(curve="document", n_rows=pl.col("n_rows"))
    assert steps["share"].sum() == pytest.approx(1)
    known = steps.filter(pl.col("n_rows") > 0)
    assert (known["other_lo"] <= known["other"] + 1e-12).all()
    assert (known["other"] <= known["other_hi"] + 1e-12).all()
    fitted = curve.frames["all_steps"].filter(curve="fitted").drop_nulls("other")
    assert fitted["other"].to_list() == pytest.approx(fitted["weight"].to_list())
    assert 0 < curve.facts["tied"] < 1


def test_the_document_says_what_was_scored_and_on_what(links, exchange):
    change = as_judged(exchange, "change", "lower_loss", setting="0.75")
    proposal = propose(change, links, created_at=toys.NOON).proposal
    assert (proposal.kind, proposal.changes[0].new) == ("change", 0.75)
    assert proposal.evidence.verdict.startswith(
        "Raise NW_QUEUE_IMPORTANCE from 0.5 to 0.75 (100 waiting files per unit"
    )
    assert "rises by 0.100 (0.040 to 0.160), of the top tenth" in proposal.evidence.verdict
    (effect,) = proposal.evidence.effects
    assert (effect.difference, effect.low, effect.high) == pytest.approx((0.1, 0.04, 0.16))
    assert effect.coverage in COVERAGE.values()  # of links
    assert proposal.evidence.numbers["measured_coverage"] == effect.coverage
    assert "6,621 real" in proposal.evidence.numbers["coverage_measured_on"]
    first, scored = proposal.evidence.windows
    assert (first.name, first.start, first.end) == ("first choice", toys.NOON, scored.start)
    assert scored.end == toys.NOON + timedelta(days=7)
    better = as_judged(exchange, "improve", "better_not_within", setting="0.75")
    words = propose(better, links, created_at=toys.NOON).proposal.evidence.verdict
    assert "limit is still not kept, NW_QUEUE_IMPORTANCE = " in words
    kept = as_judged(exchange, "keep", "nothing_better")
    document = propose(kept, links, created_at=toys.NOON).proposal
    assert document.kind == "keep"
    assert "No setting is shown to lower 1 - rank correlation" in document.evidence.verdict
    assert [change.key for change in document.changes] == ["NW_QUEUE_IMPORTANCE"]
    deployed = replace(links, rules="production")  # whose line ends at the cap
    both = propose(kept, deployed, created_at=toys.NOON).proposal
    assert [change.key for change in both.changes] == ["NW_QUEUE_IMPORTANCE", "NQUEUED_SAT_CAP"]
    assert (document.digests.rules, both.digests.rules) == ("document", "production")


@pytest.mark.parametrize(("rise", "words"), [(0.1, "10 % more"), (-0.552, "55.2 % less")])
def test_a_fall_of_what_is_ranked_wrongly_is_called_one(links, exchange, rise, words):
    change = as_judged(exchange, "change", "lower_loss", setting="0.75")
    after = pl.when(quantity=pl.lit("top_rise")).then(rise).otherwise("after")
    table = change.judgement.table.with_columns(after=after)
    risen = replace(change, judgement=replace(change.judgement, table=table))
    sentence = propose(risen, links, created_at=toys.NOON).proposal.evidence.verdict
    assert f"of the top tenth {words} is ranked wrongly" in sentence


@pytest.mark.parametrize("case", ["few", "imprecise", "unconfirmed", "no_other"])
def test_without_an_answer_nothing_is_proposed(links, exchange, case):
    unknown = as_judged(exchange, "no_answer", case)
    assert propose(unknown, links, created_at=toys.NOON).proposal is None
    better = as_judged(exchange, "change", "lower_loss", setting="0.75")
    alone = better.cannot_tell("snapshot")
    assert alone.unknown == "snapshot"
    assert propose(alone, links, created_at=toys.NOON).proposal is None


def test_the_fallback_is_judged_like_the_curve(links):
    found = study_fallback(links.evidence["metrics"], **QUICK)
    assert found.judgement.question.objective == "loss"
    assert found.gain["diff"] == found.of("chosen")["diff"]
    assert found.of("nothing_hidden")["spearman"] >= found.of("line")["spearman"]


def test_curves_for_drawing(curve):
    mbps = pl.Series([0.02, 3.0, None, 40.0])
    low, high = bounds_of(mbps)
    assert (low, high) == pytest.approx((0.01, 1000))
    for drawn_curve in (curve.fit.curve, log_curve(low, high)):
        drawn = corners(drawn_curve, low, high)
        assert drawn["mbps"].is_sorted()
        assert drawn["weight"].is_sorted()
        assert drawn["weight"][-1] == drawn_curve.of(high)


def test_the_logarithm_as_a_curve_has_steps_of_the_same_ratio():
    found = log_curve(0.01, 1000)
    assert [found.of(at) for at in (0.01, 0.02, 3.2, 1001)] == pytest.approx([1, 1.05, 1.5, 2])
    assert ThroughputCurve.from_frame(found.frame()) == found


def test_links_are_read_within_bounds_and_sources_that_are_not_there_are_refused(links, tmp_path):
    source = tmp_path / "network_matrix.parquet"
    toys.snapshots(links=60).write_parquet(source)
    days = {"start": toys.NOON + timedelta(days=1), "end": toys.NOON + timedelta(days=7)}
    first, _ = read_links(source, **days).evidence["metrics"].spans[0]
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
    assert evidence.spans[-1] == (datetime(2026, 3, 15), datetime(2026, 3, 29))
    assert (evidence.facts["n_periods"], evidence.facts["n_local"]) == (3, 0)
    assert study_curve(evidence, **QUICK).judgement.case in {"lower_loss", "depends", "imprecise"}


def test_frames_for_charts_hold_what_was_found(links, curve):
    rows = links.evidence["metrics"].rows
    both = beside_current(curve.fit, rows["mbps"], fitted="proposed")
    assert set(both["curve"]) == {"current", "proposed"}
    assert (
        both.filter(curve="current")["weight_lo"].null_count()
        == both.filter(curve="current").height
    )
    three = beside_current(curve.fit, rows["mbps"], logarithm="best")
    assert set(three["curve"]) == {"current", "fitted", "best"}
    steps = curve.frames["all_steps"].filter(curve="document")
    assert (steps["q10"] <= steps["q90"]).all()
    assert steps["edge"][0] == "lowest"
    assert set(steps["edge"][1:]) >= {"above 1"}


def test_words_of_scores_say_what_is_current_and_what_is_better(curve):
    rows = {row["name"]: row for row in curve.ranking.to_dicts()}
    assert (rows["document"]["weight"], rows["document"]["mark"]) == ("document's curve", "current")
    for name in rows.keys() - {"document"}:
        assert (rows[name]["mark"] == "better") == (rows[name]["diff_lo"] > 0)


def test_the_closeness_line_stands_beside_the_fitted_weights(links):
    levels = study_fallback(links.evidence["metrics"], **QUICK).frames["levels"]
    drawn = levels_by_setting(levels, "proposed")
    assert drawn["setting"].unique(maintain_order=True).to_list() == ["current", "proposed"]
    assert drawn.filter(setting="current")["weight"].to_list() == levels["line"].to_list()
    assert drawn.filter(setting="proposed")["weight_lo"].to_list() == levels["weight_lo"].to_list()
    assert (levels["weight_lo"] <= levels["weight_hi"]).all()
    assert not drawn["level"].null_count()


def test_an_exchange_is_marked_by_its_files(exchange):
    table = exchange.frames["table"]
    found = {row["label"]: row["files"] for row in marks(table, "best").to_dicts()}
    assert found["current"] == 300
    best = table.filter("is_best")
    assert found.get("best", 300.0) == best["files"][0]
    share = best["importance"][0]
    assert best["files"][0] == pytest.approx(300 * (1 - share) / share)
