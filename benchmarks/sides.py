"""What benchmarks share: sides that do the same work, each in a process of its own, and one line for each comparison.

A benchmark is a module with ``SIZE`` (how large its world is by default), ``make(folder, size)`` (writes a synthetic world),
``SIDES`` (name to a function of the folder that does the work and returns figures of its own) and ``lines(figures, size)``.
Every side has the figures ``wall_s``, ``cpu_s`` (also of processes it started) and ``peak_gb`` unless it tells better ones.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

Figures = dict[str, float]
MAKE = "make"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One comparison.

    Attributes:
        what: The work, and how much of it.
        ours: What ours does, with its unit.
        against: Whom it is compared with.
        ratio: What is compared: CPU seconds of ours over theirs, or theirs over ours, as ``asked`` says.
        asked: Of the ratio or of ours, such as ``at most 2``; empty: nothing.
        cpu_s: CPU seconds of ours.
        peak_gb: Peak resident memory of ours [GB].
    """

    what: str
    ours: str
    against: str
    ratio: float | None
    asked: str = ""
    cpu_s: float
    peak_gb: float


def cpu_s() -> float:
    """Return CPU seconds of this process and of those that it started and that have ended."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in spent)


def peak_gb() -> float:
    """Return the peak memory of this program [GB]: ``ru_maxrss`` begins with that of the process that started it."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("ascii"))
    return int(found[1]) / 1024**2 if found else float("nan")


def run_side(module: str, side: str, folder: Path) -> None:
    """Run one side in this process and print its figures."""
    from brokerlab.errors import BrokerlabWarning

    work = importlib.import_module(module).SIDES[side]
    wall, cpu = time.perf_counter(), cpu_s()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokerlabWarning)
        own = work(folder)
    figures = {"wall_s": time.perf_counter() - wall, "cpu_s": cpu_s() - cpu, "peak_gb": peak_gb()}
    print(json.dumps(figures | own))


def measure(module: str, side: str, folder: Path) -> Figures:
    """Run one side in a fresh process."""
    output = _in_a_process(module, side, str(folder))
    figures: Figures = json.loads(output.splitlines()[-1])
    return figures


def _in_a_process(*words: str) -> str:
    command = [sys.executable, "-m", "benchmarks.sides", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def run(name: str, size: int | None = None) -> list[Line]:
    """Make the world of a benchmark, run all of its sides and return its lines."""
    module = importlib.import_module(name)
    chosen = module.SIZE if size is None else size
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        _in_a_process(name, MAKE, str(folder), str(chosen))
        figures = {side: measure(name, side, folder) for side in module.SIDES}
    lines: list[Line] = module.lines(figures, chosen)
    return lines


COLUMNS = ("What", "Ours", "Against", "Ratio", "Asked", "CPU s", "Peak GB")


def cells(line: Line) -> tuple[str, ...]:
    """Return the texts of a line, column by column."""
    ratio = "" if line.ratio is None else f"{line.ratio:.3g}"
    return (
        *(line.what, line.ours, line.against, ratio, line.asked),
        *(f"{line.cpu_s:.1f}", f"{line.peak_gb:.2f}"),
    )


def main(name: str, doc: str | None) -> None:
    """Run one benchmark from the command line and print its lines."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--size", type=int, help="of its world")
    for line in run(name, parser.parse_args().size):
        told = zip(COLUMNS, cells(line), strict=True)
        print("; ".join(f"{column}: {text}" for column, text in told if text))


def million(number: float) -> str:
    """Return a number in millions, or as it is where it is less than one."""
    return f"{number / 1e6:.3g} million" if number >= 1e6 else f"{number:,.0f}"


if __name__ == "__main__":
    name, what, where, *size = sys.argv[1:]
    if what == MAKE:
        importlib.import_module(name).make(Path(where), int(size[0]))
    else:
        run_side(name, what, Path(where))
