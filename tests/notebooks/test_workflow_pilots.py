"""The workflow-pilots report on a small generated load: its numbers, page, tables and failures."""

from types import SimpleNamespace

import polars as pl
import pytest

from brokerlab.archive import ArchiveWriter
from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.report import kit, run
from brokerlab.report import workflow_pilots as report
from brokerlab.workflows.compare.summaries import NOTES, PAPER
from tests.notebooks.pages import check_page

QUICK = {"times": 3, "workers": 1, "n_boot": 100, "policies": ["easy"]}


@pytest.fixture(scope="module")
def no_logs():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(kit.VARIABLE, "none")
        yield


@pytest.fixture(scope="module")
def done(no_logs, tmp_path_factory):
    """One run without logs: load and workflows are generated."""
    return run("workflow-pilots", QUICK, out_root=tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="module")
def stored(done):
    return check_page(done.folder)


def test_every_section_is_there(stored):
    page = stored["page"]
    titles = [section["title"] for section in page["sections"]]
    assert titles[0] == "Grouping against simpler ways"
    assert titles[1:] == ["Strategy by strategy", "The two rule sets", "The published results"]
    assert page["synthetic"] is True
    assert page["cannot_tell"][0].startswith("The background load is generated")
    assert page["verdict"]["kind"] == "finding"


def test_all_strategies_start_from_the_same_states(done, stored):
    runs = pl.read_parquet(done.folder / "tables" / "runs.parquet")
    comparison = stored["values"]["comparison"]
    assert comparison["n_runs"] == runs.height == 3 * 3 * len(report.COMPARED)
    per_instant = runs.group_by("system", "instant").agg(pl.col("submit_time").n_unique())
    assert per_instant["submit_time"].unique().to_list() == [1]
    assert comparison["missing"] == {}


def test_the_two_rule_sets_stand_beside_each_other(stored):
    numbers = stored["numbers"]
    assert {row["rules"] for row in numbers["ratios"]} == {"notes", "paper"}
    (notes,) = [row for row in numbers["by_queue"] if row["strategy"] == NOTES]
    assert notes["reference"] == PAPER
    first = stored["page"]["numbers"][0]
    assert first["value"] == notes["ratio"]
    (chart,) = numbers["rules_by_queue_chart"]
    assert (chart["label"], chart["ratio"]) == ("generated, easy", notes["ratio"])


def test_charts_and_tables_agree_with_the_ratios(stored):
    numbers = stored["numbers"]
    drawn = {
        (row["label"], row["rules"]): row["ratio"] for row in numbers["grouping_by_place_chart"]
    }
    assert drawn == {(row["workflow"], row["rules"]): row["ratio"] for row in numbers["ratios"]}
    ratios = {row["strategy"]: round(row["ratio"], 3) for row in numbers["by_queue"]}
    table = {row["strategy"]: row["ratio_0"] for row in numbers["strategies"]}
    assert table == ratios | {PAPER: None}
    turnarounds = [row["turnaround"] for row in numbers["strategies"]]
    assert turnarounds == sorted(turnarounds)


def test_what_is_not_shown_is_written(stored):
    also = {
        "rules_by_place",
        "predictions",
        "waits",
        "example_bars",
        "machines",
        "workflows",
        "example_metrics",
    }
    assert also <= set(stored["numbers"])


def test_the_example_is_written_down(done):
    jobs, tasks = (
        pl.read_parquet(done.folder / "tables" / f"example_{name}.parquet") for name in ("jobs", "tasks")
    )  # fmt: skip
    assert jobs["strategy"].n_unique() == tasks["strategy"].n_unique() == len(report.COMPARED)
    assert tasks.group_by("strategy").len()["len"].n_unique() == 1
    assert (tasks["end"] >= tasks["start"]).all()


SCHEMA = {"system": pl.String, "strategy": pl.String, "reference": pl.String, "ratio": pl.Float64, "ratio_lo": pl.Float64, "ratio_hi": pl.Float64}  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "begins", "queue"),
    [
        ([("A", 5.0, 4.0, 6.0), ("B", 2.0, 1.5, 3.0)], "Group by the paper's rule", "A"),
        ([("A", 0.5, 0.4, 0.6)], "Keep the notes' rule", "A"),
        ([("B", 0.9, 0.6, 1.4), ("A", 0.5, 0.4, 0.6)], "Keep the notes' rule", "A"),
        ([("A", 5.0, 4.0, 6.0), ("B", 0.5, 0.4, 0.6)], "Which rule groups better depends", "A"),
        ([("A", 5.0, 4.0, 6.0), ("B", 0.5, 0.4, 1.6)], "Group by the paper's rule", "A"),
        ([("A", 9.0, 0.5, 20.0), ("B", 5.0, 4.0, 6.0)], "Group by the paper's rule", "B"),
        ([("A", 1.1, 0.9, 1.3)], "The two rules of grouping cannot be told apart", "A"),
        ([("A", 1.1, None, None)], "The two rules of grouping cannot be told apart", "A"),
        ([], "The two rules of grouping could not be compared", ""),
    ],
)
def test_the_headline_follows_from_the_intervals(rows, begins, queue):
    table = [(system, NOTES, PAPER, *ratio) for system, *ratio in rows]
    sentence = report._headline(pl.DataFrame(table, schema=SCHEMA, orient="row"))
    assert sentence.startswith(begins)
    assert f"at {queue}." in sentence or not queue
    assert len(sentence.split()) <= 20


def test_runs_of_one_rule_set_alone_are_shown_without_the_other():
    runs = pl.DataFrame({"strategy": [PAPER], "shape": ["pilots"], "expirations": [0]})
    table = report._rule_sets(SimpleNamespace(comparison=SimpleNamespace(done=runs)))
    assert table.caption == "What runs of grouping became"
    assert table.frame["pilots"].to_list() == [1]


def test_an_archive_without_jobs_adds_no_machine(no_logs, tmp_path):
    with ArchiveWriter(tmp_path / "archive") as writer:
        writer.write("resource_types", pl.DataFrame({"resource_name": ["SCORE"]}))
        writer.commit()
    data = report.load(report.Params(archive=str(tmp_path / "archive"), **QUICK))
    assert list(data.machines.systems) == ["generated, easy"]
    assert "jobs" in data.refused


def test_no_run_is_no_answer(no_logs, tmp_path, monkeypatch):
    p = report.Params(out_dir=str(tmp_path), **QUICK)
    data = report.load(p)
    wide = report.shapes.fork_join(2, runtime=60)
    wider = type(wide)(**{**vars(wide), "hosts": (10_000,) * len(wide)})
    with pytest.raises(InsufficientDataError, match="no run came to its end"):
        report.study(data._replace(workflows={"wide": wider}), p)
    assert check_page(tmp_path)["page"]["verdict"]["kind"] == "no_answer"


def test_wrong_parameters_are_told_at_once():
    wrong = {"policies": ["easy-bf"], "strategies": ["one_jb"], "times": 1, "stretch": 0, "load": 1}
    with pytest.raises(ConfigError) as caught:
        report.Params.checked(wrong)
    assert "'easy-bf', did you mean 'easy'?" in str(caught.value)
    assert all(f"{name}=" in str(caught.value) for name in wrong)
    with pytest.raises(ConfigError, match="each once"):
        report.Params.checked({"policies": "easy,easy"})
    with pytest.raises(DataError, match="no such folder"):
        report.load(report.Params(data="nowhere"))
