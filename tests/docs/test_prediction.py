"""The blocks of docs/prediction.md can be used as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from brokerlab.cli import app
from brokerlab.estimators.predicting import NEEDED
from brokerlab.estimators.records import Records
from tests.unit.estimators.quantiles.toys import tasks

TEXT = (Path(__file__).parents[2] / "docs" / "prediction.md").read_text(encoding="utf-8")
BLOCKS: dict[str, str] = dict(re.findall(r"```(\w+)\n(.*?)```", TEXT, flags=re.DOTALL))


def test_blocks_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    new = tasks(2, 14, seed=3, first=2)[0]
    frames = {
        "earlier": tasks(6, 14, seed=1)[0],
        "others": tasks(20, 14, seed=2, first=1)[0],
        "finished": new.filter(pl.col("is_scout")),
        "waiting": new.filter(~pl.col("is_scout")),
    }
    names: dict[str, object] = dict(frames)
    exec(compile(BLOCKS["python"], "prediction.md", "exec"), names)  # noqa: S102 - our own page
    bounds = names["bounds"]
    assert isinstance(bounds, pl.DataFrame)
    assert bounds["seen"].to_list() == [10] * 8
    Path("reports/memory-estimator/week-13").mkdir(parents=True)
    Path("models/memory").rename("reports/memory-estimator/week-13/model")
    frames["finished"].write_parquet("finished.parquet")
    frames["waiting"].drop("used", "ended_s", "wall_s", "censored").write_csv("jobs.csv")
    _, *words = shlex.split(BLOCKS["bash"])
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    found = pl.read_parquet("bounds.parquet")
    told = re.findall(r"^\| `(\w[\w.]*)`(?:, `(\w+)`)? \| ", TEXT, re.MULTILINE)
    assert {name for pair in told[:5] for name in pair if name} == set(found.columns)
    assert found.sort("pandaid")["bound_0.95"].to_list() == pytest.approx(
        bounds.sort("pandaid")["bound_0.95"].to_list()
    )


def test_the_columns_are_those_of_records() -> None:
    table = TEXT.split("## Columns")[1].split("## In Python")[0]
    rows = [line.split("|")[1:] for line in table.splitlines() if line.startswith("| `")]
    needed: dict[str, set[str]] = {"jobs": set(), "seen": set()}
    named = set()
    for names, _, jobs, seen, *_ in rows:
        found = set(re.findall(r"`(\w+)`", names))
        named |= found
        needed["jobs"] |= found if jobs.strip() == "needed" else set()
        needed["seen"] |= found if seen.strip() == "needed" else set()
    assert needed == {use: set(names) for use, names in NEEDED.items()}
    assert named == set(Records.columns()) - {"sent", "decided_s", "started_s", "wall_s"}
