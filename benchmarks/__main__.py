"""Run every benchmark, print one table, and keep it in docs/benchmarks.md: ``python -m benchmarks [NAME ...] [--share X]``."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from benchmarks import sides

NAMES = (
    *("ingest", "scouts", "classes", "brokerage", "commands", "simulation", "workflows"),
    *("estimator_speed", "worlds"),
)
PAGE = Path("docs/benchmarks.md")
LIBRARIES = ("polars", "duckdb", "numpy", "numba", "scikit-learn")


def machine() -> str:
    """Return processor, cores and memory of this machine, as far as it tells."""
    found = []
    for file, pattern in (
        ("/proc/cpuinfo", r"model name\s*: (.+)"),
        ("/proc/meminfo", r"MemTotal: +(\d+) kB"),
    ):
        try:
            found.append(re.search(pattern, Path(file).read_text("utf-8")))
        except OSError:
            found.append(None)
    name = found[0][1] if found[0] else platform.processor() or platform.machine()
    memory = f", {int(found[1][1]) / 1024**2:.0f} GB" if found[1] else ""
    return f"{name}, {os.cpu_count()} cores{memory}"


def text(lines: Sequence[sides.Line], made: str) -> str:
    """Return the page: where and when, and the table."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in LIBRARIES)
    rows = [sides.COLUMNS, tuple("---" for _ in sides.COLUMNS), *map(sides.cells, lines)]
    table = "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows)
    return f"""# Benchmarks

Made by `{made}` on {datetime.now(UTC):%Y-%m-%d}; not edited by hand. All worlds are synthetic and shuffled, but for the KTH SP2 log where
`BROKERLAB_DATA` has it. Every side of a line ran in a process of its own, one after the other. *CPU s* and *Peak GB* are those of
ours. `python -m benchmarks.NAME --size N` runs one of them: {", ".join(f"`{name}`" for name in NAMES)}.

{machine()}; Python {platform.python_version()}, {versions}.

{table}
"""


def main() -> None:
    """Run what is asked for; the whole of it is kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], help="none: all")
    parser.add_argument("--share", type=float, default=1.0, help="of the usual size of each world")
    options = parser.parse_args()
    lines: list[sides.Line] = []
    for name in options.names or NAMES:
        size = max(round(importlib.import_module(f"benchmarks.{name}").SIZE * options.share), 1)
        for line in sides.run(f"benchmarks.{name}", size):
            lines.append(line)
            print(" | ".join(sides.cells(line)), flush=True)
    if not options.names and options.share == 1:
        PAGE.write_text(text(lines, "make bench"), encoding="utf-8")
        print(f"kept: {PAGE}")
    else:
        words = ["python -m benchmarks", *options.names, f"--share {options.share:g}"]
        print(text(lines, " ".join(words)))


if __name__ == "__main__":
    main()
