"""Cells in processes: one that dies takes its cell with it and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool

import polars as pl

from brokerlab.long_work import Kept, in_processes
from brokerlab.workflows.compare.cells import run_cell
from brokerlab.workflows.compare.plan import Cell, Plan

Told = Callable[[Cell], None]


def finish(
    plan: Plan, cells: Sequence[Cell], store: Kept, *, workers: int, told: Told
) -> tuple[list[pl.DataFrame], dict[Cell, str]]:
    """Run cells."""
    found: list[pl.DataFrame] = []
    lost: dict[Cell, str] = {}
    for cell, result in _results(plan, cells, workers):
        if isinstance(result, BrokenProcessPool):
            lost[cell] = "its process was killed"
        elif isinstance(result, Exception):
            lost[cell] = f"{type(result).__name__}: {result}"
        else:
            store.save(plan.key(cell), result)
            found.append(result)
            told(cell)
    return found, lost


def _results(
    plan: Plan, cells: Sequence[Cell], workers: int
) -> Iterator[tuple[Cell, pl.DataFrame | Exception]]:
    if workers > 1:
        return in_processes(run_cell, plan, cells, workers=workers)
    return ((cell, run_cell(plan, cell)) for cell in cells)
