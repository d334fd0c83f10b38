"""What a person waits for at the shell, on a synthetic archive: the help, and why one task went where it went."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from benchmarks.sides import Figures, Line, main, million

SIZE = 60_000
ASKED = {"--help": "", "explain": "below 3 s"}


def make(folder: Path, jobs: int) -> None:
    """Make the archive."""
    from brokerlab.worlds import synthesise

    synthesise(folder / "archive", jobs=jobs, days=7, seed=1)


def run_command(command: str, folder: Path) -> Figures:
    """Run a command once to compile what it compiles, and then once more."""
    archive = folder / "archive"
    words = [str(Path(sys.executable).with_name("brokerlab")), command]
    if command == "explain":
        words += ["--archive", str(archive), "--task", str(first_task(archive))]
    for _ in range(2):
        begin = time.perf_counter()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        took = time.perf_counter() - begin
    return {"wall_s": took}


def first_task(archive: Path) -> int:
    """Return the first production task that was brokered."""
    from brokerlab.archive import open as opened

    jobs = opened(archive).scan("jobs").filter(prodsourcelabel="managed").collect()
    return int(jobs["jeditaskid"].min())


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
            cpu_s=figures[command]["cpu_s"] / 2,
            peak_gb=figures[command]["peak_gb"],
        )
        for command, asked in ASKED.items()
    ]


if __name__ == "__main__":
    main("benchmarks.commands", __doc__)
