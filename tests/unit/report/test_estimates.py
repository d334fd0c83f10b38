"""What the pages of both estimator reports share: blocks over a trial, sentences of doubts, where data lie."""

from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest

from brokerlab.calibrate.nearest_setting import translate
from brokerlab.calibrate.percentiles import Setting, kills, load
from brokerlab.errors import DataError
from brokerlab.estimators.doubts import check_model
from brokerlab.estimators.evaluation import Evaluation, fit_and_calibrate
from brokerlab.estimators.hierarchy import Hierarchy
from brokerlab.estimators.trial import POLICY
from brokerlab.estimators.trial_frames import frontier_points
from brokerlab.report import estimates, kit
from brokerlab.report.kit import Bare, Listing, Page, Part, Table, Verdict
from brokerlab.report.publishing import results_of
from brokerlab.words import THIN
from brokerlab.worlds import synthesise
from tests.unit.estimators.trial_toys import tried_on, whole_tasks

OURS = POLICY.format("hierarchy")


@pytest.fixture(scope="module")
def tried():
    return tried_on(whole_tasks())


@pytest.fixture(scope="module")
def one_by_one():
    return tried_on(whole_tasks(apart_s=600.0))


@pytest.fixture(scope="module")
def doubts(tried):
    learnt = tried.records.filter(pl.col("queue") == "A")
    return check_model(tried, "hierarchy", lambda _: learnt, by_task=False)


def test_one_table_holds_every_estimator_by_either_clock(tried):
    later = replace(tried, at="start")
    table = estimates.estimator_table({"submit": tried, "start": later})
    assert table.frame.height == tried.comparison.table.height
    assert table.columns["start_waste_per_usage"].startswith("The same, decided at the start")
    same = table.frame["waste_per_usage"].to_list()
    assert table.frame["start_waste_per_usage"].to_list() == same
    assert "4 tasks is left out" in table.note


def test_every_table_shows_its_columns(tried):
    trials = {"submit": tried}
    tables = [
        estimates.estimator_table(trials),
        estimates.task_table(tried, OURS),
        estimates.coverage_table(trials, "hierarchy"),
    ]
    for table in tables:
        cells = table.cells()
        assert len(cells) == min(table.frame.height, table.most)
        assert all(len(row) == len(table.columns) for row in cells)
    assert not any(THIN in row[0] for row in estimates.task_table(tried, OURS).cells())


def test_the_frontier_is_drawn_up_to_twice_what_is_named(tried):
    tried = replace(tried, offers=tried.offers.with_columns(offered=pl.lit(value=True)))
    chart = estimates.frontier(tried, "Found", frontier_points(tried))
    assert "Proposed: hierarchy + cheapest allocation by the price" in chart.note
    named = chart.frame.filter("named", pl.col("line").is_in(["current", "proposed"]))
    assert chart.frame["exceed"].max() <= max(0.05, 2 * named["exceed"].max())
    assert {"current", "proposed", "hierarchy"} <= set(chart.frame["line"])
    assert chart.drawn().to_dict()


def test_what_is_not_offered_is_not_proposed(tried, doubts):
    part = Evaluation(trials={"submit": tried}, doubts=doubts, learnt=tried.records, model=None)
    verdict = estimates.headline(part, OURS, "real tasks", "memory")
    assert verdict.sentence == (
        "On real tasks, PanDA scouts p75 x 1.1 is offered: hierarchy wastes 1.07 times as much."
    )
    chart = estimates.frontier(tried, "Found", frontier_points(tried))
    assert "proposed" not in chart.frame["line"]
    assert "Not offered: hierarchy + cheapest allocation by the price" in chart.note
    table = estimates.offer_table(tried.offers)
    standing = dict(table.frame.select("estimator", "offered").iter_rows())
    assert standing[OURS] == "no"
    assert list(standing.values()).count("default") == 1
    offered = tried.offers.with_columns(offered=pl.lit(value=True))
    part = replace(part, trials={"submit": replace(tried, offers=offered)})
    sentence = estimates.headline(part, OURS, "real tasks", "memory").sentence
    assert sentence.startswith("On real tasks, hierarchy + cheapest allocation ")


def test_estimators_that_say_the_same_are_one_line_of_both_names(tried):
    points = frontier_points(tried)
    twin = points.filter(estimator="hierarchy").with_columns(estimator=pl.lit("twin"))
    alone = estimates.frontier(tried, "Found", points).frame
    both = estimates.frontier(tried, "Found", pl.concat([points, twin])).frame
    assert "hierarchy, twin" in both["line"].to_list()
    assert {"hierarchy", "twin"}.isdisjoint(both["line"])
    assert both.drop("line").equals(alone.drop("line"))


def of_many_tasks(trial, **more):
    counts = trial.comparison.counts | {"tasks": 8}
    return replace(trial, comparison=replace(trial.comparison, counts=counts, **more))


def test_few_tasks_have_no_chart_of_coverage(one_by_one):
    assert estimates.known_chart(one_by_one, "hierarchy") is None
    many = of_many_tasks(one_by_one)
    chart = estimates.known_chart(many, "hierarchy")
    assert chart.finding.startswith("With ")
    assert chart.drawn().to_dict()
    assert estimates.intervals(many) == "In brackets: 95 % intervals over tasks."


def test_where_bounds_are_refused_no_coverage_is_told(one_by_one):
    """A refused bound has no coverage: it is neither the least one nor a point of the chart."""
    known = one_by_one.comparison.by_scouts
    refused = known.filter(estimator="hierarchy").with_columns(
        known=pl.lit("0"),
        known_least=pl.lit(0, known.schema["known_least"]),
        coverage=pl.lit(None, pl.Float64),
    )
    some = of_many_tasks(one_by_one, by_scouts=pl.concat([refused, known]))
    chart = estimates.known_chart(some, "hierarchy")
    assert "With 0 jobs" not in chart.finding
    assert "missing" not in chart.finding
    assert chart.frame["coverage"].null_count() == 0
    young = tried_on(whole_tasks(scouts=8))  # nine jobs can hold 90 %: all are refused
    assert estimates.known_chart(of_many_tasks(young), "hierarchy") is None


def test_a_model_says_what_was_promised(one_by_one, doubts):
    part = Evaluation(trials={"submit": one_by_one}, doubts=doubts, learnt=one_by_one.records, model=None)  # fmt: skip
    (shown,) = estimates.model_part({"tasks": part}, level=0.9)
    assert "of jobs had a 90.0 % bound" in shown.verdict.sentence
    assert shown.verdict.sentence.endswith(" of these kept it.")
    assert estimates.frames({"tasks": part})["model_measured"]["level"][0] == 0.9


def test_a_model_says_how_to_predict_with_it(doubts):
    tried = tried_on(whole_tasks(scouts=8))  # nine jobs can hold 90 %
    model = fit_and_calibrate(Hierarchy("memory"), tried.records)
    part = Evaluation(trials={"submit": tried}, doubts=doubts, learnt=tried.records, model=model)
    (shown,) = estimates.model_part({"tasks": part}, level=0.9)
    ((failed, listing),) = shown.sections.values()
    assert isinstance(failed, Table)
    assert failed.frame.height == doubts.failures.height
    written = estimates.frames({"tasks": part})
    assert written["model_measured"].is_empty()
    assert shown.verdict.sentence == ("On unseen tasks no job had a bound of 90.0 %.")
    assert {"tasks_matched", "tasks_chosen", "tasks_strata", "tasks_doubts"} <= set(written)
    assert isinstance(listing, Listing)
    assert "--level 0.9 " in listing.text
    assert estimates.model_part({}, level=0.9) == []


def translated(*notes):
    return SimpleNamespace(notes=notes)


def test_what_the_setting_cannot_tell_is_said():
    said = estimates.caveats({}, translated("A.", "B."), real=True, generated=False)
    assert [each.text for each in said if each.n] == ["Setting: A.", "Setting: B."]
    alone = estimates.caveats({"x": "y"}, translated("B."), real=False, generated=True)
    assert alone[0].text == "No answer on x: y."
    assert alone[-1].text == "Setting: B."
    assert len([each for each in alone if each.n]) == 4
    assert not any(each.n for each in estimates.caveats({}, None, real=True, generated=False))


def test_tables_of_one_shape_are_explained_once(tried):
    tables = [
        estimates.estimator_table({"submit": tried}),
        estimates.coverage_table({"submit": tried}, "hierarchy"),
    ]
    answer = Verdict(kind="finding", sentence="It is.")
    parts = [
        Part(name=name, title=name, verdict=answer, sections={"Tables": tables}) for name in "ab"
    ]
    parts[1] = replace(
        parts[1],
        sections={"Tables": [replace(tables[0], note=f"{tables[0].note} And more."), tables[1]]},
    )
    first, second = results_of(Page(verdict=answer, parts=parts), Bare())["page"]["parts"]
    notes = [[b["note"] for b in each["sections"][0]["blocks"]] for each in (first, second)]
    assert notes[0] == [each.note.replace("\n", " ") for each in tables]
    assert notes[1] == [f"{estimates.intervals(tried)} And more.", ""]


def test_what_a_setting_is_worth_is_said_by_the_kind_of_verdict(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archives") / "small"
    synthesise(folder, jobs=3_000, days=14, seed=3)
    finished = load(folder).quantities
    made = translate(
        folder,
        finished.select("pandaid", allocated=pl.col("maxpss_kb") / 1024 + 1.0),
        minima=(None, 500),
        question=kills(n_boot=50),
    )
    starts = {
        "change": "Set rank 60, margin 20 %, minimum 1500 MB: ",
        "improve": "Set rank 60, margin 20 %, minimum 1500 MB: ",
        "keep": "Keep rank 75, margin 10 %, no minimum: ",
        "no_answer": "Nearest, not proposed: rank 60, margin 20 %, minimum 1500 MB; ",
    }
    row = {"quantity": "exceed_rate", "after": 0.0123, "after_lo": 0.0012, "after_hi": 0.0234}
    real = made.study
    study = SimpleNamespace(
        judgement=replace(real.judgement, table=pl.DataFrame([row])),
        current=real.current,
        best=Setting(60, 20, 1500),
        parameter=real.parameter,
    )
    for kind, start in starts.items():
        study.verdict = replace(real.verdict, kind=kind)
        answer = replace(made, study=study)
        part = estimates.settings_part(answer, "What it means")
        assert part.verdict.kind == kind
        assert part.verdict.sentence.startswith(start)
        assert (
            kind == "keep" or "1.2 % (0.1 to 2.3) of first attempts killed" in part.verdict.sentence
        )
        assert len(part.verdict.sentence.split()) <= 25
    (table,) = part.sections["Side by side"]
    assert [row[0] for row in table.cells()] == ["estimator", "cheapest", "nearest", "current"]


def test_data_are_looked_for_where_they_were_named(tmp_path, monkeypatch):
    monkeypatch.setenv("BROKERLAB_DATA", str(tmp_path / "none"))
    assert kit.data_folder() is None
    monkeypatch.setenv("BROKERLAB_DATA", str(tmp_path))
    assert kit.data_folder() == tmp_path
    with pytest.raises(DataError, match="no such folder"):
        kit.data_folder("nowhere")
    monkeypatch.chdir(tmp_path)
    assert estimates.archive_at() is None
    with pytest.raises(DataError, match="not an archive"):
        estimates.archive_at(str(tmp_path))
