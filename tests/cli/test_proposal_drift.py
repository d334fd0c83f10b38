"""``brokerlab proposal drift``: a sentence or JSON, and an exit code that a scheduler can act on."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from brokerlab.archive import ArchiveWriter
from brokerlab.archive.store import open_archive
from brokerlab.calibrate.command import EXIT_CODES
from brokerlab.cli import app
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import (
    Effect,
    Evidence,
    Proposal,
    Window,
    dumps,
    merge,
    read_all,
    write,
)
from brokerlab.scouts import ScoutRules
from brokerlab.worlds import synthesise

NOW = datetime(2026, 2, 20)
TOLD = Effect("First attempts killed", "share of jobs", 0.9, 0.1, -0.8, -0.81, -0.79, 0.95)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("archives") / "later"
    synthesise(made, jobs=10_000, days=14, seed=3)
    return made


def proposal(folder: Path, *windows: Window, limit: float = 0.5) -> Path:
    made = Proposal.to_change(
        Config.empty(),
        {"SCOUT_RAMCOUNT_RANK": 99},
        title="More memory",
        created_at=NOW,
        evidence=Evidence("why", (TOLD,), windows, numbers={"max_exceed": limit}),
        rules_digest=ScoutRules().digest,
    )
    file = folder / "proposal.json"
    write(dumps(made), file, overwrite=True)
    return file


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["proposal", "drift", *map(str, arguments)])


def test_the_answer_is_the_exit_code(folder: Path, tmp_path: Path) -> None:
    result = run(proposal(tmp_path), "--archive", folder, "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == EXIT_CODES[found["status"]]
    assert found["title"] == "More memory"
    assert found["effects"][0]["stated"] == -0.8
    assert found["judgement"]["units"] >= 20
    assert found["effects"][0]["apart"]
    assert found["after"][0].startswith("to change: First attempts killed")


def test_tables_that_are_made_from_jobs_are_made_here_too(folder: Path, tmp_path: Path) -> None:
    """The report that proposes reads an archive of jobs alone (archive.derive); so does what asks again."""
    with ArchiveWriter(tmp_path / "jobs") as writer:
        writer.write("jobs", open_archive(folder).scan("jobs").collect())
        writer.commit()
    result = run(proposal(tmp_path), "--archive", tmp_path / "jobs", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == EXIT_CODES[found["status"]] != 3
    assert found["judgement"]["units"] >= 20
    assert "Made from the jobs" in found["sentence"]


def test_a_broken_limit_is_told_with_what_lies_apart(folder: Path, tmp_path: Path) -> None:
    result = run(proposal(tmp_path, limit=0.0), "--archive", folder)
    assert result.exit_code == 8, result.output
    sentence, apart, *after = result.stdout.splitlines()
    assert sentence.startswith("Does not hold on ")
    assert apart.startswith(
        "  First attempts killed [share of jobs]: stated -0.8 (-0.81 to -0.79), "
    )
    assert after == [
        "After it is applied:",
        "  to change: First attempts killed: 0.9 -> 0.1 share of jobs, -0.8 (-0.81 to -0.79, 95 %)",
        "  until: later data have an interval of the same width; the document states no period",
        f"  then: brokerlab proposal drift {tmp_path}/proposal.json --archive LATER (exit code 8: it does not hold)",
        f"  to take it back: brokerlab proposal revert {tmp_path}/proposal.json --config NOW --into BACK",
    ]


def test_its_own_data_tell_nothing_more(folder: Path, tmp_path: Path) -> None:
    window = Window("proof", datetime(2026, 3, 1), datetime(2026, 6, 1))
    result = run(proposal(tmp_path, window), "--archive", folder)
    assert result.exit_code == 6
    assert "none was created after the proposal's own data" in result.stdout
    result = run(proposal(tmp_path), "--archive", folder, "--start", "2027-01-01")
    assert result.exit_code == 6
    assert result.stdout.startswith("Cannot tell: ")


def test_a_proof_that_cannot_be_repeated_has_an_exit_code_of_its_own(
    folder: Path, tmp_path: Path
) -> None:
    made = Proposal.to_change(
        Config.empty(), {"NQUEUED_SAT_CAP": 200}, title="t", created_at=NOW, evidence=Evidence("w")
    )
    file = tmp_path / "proposal.json"
    write(dumps(made), file)
    result = run(file, "--archive", folder, "--json")
    assert result.exit_code == 9
    (line,) = result.stdout.splitlines()
    told = json.loads(line)
    assert (told["status"], told["exit_code"]) == ("cannot_be_checked", 9)
    assert told["sentence"].startswith("Cannot be checked: no proof of NQUEUED_SAT_CAP can be repeated")  # fmt: skip


def test_links_are_asked_about_the_network_weight(folder: Path, tmp_path: Path) -> None:
    numbers = {"bootstrap_replicates": 40, "seed": 1}
    why = Evidence("w", windows=(Window("proof", NOW, datetime(2026, 3, 3)),), numbers=numbers)
    words = {"title": "t", "created_at": NOW, "evidence": why}
    kept = Proposal.to_keep(Config.empty(), ["NW_QUEUE_IMPORTANCE"], **words)
    file = tmp_path / "proposal.json"
    write(dumps(kept), file)
    result = run(file, "--archive", folder)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Holds on 2026-03-03 to ")  # what it was made from is left out


def test_a_merged_proposal_holds_if_its_parts_do(folder: Path, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    part = proposal(tmp_path)
    part.rename(reports / "proposal-a.json")
    other = Proposal.to_change(
        Config.empty(),
        {"NQUEUED_SAT_CAP": 200},
        title="Cap",
        created_at=NOW,
        evidence=Evidence("w"),
    )
    write(dumps(other), reports / "proposal-b.json")
    merged = merge(read_all(sorted(reports.iterdir())), created_at=NOW)
    file = tmp_path / "proposal.json"
    write(dumps(merged), file)
    result = run(file, "--archive", folder, "--reports", reports)
    assert result.exit_code == 9, result.output
    text = result.stdout
    assert text.startswith("Cannot be checked: 1 of 2 parts hold. (1) Cap: Cannot be checked: ")
    assert " (2) More memory: Holds on " in text
    result = run(file, "--archive", folder, "--reports", tmp_path / "none")
    assert result.exit_code == 9
    assert "merged from others, and Cap, More memory do not lie in" in result.stdout


def test_what_is_not_there(tmp_path: Path) -> None:
    assert run(proposal(tmp_path), "--archive", tmp_path / "none").exit_code == 3
    assert run(tmp_path / "none.json", "--archive", tmp_path).exit_code == 5
    assert run("--help").exit_code == 0
