"""The brokerage replay report on a small synthetic archive: its numbers, page, tables and failures."""

import json

import polars as pl
import pytest

from brokerlab import rulesets
from brokerlab.brokerage.studies import alternatives
from brokerlab.brokerage.studies.period import PRODUCTION
from brokerlab.errors import ConfigError, EmptyPeriodError, InsufficientDataError
from brokerlab.report import brokerage_replay as report
from brokerlab.report import run
from brokerlab.report.publishing import results_of
from brokerlab.rulesets import single_switches
from tests.notebooks.pages import check_names, check_page

QUICK = {"n_boot": 100, "points": 3, "switch_sample": 10}
KEYS = ["NQUEUED_SAT_CAP", "IO_INTENSITY_CUTOFF", "NW_QUEUE_IMPORTANCE", "DISK_THRESHOLD"]


@pytest.fixture(scope="module")
def done(week, tmp_path_factory):
    """One run with few values per key, few replicates and every tenth switch; long runs of poor archives try them all."""

    def some_switches(rules, other):
        return dict([*single_switches(rules, other).items()][::10])

    root = tmp_path_factory.mktemp("reports")
    given = {"archive": str(week), "keys": ",".join(KEYS), **QUICK}
    with pytest.MonkeyPatch.context() as patch:
        for module in (rulesets, alternatives):
            patch.setattr(module, "single_switches", some_switches)
        return run("brokerage-replay", given, out_root=root)


@pytest.fixture(scope="module")
def stored(done):
    check_names(done.folder)
    return check_page(done.folder)


@pytest.fixture(scope="module")
def numbers(stored):
    return stored["numbers"]


def study_of(week, **given):
    """Return what is asked, what was loaded and what was studied."""
    p = report.Params(archive=str(week), n_boot=100, points=3, **given)
    data = report.load(p)
    return p, data, report.study(data, p)


def part_of(rows, name):
    return next(row for row in rows if row["part"] == name)


def test_every_question_has_a_section(stored):
    page = stored["page"]
    assert page["verdict"]["kind"] == "finding"
    assert page["verdict"]["sentence"].startswith("Checks remove ")
    assert [section["title"] for section in page["sections"]] == [
        "What removes queues",
        "By gshare and by queue",
        "Against what really ran",
        "What orders the queues that are left",
        "Which settings matter",
        "Document against production rules",
        "The choice of the nucleus",
    ]
    assert page["synthetic"] is True
    assert page["cannot_tell"][0].startswith("The archive is synthetic")


def test_the_funnel_sums_to_the_pairs_looked_at(done, stored, numbers):
    rows, n_pairs = numbers["removed"], stored["values"]["n_pairs"]
    assert sum(row["total"] for row in rows) == n_pairs
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert rows[-1]["part"] == "candidate"
    assert part_of(rows, "rank")["left"] == pytest.approx(rows[-1]["share"])
    queues = pl.read_parquet(done.folder / "tables" / "decided_queues.parquet")
    assert queues.height == n_pairs
    assert queues["check"].null_count() == rows[-1]["total"]
    by_gshare = pl.DataFrame(numbers["removed_by_gshare"])
    assert by_gshare["total"].sum() == n_pairs
    stacked = by_gshare.group_by("gshare").agg(pl.col("share").sum())
    assert stacked["share"].to_list() == pytest.approx([1] * stacked.height)


@pytest.mark.parametrize(
    "name",
    ["removed", "removed_by_gshare", "removed_by_queue", "without_queue", "agreement"],
)
def test_shares_and_their_intervals(numbers, name):
    for row in numbers[name]:
        assert 0 <= row["share"] <= 1
        if row["share_lo"] is not None:
            assert row["share_lo"] - 1e-9 <= row["share"] <= row["share_hi"] + 1e-9


def test_factors_add_up(numbers):
    assert sum(row["share"] for row in numbers["factors"]) == pytest.approx(1)
    assert sum(row["share"] for row in numbers["nucleus_factors"]) == pytest.approx(1)


def test_the_current_value_changes_nothing(numbers):
    curves = numbers["key_curves"]
    current = [row for row in curves if row["is_current"]]
    assert {row["key"] for row in current} == set(KEYS)
    for row in current:
        assert [row[name] for name in ("shift", "pairs", "without")] == [0, 0, 0]
        assert row["reachable"] is None or row["reachable"] == pytest.approx(0)
    assert max(row["shift"] for row in curves) > 0
    shifts = [row["shift"] for row in numbers["keys"]]
    assert shifts == sorted(shifts, reverse=True)
    for row in curves:
        assert row["shift_lo"] - 1e-9 <= row["shift"] <= row["shift_hi"] + 1e-9


def test_rule_sets_differ_both_ways_alike(stored, numbers, week):
    back = study_of(week, rules="production", switch_sample=0, keys=KEYS[:1])[2].rule_sets
    assert (back.current, back.other) == ("production", "document")
    there, other_way = numbers["rule_sets"], back.totals.to_dicts()
    assert stored["values"]["n_pairs_other_rules"] == part_of(other_way, "pairs")["total"] > 0
    assert part_of(there, "gained")["total"] == part_of(other_way, "lost")["total"]
    assert part_of(there, "lost")["total"] == part_of(other_way, "gained")["total"]
    kinds = ("gained", "lost", "other_reason")
    parts = [part_of(there, name)["total"] for name in kinds]
    assert sum(parts) == part_of(there, "pairs")["total"]
    assert all(0 <= row["explained"] <= 1 for row in numbers["rule_switches"])


def test_agreement_with_history(numbers):
    shares = {row["part"]: row["share"] for row in numbers["agreement"]}
    assert shares["first"] <= shares["best_three"] <= shares["candidate"]
    assert 0 < shares["by_chance"] < 1
    disagreement = sum(row["share"] for row in numbers["disagreement"])
    assert disagreement + shares["candidate"] == pytest.approx(1)


def test_tasks_without_a_queue_are_explained(numbers):
    for row in numbers["stranded"]:
        assert row["outcome"] != "candidates"
        assert row["n_jobs"] > 0
        assert row["why"]
        assert row["help"]


def test_same_parameters_same_numbers_and_a_sample(week, stored):
    asked = {"max_tasks": 8, "seed": 2, "keys": KEYS[:1], "switch_sample": 0}
    made = []
    for _ in range(2):
        p, data, study = study_of(week, **asked)
        page = report.page(data, study)
        made.append(results_of(page, p, dict(page.also)))
    first, second = made
    assert json.dumps(first, default=str) == json.dumps(second, default=str)
    n_tasks = stored["values"]["n_tasks"]
    assert (first["values"]["n_tasks"], first["values"]["n_tasks_in_period"]) == (8, n_tasks)
    assert f"A sample: 8 of {n_tasks} tasks" in json.dumps(first["page"]["cannot_tell"])


def test_the_usual_keys_are_keys(week):
    p = report.Params(keys=list(report.Params.usual_keys))
    assert len(p.keys) == 10
    assert p.kind is PRODUCTION


def test_wrong_parameters(week, tmp_path):
    with pytest.raises(ConfigError, match="unknown parameter 'rule': did you mean 'rules'"):
        run("brokerage-replay", {"rule": "x"}, out_root=tmp_path)
    bad = {"archive": str(week), "keys": "NQUEUED_SAT_CAPP", "every": "soon", "points": 1}
    with pytest.raises(ConfigError, match="did you mean 'NQUEUED_SAT_CAP'") as caught:
        run("brokerage-replay", bad, out_root=tmp_path)
    assert "every='soon'" in str(caught.value)
    assert "points=1: must be greater than or equal to 3" in str(caught.value)


def test_a_period_without_brokerages_is_no_answer(week, tmp_path):
    p = report.Params(
        archive=str(week), start="2020-01-01", end="2020-01-02", out_dir=str(tmp_path)
    )
    with pytest.raises(EmptyPeriodError, match="no task is brokered"):
        report.load(p)
    stored = check_page(tmp_path)
    assert stored["page"]["verdict"]["kind"] == "no_answer"
    assert issubclass(EmptyPeriodError, InsufficientDataError)
