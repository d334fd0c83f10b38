"""The site classes report on a small synthetic archive: its numbers, page, tables and failures."""

import json

import polars as pl
import pytest

from brokerlab.errors import ConfigError
from brokerlab.report import run
from brokerlab.worlds import synthesise
from tests.notebooks.pages import check_page

QUICK = {"every": "4h", "n_boot": 50, "low_ranks": "0.2,0.5", "high_ranks": "0.8", "hi_hours": "1,6",
         "lo_hours": "24", "long_jobs": "1", "queues_shown": 12}  # fmt: skip
SECTIONS = [
    "Class by class, queue by queue",
    "What the percentiles and the hours do",
    "What a class says about the next jobs",
    "The production rules",
    "Classes of tasks",
]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """One run on nine days of 12 000 jobs, with few instants and few replicates."""
    folder = tmp_path_factory.mktemp("archives") / "days"
    synthesise(folder, jobs=12_000, days=9, seed=3)
    root = tmp_path_factory.mktemp("reports")
    return run("site-classes", {"archive": str(folder), **QUICK}, out_root=root)


@pytest.fixture(scope="module")
def results(done):
    return json.loads((done.folder / "results.json").read_text())


@pytest.fixture(scope="module")
def numbers(results):
    return results["numbers"]


def test_every_section_is_there(results):
    page = results["page"]
    assert [section["title"] for section in page["sections"]] == SECTIONS
    assert page["verdict"]["kind"] == "finding"
    assert len(page["verdict"]["sentence"].split()) <= 20
    assert len(page["numbers"]) == 3
    assert page["synthetic"] is True
    assert results["parameters"]["low_ranks"] == [0.2, 0.5]


def test_classes_add_up(done, results, numbers):
    rows = {row["class_name"]: row for row in numbers["classes"]}
    for name in ("cells", "slots"):
        assert sum(row[name] for row in rows.values()) == pytest.approx(1)
    (changes,) = numbers["changes"]
    assert changes["up"] + changes["down"] == pytest.approx(1)
    assert changes["hi"] == rows["hi"]["cells"]
    values = results["values"]
    rated = pl.read_parquet(done.folder / "tables" / "rated.parquet")
    assert rated.height == values["n_cells"] == values["n_queues"] * values["n_instants"]
    assert (rated["class_name"] != "none").sum() == values["n_rated"] > 0
    assert (rated["class_name"] == "hi").mean() == pytest.approx(rows["hi"]["cells"])
    cells = [row[name] for row in numbers["rule_matrix"] for name in ("hi", "mid", "lo", "none")]
    assert sum(cells) == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("classes", ["cells", "over_queues", "slots", "jobs"]),
        ("moved_queues_chart", ["differs", "better", "worse", "slots", "jobs", "hi", "lo"]),
        ("limits", ["by_percentile", "cut"]),
        ("rule_totals", ["differs", "better", "worse"]),
        ("rule_switches", ["share"]),
        ("weights", ["steered", "sampled"]),
        ("task_classes", ["S", "A", "B", "C", "not_rated"]),
        ("shares", ["usage", "above"]),
    ],
)
def test_intervals_hold_their_numbers(numbers, name, columns):
    for row in numbers[name]:
        for column in columns:
            if row[f"{column}_lo"] is not None:
                low, high = row[f"{column}_lo"], row[f"{column}_hi"]
                assert low - 1e-9 <= row[column] <= high + 1e-9
            assert row[column] is None or row[column] >= 0


def test_the_current_numbers_move_nothing_and_others_move_one_way(numbers):
    rows = numbers["moved_queues_chart"]
    current = [row for row in rows if row["is_current"]]
    assert {row["key"]: row["value"] for row in current} == {
        "percentile_low": 0.33, "percentile_high": 0.67, "hi_limit_hours": 1, "lo_limit_hours": 3,
        "short_queue_jobs": 3}  # fmt: skip
    assert {(row["differs"], row["slots"] or 0, row["n_queues"]) for row in current} == {(0, 0, 0)}
    assert max(row["differs"] for row in rows) > 0
    for row in rows:
        assert row["better"] + row["worse"] == pytest.approx(row["differs"])
        eased = row["value"] > row["current"] or (row["key"] == "lo_limit_hours")
        assert row["worse" if eased else "better"] == 0


def test_rule_sets_differ(numbers):
    (totals,) = numbers["rule_totals"]
    assert totals["differs"] == pytest.approx(totals["better"] + totals["worse"])
    assert totals["differs"] > 0
    explained = [row["explained"] for row in numbers["rule_switches"]]
    assert explained == sorted(explained, reverse=True)
    assert {row["switch"] for row in numbers["rule_switches"]} >= {"half_life_hours", "hi_test"}
    assert all(0 <= part <= 1 for part in explained)


def test_tasks_and_shares(numbers):
    every = numbers["task_classes"][0]
    parts = ("S", "A", "B", "C", "not_rated")
    assert sum(every[name] for name in parts) == pytest.approx(1)
    assert every["n_tasks"] > 3
    assert {row["gshare"] for row in numbers["shares"]} >= {"User Analysis", "MC 16 reco"}


def test_page_is_whole_and_offline(done):
    results = check_page(done.folder)
    charts = [b for s in results["page"]["sections"] for b in s["blocks"] if b["kind"] == "chart"]
    assert [chart["chart"] for chart in charts] == ["moved_queues"]
    assert "brokerlab report site-classes -p archive=" in done.page.read_text()


def test_wrong_parameters(tmp_path):
    with pytest.raises(ConfigError, match="unknown parameter 'low_rank': did you mean 'low_ranks'"):
        run("site-classes", {"low_rank": "1"}, out_root=tmp_path)
    with pytest.raises(ConfigError, match="queues_shown='many': must be a valid integer"):
        run("site-classes", {"queues_shown": "many"}, out_root=tmp_path)
