"""``brokerlab switches``: the differences of the rule sets from the shell."""

from __future__ import annotations

import subprocess
import sys

from typer.testing import CliRunner

from brokerlab.cli import app


def test_switches_of_a_chapter_are_printed():
    result = CliRunner().invoke(app, ["switches", "matching"])
    assert result.exit_code == 0
    for part in ("tests_exempt", "False", "True", "001, Zero Share"):
        assert part in result.stdout
    assert "cputime_rank_key" not in result.stdout


def test_an_unknown_chapter_is_refused_with_the_nearest():
    result = CliRunner().invoke(app, ["switches", "match"])
    assert result.exit_code != 0
    assert "did you mean 'matching'" in result.stderr


def test_the_module_is_the_command():
    """``python -m brokerlab.cli`` did nothing, successfully."""
    words = [sys.executable, "-m", "brokerlab.cli", "switches", "match"]
    assert subprocess.run(words, check=False, capture_output=True).returncode != 0  # noqa: S603
