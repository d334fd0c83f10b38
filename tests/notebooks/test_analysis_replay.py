"""The report on user tasks on a small synthetic archive: its numbers, page, tables and failures."""

import json
import re

import polars as pl
import pytest

from brokerlab.archive.synthetic import synthesise
from brokerlab.errors import ConfigError, DataError, ReportError
from brokerlab.report import run
from brokerlab.report.analysis_replay import load
from brokerlab.report.page import render

QUICK = {"n_boot": 100, "points": 3, "switch_sample": 0}
KEYS = ["CAP_RUNNING_USER_JOBS", "IO_INTENSITY_CUTOFF_USER", "BASE_QUEUE_LENGTH_PER_PQ"]


@pytest.fixture(scope="module")
def week(tmp_path_factory):
    """A week of 8 000 jobs."""
    folder = tmp_path_factory.mktemp("archives") / "week"
    synthesise(folder, jobs=8_000, days=7, seed=3)
    return folder


@pytest.fixture(scope="module")
def done(week, tmp_path_factory):
    """One run with few keys, few values and few replicates."""
    root = tmp_path_factory.mktemp("reports")
    given = {"archive": str(week), "keys": ",".join(KEYS), **QUICK}
    return run("analysis-replay", given, out_root=root)


@pytest.fixture(scope="module")
def numbers(done):
    return json.loads((done.folder / "results.json").read_text())["numbers"]


def part_of(rows, name, **where):
    found = [row for row in rows if row["part"] == name]
    return next(row for row in found if all(row[k] == v for k, v in where.items()))


def test_every_part_has_an_answer(done):
    page = done.results["page"]
    names = ["held", "checks", "stabilizer", "weights", "fairness", "rules", "settings"]
    assert [part["name"] for part in page["parts"]] == names
    assert {part["verdict"]["kind"] for part in page["parts"]} == {"finding"}
    assert page["verdict"]["kind"] == "finding"
    assert "brokerages of user tasks" in page["verdict"]["sentence"]
    assert page["synthetic"] is True
    assert page["cannot_tell"][0].startswith("The archive is synthetic")


def test_every_brokerage_is_held_by_one_rule_or_passes(numbers):
    rules = numbers["by_rule"]
    assert sum(row["total"] for row in rules) == numbers["n_brokerages"]
    for name in ("by_class", "by_gshare"):
        assert sum(row["total"] for row in numbers[name]) == numbers["n_brokerages"]
    held = numbers["n_brokerages"] - part_of(rules, "passed")["total"]
    assert sum(row["held"] for row in numbers["units"]) == held > 0
    assert part_of(numbers["routes"], "held")["total"] == held
    assert sum(row["total"] for row in numbers["routes"]) == numbers["n_brokerages"]


def test_funnels_sum_to_the_pairs_looked_at(done, numbers):
    assert sum(row["total"] for row in numbers["by_check"]) == numbers["n_pairs"]
    tables = {
        name: pl.read_parquet(done.folder / "tables" / f"decided_{name}.parquet")
        for name in ("queues", "first_loop")
    }
    assert tables["queues"].height == numbers["n_pairs"]
    pairs = sum(row["total"] for row in numbers["by_loop"])
    assert pairs == numbers["n_pairs"] + tables["first_loop"].height
    left = [row["left"] for row in numbers["by_loop"] if row["part"] == "candidate"]
    assert left == pytest.approx([0] * len(left), abs=1e-9)


@pytest.mark.parametrize(
    "name", ["by_rule", "by_class", "by_time", "by_loop", "routes", "limits", "weight_places"]
)
def test_shares_and_their_intervals(numbers, name):
    for row in numbers[name]:
        assert 0 <= row["share"] <= 1
        if row["lo"] is not None:
            assert row["lo"] - 1e-9 <= row["share"] <= row["hi"] + 1e-9


def test_jobs_that_move_go_somewhere(numbers):
    all_moved = numbers["weight_moved"][0]
    by_class = numbers["weight_moved_by_class"]
    assert sum(row["total"] for row in by_class) == pytest.approx(all_moved["total"])
    for side in ("old", "new"):
        expected = sum(row[side] for row in numbers["weight_queues"])
        assert expected == pytest.approx(all_moved["whole"])
    changes = [row["share"] for row in numbers["weight_changes"] if row["task_class"] == "all"]
    assert sum(changes) == pytest.approx(0, abs=1e-9)
    gained = sum(max(row["change"], 0) for row in numbers["weight_queues"])
    assert (
        gained <= all_moved["total"] + 1e-6
    )  # what leaves a queue for another at one brokerage may return


def test_indices_are_between_one_user_and_all(numbers):
    n = numbers["n_users"]
    for row in numbers["indices"]:
        if row["quantity"] not in ("throttle", "checks") and row["index"] is not None:
            assert 1 / n - 1e-9 <= row["index"] <= 1
    for row in numbers["users"]:
        assert row["asked"] >= row["let_through"] >= row["placed"] >= 0


def test_the_current_value_changes_nothing(numbers):
    current = [row for row in numbers["curves"] if row["is_current"]]
    assert current
    for row in current:
        assert [row[name] for name in ("shift", "pairs", "without")] == [0, 0, 0]
    assert {row["key"] for row in numbers["settings"]} == set(KEYS)
    assert max(row["shift"] for row in numbers["curves"]) > 0


def test_rule_sets(numbers):
    found = numbers["rule_sets"]
    assert (found["current"], found["other"]) == ("document", "production")
    kinds = [part_of(numbers["rule_totals"], name)["total"] for name in ("gained", "lost", "other_reason")]  # fmt: skip
    assert sum(kinds) == part_of(numbers["rule_totals"], "pairs")["total"] == found["n_changed"]
    assert numbers["rule_switches"] == []


def test_page_is_whole_and_offline(done):
    html = done.page.read_text()
    stored = json.loads((done.folder / "results.json").read_text())
    assert html == render(stored, done.folder)
    assert re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="([^"]*)"', html) == []
    links = [link for link in re.findall(r'<a [^>]*href="([^"#]+)"', html) if "://" not in link]
    assert [link for link in links if not (done.folder / link).exists()] == []
    assert html.count('role="img" aria-label="') == html.count("<svg") > 7
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert html.count("<caption>") == html.count("<table")
    assert "brokerlab report analysis-replay -p archive=" in html
    assert "NaN" not in html


def test_wrong_parameters(week, tmp_path):
    with pytest.raises(ConfigError, match="unknown parameter 'rule': did you mean 'rules'"):
        run("analysis-replay", {"rule": "x"}, out_root=tmp_path)
    bad = {"archive": str(week), "keys": "NQUEUED_SAT_CAP", "every": "soon", "points": 1}
    with pytest.raises(ReportError, match="no key of the analysis brokerage") as caught:
        run("analysis-replay", bad, out_root=tmp_path)
    assert "every='soon'" in str(caught.value)
    assert "points=1: must be 3 or more" in str(caught.value)


def test_a_period_without_brokerages_is_said(week):
    with pytest.raises(DataError, match="no task is brokered"):
        load(week, start="2020-01-01", end="2020-01-02")
