"""What a person waits for at the shell: the help, why one task went where it went, and a report that has nothing to do."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks.sides import Figures, Line, cpu_s, main, million

SIZE = 60_000
RUN = """
import contextlib, os, sys
from brokerlab.cli import app
from benchmarks.sides import peak_gb
with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.suppress(SystemExit):
    app(sys.argv[1:])
print(peak_gb())
"""
"""A command run in a process that then tells its own peak: that of a child counts what the process before it held."""
ASKED = {"--help": "", "explain": "below 3 s", "report": "first cell below 2 s"}


def make(folder: Path, jobs: int) -> None:
    """Make the archive, one without tables, and write down the first task of production."""
    from brokerlab.archive import ArchiveWriter
    from brokerlab.archive import open as opened
    from brokerlab.worlds import synthesise

    synthesise(folder / "archive", jobs=jobs, days=7, seed=1)
    managed = opened(folder / "archive").scan("jobs").filter(prodsourcelabel="managed")
    task = managed.select("jeditaskid").min().collect().item()
    (folder / "task").write_text(str(task), encoding="utf-8")
    with ArchiveWriter(folder / "empty") as writer:
        writer.commit()


def run_command(command: str, folder: Path) -> Figures:
    """Run a command once to compile what it compiles, and then once more, which is told."""
    words, reports = [command], folder / "reports"
    if command == "report":
        words += ["explore", "-p", f"archive={folder / 'empty'}", "--out", str(reports)]
    if command == "explain":
        task = (folder / "task").read_text(encoding="utf-8")
        words += ["--archive", str(folder / "archive"), "--task", task]
    for _ in range(2):
        started, wall, cpu = datetime.now(UTC), time.perf_counter(), cpu_s()
        done = subprocess.run(
            [sys.executable, "-c", RUN, *words], check=True, stdout=subprocess.PIPE, text=True
        )
        figures = {"wall_s": time.perf_counter() - wall, "cpu_s": cpu_s() - cpu}
    if command == "report":
        figures["first_cell_s"] = (_first_cell(reports) - started).total_seconds()
    return {**figures, "peak_gb": float(done.stdout)}


def _first_cell(reports: Path) -> datetime:
    """Return when the first cell of the latest notebook began, as papermill wrote it down."""
    notebook = json.loads(max(reports.glob("*/2*/notebook.ipynb")).read_text("utf-8"))
    code = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    return datetime.fromisoformat(next(code)["metadata"]["papermill"]["start_time"])


SIDES = {command: partial(run_command, command) for command in ASKED}


def lines(figures: dict[str, Figures], size: int) -> list[Line]:
    """Tell how long each takes."""
    first = f", first cell after {figures['report']['first_cell_s']:.2f} s"
    return [
        Line(
            what=f"brokerlab {command}, archive of {million(0 if command == 'report' else size)} jobs",
            ours=f"{figures[command]['wall_s']:.2f} s{first if command == 'report' else ''}",
            against="",
            ratio=None,
            asked=asked,
            cpu_s=figures[command]["cpu_s"],
            peak_gb=figures[command]["peak_gb"],
        )
        for command, asked in ASKED.items()
    ]


if __name__ == "__main__":
    main("benchmarks.commands", __doc__)
