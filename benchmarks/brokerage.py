"""A month of the production job brokerage at once, against a plain loop over tasks, checks and queues.

``ours``  ``production_jobs.decide``: every check of every (task, queue), weights, ranks; from frames in memory.
``loop``  the tests' plain Python loop (``tests/twins``), which decides the same: task by task, check by check, queue by
          queue, and asks a queue no more once it is skipped. Measured on a sample of tasks in worlds indexed beforehand
          and scaled to all of them (extrapolated). Its decisions must be ours.

The world is synthetic, see :mod:`benchmarks.brokerage_world`. Rates are (task, queue) pairs per second.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.brokerage_world import make_world

TASKS, QUEUES, TASKS_PER_INSTANT = 20_000, 400, 50
SAMPLE_INSTANTS = 6

Figures = dict[str, float]


def read(folder: Path) -> dict[str, pl.DataFrame]:
    """Read the tables of the world."""
    return {path.stem: pl.read_parquet(path) for path in sorted(folder.glob("*.parquet"))}


def run_ours(folder: Path) -> Figures:
    """Decide all tasks; the time of a task alone is told, too."""
    from brokerlab.brokerage.production_jobs import decide
    from brokerlab.brokerage.rules import ProductionRules

    tables, rules = read(folder), ProductionRules()
    wall, cpu = time.perf_counter(), time.process_time()
    found = decide(tables, rules=rules)
    figures = {
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
        "pairs": found.queues.height,
        "candidates": found.queues["rank"].count(),
    }
    alone = of_instants(tables, 1)
    alone["tasks"] = alone["tasks"].head(1)
    cpu = time.process_time()
    decide(alone, rules=rules)
    return figures | {"one_task_cpu_s": time.process_time() - cpu}


def run_loop(folder: Path) -> Figures:
    """Decide a sample of the tasks in a plain loop, and compare with ours."""
    from brokerlab.brokerage.production_jobs import decide
    from brokerlab.brokerage.rules import ProductionRules
    from tests.twins import compare, production_jobs

    tables, rules = of_instants(read(folder), SAMPLE_INSTANTS), ProductionRules()
    rows: dict[str, Any] = {name: frame.to_dicts() for name, frame in tables.items()}
    worlds = {
        number: production_jobs.index_world(rows, rules, number)
        for number in range(SAMPLE_INSTANTS)
    }
    loop = []
    cpu = time.process_time()
    for task in rows["tasks"]:
        found = production_jobs.decide(worlds[task["snapshot"]], task)
        loop.append({"jeditaskid": task["jeditaskid"], "snapshot": task["snapshot"]} | found)
    seconds = time.process_time() - cpu
    ours = decide(tables, rules=rules)
    parents = {row["panda_queue"] for row in rows["queues"] if row["is_unified"]}
    differ = compare.differences(loop, ours.queues.to_dicts(), ours.tasks.to_dicts(), parents)
    return {
        "cpu_s": seconds,
        "pairs": ours.queues.height,
        "tasks": len(loop),
        "differ": len(differ),
    }


def of_instants(tables: dict[str, pl.DataFrame], number: int) -> dict[str, pl.DataFrame]:
    """Return the world at the first instants alone."""
    tasks = tables["tasks"].filter(pl.col("snapshot") < number)
    found = {}
    for name, frame in tables.items():
        kept = frame
        if "snapshot" in frame.columns:
            kept = kept.filter(pl.col("snapshot") < number)
        if "jeditaskid" in frame.columns:
            kept = kept.join(tasks, on="jeditaskid", how="semi", maintain_order="left")
        found[name] = kept
    return found


SIDES: dict[str, Callable[[Path], Figures]] = {"ours": run_ours, "loop": run_loop}


def measure(side: str, folder: Path) -> Figures:
    """Run one side in a fresh process."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.brokerage",
        "--side",
        side,
        "--folder",
        str(folder),
    ]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    figures: Figures = json.loads(output)
    return figures


def run_side(side: str, folder: Path) -> None:
    """Run one side in this process and print its figures."""
    from brokerlab.errors import BrokerlabWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokerlabWarning)
        figures = SIDES[side](folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(json.dumps(figures | {"peak_gb": peak}))


def main(arguments: list[str] | None = None) -> None:
    """Print the figures of both sides and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--queues", type=int, default=QUEUES)
    parser.add_argument("--side", choices=SIDES)
    parser.add_argument("--folder", type=Path)
    options, _ = parser.parse_known_args(arguments)  # other benchmarks have options of their own
    if options.side:
        run_side(options.side, options.folder)
        return
    instants = max(options.tasks // TASKS_PER_INSTANT, 1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name, frame in make_world(options.tasks, options.queues, instants).items():
            frame.write_parquet(folder / f"{name}.parquet")
        print(
            f"job brokerage of {options.tasks:,} tasks x {options.queues} queues at {instants} instants, synthetic"
        )
        ours, loop = (measure(side, folder) for side in SIDES)
    tell(ours, loop)


def tell(ours: Figures, loop: Figures) -> None:
    """Print the figures."""
    pairs = ours["pairs"]
    scaled = loop["cpu_s"] / loop["pairs"] * pairs
    print(
        f"ours  wall {ours['wall_s']:9.1f} s  cpu {ours['cpu_s']:9.1f} s  peak {ours['peak_gb']:4.1f} GB  "
        f"{pairs / ours['wall_s'] / 1e6:.2f} million pairs/s, {pairs / ours['cpu_s'] / 1e6:.2f} per cpu s"
    )
    print(
        f"loop  cpu  {scaled:9.1f} s  {loop['pairs'] / loop['cpu_s']:,.0f} pairs/s "
        f"(extrapolated from {loop['tasks']:.0f} tasks; {loop['differ']:.0f} differences from ours)"
    )
    print(
        f"loop / ours: wall {scaled / ours['wall_s']:.0f}, cpu {scaled / ours['cpu_s']:.0f}; "
        f"{pairs:,.0f} pairs, {ours['candidates']:,.0f} candidates; one task alone: {ours['one_task_cpu_s']:.2f} cpu s"
    )


if __name__ == "__main__":
    main()
