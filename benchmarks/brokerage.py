"""A month of the production job brokerage at once, against a plain loop over tasks, checks and queues.

``ours``  ``production_jobs.decide``: every check of every (task, queue), weights, ranks; from frames in memory.
``loop``  the tests' plain Python loop (``tests/twins``), which decides the same: task by task, check by check, queue by
          queue. Once as ours does, which answers every check of every queue, and once with no more questions to a queue
          that is skipped. It begins with the rows of its instant as dicts, which it indexes once for the 50 tasks there.
          Measured on a sample of tasks and scaled to all of them (extrapolated). Its decisions must be ours.

The world is synthetic, see :mod:`benchmarks.brokerage_world`. Rates are (task, queue) pairs per second.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.brokerage_world import make_world
from benchmarks.sides import Figures, Line, main

SIZE, QUEUES, TASKS_PER_INSTANT = 20_000, 400, 50
SAMPLE_INSTANTS, QUESTIONS = 6, 21


def read(folder: Path) -> dict[str, pl.DataFrame]:
    """Read the tables of the world."""
    return {path.stem: pl.read_parquet(path) for path in sorted(folder.glob("*.parquet"))}


def run_ours(folder: Path) -> Figures:
    """Decide all tasks; then one task alone, from its tables, and again and again once it is prepared."""
    from brokerlab.brokerage import live
    from brokerlab.brokerage.production_jobs import decide
    from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE
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
    alone = of_instants(tables, range(1))
    alone["tasks"] = alone["tasks"].head(1)
    cpu = time.process_time()
    decide(alone, rules=rules)
    figures["one_task_cpu_s"] = time.process_time() - cpu
    standing = live.prepare(alone, rules=rules)
    state = {
        name: alone[name].rename({"snapshot": "world"})
        for name in live.tables_that_change(BROKERAGE)
        if name in alone
    }
    wanted = alone["tasks"].select("jeditaskid", "snapshot", world=pl.lit(0, pl.Int64))
    seconds = []
    for _ in range(QUESTIONS):
        cpu = time.process_time()
        standing.decide(wanted, state)
        seconds.append(time.process_time() - cpu)
    return figures | {"prepared_cpu_s": statistics.median(seconds)}


def run_loop(folder: Path) -> Figures:
    """Decide a sample of the tasks in a plain loop, and compare with ours."""
    from brokerlab.brokerage.production_jobs import decide
    from brokerlab.brokerage.rules import ProductionRules
    from tests.twins import compare, production_jobs

    every, rules = read(folder), ProductionRules()
    loop, seconds = [], {"cpu_s": 0.0, "every_check_cpu_s": 0.0}
    for number in range(SAMPLE_INSTANTS):
        instant = of_instants(every, range(number, number + 1))
        rows: dict[str, Any] = {name: frame.to_dicts() for name, frame in instant.items()}
        for name, every_check in (("cpu_s", False), ("every_check_cpu_s", True)):
            cpu = time.process_time()
            world = production_jobs.index_world(rows, rules, number)
            found = [
                production_jobs.decide(world, task, every_check=every_check)
                for task in rows["tasks"]
            ]
            seconds[name] += time.process_time() - cpu
        keys = instant["tasks"].select("jeditaskid", "snapshot").to_dicts()
        loop += [key | each for key, each in zip(keys, found, strict=True)]
    tables = of_instants(every, range(SAMPLE_INSTANTS))
    ours = decide(tables, rules=rules)
    parents = {row["panda_queue"] for row in every["queues"].to_dicts() if row["is_unified"]}
    differ = compare.differences(loop, ours.queues.to_dicts(), ours.tasks.to_dicts(), parents)
    return {
        **seconds,
        "pairs": ours.queues.height,
        "tasks": len(loop),
        "differ": len(differ),
    }


def of_instants(tables: dict[str, pl.DataFrame], instants: range) -> dict[str, pl.DataFrame]:
    """Return the world at some instants alone."""
    there = pl.col("snapshot").is_in(instants)
    tasks = tables["tasks"].filter(there)
    found = {}
    for name, frame in tables.items():
        kept = frame
        if "snapshot" in frame.columns:
            kept = kept.filter(there)
        if "jeditaskid" in frame.columns:
            kept = kept.join(tasks, on="jeditaskid", how="semi", maintain_order="left")
        found[name] = kept
    return found


SIDES = {"ours": run_ours, "loop": run_loop}


def make(folder: Path, tasks: int) -> None:
    """Write the tables of a world of so many tasks, 50 of them at each instant."""
    for name, frame in make_world(tasks, QUEUES, max(tasks // TASKS_PER_INSTANT, 1)).items():
        frame.write_parquet(folder / f"{name}.parquet")


def lines(figures: dict[str, Figures], size: int) -> list[Line]:
    """Compare ours with the loop, scaled to all pairs."""
    ours, loop = figures["ours"], figures["loop"]
    pairs, told = ours["pairs"], {"cpu_s": ours["cpu_s"], "peak_gb": ours["peak_gb"]}
    scaled = pairs / loop["pairs"] / ours["cpu_s"]
    what = f"job brokerage of {size:,} tasks x {QUEUES} queues"
    return [
        *(
            Line(
                what=what,
                ours=f"{pairs / ours['wall_s'] / 1e6:.2f} million pairs/s, {pairs / ours['cpu_s'] / 1e6:.2f} a CPU s",
                against=f"a Python loop{how} / ours (extrapolated from {loop['tasks']:.0f} tasks, {loop['differ']:.0f} differences)",
                ratio=loop[name] * scaled,
                asked=asked,
                **told,
            )
            for how, name, asked in (
                (" that answers as much", "every_check_cpu_s", "at least 60; 2 million pairs/s"),
                (" that asks no more once a queue is skipped", "cpu_s", ""),
            )
        ),
        *(
            Line(
                what=f"job brokerage of one task x {QUEUES} queues, {how}",
                ours=f"{1e3 * ours[name]:.0f} ms",
                against="",
                ratio=None,
                asked=asked,
                cpu_s=ours[name],
                peak_gb=ours["peak_gb"],
            )
            for how, name, asked in (
                ("from its tables", "one_task_cpu_s", ""),
                (
                    f"prepared, all counts anew, median of {QUESTIONS}",
                    "prepared_cpu_s",
                    "below 20 ms",
                ),
            )
        ),
    ]


if __name__ == "__main__":
    main("benchmarks.brokerage", __doc__)
