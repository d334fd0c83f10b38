"""The network curve report on a small synthetic archive: its numbers, page, tables and failures."""

import json
from datetime import datetime

import polars as pl
import pytest

from brokerlab.archive.synthetic import synthesise
from brokerlab.brokerage.curves import ThroughputCurve
from brokerlab.brokerage.network_weight import links
from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.gdpconfig.proposal import read
from brokerlab.report import run
from brokerlab.report.network_curve import Unanswered, check, load, study, write
from brokerlab.report.page import render
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
def numbers(done):
    return json.loads((done.folder / "results.json").read_text())["numbers"]


def test_every_part_has_an_answer(done):
    page = done.results["page"]
    assert {part["name"] for part in page["parts"]} == {"metrics", "fallback", "exchange"}
    kinds = [part["verdict"]["kind"] for part in page["parts"]]
    assert kinds == sorted(kinds, key=["change", "keep", "no_answer"].index)
    assert page["verdict"] == page["parts"][0]["verdict"]
    assert page["synthetic"] is True
    assert page["cannot_tell"][0].startswith("The archive is synthetic")
    assert any("names of the sites" in str(part) for part in page["parts"])


def test_the_verdict_follows_from_the_later_scores(done, numbers):
    part = next(p for p in done.results["page"]["parts"] if p["name"] == "metrics")
    judged = numbers["metrics"]["judgement"]
    proven = judged["outcome"] == "better"
    assert part["verdict"]["kind"] == ("change" if proven else "keep")
    assert (judged["diff_lo"] > 0) == proven
    rows = {(r["measure"], r["name"]): r for r in numbers["scores_metrics"]}
    fitted = rows["spearman", "fitted"]
    assert judged["diff"] == fitted["diff"]
    assert fitted["diff"] == pytest.approx(fitted["value"] - rows["spearman", "document"]["value"])
    assert rows["spearman", "production"]["diff"] == 0  # one height differs: the order does not
    assert numbers["checks_metrics"][0]["diff"] == judged["diff"]


def test_the_curve_is_data_that_the_network_weight_takes(done, numbers):
    frame = pl.read_parquet(done.folder / "tables" / "curve_metrics.parquet")
    curve = ThroughputCurve.from_frame(frame)
    assert curve.to_frame().to_dicts() == numbers["metrics"]["curve"]
    weights = [curve.lowest, *curve.weight]
    assert weights == sorted(weights)
    assert (weights[0], weights[-1]) == (1.0, 2.0)
    known = links(toys.snapshots(days=1), curve=curve)
    assert set(known.drop_nulls("mbps")["throughput_weight"]) <= set(weights)


def test_no_link_is_on_both_sides(done, numbers):
    rows = pl.read_parquet(done.folder / "tables" / "links_metrics.parquet")
    sides = numbers["metrics"]["n_links"] + numbers["metrics"]["n_links_proof"]
    assert sides <= rows["group"].n_unique()
    assert rows["src"].ne(rows["dst"]).all()


def test_the_proposal_is_about_the_importance(done, numbers):
    proposal = read(done.folder / "proposal.json")
    exchange = numbers["exchange"]
    assert proposal.kind == ("keep" if exchange["proposed"] is None else "change")
    assert proposal.changes[0].key == "NW_QUEUE_IMPORTANCE"
    assert proposal.evidence.synthetic


def test_page_shows_tables_and_pictures(done):
    page = render(json.loads((done.folder / "results.json").read_text()), done.folder)
    for name in ("metrics_curve", "metrics_scores", "metrics_resolution", "fallback", "exchange"):
        assert (done.folder / "charts" / f"{name}.svg").is_file()
    assert "names of the sites alone" in page
    assert "no throughput when the weight is taken" in page
    assert "NaN" not in page


def test_transfers_alone_answer_one_question(tmp_path):
    source = tmp_path / "transfers.parquet"
    table = toys.windows(links=400)
    for name in ("from_date", "to_date"):
        table = table.with_columns(pl.col(name).cast(pl.String).str.slice(0, 19).str.replace(" ", "T"))  # fmt: skip
    days = {28: "28days", 14: "14days", 7: "week"}
    length = (pl.col("to_date").str.to_datetime() - pl.col("from_date").str.to_datetime()).dt.total_days()  # fmt: skip
    table.with_columns(
        window=length.replace_strict(days), interval_min=length * 1440, files_xs=pl.lit(1), errors_xs=pl.lit(0)
    ).write_parquet(source)  # fmt: skip
    inputs = load("", transfers=str(source))
    found = study(inputs, **QUICK)
    assert isinstance(found.fallback, Unanswered)
    results = write(found, tmp_path / "out", created_at=datetime(2026, 4, 1))
    kinds = {p["name"]: p["verdict"]["kind"] for p in results["page"]["parts"]}
    assert kinds["fallback"] == kinds["exchange"] == "no_answer"
    assert kinds["transfers"] in ("change", "keep", "no_answer")
    assert not (tmp_path / "out" / "proposal.json").exists()


def test_too_few_links_give_no_answer(tmp_path):
    source = tmp_path / "network_matrix.parquet"
    toys.snapshots(links=30).write_parquet(source)
    found = study(load(str(source)), **QUICK)
    assert "links have a throughput" in found.curves["metrics"].reason
    results = write(found, tmp_path / "out", created_at=datetime(2026, 4, 1))
    assert results["page"]["verdict"]["kind"] == "no_answer"


def test_a_single_window_gives_no_answer(tmp_path):
    source = tmp_path / "network_matrix.parquet"
    toys.snapshots(days=2).write_parquet(source)
    inputs = load(str(source))
    assert "snapshots at" in inputs.refused["metrics"]
    assert study(inputs, **QUICK).curves["metrics"].reason == inputs.refused["metrics"]


def test_wrong_parameters_are_told_at_once(tmp_path):
    with pytest.raises(
        ConfigError, match=r"(?s)start=.*steps=0.*unseen_share=1.*n_boot=3.*seed=-1"
    ):
        check(archive="a", transfers="", start="soon", end="", steps=0, unseen_share=1, n_boot=3, seed=-1)  # fmt: skip
    with pytest.raises(DataError, match="no such archive"):
        load(str(tmp_path / "nowhere"))


def test_an_archive_without_links_is_refused(tmp_path, make_empty):
    with pytest.raises(InsufficientDataError, match="neither metrics of links"):
        load(str(make_empty(tmp_path / "archive")))


@pytest.fixture
def make_empty():
    from brokerlab.archive import ArchiveWriter

    def make(folder):
        with ArchiveWriter(folder) as writer:
            writer.write("resource_types", pl.DataFrame({"resource_name": ["SCORE"]}))
            writer.commit()
        return folder

    return make
