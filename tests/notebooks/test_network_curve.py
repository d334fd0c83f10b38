"""The network curve report on a small synthetic archive: its numbers, page, tables and failures."""

from dataclasses import replace

import polars as pl
import pytest

from brokerlab.archive import ArchiveWriter
from brokerlab.brokerage.network_weight import ThroughputCurve, at_links, links
from brokerlab.calibrate.network_curve import read_links, study_exchange
from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import read
from brokerlab.report import kit, run
from brokerlab.report import network_curve as report
from brokerlab.worlds import synthesise
from tests.notebooks import pages
from tests.notebooks.pages import check_page
from tests.unit.calibrate import network_toys as toys
from tests.unit.calibrate.test_network_study import as_judged

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
    assert kinds == sorted(kinds, key=["change", "improve", "keep", "no_answer"].index)
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
    values = stored["values"]["metrics"]
    kind = values["judgement"]["kind"]
    assert part["verdict"]["kind"] == kind
    rows = {row["name"]: row for row in stored["numbers"]["metrics_scores"]}
    chosen, document = rows["chosen"], rows["document"]
    assert values["gain"]["diff"] == chosen["diff"]
    assert chosen["diff"] == pytest.approx(chosen["spearman"] - document["spearman"])
    assert document["mark"] == "current"
    if kind == "change":
        assert chosen["mark"] == "better"
    steps = stored["numbers"]["metrics_steps"]  # what the page shows, beside those of both curves
    assert {row["curve"] for row in steps} == {"document"}
    assert {row["curve"] for row in stored["numbers"]["metrics_all_steps"]} == {
        "document",
        "fitted",
    }
    first, *later = stored["numbers"]["metrics_blocks"]
    assert (first["chosen"], first["after"]) == (None, None)
    labels = {row["weight"] for row in rows.values()}
    assert all(block["chosen"] in labels and -1 <= block["after"] <= 1 for block in later)


def test_the_curve_is_data_that_the_network_weight_takes(done, stored):
    frame = pl.read_parquet(done.folder / "tables" / "curve_metrics.parquet")
    curve = ThroughputCurve.from_frame(frame)
    assert curve.frame().to_dicts() == stored["numbers"]["curve_metrics"]
    weights = [curve.lowest, *curve.weight]
    assert weights == sorted(weights)
    assert (weights[0], weights[-1]) == (1.0, 2.0)
    known = links(toys.snapshots(days=1))
    asked = known.select("snapshot", "nucleus", "express", storage_site="src")
    found = at_links(asked, known, curve=curve)
    away = found.filter(pl.col("storage_site") != pl.col("nucleus"))
    assert set(away.drop_nulls("mbps")["throughput_weight"]) <= set(weights)


def test_links_count_once(done, stored):
    rows = pl.read_parquet(done.folder / "tables" / "metrics_links.parquet")
    found = stored["values"]["metrics"]
    assert found["n_links_scored"] < found["n_links"] <= rows["group"].n_unique()
    assert rows["src"].ne(rows["dst"]).all()


def test_the_proposal_is_about_the_importance(done, stored):
    exchange = stored["values"]["exchange"]
    if exchange["judgement"]["kind"] == "no_answer":
        assert not (done.folder / "proposal.json").exists()
        return
    proposal = read(done.folder / "proposal.json")
    assert proposal.kind == ("keep" if exchange["proposed"] is None else "change")
    assert proposal.changes[0].key == "NW_QUEUE_IMPORTANCE"
    assert proposal.evidence.synthetic
    assert proposal.digests.archive == stored["digests"]["archive"]


CASES = [
    ("change", "lower_loss", "rises by 0.10 (0.04 to 0.16)"),
    ("improve", "better_not_within", "top tenth misplaced"),
    ("keep", "nothing_better", "would have been seen"),
    ("no_answer", "few", "links to judge"),
    ("no_answer", "imprecise", "is not excluded"),
    ("no_answer", "unconfirmed", "none does so on all links"),
    ("no_answer", "no_other", "ranks the top tenth worse"),
]


@pytest.mark.parametrize(("kind", "case", "words"), CASES)
def test_every_case_has_its_sentence(small, kind, case, words):
    data, study, _ = small
    curve, fallback, exchange = (
        as_judged(study.answers[name], kind, case) for name in ("metrics", "fallback", "exchange")
    )
    verdicts = [
        report._curve("metrics", curve, curve.fit, data).verdict,
        report._fallback(fallback).verdict,
        report._exchange(exchange, data).verdict,
    ]
    for verdict in verdicts:
        assert (verdict.kind, words in verdict.sentence) == (kind, True), verdict.sentence
        assert len(verdict.sentence.split()) <= 20


def test_what_an_archive_cannot_tell_is_no_answer(small):
    data, study, _ = small
    better = as_judged(study.answers["metrics"], "change", "lower_loss")
    verdict = report._curve("metrics", better.cannot_tell("demand"), better.fit, data).verdict
    assert verdict.kind == "no_answer"
    assert "rates show demand, not capacity" in verdict.sentence
    better = as_judged(study.answers["exchange"], "change", "lower_loss")
    verdict = report._exchange(better.cannot_tell("snapshot"), data).verdict
    assert verdict.kind == "no_answer"
    assert "one snapshot" in verdict.sentence
    assert len(verdict.sentence.split()) <= 20


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_one_part_alone_may_be_what_acts(small, share):
    data, _, _ = small
    row = {
        "app": "jedi",
        "component": "jobbroker",
        "key": "NW_QUEUE_IMPORTANCE",
        "value": str(share),
        "type": "float",
        "vo": "atlas",
    }
    acting = replace(data, config=Config.from_rows([row]))
    found = study_exchange(data.evidence["metrics"], acting.settings, n_boot=20)
    part = report._exchange(found, acting)
    assert "current" not in part.chart.options["marks"]["label"].to_list()
    assert f"{share:g}" in part.sections[kit.BEFORE_AFTER][0].frame["name"].to_list()


def test_a_weight_that_is_not_proposed_is_not_called_so(small):
    _, study, _ = small
    for kind, name in (("change", "proposed"), ("no_answer", "fitted")):
        found = as_judged(study.answers["fallback"], kind, "lower_loss", setting="earned")
        assert set(report._fallback(found).chart.frame["setting"]) == {"current", name}


@pytest.mark.parametrize(("together", "said"), [(0.5, 1), (-0.5, 0), (0.1, 0), (None, 0)])
def test_long_queues_stand_where_much_is_delivered_only_if_they_do(together, said):
    facts = {"at_cap": 0.25, "n_queues": 40, "spearman_rate": together}
    removed, long = report._queue_caveats(facts)
    assert removed.text.endswith(
        "of 40 queues are at the cap, where the backlog check removes them anyway."
    )
    assert (removed.n, long.n) == (1, said)


def test_transfers_alone_answer_one_question(tmp_path):
    source = tmp_path / "transfers.parquet"
    toys.dumped_windows(links=400).write_parquet(source)
    p = report.Params(archive="", transfers=str(source), out_dir=str(tmp_path / "out"), **QUICK)
    pages.run(report, p)
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
        pages.run(
            report, report.Params(archive=str(source), out_dir=str(tmp_path / "out"), **QUICK)
        )
    assert check_page(tmp_path / "out")["page"]["verdict"]["kind"] == "no_answer"


def test_wrong_parameters_are_told_at_once(tmp_path):
    wrong = {
        "archive": "a",
        "start": "soon",
        "steps": 0,
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
        pages.run(report, p)
    assert check_page(tmp_path / "out")["page"]["verdict"]["kind"] == "no_answer"
