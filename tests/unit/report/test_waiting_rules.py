"""The page of waiting rules, on archives of a few jobs whose numbers are known by heart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from brokerlab.archive.store import Archive
from brokerlab.errors import ConfigError, EmptyPeriodError, InsufficientDataError
from brokerlab.report import waiting_rules as report
from brokerlab.words import THIN
from tests.notebooks import pages
from tests.unit.lifecycle.waits.toys import BACKLOG, JOBS, QUEUES, started, write


def page_of(archive: Archive, out: Path, **asked: Any) -> dict[str, Any]:
    """Run the report and return its results, thin spaces made plain."""
    asked = {"every": "12h", "n_boot": 50, **asked}
    pages.run(report, report.Params(archive=str(archive.path), out_dir=str(out), **asked))
    pages.check_page(out)
    text = (out / "results.json").read_text(encoding="utf-8")
    stored: dict[str, Any] = json.loads(text.replace(THIN, ""))
    return stored


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("waiting")
    return page_of(write(folder / "toy", JOBS, QUEUES), folder / "out")


def sections_of(stored: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {section["title"]: section["blocks"] for section in stored["page"]["sections"]}


def test_the_headline_says_how_many_are_timed_out_needlessly(stored: dict[str, Any]) -> None:
    verdict = stored["page"]["verdict"]
    assert verdict["kind"] == "finding"
    assert verdict["sentence"].startswith("20.0 % (0.0 to ")
    assert verdict["sentence"].endswith(  # five of seven are decided
        " of 5 timed-out jobs would have gone on by themselves within 1 h."
    )
    timed_out, ended, wait = stored["page"]["numbers"]
    assert (timed_out["value"], timed_out["note"]) == (7, "63.6 % of 11 jobs; 2 too late to judge")
    assert ended["value"] == 67.75 + 3
    assert ended["note"] == "after 290 h of it"
    assert wait["value"] == stored["values"]["fresh_h"]
    chart = stored["page"]["chart"]
    assert chart["finding"] == (
        "Halved limits: 222 h of waiting ended, 0 jobs interrupted needlessly; now 71 h and 1"
    )


def test_sections_and_their_numbers(stored: dict[str, Any]) -> None:
    sections = sections_of(stored)
    assert list(sections) == [
        "Rule by rule", "Other limits", "Where", "Fast rebrokerage", "Document against production rules"
    ]  # fmt: skip
    rules = sections["Rule by rule"][0]
    assert rules["caption"] == (
        "2 of 15 rules fire; 1 job went on later, 1 came to nothing, 4 still wait"
    )
    rows = {row["rule"]: row for row in stored["numbers"]["rules"]}
    assert (rows["activated"]["jobs"], rows["activated"]["spared"]) == (6, 1)
    assert (rows["running"]["jobs"], rows["holding_lo"]["jobs"]) == (0, None)  # never, not seen
    assert "1 of 3 queues that are paused" in rules["note"]
    changes = stored["numbers"]["limit_changes"]
    assert [row["value"] for row in changes[:2]] == [0.5, 2.0]
    (limits,) = sections["Other limits"]
    assert limits["caption"] == (
        "Largest change of the waiting ended: 150 h (0 to 306), by activated, limit × 0.5"
    )
    levels = sections["Where"][0]
    assert levels["caption"] == "Most firings at a queue: 4 of activated at B, of 2 queues with any"
    assert levels["note"].endswith("Queues have no interval: whole ones are drawn again.")
    assert sections["Fast rebrokerage"] == [
        {"kind": "text", "text": "No queue meets its conditions for any share at any of 34 instants."}
    ]  # fmt: skip
    kinds = sections["Document against production rules"][0]
    assert kinds["caption"] == "2 of 8 jobs that either set times out fare differently"
    assert kinds["rows"][1]["cells"][0]["text"] == "timed out under document rules only"


def test_what_it_cannot_tell(stored: dict[str, Any]) -> None:
    told = stored["page"]["cannot_tell"]
    assert any(text.startswith("4 of 7 jobs still wait at the end") for text in told)
    assert any(text.startswith("Timed out less than 1 h before the end: 2 jobs") for text in told)
    assert any(
        text.startswith("At the end of the archive doubled limits are not reached yet: 2 waits")
        for text in told
    )
    assert any("throttled, running, transferring_lo" in text for text in told)
    assert any("1 live jobs at its end alone, of which 1 were" in text for text in told)
    assert not any("No job is alive" in text or "slots" in text for text in told)


def test_fast_rebrokerage_of_a_backlog(tmp_path: Path) -> None:
    stored = page_of(write(tmp_path / "backlog", BACKLOG, QUEUES), tmp_path / "out", every="6h")
    blocks = sections_of(stored)["Fast rebrokerage"]
    assert [block["kind"] for block in blocks] == ["chart", "table"]
    assert blocks[0]["finding"].startswith("NQUEUE_<gshare> matters most: 0 to ")
    assert max(row["to_move"] for row in stored["numbers"]["fast_by_time"]) == 20
    assert [c["label"] for c in blocks[1]["columns"]][4:] == [
        "To move at the beginnings, together", "Most at an instant"
    ]  # fmt: skip
    assert blocks[1]["caption"].startswith("1 pair of queue and share ever triggered; as things are set 0 did")  # fmt: skip
    assert any("No job is alive" in text for text in stored["page"]["cannot_tell"])


def test_where_no_rule_fires(tmp_path: Path) -> None:
    quick = write(tmp_path / "quick", [started(1, "A", 10), started(2, "B", 4)], QUEUES)
    stored = page_of(quick, tmp_path / "out")
    assert stored["page"]["verdict"]["sentence"] == "No waiting rule fires for any of 2 jobs under document rules."  # fmt: skip
    assert stored["page"]["numbers"] == []
    assert stored["page"]["chart"] is None
    assert list(sections_of(stored)) == ["Rule by rule", "Fast rebrokerage"]


def test_intervals_are_spoken_of_where_there_are_some(tmp_path: Path) -> None:
    archive = write(tmp_path / "toy", JOBS, QUEUES)
    of_tasks = page_of(archive, tmp_path / "tasks", unit="task")
    assert "drawing 2 tasks again" in of_tasks["page"]["chart"]["sample"]
    (levels,) = sections_of(of_tasks)["Where"]
    assert all(row["jobs_lo"] is not None for row in of_tasks["numbers"]["most_fired"])
    assert "no interval" not in levels["note"]
    alone = page_of(write(tmp_path / "one", JOBS[:2], QUEUES), tmp_path / "queues")
    assert "interval" not in alone["page"]["chart"]["sample"]  # one queue cannot be drawn again


def test_without_jobs_there_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(InsufficientDataError, match="has no jobs"):
        page_of(write(tmp_path / "none", [], QUEUES), tmp_path / "out")
    stored = json.loads((tmp_path / "out" / "results.json").read_text())
    assert stored["page"]["verdict"]["kind"] == "no_answer"
    few = write(tmp_path / "few", JOBS, QUEUES)
    with pytest.raises(EmptyPeriodError, match="no job in the period"):
        page_of(few, tmp_path / "late", start="2030-01-01")
    assert "No job in the period." in (tmp_path / "late" / "index.html").read_text()


def test_bad_parameters_are_refused_together() -> None:
    wrong = {"rules": "x", "scales": "0,1", "soon_h": 0, "every": "soon", "unit": "job", "n_boot": 1, "seed": -1, "end": "x"}  # fmt: skip
    with pytest.raises(ConfigError) as caught:
        report.Params.checked(wrong)
    for name in wrong:
        assert f"{name}=" in str(caught.value) or f"{name}[" in str(caught.value)
    assert report.Params.checked({"scales": "0.5,1"}).scales == [0.5, 1]
