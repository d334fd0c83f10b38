"""The scout percentile report on a small synthetic archive: its numbers, page, tables and failures."""

import json
import os
import re
from pathlib import Path

import polars as pl
import pytest

from brokerlab.archive.ingestion import ingest
from brokerlab.errors import ConfigError, InsufficientDataError, ReportError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Proposal
from brokerlab.report import run
from brokerlab.report.page import render
from brokerlab.report.scout_percentiles import load
from brokerlab.scouts import ScoutRules
from brokerlab.words import THIN

KINDS = {"change", "keep", "no_answer"}


@pytest.fixture(scope="module")
def done(archive, tmp_path_factory):
    """One run with every default but the number of replicates."""
    root = tmp_path_factory.mktemp("reports")
    return run("scout-percentiles", {"archive": str(archive), "n_boot": "300"}, out_root=root)


def numbers_of(done, parameter):
    return json.loads((done.folder / "results.json").read_text())["numbers"][parameter]


def test_every_parameter_has_an_answer(done):
    page = done.results["page"]
    assert {part["name"] for part in page["parts"]} == {"ramcount", "cputime", "outdiskcount"}
    assert {part["verdict"]["kind"] for part in page["parts"]} <= KINDS
    assert page["verdict"] == page["parts"][0]["verdict"]
    assert page["synthetic"] is True
    assert page["cannot_tell"][0].startswith("The archive is synthetic")


def test_numbers_agree_with_each_other(done):
    ram = numbers_of(done, "ramcount")
    assert ram["settings"]["current"] == {"rank": 75, "margin_pct": 10}
    before = ram["backtest"]["proof"]["current"]
    line = ram["proof"]["quantities"]
    assert line["exceed_rate"]["before"] == pytest.approx(before["n_exceed"] / before["n_scored"])
    parts = [line[f"{name}_gbh"]["before"] for name in ("used", "over", "waste")]
    assert line["reserved_gbh"]["before"] == pytest.approx(sum(parts))
    by_type = [row for row in ram["strata"] if row["stratum"] == "processingtype"]
    assert sum(row["n_scored"] for row in by_type) == before["n_scored"]
    kills = sum(row["before"] * row["n_scored"] for row in by_type)
    assert kills == pytest.approx(before["n_exceed"])


def test_page_shows_the_numbers_of_the_results(done):
    html = done.page.read_text()
    stored = json.loads((done.folder / "results.json").read_text())
    assert html == render(stored, done.folder)
    ram = next(part for part in stored["page"]["parts"] if part["name"] == "ramcount")
    (kills,) = [
        row["cells"]
        for row in ram["before_after"][0]["rows"]
        if row["cells"]["quantity"].startswith("First attempts killed")
    ]
    before = numbers_of(done, "ramcount")["proof"]["quantities"]["exceed_rate"]["before"]
    assert kills["before"]["value"] == pytest.approx(100 * before)
    assert f"{100 * before:.1f}" in html


def test_one_interval_for_one_number(done):
    """The loss on the proof period reads the same before and after and side by side."""
    for part in done.results["page"]["parts"]:
        if not part["certainty"]:
            continue
        (periods,) = [
            b
            for b in part["certainty"]
            if isinstance(b, dict) and b.get("name", "").endswith("_periods")
        ]
        shown = periods["rows"][-1]["cells"]["loss"]
        line = numbers_of(done, part["name"])["proof"]["quantities"]["loss"]
        assert [shown[key] for key in ("value", "lo", "hi")] == pytest.approx(
            [line[key] for key in ("diff", "diff_lo", "diff_hi")]
        )


def test_the_proof_is_asked_of_the_point_as_the_choice_was_of_the_bound(done):
    for name, numbers in json.loads((done.folder / "results.json").read_text())["numbers"].items():
        assert numbers["proof"]["limit_on"] == "point", name


def test_recorded_kills_overlap_and_rules_are_in_the_results(done):
    stored = json.loads((done.folder / "results.json").read_text())
    part = next(part for part in stored["page"]["parts"] if part["name"] == "ramcount")
    (row,) = [
        row["cells"]
        for row in part["before_after"][0]["rows"]
        if row["cells"]["quantity"].endswith("as recorded [jobs]")
    ]
    counts = stored["numbers"]["ramcount"]["counts"]["proof"]
    assert (row["before"]["value"], row["after"]) == (counts["n_kills"], None)
    assert stored["digests"]["rules"] == ScoutRules().digest
    n = stored["periods"]["n_overlapping"]
    assert n > 0
    text = " ".join(stored["page"]["cannot_tell"]).replace(THIN, "")
    assert f"{n} jobs of the calibration's tasks ended" in text
    assert {row["n_scouts"] for row in stored["numbers"]["ramcount"]["promise"]} >= set(
        range(5, 11)
    )


def test_page_is_whole_and_offline(done):
    html = done.page.read_text()
    resources = re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="([^"]*)"', html)
    assert resources == []
    links = re.findall(r'<a [^>]*href="([^"#]+)"', html)
    assert [link for link in links if "://" in link] == []
    missing = [link for link in links if not (done.folder / link).exists()]
    assert missing == []
    assert html.count('role="img" aria-label="') == html.count("<svg")
    assert html.count('aria-label=""') == 0
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert '<html lang="en">' in html
    for heading in ("Verdict", "What this cannot tell", "How it was made"):
        assert f'aria-label="{heading}"' in html
    assert html.count("<caption>") == html.count("<table")
    assert "brokerlab report scout-percentiles -p archive=" in html


def test_tables_and_charts(done):
    settings = pl.read_parquet(done.folder / "tables" / "ramcount_settings.parquet")
    assert settings.height == 50 * 31
    assert (done.folder / "tables" / "ramcount_settings.csv").exists()
    names = {path.stem for path in (done.folder / "charts").glob("*.svg")}
    for chart in ("frontier", "strata", "coverage", "spread", "gap"):
        assert f"ramcount_{chart}" in names
    assert {path.stem for path in (done.folder / "charts").glob("*.json")} == names


def test_proposals_fit_the_configuration_of_the_archive(done, archive):
    from brokerlab import archive as archives

    config = Config.from_frame(archives.open(archive).gdpconfig)
    for part in done.results["page"]["parts"]:
        path = done.folder / f"proposal-{part['name']}.json"
        wanted = part["verdict"]["kind"] != "no_answer" and part["name"] != "outdiskcount"
        assert path.exists() == wanted
        if wanted:
            proposal = Proposal.from_json(path.read_text())
            proposal.verify(config)
            assert proposal.kind == part["verdict"]["kind"]
            assert proposal.evidence.synthetic
            assert proposal.digests.rules == ScoutRules().digest


def test_same_parameters_same_numbers(done, archive):
    again = run(
        "scout-percentiles",
        {"archive": str(archive), "n_boot": 300, "parameter": "ramcount"},
        out_root=done.folder.parents[1],
    )
    assert numbers_of(again, "ramcount") == numbers_of(done, "ramcount")
    assert len(again.results["page"]["parts"]) == 1


def test_filters_and_too_little_data_give_no_answer(done, archive):
    some = run(
        "scout-percentiles",
        {"archive": str(archive), "processingtype": "merge", "parameter": "ramcount"},
        out_root=done.folder.parents[1],
    )
    assert {part["verdict"]["kind"] for part in some.results["page"]["parts"]} == {"no_answer"}
    html = some.page.read_text()
    assert "processing type merge" in html


def test_wrong_parameters_and_failing_cells(archive, tmp_path):
    with pytest.raises(ConfigError, match="unknown parameter 'gshares': did you mean 'gshare'"):
        run("scout-percentiles", {"gshares": "x"}, out_root=tmp_path)
    with pytest.raises(ConfigError, match="alpha='much': must be a number"):
        run("scout-percentiles", {"alpha": "much"}, out_root=tmp_path)
    bad = {"archive": str(archive), "parameter": "ramcuont"}
    with pytest.raises(ReportError, match=r"parameter='ramcuont': did you mean 'ramcount'\?"):
        run("scout-percentiles", bad, out_root=tmp_path)
    (entry,) = json.loads((tmp_path / "index.json").read_text())["runs"]
    assert (entry["state"], entry["kind"]) == ("failed", "failed")
    assert "ramcuont" in (tmp_path / entry["page"]).read_text()


REAL = (
    Path(os.environ.get("BROKERLAB_DATA", Path(__file__).parents[3] / "shared" / "data"))
    / "panda-invex-jobs"
)


@pytest.mark.real_data
@pytest.mark.skipif(not REAL.is_dir(), reason="real data 'panda-invex-jobs' is not here")
def test_real_tasks_are_described_and_prove_nothing(tmp_path):
    """Four tasks: what happened in each is shown, and no answer is claimed."""
    ingest(sorted(REAL.glob("*.csv.gz")), tmp_path / "real")
    done = run("scout-percentiles", {"archive": str(tmp_path / "real")}, out_root=tmp_path)
    parts = {part["name"]: part for part in done.results["page"]["parts"]}
    assert {part["verdict"]["kind"] for part in parts.values()} == {"no_answer"}
    assert done.results["page"]["synthetic"] is False
    table = next(b for b in parts["ramcount"]["gains"] if b["name"] == "ramcount_tasks")
    rows = {row["cells"]["task"]: row["cells"] for row in table["rows"]}
    assert sorted(rows) == ["13332803", "13776794", "14287024", "15350577"]
    assert rows["15350577"]["jobs"]["value"] == 10_558
    assert list(done.folder.glob("proposal*.json")) == []
    assert "Only 4 tasks can be scored" in done.page.read_text()


def test_a_filter_that_leaves_nothing_is_said(archive):
    with pytest.raises(InsufficientDataError) as caught:
        load(archive, gshare="Nope", window_start="2026-01-01")
    assert str(caught.value) == (
        f"{archive}: no task with finished jobs among those asked for (created from 2026-01-01, gshare Nope)"
    )
