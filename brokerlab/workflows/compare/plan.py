"""What is compared, cut into cells that can be run, stored and repeated one by one."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from brokerlab import __version__
from brokerlab.errors import ConfigError
from brokerlab.workflows.dag import Dag
from brokerlab.workflows.load import check_jobs
from brokerlab.workflows.strategies import Strategy, strategy

BEST = "best_partition"  # A search over runs, not a strategy of its own
BESIDE = ("pilot_levels:notes", "pilot_levels:paper")
"""Where one is compared, so is the other (workflows.md 0)."""


@dataclass(frozen=True, eq=False)
class BatchSystem:
    """A machine with its scheduler and its background load."""

    background: pl.DataFrame  # jobs as `brokerlab.workflows.load.BatchJobs`
    hosts: int  # of the machine [hosts]
    policy: str = "easy"  # ``fcfs``, ``easy`` or ``conservative``
    cluster: str = ""  # name shared by the same machine under several policies

    @cached_property
    def digest(self) -> str:
        """A digest of load, machine and policy."""
        buffer = io.BytesIO()
        check_jobs(self.background, self.hosts).write_ipc(buffer)
        digest = hashlib.blake2b(buffer.getvalue(), digest_size=8)
        digest.update(f"{self.hosts} {self.policy}".encode())
        return digest.hexdigest()

    @cached_property
    def span(self) -> tuple[float, float]:
        """First and last submission of the background [s]."""
        times = self.background["submit_s"]
        return (float(times.min()), float(times.max())) if len(times) else (0.0, 0.0)  # type: ignore[arg-type]

    @cached_property
    def load(self) -> float:
        """Host time that the background uses over host time there is, from first to last submission."""
        return self._share("run_s")

    @cached_property
    def requested_load(self) -> float:
        """Host time that the background asks for over host time there is."""
        return self._share("requested_s")

    def _share(self, column: str) -> float:
        first, last = self.span
        used = float((self.background["hosts"] * self.background[column]).sum())
        return used / (self.hosts * (last - first)) if last > first else 0.0


def instants(system: BatchSystem, n: int, *, seed: int, edge: float = 0.1) -> tuple[float, ...]:
    """Draw instants at which a workflow is submitted, in order."""
    first, last = system.span
    margin = edge * (last - first)
    drawn = np.random.default_rng(seed).uniform(first + margin, last - margin, n)
    return tuple(sorted(float(np.floor(value)) for value in drawn))


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Workflows x strategies x instants x machines."""

    workflows: Mapping[str, Dag]  # by name
    systems: Mapping[str, BatchSystem]  # by name
    # by label; None stands for the search for the best partition
    strategies: Mapping[str, Strategy | None]
    times: Mapping[str, tuple[float, ...]]  # instants by machine [s]
    partition_levels: int = 5  # levels of a workflow whose partitions are tried at most

    def cells(self, size: int) -> tuple[Cell, ...]:
        """Cut the instants of each machine into cells of so many."""
        return tuple(
            Cell(system=name, first=first, times=times[first : first + size])
            for name, times in self.times.items()
            for first in range(0, len(times), size)
        )

    def key(self, cell: Cell) -> str:
        """Return what tells a cell of this plan from any other."""
        known = [
            (
                name,
                "" if how is None else how.rules.digest + repr(getattr(how.plan, "keywords", "")),
            )
            for name, how in self.strategies.items()
        ]
        flows = [(name, dag.digest) for name, dag in self.workflows.items()]
        text = repr((__version__, cell.times, cell.first, cell.system, self.systems[cell.system].digest, flows, known, self.partition_levels))  # fmt: skip
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Cell:
    """All runs at some instants of one machine."""

    system: str  # name of the machine
    first: int  # number of its first instant
    times: tuple[float, ...] = field(repr=False)  # the instants [s]

    @property
    def label(self) -> str:
        """The cell in words."""
        return f"{self.system}, instants {self.first + 1} to {self.first + len(self.times)}"


def chosen(strategies: Sequence[str | Strategy]) -> dict[str, Strategy | None]:
    """Return the strategies of a comparison by label; the rule sets ``notes`` and ``paper`` come together."""
    result: list[tuple[str, Strategy | None]] = []
    for item in strategies:
        if item == BEST:
            result.append((BEST, None))
        else:
            how = strategy(item) if isinstance(item, str) else item
            result.append((how.label, how))
    labels = [label for label, _ in result]
    if len(set(labels)) < len(labels):
        raise ConfigError(f"strategies: each once, these are {', '.join(labels)}")
    if any(label.startswith("pilot_levels") for label in labels):
        result += [(name, strategy(name)) for name in BESIDE if name not in labels]
    return dict(result)
