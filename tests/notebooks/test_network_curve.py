"""The network curve report on a small synthetic archive: its numbers, page, tables and failures."""

from dataclasses import replace

import polars as pl
import pytest

from brokerlab.archive import ArchiveWriter
from brokerlab.archive.synthetic import synthesise
from brokerlab.brokerage.curves import ThroughputCurve
from brokerlab.brokerage.network_weight import links
from brokerlab.calibrate.network_curve import Judgement, read_links
from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.gdpconfig.proposal import read
from brokerlab.report import network_curve as report
from brokerlab.report import run
from tests.notebooks.pages import check_page
from tests.unit.calibrate import network_toys as toys

QUICK = {"n_boot": 60}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """One run on two weeks of links, with few replicates."""
    folder = tmp_path_factory.mktemp("archives") / "links"
    synthesise(folder, jobs=500, days=14, seed=5)
    given = {"archive": str(folder), **QUICK}
    return run("network-curve", given, out_root=tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="module")
def stored(done):
    return check_page(done.folder)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Links that answer everything, and what was found in them."""
    source = tmp_path_factory.mktemp("links") / "network_matrix.parquet"
    toys.snapshots(links=240).write_parquet(source)
    p = report.Params(archive=str(source), n_boot=20, out_dir=str(source.parent / "out"))
    data = report.load(p)
    return data, report.study(data, p), p


def test_every_subject_has_an_answer(stored):
    page = stored["page"]
    assert {part["name"] for part in page["parts"]} == {"metrics", "fallback", "exchange"}
    kinds = [part["verdict"]["kind"] for part in page["parts"]]
    assert kinds == sorted(kinds, key=["change", "keep", "no_answer"].index)
    assert page["verdict"] == page["parts"][0]["verdict"]
    assert len(page["numbers"]) == 3
    assert page["synthetic"] is True
    assert any("no throughput when the weight is taken" in text for text in page["cannot_tell"])
    assert (
        any("NW_ACTIVE" in text for text in page["cannot_tell"])
        != read_links(stored["parameters"]["archive"]).active
    )


def test_the_verdict_follows_from_the_later_scores(stored):
    part = next(p for p in stored["page"]["parts"] if p["name"] == "metrics")
    judged = stored["values"]["metrics"]["judgement"]
    proven = judged["outcome"] == "better"
    assert part["verdict"]["kind"] == ("change" if proven else "keep")
    assert (judged["diff_lo"] > 0) == proven
    rows = {row["name"]: row for row in stored["numbers"]["metrics_scores"]}
    fitted, document = rows["fitted"], rows["document"]
    assert judged["diff"] == fitted["diff"]
    assert fitted["diff"] == pytest.approx(fitted["spearman"] - document["spearman"])
    assert (fitted["mark"] == "better") == proven
    assert document["mark"] == "current"
    assert stored["numbers"]["metrics_checks"][0]["diff"] == judged["diff"]


def test_the_curve_is_data_that_the_network_weight_takes(done, stored):
    frame = pl.read_parquet(done.folder / "tables" / "curve_metrics.parquet")
    curve = ThroughputCurve.from_frame(frame)
    assert curve.to_frame().to_dicts() == stored["numbers"]["curve_metrics"]
    weights = [curve.lowest, *curve.weight]
    assert weights == sorted(weights)
    assert (weights[0], weights[-1]) == (1.0, 2.0)
    known = links(toys.snapshots(days=1), curve=curve)
    assert set(known.drop_nulls("mbps")["throughput_weight"]) <= set(weights)


def test_no_link_is_on_both_sides(done, stored):
    rows = pl.read_parquet(done.folder / "tables" / "metrics_links.parquet")
    found = stored["values"]["metrics"]
    assert found["n_links"] + found["n_links_proof"] <= rows["group"].n_unique()
    assert rows["src"].ne(rows["dst"]).all()


def test_the_proposal_is_about_the_importance(done, stored):
    proposal = read(done.folder / "proposal.json")
    proposed = stored["values"]["exchange"]["proposed"]
    assert proposal.kind == ("keep" if proposed is None else "change")
    assert proposal.changes[0].key == "NW_QUEUE_IMPORTANCE"
    assert proposal.evidence.synthetic
    assert proposal.digests.archive == stored["digests"]["archive"]


def judged(outcome: str) -> Judgement:
    return Judgement(outcome, diff=0.1, diff_lo=0.04, diff_hi=0.16, value=0.7, reference=0.6)


@pytest.mark.parametrize(
    ("outcome", "kind", "words"),
    [
        ("better", "change", "rises by 0.10 (0.04 to 0.16)"),
        ("not_proven", "keep", "0.10 (0.04 to 0.16) more rank correlation is not proven"),
        ("worse", "keep", "changes the rank correlation by 0.10"),
        ("worse_at_top", "keep", "ranks the top tenth worse, NDCG"),
        ("demand", "no_answer", "rates show demand, not capacity"),
    ],
)
def test_every_outcome_has_its_sentence(small, outcome, kind, words):
    data, study, _ = small
    found = replace(study.curves["metrics"], judgement=judged(outcome))
    verdict = report.curve("metrics", found, data).verdict
    assert (verdict.kind, words in verdict.sentence) == (kind, True), verdict.sentence
    assert len(verdict.sentence.split()) <= 20
    if outcome != "demand":
        verdict = report.fallback(replace(study.fallback, judgement=judged(outcome))).verdict
        assert verdict.kind == kind
        assert len(verdict.sentence.split()) <= 20


@pytest.mark.parametrize(
    ("outcome", "later", "proposed", "words"),
    [
        ("better", True, 0.75, "Set NW_QUEUE_IMPORTANCE from 0.5 to 0.75: rank correlation rises"),
        ("better", True, None, "but with one part of the weight alone"),
        ("better", False, None, "one snapshot cannot prove a gain"),
        ("not_proven", True, None, "not proven"),
        ("worse", True, None, "changes the rank correlation by"),
        ("worse_at_top", True, None, "ranks the top tenth worse"),
    ],
)
def test_the_exchange_is_set_only_where_it_is_proven(small, outcome, later, proposed, words):
    data, study, _ = small
    found = replace(study.exchange, judgement=judged(outcome), later=later, proposed=proposed)
    verdict = report.exchange(found, data).verdict
    assert verdict.kind == ("keep" if proposed is None else "change")
    assert words in verdict.sentence
    assert len(verdict.sentence.split()) <= 20


def test_a_weight_that_is_not_proposed_is_not_called_so(small):
    _, study, _ = small
    for outcome, name in (("better", "proposed"), ("not_proven", "fitted")):
        chart = report.fallback(replace(study.fallback, judgement=judged(outcome))).chart
        assert set(chart.frame["setting"]) == {"current", name}


@pytest.mark.parametrize(("together", "said"), [(0.5, 1), (-0.5, 0), (0.1, 0), (None, 0)])
def test_long_queues_stand_where_much_is_delivered_only_if_they_do(together, said):
    facts = {"at_cap": 0.25, "n_queues": 40, "spearman_rate": together}
    removed, long = report.queue_caveats(facts)
    assert removed.text.endswith(
        "of 40 queues are at the cap, where the backlog check removes them anyway."
    )
    assert (removed.n, long.n) == (1, said)


def test_transfers_alone_answer_one_question(tmp_path):
    source = tmp_path / "transfers.parquet"
    toys.dumped_windows(links=400).write_parquet(source)
    p = report.Params(archive="", transfers=str(source), out_dir=str(tmp_path / "out"), **QUICK)
    report.run(p)
    stored = check_page(tmp_path / "out")
    kinds = {part["name"]: part["verdict"]["kind"] for part in stored["page"]["parts"]}
    assert kinds["fallback"] == kinds["exchange"] == "no_answer"
    assert kinds["transfers"] in ("change", "keep", "no_answer")
    assert any("demand" in text for text in stored["page"]["cannot_tell"])
    assert not (tmp_path / "out" / "proposal.json").exists()


@pytest.mark.parametrize(
    ("toy", "words"),
    [({"links": 30}, "links have a throughput"), ({"days": 2}, "snapshots at")],
)
def test_too_few_links_give_no_answer(tmp_path, toy, words):
    source = tmp_path / "network_matrix.parquet"
    toys.snapshots(**toy).write_parquet(source)
    with pytest.raises(InsufficientDataError, match=words):
        report.run(report.Params(archive=str(source), out_dir=str(tmp_path / "out"), **QUICK))
    assert check_page(tmp_path / "out")["page"]["verdict"]["kind"] == "no_answer"


def test_wrong_parameters_are_told_at_once(tmp_path):
    wrong = {
        "archive": "a",
        "start": "soon",
        "steps": 0,
        "unseen_share": 1,
        "n_boot": 3,
        "seed": -1,
    }
    with pytest.raises(ConfigError) as caught:
        report.Params.checked(wrong)
    assert all(f"{name}={wrong[name]!r}" in str(caught.value) for name in list(wrong)[1:])
    with pytest.raises(ConfigError, match="or give transfers"):
        report.Params.checked({"archive": ""})
    with pytest.raises(DataError, match="no such archive"):
        report.load(report.Params(archive=str(tmp_path / "nowhere")))


def test_an_archive_without_links_has_no_answer(tmp_path):
    with ArchiveWriter(tmp_path / "archive") as writer:
        writer.write("resource_types", pl.DataFrame({"resource_name": ["SCORE"]}))
        writer.commit()
    p = report.Params(archive=str(tmp_path / "archive"), out_dir=str(tmp_path / "out"))
    with pytest.raises(InsufficientDataError, match="neither metrics of links"):
        report.run(p)
    assert check_page(tmp_path / "out")["page"]["verdict"]["kind"] == "no_answer"
