"""`brokerlab report`: what it prints last, and the exit code of every kind of failure."""

import pytest
from typer.testing import CliRunner

from brokerlab.cli import app
from brokerlab.errors import ConfigError, ReportError
from brokerlab.report import find


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


def test_last_line_is_the_page(call, tmp_path):
    result = call("toy", "-p", "rank=80", "--out", "shelf")
    assert result.exit_code == 0
    verdict, page = result.stdout.splitlines()
    assert verdict == "Change SCOUT_RAMCOUNT_RANK = 80."
    assert page.startswith("shelf/toy/")
    assert (tmp_path / page).exists()


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["tog"], ConfigError, "unknown report 'tog': did you mean 'toy'?"),
        (["toy", "-p", "rnak=1"], ConfigError, "did you mean 'rank'?"),
        (["toy", "-p", "rank"], ConfigError, "write it as NAME=VALUE"),
        (["toy", "-p", "rank=1", "-p", "rank=2"], ConfigError, "-p rank is given twice"),
        (["toy", "-p", "strict=1"], ReportError, "ValueError: rank 75 is too strict"),
    ],
)
def test_failures(call, words, error, message):
    result = call(*words)
    assert result.exit_code == error.exit_code
    last = result.stderr.splitlines()[-1]
    assert last.startswith(error.__name__)
    assert message in last
