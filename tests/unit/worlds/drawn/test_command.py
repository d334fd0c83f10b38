from pathlib import Path

import pytest
from typer.testing import CliRunner

from brokerlab import worlds
from brokerlab.cli import app


def call(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["synthesise", *words])
    return result.exit_code, result.output


def test_makes_an_archive_and_then_says_there_is_nothing_to_do(tmp_path: Path) -> None:
    into = str(tmp_path / "demo")
    words = ["--jobs", "500", "--days", "2", "--seed", "4", "--into", into]
    code, text = call(*words)
    assert code == 0
    assert "500 jobs" in text
    assert "digest " in text
    code, text = call(*words)
    assert code == 0
    assert "nothing to do" in text


def test_impossible_settings_leave_with_the_code_of_config_errors(tmp_path: Path) -> None:
    code, text = call("--jobs", "0", "--into", str(tmp_path / "demo"))
    assert code == 4
    assert "jobs = 0" in text
    assert not (tmp_path / "demo").exists()


@pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
def test_the_command_makes_the_world_that_the_call_makes(tmp_path: Path) -> None:
    size = ["--jobs", "500", "--days", "0.5", "--seed", "4", "--queues", "40"]
    code, _ = call(*size, "--lived", "--planted", "none", "--into", str(tmp_path))
    assert code == 0
    asked = {"jobs": 500, "days": 0.5, "seed": 4, "queues": 40, "lived": True, "planted": "none"}
    assert worlds.is_made(tmp_path, **asked) is not None
    assert worlds.is_made(tmp_path, **asked, drift=0.0) is None
