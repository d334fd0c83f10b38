"""The brokerage replay report on a small synthetic archive: its numbers, page, tables and failures."""

import json
import re

import polars as pl
import pytest

from brokerlab.archive.synthetic import synthesise
from brokerlab.errors import ConfigError, DataError, ReportError
from brokerlab.report import run
from brokerlab.report.brokerage_replay import load, study
from brokerlab.report.brokerage_replay.assemble import numbers as numbers_of
from brokerlab.report.brokerage_replay.sentences import cannot_tell
from brokerlab.report.page import render
from brokerlab.words import THIN

QUICK = {"n_boot": 100, "points": 3, "switch_sample": 10}
KEYS = ["NQUEUED_SAT_CAP", "IO_INTENSITY_CUTOFF", "NW_QUEUE_IMPORTANCE", "DISK_THRESHOLD"]


@pytest.fixture(scope="module")
def week(tmp_path_factory):
    """A week of 8 000 jobs."""
    folder = tmp_path_factory.mktemp("archives") / "week"
    synthesise(folder, jobs=8_000, days=7, seed=3)
    return folder


@pytest.fixture(scope="module")
def done(week, tmp_path_factory):
    """One run with few values per key and few replicates."""
    root = tmp_path_factory.mktemp("reports")
    given = {"archive": str(week), "keys": ",".join(KEYS), **QUICK}
    return run("brokerage-replay", given, out_root=root)


@pytest.fixture(scope="module")
def numbers(done):
    return json.loads((done.folder / "results.json").read_text())["numbers"]


def part_of(rows, name):
    return next(row for row in rows if row["part"] == name)


def test_every_part_has_an_answer(done):
    page = done.results["page"]
    names = ["checks", "weights", "settings", "rules", "nuclei"]
    assert [part["name"] for part in page["parts"]] == names
    assert {part["verdict"]["kind"] for part in page["parts"]} == {"finding"}
    assert page["verdict"]["kind"] == "finding"
    assert page["verdict"]["sentence"].startswith("Checks decide first: of ")
    assert page["synthetic"] is True
    assert page["cannot_tell"][0].startswith("The archive is synthetic")


def test_the_funnel_sums_to_the_pairs_looked_at(done, numbers):
    rows = numbers["by_check"]
    assert sum(row["total"] for row in rows) == numbers["n_pairs"]
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert rows[-1]["part"] == "candidate"
    assert part_of(rows, "rank")["left"] == pytest.approx(rows[-1]["share"])
    queues = pl.read_parquet(done.folder / "tables" / "decided_queues.parquet")
    assert queues.height == numbers["n_pairs"]
    assert queues["check"].null_count() == rows[-1]["total"]
    by_share = {}
    for row in numbers["by_gshare"]:
        by_share[row["gshare"]] = by_share.get(row["gshare"], 0) + row["total"]
    assert sum(by_share.values()) == numbers["n_pairs"]


@pytest.mark.parametrize(
    "name", ["by_check", "by_time", "by_gshare", "by_queue", "stuck", "agreement"]
)
def test_shares_and_their_intervals(numbers, name):
    for row in numbers[name]:
        assert 0 <= row["share"] <= 1
        if row["lo"] is not None:
            assert row["lo"] - 1e-9 <= row["share"] <= row["hi"] + 1e-9


def test_factors_add_up(numbers):
    assert sum(row["share"] for row in numbers["composition"]) == pytest.approx(1)
    assert sum(row["share"] for row in numbers["nucleus_composition"]) == pytest.approx(1)


def test_the_current_value_changes_nothing(numbers):
    curves = numbers["curves"]
    current = [row for row in curves if row["is_current"]]
    assert {row["key"] for row in current} == set(KEYS)
    for row in current:
        assert [row[name] for name in ("shift", "pairs", "without")] == [0, 0, 0]
        assert row["reachable"] is None or row["reachable"] == pytest.approx(0)
    assert max(row["shift"] for row in curves) > 0
    shifts = [row["shift"] for row in numbers["settings"]]
    assert shifts == sorted(shifts, reverse=True)
    for row in curves:
        assert row["lo"] - 1e-9 <= row["shift"] <= row["hi"] + 1e-9


def test_rule_sets_differ_both_ways_alike(numbers, week):
    other = study(load(week, rules="production"), keys=[], switch_sample=0, n_boot=100)
    there, back = numbers, numbers_of(other)
    assert (there["rule_sets"]["current"], back["rule_sets"]["current"]) == (
        "document",
        "production",
    )
    assert there["rule_sets"]["n_changed"] == back["rule_sets"]["n_changed"] > 0
    gained, lost = (part_of(there["rule_totals"], name)["total"] for name in ("gained", "lost"))
    assert gained == part_of(back["rule_totals"], "lost")["total"]
    assert lost == part_of(back["rule_totals"], "gained")["total"]
    kinds = ("gained", "lost", "other_reason")
    parts = [part_of(there["rule_totals"], name)["total"] for name in kinds]
    assert sum(parts) == part_of(there["rule_totals"], "pairs")["total"]
    assert all(0 <= row["explained"] <= 1 for row in there["rule_switches"])


def test_agreement_with_history(numbers):
    shares = {row["part"]: row["share"] for row in numbers["agreement"]}
    assert shares["first"] <= shares["best_three"] <= shares["candidate"]
    assert 0 < shares["by_chance"] < 1
    against = sum(row["share"] for row in numbers["against"])
    assert against + shares["candidate"] == pytest.approx(1)


def test_tasks_without_a_queue_are_explained(numbers):
    for row in numbers["worst"]:
        assert row["outcome"] != "candidates"
        assert row["n_jobs"] > 0
        assert row["why"]
        assert row["help"]


def test_page_is_whole_and_offline(done):
    html = done.page.read_text()
    stored = json.loads((done.folder / "results.json").read_text())
    assert html == render(stored, done.folder)
    assert re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="([^"]*)"', html) == []
    links = [link for link in re.findall(r'<a [^>]*href="([^"#]+)"', html) if "://" not in link]
    assert [link for link in links if not (done.folder / link).exists()] == []
    assert html.count('role="img" aria-label="') == html.count("<svg") > 5
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    for heading in ("Verdict", "What this cannot tell", "How it was made"):
        assert f'aria-label="{heading}"' in html
    assert html.count("<caption>") == html.count("<table")
    assert "brokerlab report brokerage-replay -p archive=" in html
    assert "By gshare and by queue" in html
    assert "Who gains" not in html


def test_same_parameters_same_numbers_and_a_sample(week, numbers):
    made = [
        study(load(week, max_tasks=8, seed=2), keys=KEYS[:1], points=3, switch_sample=5, n_boot=100)
        for _ in range(2)
    ]
    first, second = (numbers_of(one) for one in made)
    assert json.dumps(first, default=str) == json.dumps(second, default=str)
    assert (first["n_tasks"], first["n_tasks_in_period"]) == (8, numbers["n_tasks"])
    sentences = [sentence.replace(THIN, "") for sentence in cannot_tell(made[0])]
    assert any(sentence.startswith("A sample: 8 of ") for sentence in sentences)


def test_wrong_parameters(week, tmp_path):
    with pytest.raises(ConfigError, match="unknown parameter 'rule': did you mean 'rules'"):
        run("brokerage-replay", {"rule": "x"}, out_root=tmp_path)
    bad = {"archive": str(week), "keys": "NQUEUED_SAT_CAPP", "every": "soon", "points": 1}
    with pytest.raises(ReportError, match="did you mean 'NQUEUED_SAT_CAP'") as caught:
        run("brokerage-replay", bad, out_root=tmp_path)
    assert "every='soon'" in str(caught.value)
    assert "points=1: must be 3 or more" in str(caught.value)


def test_a_period_without_brokerages_is_said(week):
    with pytest.raises(DataError, match="no task is brokered"):
        load(week, start="2020-01-01", end="2020-01-02")
