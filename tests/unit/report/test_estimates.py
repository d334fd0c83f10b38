"""What the pages of both estimator reports share: blocks over a trial, sentences of doubts, where data lie."""

from dataclasses import replace

import polars as pl
import pytest

from brokerlab.errors import DataError
from brokerlab.estimators.doubts import check_model
from brokerlab.estimators.evaluation import Evaluation
from brokerlab.estimators.hierarchy import Hierarchy
from brokerlab.estimators.holdout import fit_and_calibrate
from brokerlab.estimators.trial import POLICY
from brokerlab.estimators.trial_frames import frontier_points
from brokerlab.report import estimates
from brokerlab.report.kit import Listing, Table
from brokerlab.words import THIN
from tests.unit.estimators.trial_toys import tried_on, whole_tasks

OURS = POLICY.format("hierarchy")


@pytest.fixture(scope="module")
def tried():
    return tried_on(whole_tasks())


@pytest.fixture(scope="module")
def doubts(tried):
    learnt = tried.records.filter(pl.col("queue") == "A")
    return check_model(tried, "hierarchy", lambda _: learnt, by_task=False)


def test_one_table_holds_every_estimator_by_either_clock(tried):
    later = replace(tried, at="start")
    table = estimates.estimator_table({"submit": tried, "start": later}, "Every estimator")
    assert table.frame.height == tried.comparison.table.height
    assert table.columns["start_waste_per_usage"].startswith("The same, decided at the start")
    same = table.frame["waste_per_usage"].to_list()
    assert table.frame["start_waste_per_usage"].to_list() == same
    assert "4 tasks is left out" in table.note


def test_every_table_shows_its_columns(tried, doubts):
    trials = {"submit": tried}
    tables = [
        estimates.estimator_table(trials, "Every estimator"),
        estimates.matched_table(tried, "At equal exceed rates"),
        estimates.chosen_table(trials),
        estimates.task_table(tried, OURS),
        estimates.coverage_table(trials, "hierarchy"),
        estimates.strata_table(doubts),
        estimates.doubt_table(doubts),
    ]
    for table in tables:
        cells = table.cells()
        assert len(cells) == min(table.frame.height, table.most)
        assert all(len(row) == len(table.columns) for row in cells)
    assert not any(THIN in row[0] for row in estimates.task_table(tried, OURS).cells())


def test_the_frontier_is_drawn_up_to_twice_what_is_named(tried):
    chart = estimates.frontier(tried, "Found", frontier_points(tried))
    named = chart.frame.filter("named", pl.col("line").is_in(["current", "proposed"]))
    assert chart.frame["exceed"].max() <= max(0.05, 2 * named["exceed"].max())
    assert {"current", "proposed", "hierarchy"} <= set(chart.frame["line"])
    assert chart.drawn().to_dict()


def test_few_tasks_have_no_chart_of_coverage(tried):
    assert estimates.known_chart(tried, "hierarchy") is None
    counts = tried.comparison.counts | {"tasks": 8}
    many = replace(tried, comparison=replace(tried.comparison, counts=counts))
    chart = estimates.known_chart(many, "hierarchy")
    assert chart.finding.startswith("With ")
    assert chart.drawn().to_dict()
    assert estimates.intervals(many) == "In brackets: 95 % intervals over tasks."


def test_a_model_is_never_without_doubts(tried, doubts):
    sentences = estimates.doubt_sentences(doubts)
    assert sentences[-1] == estimates.UNTRIED
    assert "Jobs outside what was learnt, by queue: 60 of 120." in sentences
    none = replace(
        doubts,
        tasks=doubts.tasks.clear(),
        strata=doubts.strata.clear(),
        scouts=doubts.scouts.clear(),
        support=doubts.support.clear(),
    )
    assert estimates.doubt_sentences(none) == [estimates.UNTRIED]


def test_a_model_says_how_to_predict_with_it(tried, doubts):
    model = fit_and_calibrate(Hierarchy("memory"), tried.records)
    part = Evaluation(trials={"submit": tried}, doubts=doubts, learnt=tried.records, model=model)
    (shown,) = estimates.model_part({"tasks": part}, level=0.9)
    (failed,), (measured, listing) = shown.sections.values()
    assert isinstance(measured, Table)
    assert measured.frame["level"].to_list() == [0.9, 0.95, 0.99]
    assert failed.frame.height == doubts.failures.height
    assert isinstance(listing, Listing)
    assert "--level 0.9 " in listing.text
    assert estimates.model_part({}, level=0.9) == []


def test_data_are_looked_for_where_they_were_named(tmp_path, monkeypatch):
    monkeypatch.setenv("BROKERLAB_DATA", str(tmp_path / "none"))
    assert estimates.data_folder() is None
    monkeypatch.setenv("BROKERLAB_DATA", str(tmp_path))
    assert estimates.data_folder() == tmp_path
    with pytest.raises(DataError, match="no such folder"):
        estimates.data_folder("nowhere")
    monkeypatch.chdir(tmp_path)
    assert estimates.archive_at() is None
    with pytest.raises(DataError, match="not an archive"):
        estimates.archive_at(str(tmp_path))
