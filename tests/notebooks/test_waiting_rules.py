"""The waiting rules report on a small synthetic archive: its numbers, page, tables and failures."""

import json
import re

import polars as pl
import pytest

from brokerlab.errors import ConfigError, ReportError
from brokerlab.report import run
from brokerlab.report.page import render


@pytest.fixture(scope="module")
def done(archive, tmp_path_factory):
    """One run with few replicates and instants."""
    given = {"archive": str(archive), "scales": "0.25", "every": "1d", "n_boot": 100}
    return run("waiting-rules", given, out_root=tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="module")
def numbers(done):
    return json.loads((done.folder / "results.json").read_text())["numbers"]


def test_every_part_has_an_answer(done):
    page = done.results["page"]
    names = ["firing", "waste", "limits", "exceptions", "fast", "rules"]
    assert [part["name"] for part in page["parts"]] == names
    assert page["verdict"]["kind"] == "finding"
    assert page["verdict"]["sentence"].startswith("Waiting rules fire for ")
    assert page["synthetic"] is True
    assert page["cannot_tell"][0].startswith("The archive is synthetic")


def test_firings_add_up(done, numbers):
    fired = pl.read_parquet(done.folder / "tables" / "fired.parquet")
    assert fired["pandaid"].n_unique() == numbers["n_fired"] == numbers["total"]["jobs"] > 0
    assert fired.height == sum(row["jobs"] for row in numbers["by_rule"])
    for name in ("by_queue", "by_gshare", "by_label", "by_priority", "by_time"):
        assert sum(row["jobs"] for row in numbers[name]) == fired.height
    for row in numbers["by_rule"]:
        parts = [row[name] for name in ("soon", "later", "ended", "still", "undecided")]
        assert sum(parts) == row["jobs"]
        assert row["jobs_lo"] <= row["jobs"] <= row["jobs_hi"]
        assert row["after_h"] >= 0
    assert numbers["waited_h"] > 0
    assert numbers["n_jobs"] == 20_000


def test_longer_limits_fire_less(numbers):
    rows = numbers["limits"]
    assert {row["scale"] for row in rows} == {0.25, 0.5, 1.0, 2.0}
    now = {row["rule"]: row["jobs"] for row in numbers["by_rule"]}
    for rule in {row["rule"] for row in rows}:
        mine = [row for row in rows if row["rule"] == rule]
        jobs, ended = ([row[name] for row in mine] for name in ("jobs", "after_h"))
        assert jobs == sorted(jobs, reverse=True)
        assert ended == sorted(ended, reverse=True)
        as_set = next(row for row in mine if row["scale"] == 1)
        assert as_set["more_jobs"] == as_set["more_after_h"] == as_set["more_soon_lo"] == 0
        assert as_set["jobs"] == now.get(rule, numbers["n_fired"] if rule == "all rules" else 0)


def test_rule_sets_and_fast_rebrokerage(numbers):
    kinds = {row["kind"]: row["jobs"] for row in numbers["rule_kinds"]}
    assert sum(kinds.values()) == numbers["rule_sets"]["n_any"]
    alike = sum(kinds.get(name, 0) for name in ("same", "other_rule", "other_time", "only_current"))
    assert alike == numbers["n_fired"]
    assert all(0 <= row["explained"] <= 1 for row in numbers["rule_switches"])
    fast = numbers["fast"]
    assert fast["n_instants"] >= 20
    assert len(numbers["fast_by_time"]) == fast["n_instants"]
    assert {row["key"] for row in numbers["fast_keys"]} >= {"FAST_REBRO_THRESHOLD_NQNR_RATIO"}


def test_page_is_whole_and_offline(done):
    html = done.page.read_text()
    stored = json.loads((done.folder / "results.json").read_text())
    assert html == render(stored, done.folder)
    assert re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="([^"]*)"', html) == []
    links = [link for link in re.findall(r'<a [^>]*href="([^"#]+)"', html) if "://" not in link]
    assert [link for link in links if not (done.folder / link).exists()] == []
    assert html.count('role="img" aria-label="') == html.count("<svg") > 3
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert html.count("<caption>") == html.count("<table")
    assert "brokerlab report waiting-rules -p archive=" in html


def test_wrong_parameters(archive, tmp_path):
    with pytest.raises(ConfigError, match="unknown parameter 'scale': did you mean 'scales'"):
        run("waiting-rules", {"scale": "1"}, out_root=tmp_path)
    with pytest.raises(ReportError, match="unit='job': allowed is queue or task"):
        run("waiting-rules", {"archive": str(archive), "unit": "job"}, out_root=tmp_path)
