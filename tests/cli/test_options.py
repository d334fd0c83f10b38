"""Options of ``brokerlab`` itself: version, completion, quiet, verbose."""

from __future__ import annotations

import json
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from typer import Typer
from typer.testing import CliRunner

import brokerlab
from brokerlab.cli import app
from brokerlab.console import noted, print_line
from brokerlab.errors import BrokerlabWarning, collect_warnings, warn_once


def test_the_version_is_printed() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"brokerlab {brokerlab.__version__}\n")


def test_shells_can_complete() -> None:
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).stdout


def test_verbose_says_where_an_error_was_raised(tmp_path: Path) -> None:
    command = ["verify", str(tmp_path / "none")]
    plain, verbose = (CliRunner().invoke(app, [*more, *command]) for more in ([], ["-v"]))
    assert plain.exit_code == verbose.exit_code != 0
    assert "Traceback" not in plain.stderr
    assert "Traceback" in verbose.stderr
    assert verbose.stderr.splitlines()[-1] == plain.stderr.splitlines()[-1]


@pytest.mark.parametrize(("more", "printed"), [([], "note: odd\n"), (["--quiet"], "")])
def test_notes_are_printed_once_unless_quiet(more: list[str], printed: str) -> None:
    own = Typer()
    own.callback()(app.registered_callback.callback)  # type: ignore[union-attr]

    @own.command("ask")
    def ask() -> None:
        with noted():
            for _ in range(3):
                warn_once("odd")

    assert CliRunner().invoke(own, [*more, "ask"]).stderr == printed


def answer(message: str) -> list[str]:
    """Warn, then collect the notes of an answer."""
    warn_once(message)
    with collect_warnings() as notes:
        warn_once("odd")
        warn_once("odd")
    return notes


def test_a_note_is_shown_once_per_session() -> None:
    """A repeated note is printed once per session, not before every answer."""
    with pytest.warns(BrokerlabWarning) as shown:
        notes = [answer(message) for message in ("odd", "odd", "even", "odd")]
    assert [str(one.message) for one in shown] == ["odd", "even"]
    assert notes == [["odd"]] * 4  # what belongs to one answer is in each


def test_a_stream_that_is_not_utf8_shows_what_it_can(tmp_path: Path) -> None:
    folder = tmp_path / "Łódź\u202f1"
    folder.mkdir()
    result = CliRunner(charset="latin-1").invoke(app, ["proposal", "list", str(folder)])
    assert result.exit_code == 0, result.exception
    assert result.stdout.endswith("?ód??1: no proposal*.json\n")


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_a_line_for_programs_keeps_every_character(
    monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    printed = BytesIO()
    monkeypatch.setattr("sys.stdout", TextIOWrapper(printed, encoding=encoding, write_through=True))
    print_line({"said": "3\u202f000 of Łódź"})
    assert json.loads(printed.getvalue().decode(encoding)) == {"said": "3\u202f000 of Łódź"}
