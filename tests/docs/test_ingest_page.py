"""What docs/ingest.md shows is run: the command, and the same in Python."""

import re
import shlex
from pathlib import Path

import pandas as pd
from typer.testing import CliRunner

from brokerlab import archive
from brokerlab.cli import app

PAGE = (Path(__file__).parents[2] / "docs" / "ingest.md").read_text()
BLOCKS = [
    re.sub(r"^ {4}", "", block, flags=re.M) for block in re.findall(r"(?:^ {4}.+\n)+", PAGE, re.M)
]


def jobs(folder):
    return archive.open(folder).scan("jobs").collect().row(0, named=True)


def test_the_command_on_the_page_makes_an_archive_of_the_table_on_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, command = BLOCKS[:2]
    Path("jobs_december.csv").write_text(table)
    words = shlex.split(command.replace("\\\n", " "))[1:]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.stderr
    job = jobs("data/mine")
    assert (job["pandaid"], job["maxpss"], job["cpuconsumptiontime"]) == (1, 2048512, 9000)
    assert "not taken" not in result.stdout


def test_the_same_in_python_from_pandas(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("jobs_december.csv").write_text(BLOCKS[0])
    frame = pd.read_csv("jobs_december.csv", sep=";")
    code = re.findall(r"```python\n(.*?)```", PAGE, re.S)[0]
    scope = {"frame": frame}
    exec(code, scope)  # noqa: S102
    assert scope["report"].frame().row(0)[2:] == (1, 1, 0, 0)
    assert jobs("data/mine")["maxpss"] == 2048512
