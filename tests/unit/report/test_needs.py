"""What a report reads is data: `load` opens an archive by it, `check` says beforehand whether it can run."""

import json
from datetime import datetime
from pathlib import Path
from typing import ClassVar

import polars as pl
import pytest
from typer.testing import CliRunner

from brokerlab.archive.store import Archive, open_archive
from brokerlab.archive.writer import ArchiveWriter
from brokerlab.cli import app
from brokerlab.errors import DataError, InsufficientDataError, MissingTableError
from brokerlab.report import check, find, kit, runner
from brokerlab.report.kernel import Failure
from brokerlab.report.kit import Page, Verdict
from brokerlab.report.needs import Needs, Rows

FINISHED = Rows.tasks("tasks with finished jobs", pl.col("jobstatus") == "finished", least=2)


class Toy(kit.Basic):
    report: ClassVar[str] = "toy"
    question: ClassVar[str] = "Which?"
    needs: ClassVar[Needs] = Needs(
        tables=("jobs", "tasks"), derived=("tasks",), without={"gshares": "No shares are known."}
    )


@pytest.fixture
def jobs(tmp_path: Path) -> Archive:
    """Two finished jobs of one task."""
    rows = pl.DataFrame(
        {
            "pandaid": [1, 2],
            "jeditaskid": [7, 7],
            "jobstatus": ["finished", "failed"],
            "prodsourcelabel": ["managed", "managed"],
            "creationtime": [datetime(2026, 3, 1)] * 2,
            "modificationtime": [datetime(2026, 3, 2)] * 2,
        }
    )
    with ArchiveWriter(tmp_path / "jobs") as writer:
        writer.write("jobs", rows)
        writer.commit()
    return open_archive(tmp_path / "jobs")


def test_tables_that_are_missing_are_named_all_at_once(tmp_path: Path) -> None:
    with ArchiveWriter(tmp_path) as writer:
        writer.write("resource_types", pl.DataFrame({"resource_name": ["SCORE"]}))
        writer.commit()
    archive = open_archive(tmp_path)
    needs = Needs(tables=("jobs", "resource_types", "tasks"), derived=("tasks",))
    with pytest.raises(
        MissingTableError, match="no jobs and tasks; its tables: resource_types"
    ) as caught:
        needs.opened(archive)
    assert isinstance(caught.value, DataError)
    assert isinstance(caught.value, InsufficientDataError)
    assert needs.missing(archive) == ["no jobs and tasks"]


def test_tables_are_derived_where_the_report_says_so(jobs: Archive) -> None:
    assert Toy.needs.opened(jobs).derived == ("tasks",)
    assert Needs(tables=("jobs",)).opened(jobs).derived == ()
    with pytest.raises(MissingTableError, match="no tasks; its tables: jobs"):
        Needs(tables=("jobs", "tasks")).opened(jobs)
    with pytest.raises(MissingTableError, match="no transfers or network_matrix"):
        Needs(one_of=("transfers", "network_matrix")).opened(jobs)


def test_rows_are_counted(jobs: Archive) -> None:
    assert Needs(tables=("jobs",), rows=[FINISHED]).missing(jobs) == [
        "1 tasks with finished jobs, 2 needed"
    ]
    assert Needs(tables=("jobs",), rows=[Rows("jobs", pl.len(), 2)]).missing(jobs) == []


def test_a_page_says_once_what_was_made_and_what_was_not_there(
    jobs: Archive, tmp_path: Path
) -> None:
    page = Page(verdict=Verdict(kind="finding", sentence="Yes."), archive=Toy.needs.opened(jobs))
    results = kit.publish(page, Toy(out_dir=str(tmp_path / "out")))
    made, without = results["page"]["cannot_tell"]
    assert made.startswith("Made from the jobs, as the archive lacks them: tasks (")
    assert without == "No shares are known."
    assert results["derived"] == ["tasks"]
    assert results["digests"]["archive"] != jobs.digest
    html = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert html.count("Made from the jobs") == 1
    assert 'href="#cannot-tell">tasks made from jobs</a>' in html  # on the first screen


def test_a_page_of_given_tables_says_nothing_of_it(jobs: Archive, tmp_path: Path) -> None:
    page = Page(verdict=Verdict(kind="finding", sentence="Yes."), archive=jobs)
    results = kit.publish(page, Toy(out_dir=str(tmp_path / "out")))
    assert results["derived"] == []
    assert results["page"]["cannot_tell"] == ["No shares are known."]


def test_every_report_is_checked(jobs: Archive) -> None:
    verdicts = check(jobs)
    assert verdicts["report"].to_list() == find.names()
    by_name = {row["report"]: row for row in verdicts.iter_rows(named=True)}
    assert by_name["scout-percentiles"] == {
        "report": "scout-percentiles",
        "can_run": True,
        "missing": [],
        "derived": ["tasks", "datasets", "files", "queues"],
        "without": ["No settings are recorded: the catalogue's defaults count as current."],
    }
    assert by_name["thresholds"]["missing"] == ["no tasks and queues"]
    assert by_name["memory-estimator"]["missing"] == [
        "0 production tasks with jobs whose memory is recorded, 3 needed"
    ]


def test_the_command_prints_a_table_or_one_line_of_json(jobs: Archive) -> None:
    shown = CliRunner().invoke(app, ["check", str(jobs.path)])
    assert shown.exit_code == 0
    assert "no tasks and queues" in shown.stdout
    assert shown.stdout.count("Made from the jobs") == 1
    line = CliRunner().invoke(app, ["check", str(jobs.path), "--json"]).stdout
    answer = json.loads(line)
    assert answer["reports"] == check(jobs).to_dicts()
    assert line.count("\n") == 1


def test_a_folder_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["check", str(tmp_path)]).exit_code == DataError.exit_code


def test_too_little_memory_is_told_before_a_report_starts_and_on_its_page(
    jobs: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack = "about 1.5 GB of memory are needed for 2 jobs, 0.5 GB are free"
    monkeypatch.setattr(runner, "free_gb", lambda: 0.5)
    monkeypatch.setattr(runner.Kernel, "execute", lambda *_: Failure(cell=1, error="MemoryError: "))
    asked = ["report", "brokerage-replay", "-p", f"archive={jobs.path}", "--out", str(tmp_path)]
    said = CliRunner().invoke(app, asked)
    assert f"note: brokerage-replay: {lack}; ask for a shorter period" in said.output
    (run,) = (tmp_path / "brokerage-replay").glob("2*")
    assert lack in (run / "index.html").read_text(encoding="utf-8")
    assert json.loads((run / "manifest.json").read_text(encoding="utf-8"))["memory"] == lack
    assert "note" not in CliRunner().invoke(app, [*asked, "-p", "max_tasks=10"]).output
    monkeypatch.undo()
    assert runner.free_gb() > 0


def test_a_container_has_what_its_limit_leaves(tmp_path: Path) -> None:
    def put(file: str, text: str) -> None:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)

    assert runner.free_gb(tmp_path) == float("inf")
    put("proc/meminfo", "MemTotal: 200000000 kB\nMemAvailable:  100000000 kB\n")
    assert runner.free_gb(tmp_path) == pytest.approx(102.4)
    put("sys/fs/cgroup/memory.current", "7000000000\n")
    put("sys/fs/cgroup/memory.max", "max\n")
    assert runner.free_gb(tmp_path) == pytest.approx(102.4)
    put("sys/fs/cgroup/memory.max", "8000000000\n")
    put("sys/fs/cgroup/memory.stat", "anon 5000000000\ninactive_file 1500000000\n")
    assert runner.free_gb(tmp_path) == pytest.approx(2.5)
