"""The table of benchmarks: what a side's process tells, and the page that is kept."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import __main__ as page
from benchmarks import sides

LINE = sides.Line(
    what="work | much of it", ours="2 s", against="ours / other", ratio=0.12345, cpu_s=1.96, peak_gb=0.5
)  # fmt: skip


def test_a_line_is_a_row_and_cannot_add_a_column() -> None:
    assert sides.cells(LINE) == ("work | much of it", "2 s", "ours / other", "0.123", "", "2.0", "0.50")  # fmt: skip
    rows = [row for row in page.text([LINE], "make bench").splitlines() if row.startswith("|")]
    assert {row.count("|") for row in rows} == {len(sides.COLUMNS) + 1}
    assert "Made by `make bench` on " in page.text([LINE], "make bench")


def test_a_side_tells_its_figures_and_what_it_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = ModuleType("toy_benchmark")
    module.SIDES = {"ours": lambda folder: {"rows": len(list(folder.iterdir())), "cpu_s": 7.0}}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "toy_benchmark", module)
    (tmp_path / "one").touch()
    sides.run_side("toy_benchmark", "ours", tmp_path)
    told = capsys.readouterr().out
    assert '"rows": 1' in told
    assert '"cpu_s": 7.0' in told  # what a side says of itself counts
    assert '"peak_gb"' in told
