"""Work that takes long: results kept in a folder, so that it goes on where it was, and tasks in processes that may be killed."""

from __future__ import annotations

import multiprocessing
import os
import queue
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from brokerlab.errors import WARNED, DataError

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
"""Cores that this process was given, or kept to before it loaded this; none where the system does not tell."""


def cores_for(n: int) -> list[int]:
    """Return a core for each of several processes, from the one on where the system found room for this thread; -1: none, for a single one or where the system does not tell."""
    try:
        told = Path("/proc/thread-self/stat").read_text("ascii").rpartition(")")[2].split()
        here = CORES.index(int(told[36]))  # field 39, proc(5)
    except (OSError, ValueError, IndexError):
        return [-1] * n
    return [CORES[(here + place) % len(CORES)] if n > 1 else -1 for place in range(n)]


def keep_to(core: int) -> None:
    """Let this process keep to a core where Polars has one thread; before it is asked for anything.

    Polars does even the shortest work in it; to wake it on another core took a quarter of the processor time of a replay beside an idle core.
    """
    if core >= 0 and os.environ.get("POLARS_MAX_THREADS") == "1":
        with suppress(OSError):  # the core was taken from it
            os.sched_setaffinity(0, {core})


class Kept:
    """A folder with one Parquet file per result."""

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as problem:
                wanted = "name a folder that can be made"
                raise DataError(f"store {self.folder}: {problem}; {wanted}") from None

    def load(self, key: str) -> pl.DataFrame | None:
        """Return a result; None where there is none, or its file is damaged."""
        if self.folder is None:
            return None
        try:
            return pl.read_parquet(self.folder / f"{key}.parquet")
        except (OSError, pl.exceptions.PolarsError):
            return None

    def save(self, key: str, frame: pl.DataFrame) -> None:
        """Write a result: under another name first, so that there is no half of one."""
        if self.folder is None:
            return
        unfinished = self.folder / f".{key}.{uuid.uuid4().hex}"
        try:
            frame.write_parquet(unfinished)
            unfinished.replace(self.folder / f"{key}.parquet")
        finally:
            unfinished.unlink(missing_ok=True)


def in_processes(
    work: Callable[[S, T], R], shared: S, tasks: Sequence[T], *, workers: int, tries: int = 1
) -> Iterator[tuple[T, R | Exception]]:
    """Do tasks, ``work(shared, task)``, in processes: one that is killed takes its task, tried so often, with it and nothing else.

    What this process has warned of is not repeated by others.
    """
    waiting: queue.SimpleQueue[T] = queue.SimpleQueue()
    ended: queue.SimpleQueue[tuple[T, R | Exception]] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)

    def start(core: int) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")  # threads do not survive a fork
        return ProcessPoolExecutor(
            1, context, initializer=_hold, initargs=(work, shared, {*WARNED}, core)
        )

    cores = cores_for(min(workers, len(tasks)))
    with ThreadPoolExecutor(max(1, len(cores))) as threads:
        for core in cores:
            threads.submit(_keep_busy, partial(start, core), waiting, ended, tries)
        try:
            for _ in tasks:
                yield ended.get()
        finally:
            with suppress(queue.Empty):  # whoever asked wants no more of them
                while True:
                    waiting.get_nowait()


def _keep_busy(
    start: Callable[[], ProcessPoolExecutor],
    waiting: queue.SimpleQueue[T],
    ended: queue.SimpleQueue[tuple[T, R | Exception]],
    tries: int,
) -> None:
    """Give tasks to one process, to a new one where it was killed."""
    process = start()
    while True:
        try:
            task = waiting.get_nowait()
        except queue.Empty:
            process.shutdown()
            return
        for _ in range(tries):
            result: R | Exception
            try:
                result = process.submit(_do, task).result()
            except BrokenProcessPool as killed:
                result = killed
                process.shutdown(wait=False)
                process = start()
                continue
            except Exception as problem:  # noqa: BLE001 - whoever asked decides what it means
                result = problem
            break
        ended.put((task, result))


_HELD: list[Any] = []  # what a process was started for: the work, and what is shared


def _hold(work: Callable[[S, T], R], shared: S, warned: set[str], core: int) -> None:
    keep_to(core)
    _HELD[:] = [work, shared]
    WARNED.update(warned)  # what was said here is not said by every process again


def _do(task: Any) -> Any:
    work, shared = _HELD
    return work(shared, task)
