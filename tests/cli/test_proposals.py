"""``brokerlab proposal list|show|merge|base`` and the forms of ``apply`` and ``revert``."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import jsonpatch
import pytest
from click.testing import Result
from typer.testing import CliRunner

from brokerlab.cli import app
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.entry import Value
from brokerlab.gdpconfig.proposal import Effect, Evidence, Proposal, dumps, read, write

NOW = datetime.fromisoformat("2026-11-21T09:00")
CONFIG = "app,component,key,value,type\njedi,dbproxy,SCOUT_CPUTIME_RANK,90,int\n"
EFFECT = Effect("jobs killed", "%", 7.5, 4.5, -3.0, -3.5, -2.5, 0.95)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["proposal", *map(str, arguments)])


def said(result: Result) -> str:
    return " ".join(result.stderr.split())


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "gdpconfig.csv"
    file.write_text(CONFIG)
    return file


def made(config: Path, report: str, values: dict[str, Value]) -> Path:
    """Write a proposal as a run of a report does."""
    folder = config.parent / "reports" / report / "20261121T090000Z-1"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"report": report, "run_id": folder.name}))
    (folder / "index.html").write_text("<p>")
    proposal = Proposal.to_change(
        Config.from_file(config),
        values,
        title=f"Of [{report}]",
        created_at=NOW,
        evidence=Evidence("better", effects=(EFFECT,)),
    )
    write(dumps(proposal), folder / "proposal.json")
    return folder / "proposal.json"


@pytest.fixture
def scouts(config: Path) -> Path:
    return made(config, "scouts", {"SCOUT_RAMCOUNT_RANK": 80, "SCOUT_CPUTIME_RANK": 95})


@pytest.fixture
def network(config: Path) -> Path:
    return made(config, "network", {"NQUEUED_SAT_CAP": 200})


def test_list(scouts: Path, network: Path, config: Path) -> None:
    (scouts.parent / "proposal-broken.json").write_text("{")
    result = run("list", scouts.parents[2], "--config", config)
    assert result.exit_code == 0, result.output
    _, *lines = [line.split() for line in result.stdout.splitlines() if line.strip(" ─")]
    assert [line[0] for line in lines] == ["network", "scouts", "scouts"]
    assert " ".join(lines[0]) == (
        "network 20261121T090000Z-1 change NQUEUED_SAT_CAP all VOs 150 -> 200 files "
        "jobs killed: 7.5 -> 4.5 %, -3 (-3.5 to -2.5, 95 %) applicable"
    )
    assert lines[1][2] == "broken"
    assert "is no proper JSON" in " ".join(lines[1])
    rows = json.loads(run("list", scouts.parents[2], "--json").stdout)
    assert [row["state"] for row in rows] == [None, "unreadable", None]
    assert network.parent.name == rows[0]["run"]


def again(proposal: Path, **others: str) -> Path:
    """Put a later run of the same report beside a run."""
    folder = proposal.parent.with_name("20261122T090000Z-1")
    folder.mkdir()
    told = {"report": proposal.parents[1].name, "run_id": folder.name, "started": "2026-11-22"}
    (folder / "manifest.json").write_text(json.dumps(told | others))
    copy = folder / proposal.name
    copy.write_text(proposal.read_text())
    return copy


def test_list_of_the_newest(scouts: Path, network: Path) -> None:
    again(scouts)
    unfinished = scouts.parent.with_name(".20261123T090000Z-1.unfinished")
    unfinished.mkdir()
    (unfinished / "proposal.json").write_text("{")
    folder = scouts.parents[2]
    every = json.loads(run("list", folder, "--json").stdout)
    assert [row["run"] for row in every] == ["20261121T090000Z-1"] * 2 + ["20261122T090000Z-1"]
    rows = json.loads(run("list", folder, "--newest", "--json").stdout)
    assert [(row["report"], row["run"][:8]) for row in rows] == [
        ("network", "20261121"),
        ("scouts", "20261122"),
    ]


def test_what_a_failed_run_left_is_no_proposal(scouts: Path) -> None:
    again(scouts, state="failed")
    rows = json.loads(run("list", scouts.parents[2], "--json").stdout)
    assert [row["kind"] for row in rows] == ["change", "broken"]
    assert rows[1]["why"] == "the run that wrote it failed afterwards"


def test_a_proposal_sent_by_mail_finds_its_report(scouts: Path, tmp_path: Path) -> None:
    (scouts.parent / "manifest.json").write_text(
        json.dumps(
            {
                "report": "scouts",
                "run_id": scouts.parent.name,
                "proposals": [{"digest": read(scouts).digest}],
            }
        )
    )
    mailed = tmp_path / "mailed.json"
    mailed.write_text(scouts.read_text())
    assert "no report is known" in run("show", mailed).stdout
    found = run("show", mailed, "--reports", scouts.parents[2]).stdout
    assert f"report scouts, run {scouts.parent.name}, page scouts/" in found


def test_list_of_nothing(tmp_path: Path) -> None:
    assert "no proposal" in run("list", tmp_path).stdout
    assert run("list", tmp_path / "none").exit_code == 5


def test_show(scouts: Path, config: Path) -> None:
    result = run("show", scouts, "--config", config)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("change: Of [scouts]\nbetter\n\nState\n  applicable\n")
    assert (
        "report scouts, run 20261121T090000Z-1, page scouts/20261121T090000Z-1/index.html"
        in result.stdout
    )
    assert run("show", config).exit_code == 5


def test_merge_and_take_back(scouts: Path, network: Path, config: Path, tmp_path: Path) -> None:
    file = tmp_path / "both.json"
    result = run("merge", scouts, network, "--into", file)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"2 proposals, 3 keys: written to {file}; nothing was set\n"
    assert [source.report for source in read(file).sources] == ["network", "scouts"]
    assert run("verify", file, "--config", config).exit_code == 0
    applied = read(file).applied_to(Config.from_file(config))
    config.write_text(applied.frame().drop("valid_from", "valid_to").write_csv())
    assert run("merge", scouts, network, "--into", file).exit_code == 5
    back = tmp_path / "back.json"
    assert run("revert", file, "--config", config, "--into", back).exit_code == 0
    assert read(back).takes_back == read(file).digest


def test_conflicts_are_all_told_and_nothing_is_written(
    scouts: Path, config: Path, tmp_path: Path
) -> None:
    other = made(config, "other", {"SCOUT_RAMCOUNT_RANK": 85, "SCOUT_CPUTIME_RANK": 99})
    result = run("merge", scouts, other, "--into", tmp_path / "both.json")
    assert result.exit_code == 5
    assert "2 conflict(s)" in said(result)
    assert said(result).count("(value)") == 2
    assert said(result).count(str(other)) == 2
    assert not (tmp_path / "both.json").exists()


def test_merge_for_the_present_configuration(
    scouts: Path, network: Path, config: Path, tmp_path: Path
) -> None:
    file = tmp_path / "both.json"
    result = run("merge", scouts, network, "--touched-only", "--into", file)
    assert result.exit_code == 5
    assert "--touched-only needs the present configuration" in said(result)
    config.write_text(CONFIG + "jedi,jobbroker,NW_ACTIVE,true,bool\n")
    result = run("merge", scouts, network, "--config", config, "--into", file)
    assert result.exit_code == 5
    assert "NW_ACTIVE: new since the proposal was made" in said(result)
    result = run("merge", scouts, network, "--config", config, "--touched-only", "--into", file)
    assert result.exit_code == 0, result.output
    assert run("verify", file, "--config", config).exit_code == 0


@pytest.mark.parametrize("form", ["sql", "json"])
def test_statements_that_take_back(scouts: Path, config: Path, tmp_path: Path, form: str) -> None:
    applied = read(scouts).applied_to(Config.from_file(config))
    config.write_text(applied.frame().drop("valid_from", "valid_to").write_csv())
    file = tmp_path / f"back.{form}"
    result = run("revert", scouts, "--config", config, "--format", form, "--into", file)
    assert result.exit_code == 0, result.output
    text = file.read_text()
    assert "DELETE FROM ATLAS_PANDA.CONFIG" in text
    if form == "json":
        assert len(json.loads(text)["forward"]) == 2
    else:
        assert "SET VALUE = '90'" in text


def test_json_patch_there_and_back(scouts: Path, config: Path, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.json" for name in ("base", "there", "now", "back")]
    base, there, now, back = paths
    assert run("base", "--config", config, "--into", base).exit_code == 0
    arguments = ("--config", base, "--format", "patch", "--into", there)
    assert run("apply", scouts, *arguments).exit_code == 0
    now.write_text(
        json.dumps(jsonpatch.apply_patch(json.loads(base.read_text()), there.read_text()))
    )
    result = run("revert", scouts, "--config", now, "--format", "patch", "--into", back)
    assert result.exit_code == 0, result.output
    again = jsonpatch.apply_patch(json.loads(now.read_text()), back.read_text())
    assert again == json.loads(base.read_text())


@pytest.mark.parametrize("command", ["list", "show", "merge", "base"])
def test_help(command: str) -> None:
    assert run(command, "--help").exit_code == 0
