"""``brokerlab proposal verify|diff|apply|revert``, on good files and bad ones."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from brokerlab import archive
from brokerlab.cli import app
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Evidence, Proposal, dumps, read, write

NOW = datetime.fromisoformat("2026-11-21T09:00")
CONFIG = "app,component,key,value,type\njedi,dbproxy,SCOUT_CPUTIME_RANK,90,int\n"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["proposal", *map(str, arguments)])


def said(result: Result) -> str:
    return " ".join(result.stderr.split())


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "gdpconfig.csv"
    file.write_text(CONFIG)
    return file


@pytest.fixture
def proposal(tmp_path: Path, config: Path) -> Path:
    made = Proposal.to_change(
        Config.from_file(config),
        {"SCOUT_RAMCOUNT_RANK": 80, "SCOUT_CPUTIME_RANK": 95},
        title="Ranks [of the scouts]",
        created_at=NOW,
        evidence=Evidence("80 meets the limit", synthetic=True),
    )
    file = tmp_path / "proposal.json"
    write(dumps(made), file)
    return file


def test_verify(proposal: Path, config: Path) -> None:
    result = run("verify", proposal, "--config", config)
    assert result.exit_code == 0, result.output
    assert (
        result.stdout == "change: Ranks [of the scouts]: sound, and made for this configuration\n"
    )


def test_verify_refuses_another_configuration(proposal: Path, config: Path) -> None:
    result = run("verify", proposal)
    assert result.exit_code == 5
    assert "no configuration is given, and the defaults are not the base of" in said(result)
    assert (
        "SCOUT_CPUTIME_RANK: made for 90, the default is 95: give the configuration that acts now (--config)"
        in said(result)
    )
    assert "SCOUT_RAMCOUNT_RANK" not in said(result)
    config.write_text(CONFIG + "jedi,jobbroker,NW_ACTIVE,true,bool\n")
    result = run("verify", proposal, "--config", config)
    assert result.exit_code == 5
    assert said(result).startswith("ProposalError: the configuration is not the base of")
    assert "jedi/jobbroker/NW_ACTIVE: new since the proposal was made" in said(result)
    assert run("verify", proposal, "--config", config, "--touched-only").exit_code == 0


def test_verify_without_a_configuration_compares_no_other_keys(
    config: Path, tmp_path: Path
) -> None:
    """It called 50 keys "gone" that it could not know of."""
    made = Proposal.to_change(
        Config.from_file(config).with_values({"SCOUT_RAMCOUNT_RANK": 75}),
        {"SCOUT_RAMCOUNT_RANK": 80},
        title="Rank",
        created_at=datetime(2026, 3, 1),
        evidence=Evidence("80 meets the limit"),
    )
    file = tmp_path / "rank.json"
    file.write_text(made.to_json())
    result = run("verify", file)
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "change: Rank: sound, made for its keys at their defaults; "
        "without --config no other keys were compared\n"
    )
    refused = run("apply", file, "--into", tmp_path / "x.sql")
    assert refused.exit_code == 5
    assert "the configuration has no entries, the base had 2 keys: give the present one" in said(
        refused
    )
    assert "gone" not in said(refused)


def test_verify_reads_archives_at_a_time(proposal: Path, tmp_path: Path) -> None:
    rows = [
        {"app": "jedi", "component": "dbproxy", "key": "SCOUT_CPUTIME_RANK", "type": "int"} | row
        for row in (
            {"value": "85", "valid_to": "2026-01-01"},
            {"value": "90", "valid_from": "2026-01-01"},
        )
    ]
    folder = tmp_path / "archive"
    with archive.ArchiveWriter(folder) as writer:
        writer.write("gdpconfig", Config.from_rows(rows).frame())
        writer.commit(sources=[])
    assert run("verify", proposal, "--config", folder, "--at", "2026-03-01").exit_code == 0
    assert run("verify", proposal, "--config", folder, "--at", "2025-03-01").exit_code == 5
    result = run("verify", proposal, "--config", folder)
    assert result.exit_code == 4
    assert "has a history: say when" in said(result)


def test_diff(proposal: Path) -> None:
    result = run("diff", proposal)
    assert result.exit_code == 0, result.output
    title, verdict, warning, *table = result.stdout.splitlines()
    assert title == "change: Ranks [of the scouts]"
    assert verdict == "80 meets the limit"
    assert warning == "Made from a synthetic archive: not to be set anywhere."
    ram = next(line for line in table if "SCOUT_RAMCOUNT_RANK" in line)
    assert ram.split() == [
        "jedi/dbproxy/SCOUT_RAMCOUNT_RANK",
        "all",
        "75",
        "80",
        "percentile",
        "50",
        "to",
        "100",
        "insert",
    ]


def test_diff_names_the_tasks_that_were_measured(tmp_path: Path) -> None:
    made = Proposal.to_change(
        Config.empty(),
        {"NQUEUELIMITSITE_Express": 60},
        title="Limit",
        created_at=NOW,
        evidence=Evidence("better", filters={"gshare": "Express"}),
    )
    write(dumps(made), tmp_path / "limit.json")
    assert (
        "\nMeasured on tasks with gshare Express only.\n"
        in run("diff", tmp_path / "limit.json").stdout
    )


def test_apply_writes_a_file_and_does_not_overwrite(
    proposal: Path, config: Path, tmp_path: Path
) -> None:
    file = tmp_path / "change.sql"
    result = run("apply", proposal, "--config", config, "--into", file)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "Made from a synthetic archive: not to be set anywhere.",
        f"written to {file}; nothing was set",
    ]
    assert "VALUE = '95'" in file.read_text()
    again = run("apply", proposal, "--config", config, "--into", file, "--format", "json")
    assert again.exit_code == 5
    assert "exists; choose another name" in said(again)
    forced = run(
        "apply", proposal, "--config", config, "--into", file, "--format", "json", "--force"
    )
    assert forced.exit_code == 0, forced.output
    assert len(json.loads(file.read_text())["forward"]) == 2


def test_apply_refuses_another_base_and_writes_nothing(proposal: Path, tmp_path: Path) -> None:
    file = tmp_path / "change.sql"
    assert run("apply", proposal, "--into", file).exit_code == 5
    assert not file.exists()


def test_revert(proposal: Path, config: Path, tmp_path: Path) -> None:
    before = Config.from_file(config)
    applied = read(proposal).applied_to(before)
    config.write_text(applied.frame().drop("valid_from", "valid_to").write_csv())
    file = tmp_path / "back.json"
    result = run("revert", proposal, "--config", config, "--into", file)
    assert result.exit_code == 0, result.output
    assert read(file).applied_to(applied).digest == before.digest


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is no proper JSON"),
        ("{}", "this brokerlab reads 'brokerlab/proposal/1'"),
        ('{"schema": NaN}', "NaN is no number; null stands for what is not known"),
    ],
)
@pytest.mark.parametrize("command", ["verify", "diff"])
def test_broken_proposals(tmp_path: Path, command: str, content: str, message: str) -> None:
    file = tmp_path / "broken.json"
    file.write_text(content)
    result = run(command, file)
    assert result.exit_code == 5
    assert message in said(result)


def test_everything_wrong_with_all_files_at_once(
    proposal: Path, config: Path, tmp_path: Path
) -> None:
    """Cut off, no proposal, an unknown key outside its rails, edited, and a base that has changed."""
    cut, other, edited = (tmp_path / f"{name}.json" for name in ("cut", "other", "edited"))
    cut.write_text(proposal.read_text()[:500])
    other.write_text('{"runs": []}')
    document = json.loads(proposal.read_text())
    document["changes"][0]["key"] = "SCOUT_RAMCOUNT_RNAK"
    document["changes"][1]["new"] = 200
    document["changes"][1]["after"]["value"] = "200"
    edited.write_text(json.dumps(document))
    config.write_text(CONFIG.replace("90", "85"))
    result = run("verify", cut, other, edited, proposal, "--config", config)
    assert result.exit_code == 5
    text = said(result)
    for part in (
        f"{cut} is no proper JSON",
        f"{other}: schema: found None",
        f"{edited} is not sound: ",
        "SCOUT_RAMCOUNT_RNAK",
        "did you mean 'SCOUT_RAMCOUNT_RANK'?",
        "200 is outside its guard rails 50 to 100",
        "digest: does not fit the content; the file was edited",
        "the configuration is not the base of 'Ranks [of the scouts]': jedi/dbproxy/SCOUT_CPUTIME_RANK: ",
    ):
        assert part in text, text
    assert text.count("found 85 from an entry") == 2
    assert result.stdout == ""


def test_absent_files(tmp_path: Path, proposal: Path) -> None:
    assert run("verify", tmp_path / "none.json").exit_code == 5
    result = run("verify", proposal, "--config", tmp_path / "none.csv")
    assert result.exit_code == 3
    assert "none.csv: cannot be read" in said(result)


def test_annotate(proposal: Path, config: Path, tmp_path: Path) -> None:
    file = tmp_path / "agreed.json"
    result = run("annotate", proposal, "--ticket", "ADC-7", "--approver", "B. Ob", "--into", file)
    assert result.exit_code == 0, result.output
    assert read(file).notes == {"ticket": "ADC-7", "approver": "B. Ob"}
    assert run("verify", file, "--config", config).exit_code == 0
    again = run("annotate", file, "--approver", "", "--into", file, "--force")
    assert again.exit_code == 0, again.output
    assert read(file).notes == {"ticket": "ADC-7"}
    none = run("annotate", proposal, "--into", tmp_path / "x.json")
    assert none.exit_code == 5
    assert "nothing to note: give --ticket" in said(none)


@pytest.mark.parametrize("command", ["verify", "diff", "apply", "revert", "annotate"])
def test_help(command: str) -> None:
    assert run(command, "--help").exit_code == 0


def test_diff_shows_names_with_brackets_as_they_are(tmp_path: Path) -> None:
    made = Proposal.to_change(
        Config.empty(),
        {"DISK_THRESHOLD_[bold]A[/bold]": 50},
        title="Space",
        created_at=NOW,
        evidence=Evidence("50 is enough"),
    )
    file = tmp_path / "proposal.json"
    write(dumps(made), file)
    assert "jedi/taskbrokerage/DISK_THRESHOLD_[bold]A[/bold]" in run("diff", file).stdout


@pytest.mark.parametrize("name", [".", "folder"])
def test_a_folder_is_no_file_to_write(
    proposal: Path, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    result = run("apply", proposal, "--config", config, "--into", name, "--force")
    assert (result.exit_code, said(result)) == (
        5,
        f"ProposalError: {name} is a folder; name a file",
    )
