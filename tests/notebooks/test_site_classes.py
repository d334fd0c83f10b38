"""The site classes report on a small synthetic archive: its numbers, page, tables and failures."""

import json
import re

import polars as pl
import pytest

from brokerlab.archive.synthetic import synthesise
from brokerlab.errors import ConfigError
from brokerlab.report import run
from brokerlab.report.page import render

QUICK = {"every": "4h", "n_boot": 50, "low_ranks": "0.2,0.5", "high_ranks": "0.8", "hi_hours": "1,6",
         "lo_hours": "24", "long_jobs": "1", "queues_shown": 12}  # fmt: skip
PARTS = ["queues", "limits", "waits", "rules", "tasks", "shares"]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """One run on nine days of 12 000 jobs, with few instants and few replicates."""
    folder = tmp_path_factory.mktemp("archives") / "days"
    synthesise(folder, jobs=12_000, days=9, seed=3)
    root = tmp_path_factory.mktemp("reports")
    return run("site-classes", {"archive": str(folder), **QUICK}, out_root=root)


@pytest.fixture(scope="module")
def numbers(done):
    return json.loads((done.folder / "results.json").read_text())["numbers"]


def test_every_part_has_an_answer(done):
    page = done.results["page"]
    assert [part["name"] for part in page["parts"]] == PARTS
    assert {part["verdict"]["kind"] for part in page["parts"]} == {"finding"}
    assert page["verdict"]["kind"] == "finding"
    assert page["synthetic"] is True
    assert page["cannot_tell"][0].startswith("The archive is synthetic")
    assert list(done.folder.glob("proposal*.json")) == []


def test_classes_add_up(done, numbers):
    shares = {(row["over"], row["part"]): row["share"] for row in numbers["overall"]}
    names = ("hi", "mid", "lo", "none")
    for over in ("day", "queue"):
        assert sum(shares[over, name] for name in names) == pytest.approx(1)
        assert sum(shares[over, f"slots_{name}"] for name in names) == pytest.approx(1)
        assert shares[over, "up"] + shares[over, "down"] == pytest.approx(1)
    rated = pl.read_parquet(done.folder / "tables" / "rated.parquet")
    assert rated.height == numbers["n_cells"] == numbers["n_queues"] * numbers["n_instants"]
    assert (rated["class_name"] != "none").sum() == numbers["n_rated"] > 0
    assert (rated["class_name"] == "hi").mean() == pytest.approx(shares["day", "hi"])
    assert sum(row["cells"] for row in numbers["rule_matrix"]) == numbers["n_cells"]


@pytest.mark.parametrize(
    "name", ["overall", "what_if", "binding", "rule_totals", "waits_beyond", "tasks_by_class"]
)
def test_shares_and_their_intervals(numbers, name):
    for row in numbers[name]:
        if row["lo"] is not None:
            assert row["lo"] - 1e-9 <= row["share"] <= row["hi"] + 1e-9
        assert row["share"] >= 0


def test_the_current_numbers_move_nothing_and_others_move_one_way(numbers):
    rows = numbers["what_if"]
    current = [row for row in rows if row["is_current"]]
    assert {row["key"]: row["value"] for row in current} == {
        "percentile_low": 0.33, "percentile_high": 0.67, "hi_limit_hours": 1, "lo_limit_hours": 3,
        "short_queue_jobs": 3}  # fmt: skip
    assert {(row["share"], row["slots"] or 0, row["n_queues"]) for row in current} == {(0, 0, 0)}
    assert max(row["share"] for row in rows) > 0
    for row in rows:
        assert row["better"] + row["worse"] == pytest.approx(row["share"])
        eased = row["value"] > row["current"] or (row["key"] == "lo_limit_hours")
        assert row["worse" if eased else "better"] == 0


def test_rule_sets_differ(numbers):
    totals = {row["part"]: row["share"] for row in numbers["rule_totals"]}
    assert totals["differs"] == pytest.approx(totals["better"] + totals["worse"])
    assert totals["differs"] > 0
    moved = [row["share"] for row in numbers["rule_switches"]]
    assert moved == sorted(moved, reverse=True)
    assert {row["switch"] for row in numbers["rule_switches"]} >= {"half_life_hours", "hi_test"}
    assert all(0 <= row["explained"] <= 1 for row in numbers["rule_switches"])


def test_tasks_and_shares(numbers):
    shares = [row["share"] for row in numbers["tasks_by_class"]]
    assert sum(shares) == pytest.approx(1)
    assert numbers["tasks"]["n_tasks"] > 3
    assert {row["gshare"] for row in numbers["shares_leaves"]} >= {"User Analysis", "MC 16 reco"}


def test_page_is_whole_and_offline(done):
    html = done.page.read_text()
    stored = json.loads((done.folder / "results.json").read_text())
    assert html == render(stored, done.folder)
    assert re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="([^"]*)"', html) == []
    links = [link for link in re.findall(r'<a [^>]*href="([^"#]+)"', html) if "://" not in link]
    assert [link for link in links if not (done.folder / link).exists()] == []
    assert html.count('role="img" aria-label="') == html.count("<svg") == 9
    assert html.count("<caption>") == html.count("<table")
    assert "brokerlab report site-classes -p archive=" in html
    assert "Who gains" not in html


def test_wrong_parameters(tmp_path):
    with pytest.raises(ConfigError, match="unknown parameter 'low_rank': did you mean 'low_ranks'"):
        run("site-classes", {"low_rank": "1"}, out_root=tmp_path)
    with pytest.raises(ConfigError, match="queues_shown='many': must be a whole number"):
        run("site-classes", {"queues_shown": "many"}, out_root=tmp_path)
