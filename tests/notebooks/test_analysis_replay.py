"""The report on user tasks on a small synthetic archive: its numbers, page, tables and failures."""

import json
import re

import polars as pl
import pytest

from brokerlab.errors import ConfigError, EmptyPeriodError
from brokerlab.report import analysis_replay, run
from tests.notebooks import pages

QUICK = {"n_boot": 100, "points": 3, "switch_sample": 0}
KEYS = ["CAP_RUNNING_USER_JOBS", "IO_INTENSITY_CUTOFF_USER", "BASE_QUEUE_LENGTH_PER_PQ"]
SECTIONS = [
    "Who is held back",
    "What removes queues",
    "Against what really ran",
    "Original against new basic weight",
    "Fairness between users",
    "Document against production rules",
    "Which settings matter",
]


@pytest.fixture(scope="module")
def done(week, tmp_path_factory):
    """One run with few keys, few values and few replicates."""
    root = tmp_path_factory.mktemp("reports")
    given = {"archive": str(week), "keys": ",".join(KEYS), **QUICK}
    return run("analysis-replay", given, out_root=root)


@pytest.fixture(scope="module")
def results(done):
    pages.check_names(done.folder)
    return json.loads((done.folder / "results.json").read_text())


@pytest.fixture(scope="module")
def numbers(results):
    return results["numbers"]


def part_of(rows, name, **where):
    found = [row for row in rows if row["part"] == name]
    return next(row for row in found if all(row[k] == v for k, v in where.items()))


def test_every_section_has_an_answer(results):
    page = results["page"]
    assert [section["title"] for section in page["sections"]] == SECTIONS
    assert all(section["blocks"] for section in page["sections"])
    assert page["verdict"]["kind"] == "finding"
    assert "of user tasks are held back, most by" in page["verdict"]["sentence"]
    assert page["synthetic"] is True
    assert page["cannot_tell"][0].startswith("The archive is synthetic")


def test_every_brokerage_is_held_by_one_rule_or_passes(results, numbers):
    n, rules = results["values"]["n_brokerages"], numbers["held_rules"]
    held, passed = (part_of(rules, name)["total"] for name in ("held", "passed"))
    assert sum(row["total"] for row in rules) == n + held
    assert held + passed == n
    for column in ("task_class", "gshare"):
        levels = [row for row in numbers["held_levels"] if row["column"] == column]
        assert sum(row["brokerages"] for row in levels) == n
        assert sum(row["held"] * row["brokerages"] for row in levels) == pytest.approx(held)
    assert sum(row["held"] for row in numbers["held_units"]) == held > 0


def test_funnels_sum_to_the_pairs_looked_at(done, results, numbers):
    n_pairs = results["values"]["n_pairs"]
    assert sum(row["total"] for row in numbers["removed"]) == n_pairs
    tables = {
        name: pl.read_parquet(done.folder / "tables" / f"decided_{name}.parquet")
        for name in ("queues", "first_loop")
    }
    assert tables["queues"].height == n_pairs
    pairs = sum(row["total"] for row in numbers["removed_by_loop"])
    assert pairs == n_pairs + tables["first_loop"].height
    left = [row["left"] for row in numbers["removed_by_loop"] if row["part"] == "candidate"]
    assert left == pytest.approx([0] * len(left), abs=1e-9)


@pytest.mark.parametrize(
    "name", ["held_rules", "removed", "removed_by_loop", "stabilizer", "agreement"]
)
def test_shares_and_their_intervals(numbers, name):
    assert numbers[name]
    for row in numbers[name]:
        assert 0 <= row["share"] <= 1
        if row["share_lo"] is not None:
            assert row["share_lo"] - 1e-9 <= row["share"] <= row["share_hi"] + 1e-9


def test_jobs_that_move_go_somewhere(numbers):
    every, *classes = numbers["weight_by_class"]
    moved = sum(row["moved"] * row["jobs"] for row in classes)
    assert every["task_class"] == "all"
    assert moved == pytest.approx(every["moved"] * every["jobs"])
    for side in ("original", "new"):
        assert sum(row[side] for row in numbers["weight_queues"]) == pytest.approx(every["jobs"])
    changes = [every[f"change_{name}"] for name in ("hi", "mid", "lo")]
    assert sum(changes) == pytest.approx(0, abs=1e-9)
    gained = sum(max(row["change"], 0) for row in numbers["weight_queues"])
    assert 0 < gained <= every["moved"] + 1e-9  # what leaves a queue at one brokerage may return


def test_indices_are_between_one_user_and_all(results, numbers):
    n = results["values"]["n_users"]
    for row in numbers["indices"]:
        if row["quantity"] not in ("throttle", "checks") and row["index"] is not None:
            assert 1 / n - 1e-9 <= row["index"] <= 1
    for row in numbers["users"]:
        assert row["asked"] >= row["let_through"] >= row["placed"] >= 0


def test_the_current_value_changes_nothing(numbers):
    current = [row for row in numbers["key_curves"] if row["is_current"]]
    assert current
    for row in current:
        assert [row[name] for name in ("shift", "pairs", "without")] == [0, 0, 0]
    assert {row["key"] for row in numbers["keys"]} == set(KEYS)
    assert max(row["shift"] for row in numbers["key_curves"]) > 0


def test_rule_sets(results, numbers):
    kinds = [part_of(numbers["rule_sets"], name)["total"] for name in ("gained", "lost", "other_reason")]  # fmt: skip
    changed = part_of(numbers["rule_sets"], "pairs")["total"]
    assert sum(kinds) == changed == results["values"]["n_pairs_other_rules"] > 0
    assert numbers["rule_switches"] == []  # none was tried


def test_page_is_whole_and_short(done):
    html = re.sub(r"(<script[^>]*>).*?(</script>)", r"\1\2", done.page.read_text(), flags=re.DOTALL)
    assert re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="([^"]*)"', html) == []
    links = [link for link in re.findall(r'<a [^>]*href="([^"#]+)"', html) if "://" not in link]
    assert [link for link in links if ".." not in link and not (done.folder / link).exists()] == []
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert "brokerlab report analysis-replay -p archive=" in html
    assert "NaN" not in html
    aside = r"<(script|style|svg|table|pre|dl)\b.*?</\1>|<ul class=\"links\">.*?</ul>"
    texts = re.sub(r"<[^>]+>", " ", re.sub(aside, " ", html, flags=re.DOTALL))
    assert len(texts.split()) < 800


def test_wrong_parameters_are_refused_all_at_once(week, tmp_path):
    with pytest.raises(ConfigError, match="unknown parameter 'rule': did you mean 'rules'"):
        run("analysis-replay", {"rule": "x"}, out_root=tmp_path)
    bad = {"archive": str(week), "keys": "NQUEUED_SAT_CAP", "every": "soon", "points": 1}
    with pytest.raises(ConfigError, match="no key of the analysis brokerage") as caught:
        run("analysis-replay", bad, out_root=tmp_path)
    assert "every='soon'" in str(caught.value)
    assert "points=1" in str(caught.value)


def test_a_period_without_brokerages_is_no_answer(week, tmp_path):
    given = {"archive": str(week), "start": "2020-01-01", "end": "2020-01-02"}
    p = analysis_replay.Params.checked(given | {"out_dir": str(tmp_path)})
    with pytest.raises(EmptyPeriodError, match="no task is brokered"):
        pages.run(analysis_replay, p)
    page = json.loads((tmp_path / "results.json").read_text())["page"]
    assert page["verdict"]["kind"] == "no_answer"
