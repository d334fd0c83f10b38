"""The blocks of docs/scheduling.md can be used as they stand."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from brokerlab.cli import app
from brokerlab.errors import DataError
from brokerlab.report import find
from brokerlab.report.exits import NAMES
from brokerlab.report.summary import of_refusal

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "scheduling.md").read_text(encoding="utf-8")
BLOCKS: dict[str, str] = dict(re.findall(r"```(\w+)\n(.*?)```", TEXT, flags=re.DOTALL))
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
"""Minute, hour, day of the month, month, day of the week."""


def commands(text: str) -> list[str]:
    """Return every call of brokerlab, one string each."""
    plain = text.replace("{{{{", "{{").replace("}}}}", "}}").replace("{RUN}", "brokerlab")
    return re.findall(r"(?:^|[\s/\"])(brokerlab (?:report|proposal) [^\n#]*)", plain, re.MULTILINE)


def words(command: str) -> list[str]:
    """Return the words up to the first redirection or operator."""
    cut = re.split(r"\s(?:>>?|2>>|\|\||&&)\s", command)[0].rstrip(' ",')
    return shlex.split(cut if cut.count('"') % 2 == 0 else cut + '"')


def test_every_kind_of_block_is_there() -> None:
    assert set(BLOCKS) == {"json", "bash", "cron", "python", "yaml"}


def test_commands_and_options_exist() -> None:
    found = commands(TEXT)
    assert len(found) == 15
    helps: dict[tuple[str, ...], str] = {}
    for command in found:
        _, *rest = words(command)
        call = tuple(rest[:2]) if rest[0] == "proposal" else ("report",)
        if call not in helps:
            shown = CliRunner().invoke(app, [*call, "--help"])
            assert shown.exit_code == 0, command
            helps[call] = shown.output
        for option in (word for word in rest if word.startswith("-")):
            assert option in helps[call], f"{option} of {command}"
        if call == ("report",) and not rest[1].startswith(("$", "{")):
            assert rest[1] in find.names(), command


def test_exit_codes_are_those_of_the_program() -> None:
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| (.+) \|$", TEXT, re.MULTILINE)
    assert [(int(code), name) for code, name, _ in rows] == [*NAMES.items()]
    assert all(meaning.strip() for _, _, meaning in rows)


def test_the_summary_has_these_fields() -> None:
    told = json.loads(BLOCKS["json"])
    assert list(told) == [
        "report", "run_id", "state", "reused", "verdict", "verdicts", "exit_code", "exit_reason", "folder", "page",
        "outputs", "proposals", "digests", "parameters", "started", "duration_s", "error",
    ]  # fmt: skip
    assert told.keys() == of_refusal("r", None, DataError("d")).keys()


def test_crontab() -> None:
    lines = [line for line in BLOCKS["cron"].splitlines() if not re.match(r"[A-Z]+=", line)]
    assert len(lines) == 2
    for line in lines:
        *times, command = line.split(None, 5)
        for time, (low, high) in zip(times, RANGES, strict=True):
            assert time == "*" or low <= int(time) <= high, line
        assert not re.search(r"(?<!\\)%", command), "an unescaped % ends the command"
        _is_shell(command.replace(r"\%", "%"))


def test_script() -> None:
    _is_shell(BLOCKS["bash"])


def _is_shell(text: str) -> None:
    words = ["bash", "-n"]  # reads, and runs nothing
    checked = subprocess.run(words, input=text, text=True, capture_output=True, check=False)  # noqa: S603
    assert checked.returncode == 0, checked.stderr


def test_airflow() -> None:
    tree = ast.parse(BLOCKS["python"])
    compile(tree, "scheduling.md", "exec")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    operators = [call for call in calls if getattr(call.func, "id", "") == "BashOperator"]
    assert len(operators) == 3
    known = {"task_id", "cwd", "bash_command", "output_processor", "skip_on_exit_code"}
    for call in operators:
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        assert given.keys() <= known
        skipped = given.get("skip_on_exit_code")
        assert skipped is None or set(ast.literal_eval(skipped)) <= NAMES.keys()


def test_gitlab() -> None:
    (job,) = yaml.safe_load(BLOCKS["yaml"]).values()
    assert all(isinstance(line, str) for line in [*job["before_script"], *job["script"]])
    for line in job["script"]:
        _is_shell(line)
    allowed = [NAMES[code] for code in job["allow_failure"]["exit_codes"]]
    assert allowed == ["no_answer", "change_proposed"]
    written = re.findall(r"> (\S+)", "\n".join(job["script"]))
    assert set(written) <= set(job["artifacts"]["paths"])


@pytest.mark.parametrize("word", ["--run-id", "--json", "--exit-code"])
def test_what_is_explained_is_there(word: str) -> None:
    assert word in CliRunner().invoke(app, ["report", "--help"]).output
