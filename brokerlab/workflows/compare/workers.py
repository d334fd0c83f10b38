"""Cells in processes: one that dies takes its cell with it and nothing else."""

from __future__ import annotations

import multiprocessing
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import polars as pl

from brokerlab.workflows.compare.cells import run_cell
from brokerlab.workflows.compare.plan import Cell, Plan
from brokerlab.workflows.compare.store import Store

Told = Callable[[Cell], None]
_plan: Plan | None = None


def finish(
    plan: Plan, cells: Sequence[Cell], store: Store, *, workers: int, told: Told
) -> tuple[list[pl.DataFrame], dict[Cell, str]]:
    """Run cells.

    Args:
        plan: What is compared.
        cells: Those to run.
        store: Where each is kept as soon as it is there.
        workers: Processes; 1 runs them here.
        told: Called after each cell.

    Returns:
        The runs of each cell that came to its end, and why the others did not.
    """
    if workers <= 1 or not cells:
        return [_kept(store, plan, cell, run_cell(plan, cell), told) for cell in cells], {}
    found: list[pl.DataFrame] = []
    lost: dict[Cell, str] = {}
    waiting: queue.SimpleQueue[Cell] = queue.SimpleQueue()
    for cell in cells:
        waiting.put(cell)
    with ThreadPoolExecutor(min(workers, len(cells))) as threads:
        keepers = [
            threads.submit(_keep_busy, plan, waiting, store, found, lost, told)
            for _ in range(min(workers, len(cells)))
        ]
        for keeper in keepers:
            keeper.result()
    return found, lost


def _keep_busy(
    plan: Plan,
    waiting: queue.SimpleQueue[Cell],
    store: Store,
    found: list[pl.DataFrame],
    lost: dict[Cell, str],
    told: Told,
) -> None:
    """Give cells to one process; where it dies, note the cell and go on with a new one."""
    process = _process(plan)
    try:
        while True:
            try:
                cell = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                frame = process.submit(_in_process, cell).result()
            except BrokenProcessPool:
                lost[cell] = "its process was killed"
                process.shutdown(wait=False)
                process = _process(plan)
            except Exception as problem:  # noqa: BLE001 - whatever it was: the other cells go on
                lost[cell] = f"{type(problem).__name__}: {problem}"
            else:
                found.append(_kept(store, plan, cell, frame, told))
    finally:
        process.shutdown(wait=True, cancel_futures=True)


def _kept(store: Store, plan: Plan, cell: Cell, frame: pl.DataFrame, told: Told) -> pl.DataFrame:
    store.save(plan.key(cell), frame)
    told(cell)
    return frame


def _process(plan: Plan) -> ProcessPoolExecutor:
    """Return a process that knows the plan; spawned, as the frames' threads do not survive a fork."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=context, initializer=_learn, initargs=(plan,))


def _learn(plan: Plan) -> None:
    global _plan  # noqa: PLW0603 - what a process was started for
    _plan = plan


def _in_process(cell: Cell) -> pl.DataFrame:
    if _plan is None:
        raise RuntimeError("the process was started without a plan")
    return run_cell(_plan, cell)
