"""Pages for readers: every path, name and command on them is there, and the first hour can be typed as it stands."""

from __future__ import annotations

import re
import shlex
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from brokerlab import archive
from brokerlab.cli import app
from brokerlab.worlds import synthesise

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    *(f"docs/{name}.md" for name in ("architecture", "examples", "first-hour", "ingest")),
)
TOPS = ("brokerlab", "docs", "notebooks", "tests", "benchmarks")
MADE = ("reports/", "data/", "accepted/")
"""Folders that commands on the pages make, or that stand for the reader's own."""


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def attribute(name: str) -> Any:
    """Return what a dotted name stands for."""
    first, *others = name.split(".")

    def step(found: Any, part: str) -> Any:
        if hasattr(found, part):
            return getattr(found, part)
        return import_module(f"{found.__name__}.{part}")

    return reduce(step, others, import_module(first))


@pytest.mark.parametrize("page", PAGES)
def test_every_path_is_there(page: str) -> None:
    named = re.findall(r"`([\w./-]+)`", text_of(page))
    paths = [name for name in named if name.split("/")[0] in TOPS and "/" in name]
    missing = [path for path in paths if not (ROOT / path).exists()]
    assert not missing
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text_of(page))
    assert all(((ROOT / page).parent / picture).is_file() for picture in pictures)


@pytest.mark.parametrize("page", PAGES)
def test_every_name_is_there(page: str) -> None:
    for name in re.findall(r"`(brokerlab(?:\.\w+)+)(?:\([^`]*\))?`", text_of(page)):
        assert attribute(name) is not None, name


def commands(page: str) -> list[list[str]]:
    """Return the command lines of a page, without ``brokerlab``."""
    text = text_of(page).replace("\\\n", " ")
    shells = "\n".join(re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL))
    lines = re.findall(r"^brokerlab ([^#\n]*)", shells, re.MULTILINE)
    lines += re.findall(r"^    brokerlab ([^#\n]*)", text, re.MULTILINE)
    lines += re.findall(r"`brokerlab ([\w -]+)`", text)
    return [shlex.split(line) for line in lines]


@pytest.mark.parametrize("page", PAGES)
def test_every_command_and_option_is_there(page: str) -> None:
    for words in commands(page):
        depth = 2 if words[0] == "proposal" and len(words) > 1 and words[1][0] != "-" else 1
        shown = CliRunner().invoke(app, [*words[:depth], "--help"])
        assert shown.exit_code == 0, words
        for option in (word for word in words if word.startswith("-")):
            assert option in shown.output, f"{option} of {words}"


def test_architecture_gives_a_reason_for_every_dependency() -> None:
    wanted = re.search(r"dependencies = \[\n(.*?)\n\]", text_of("pyproject.toml"), re.DOTALL)
    assert wanted is not None
    needed = set(re.findall(r'"([a-z0-9-]+)', wanted[1]))
    table = text_of("docs/architecture.md").split("## Dependencies")[1]
    assert needed | {"pyspark"} == set(re.findall(r"`([a-z0-9-]+)`", table))


def test_architecture_has_the_rooms_in_the_order_of_the_layers() -> None:
    layers = re.findall(r'^    "\(?brokerlab\.(\w+)\)?",', text_of("pyproject.toml"), re.MULTILINE)
    rooms = re.findall(r"^\| `brokerlab/(\w+)(?:\.py)?` ", text_of("docs/architecture.md"), re.M)
    assert rooms == layers


# ---- the first hour


@pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
def test_from_a_back_test_to_sql_are_six_files_for_every_kind() -> None:
    """What the page says of each kind: outcomes are made in one file, keys and words stand in another; four are shared."""
    part = text_of("docs/architecture.md").split("## From a back-test to SQL")[1].split("\n## ")[0]
    calibrate = r"`(brokerlab/calibrate/[\w/]+\.py)`"
    kinds = re.findall(rf"^\| ([^|]+) \| {calibrate} \| {calibrate} \|$", part, re.MULTILINE)
    assert len(kinds) == 4
    shared = ("judge", "verdict")
    files = {f"brokerlab/calibrate/{name}.py" for name in shared}
    files |= {f"brokerlab/gdpconfig/proposal/{name}.py" for name in ("document", "statements")}
    for kind, outcomes, words in kinds:
        assert len(files | {outcomes, words}) <= 6, kind
        assert "Outcomes(" in text_of(outcomes), kind
        assert all(call in text_of(words) for call in ("sentence_of(", "document_of(")), kind


def test_the_first_hour_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synthesise(tmp_path / "demo", jobs=4_000, days=6, seed=1)
    monkeypatch.chdir(tmp_path)
    page = text_of("docs/first-hour.md")
    header = re.search(r"^    (PandaID,\S+)$", page, re.MULTILINE)
    assert header is not None
    demo = archive.open("demo").scan("jobs").filter(pl.col("prodsourcelabel") == "managed")
    exported = demo.filter(pl.col("jobstatus") == "finished").select(
        pl.col("pandaid").alias("PandaID"),
        pl.col("jeditaskid").alias("TaskID"),
        pl.col("computingsite").alias("Site"),
        pl.col("jobstatus").alias("State"),
        pl.col("creationtime").alias("submitted"),
        pl.col("starttime").alias("started"),
        pl.col("endtime").alias("ended"),
        pl.col("cpuconsumptiontime").alias("cpu_time"),
        (pl.col("maxpss") / 1024).round().cast(pl.Int64).alias("MaxPSS_MB"),
        pl.col("corecount").alias("cores"),
        "gshare",
    )
    exported.collect().write_csv("jobs.csv")
    assert Path("jobs.csv").read_text().splitlines()[0] == header[1]
    names: dict[str, Any] = {}
    for kind, block in re.findall(r"```(\w+)\n(.*?)```", page, flags=re.DOTALL):
        if kind == "python":
            exec(compile(block, "first-hour.md", "exec"), names)  # noqa: S102 - our own page
            continue
        for line in block.replace("\\\n", " ").splitlines():
            _, *words = shlex.split(line)
            if words[0] != "report":  # pages have tests of their own
                ran = CliRunner().invoke(app, words)
                assert ran.exit_code == 0, ran.output
    both = [archive.open(f"data/{name}").scan("jobs").collect() for name in ("mine", "frame")]
    assert both[0].height == both[1].height == exported.collect().height
    assert both[0]["maxpss"].sort().equals(both[1]["maxpss"].sort())
    assert names["sites"]["jobs"].sum() == both[0].height
    assert names["requests"]["ramcount"].drop_nulls().len() > 0
    assert names["used"].height > 0
    assert names["late"].columns
    assert names["answer"].sentence
