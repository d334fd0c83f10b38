"""What a person waits for at the shell, on a synthetic archive: the help, and why one task went where it went."""

from __future__ import annotations

import subprocess
import sys
import time
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
ASKED = {"--help": "", "explain": "below 3 s"}


def make(folder: Path, jobs: int) -> None:
    """Make the archive, and write down the first task of production."""
    from brokerlab.archive import open as opened
    from brokerlab.worlds import synthesise

    synthesise(folder / "archive", jobs=jobs, days=7, seed=1)
    managed = opened(folder / "archive").scan("jobs").filter(prodsourcelabel="managed")
    task = managed.select("jeditaskid").min().collect().item()
    (folder / "task").write_text(str(task), encoding="utf-8")


def run_command(command: str, folder: Path) -> Figures:
    """Run a command once to compile what it compiles, and then once more, which is told."""
    words = [command]
    if command == "explain":
        task = (folder / "task").read_text(encoding="utf-8")
        words += ["--archive", str(folder / "archive"), "--task", task]
    for _ in range(2):
        wall, cpu = time.perf_counter(), cpu_s()
        done = subprocess.run(
            [sys.executable, "-c", RUN, *words], check=True, stdout=subprocess.PIPE, text=True
        )
        figures = {"wall_s": time.perf_counter() - wall, "cpu_s": cpu_s() - cpu}
    return {**figures, "peak_gb": float(done.stdout)}


SIDES = {command: partial(run_command, command) for command in ASKED}


def lines(figures: dict[str, Figures], size: int) -> list[Line]:
    """Tell how long each takes."""
    return [
        Line(
            what=f"brokerlab {command}, archive of {million(size)} jobs",
            ours=f"{figures[command]['wall_s']:.2f} s",
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
