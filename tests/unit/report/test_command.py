"""`brokerlab report`: what it prints last, and the exit code of every kind of failure."""

import errno
import json
import os
import shlex
import shutil

import pytest
from typer.testing import CliRunner

from brokerlab.cli import app
from brokerlab.errors import CHANGE_PROPOSED, ConfigError, DataError, ReportError
from brokerlab.report import find, made
from brokerlab.report.command import split
from brokerlab.report.exits import NAMES, OF_VERDICT
from brokerlab.report.site_classes import Params


@pytest.fixture
def call(notebooks, monkeypatch, tmp_path):
    monkeypatch.setattr(find, "folder", lambda: notebooks)
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, ["report", *words])


def test_lists_reports_and_parameters(call):
    assert call().output.split() == ["bare", "toy"]
    lines = call("toy", "--parameters").output.splitlines()
    assert "rank: int = 75  # percentile rank [%]" in lines
    assert not [line for line in lines if line.startswith("out_dir")]


def test_last_line_is_the_page(call, in_process, tmp_path):
    result = call("toy", "-p", "rank=80", "--out", "shelf")
    assert result.exit_code == 0
    verdict, page = result.stdout.splitlines()
    assert verdict == "Change: Change SCOUT_RAMCOUNT_RANK = 80."
    assert page.startswith("shelf/toy/")
    assert (tmp_path / page).exists()


def test_several_reports_say_how_many_are_done(call, notebooks, in_process):
    shutil.copy(notebooks / "toy.ipynb", notebooks / "twin.ipynb")
    result = call("toy", "twin", "-p", "rank=80", "--out", "shelf")
    lines = result.stdout.splitlines()
    assert [line.rpartition(", ")[0] for line in lines[::3][:2]] in (
        ["[1 of 2] toy", "[2 of 2] twin"],
        ["[1 of 2] twin", "[2 of 2] toy"],
    )
    assert lines[1] == lines[4] == "Change: Change SCOUT_RAMCOUNT_RANK = 80."
    assert lines[6:] == ["all pages: shelf/index.html"]
    result = call("toy", "twin", "-p", "rank=80", "--exit-code", "--json")
    assert result.exit_code == CHANGE_PROPOSED
    assert {json.loads(line)["report"] for line in result.stdout.splitlines()} == {"toy", "twin"}


def test_every_report_goes_on_where_one_fails(call, notebooks, in_process):
    (notebooks / "bare.ipynb").unlink()
    shutil.copy(notebooks / "toy.ipynb", notebooks / "twin.ipynb")
    result = call("--all", "-p", "strict=1")
    assert result.exit_code == ReportError.exit_code
    assert len(in_process) == 2


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["tog"], ConfigError, "unknown report 'tog': did you mean 'toy'?"),
        (["[/x]"], ConfigError, "unknown report '[/x]': allowed: bare, toy"),
        (["toy", "-p", "rnak=1"], ConfigError, "did you mean 'rank'?"),
        (["toy", "-p", "rank"], ConfigError, "write it as NAME=VALUE"),
        (["toy", "-p", "rank=1", "-p", "rank=2"], ConfigError, "-p rank is given twice"),
        (["toy", "-p", "strict=1"], ReportError, "ValueError: rank 75 is too strict"),
    ],
)
def test_failures(call, in_process, words, error, message):
    result = call(*words)
    assert result.exit_code == error.exit_code
    last = result.stderr.splitlines()[-1]
    assert last.startswith(error.__name__)
    assert message in last


def test_one_line_of_json(call, in_process):
    words = ["toy", "-p", "rank=80", "--run-id", "march", "--json"]
    result = call(*words)
    assert result.exit_code == 0
    (line,) = result.stdout.splitlines()
    told = json.loads(line)
    assert told["verdict"] == {"kind": "change", "sentence": "Change SCOUT_RAMCOUNT_RANK = 80."}
    assert told["verdicts"] == []  # a page with several parts has theirs
    assert (told["report"], told["run_id"], told["state"]) == ("toy", "march", "finished")
    assert (told["exit_code"], told["exit_reason"], told["error"]) == (0, "done", None)
    assert told["page"] == "reports/toy/march/index.html"
    assert told["outputs"][:4] == [
        "index.html",
        "results.json",
        "manifest.json",
        "charts/curve.json",
    ]
    assert told["digests"] == {"archive": "abc"}
    assert told["parameters"]["rank"] == 80
    assert told["duration_s"] >= 0
    assert told["proposals"] == []
    again = json.loads(call(*words).stdout)
    assert again == {**told, "reused": True}


@pytest.mark.parametrize(("rank", "code", "reason"), [(80, 10, "change_proposed"), (70, 0, "done")])
def test_the_verdict_as_exit_code(call, in_process, rank, code, reason):
    words = ["toy", "-p", f"rank={rank}", "--json"]
    result = call(*words, "--exit-code")
    assert result.exit_code == code
    assert json.loads(result.stdout)["exit_reason"] == reason
    assert call(*words).exit_code == 0


def test_a_failed_run_is_told_too(call, in_process):
    result = call("toy", "-p", "strict=1", "--json")
    assert result.exit_code == 7
    told = json.loads(result.stdout)
    assert (told["state"], told["exit_reason"]) == ("failed", "report_failed")
    assert told["verdict"]["kind"] == "failed"
    assert told["error"].endswith("rank 75 is too strict")
    assert result.stderr.splitlines()[-1].startswith("ReportError: toy failed: ")


def test_bad_input_in_the_notebook_keeps_its_exit_code(call, in_process):
    result = call("toy", "-p", "share=2", "--json", "--exit-code")
    assert result.exit_code == ConfigError.exit_code
    told = json.loads(result.stdout)
    assert (told["state"], told["exit_reason"]) == ("failed", "config_error")
    assert result.stderr.splitlines()[-1].startswith("ReportError: toy refused: ")


def test_a_refusal_has_the_same_shape(call, in_process):
    finished = json.loads(call("toy", "--json").stdout)
    result = call("toy", "-p", "rnak=1", "--json")
    assert result.exit_code == ConfigError.exit_code
    told = json.loads(result.stdout)
    assert list(told) == list(finished)
    assert (told["state"], told["exit_reason"]) == ("refused", "config_error")
    assert "did you mean 'rank'?" in told["error"]


def test_a_full_disk_has_the_same_shape(call, monkeypatch, tmp_path):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / "a"))

    monkeypatch.setattr("brokerlab.report.runner.run_many", full)
    result = call("toy", "--json")
    told = json.loads(result.stdout)
    assert result.exit_code == told["exit_code"] == DataError.exit_code
    assert (told["state"], told["exit_reason"]) == ("refused", "data_error")
    assert f"{tmp_path / 'a'}: No space left on device" in told["error"]


def test_every_exit_code_has_one_meaning():
    assert len(NAMES) == len(set(NAMES.values())) == 13  # equal codes would be one entry
    assert list(NAMES) == sorted(NAMES)
    assert set(OF_VERDICT.values()) <= NAMES.keys()


def test_the_command_of_a_run_asks_for_the_same_again():
    asked = {"start": "", "high_ranks": "0.5,0.75", "archive": "data/a b"}
    checked = Params.checked(asked)
    given = {name: checked.model_dump(mode="json")[name] for name in asked}
    _, _, name, *pairs = shlex.split(made.command("site-classes", given))
    assert name == checked.report
    assert Params.checked(split(pairs[1::2])) == checked
