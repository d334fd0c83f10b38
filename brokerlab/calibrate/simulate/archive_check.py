"""Simulate a period of an archive and compare: with every job at its own queue, or with the brokerage replayed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from brokerlab.archive.store import Archive
from brokerlab.calibrate.simulate import grid
from brokerlab.calibrate.simulate.grid import GridWorld
from brokerlab.calibrate.simulate.inputs import Estimation, Inputs, of_archive
from brokerlab.calibrate.simulate.limits import Limits
from brokerlab.calibrate.simulate.options import Fit, QueueRules
from brokerlab.calibrate.simulate.validation import Validation, validate
from brokerlab.errors import InsufficientDataError

Brokerage = Literal["seen", "replayed"]


@dataclass(frozen=True)
class ArchiveCheck:
    """What a simulation of a period gave.

    Attributes:
        inputs: What was simulated, and what was seen.
        rules: Options of the queues.
        validation: The comparison.
        world: The world in which the brokerage was replayed; null: jobs stayed at their own queues.
    """

    inputs: Inputs
    rules: QueueRules
    validation: Validation
    world: GridWorld | None


def check_archive(
    archive: Archive,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    brokerage: Brokerage = "seen",
    cycle: str = "",
    fit: Fit = "first",
    estimation: Estimation | None = None,
    limits: Limits | None = None,
    n_boot: int = 100,
    seed: int = 1,
) -> ArchiveCheck:
    """Simulate a period of an archive and compare it with what was seen.

    Args:
        archive: The archive.
        start: The period begins, UTC without zone; null: in the middle of the archive, start-up delays come from before.
        end: It ends; null: with the archive.
        brokerage: ``seen``: jobs stay at their own queues; ``replayed``: the brokerage of production places its jobs,
            under the settings that ruled.
        cycle: From one brokerage to the next, where it is replayed; empty: see :func:`.grid.archive.cycle_seen`.
        fit: Which jobs start at free cores, see :class:`.options.QueueRules`.
        estimation: How queues are read from the archive.
        limits: What the simulation may be off.
        n_boot: Bootstrap replicates over tasks.
        seed: Of simulation and bootstrap.

    Raises:
        ConfigError: Parameters that make no sense.
        MissingTableError: The archive lacks jobs or queues.
        InsufficientDataError: No job of the period has run.
    """
    if archive.manifest.window is None:
        raise InsufficientDataError(f"{archive.path}: no job has a time")
    first, last = (datetime.fromisoformat(text) for text in archive.manifest.window)
    begin, until = start or first + (last - first) / 2, end or last
    chosen = estimation or Estimation()
    inputs = of_archive(archive, begin, until, estimation=chosen)
    if brokerage == "seen":
        rules = QueueRules(fit=fit, attempts=1)
        compared = validate(inputs, limits=limits, rules=rules, repeats=n_boot, seed=seed)
        return ArchiveCheck(inputs, rules, compared, None)
    rules = QueueRules(fit=fit, retry="brokerage")
    world = grid.of_archive(
        archive, start=begin, end=until, cycle=cycle, drain="0h", estimation=chosen, rules=rules
    )
    seeds = range(seed, seed + len(grid.RUNS))
    compared = grid.validate(world, limits=limits, seeds=seeds, repeats=n_boot, seed=seed)
    return ArchiveCheck(inputs, rules, compared, world)
