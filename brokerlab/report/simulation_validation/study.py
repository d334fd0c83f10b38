"""Read a period of an archive, simulate it, compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path

from brokerlab.archive.store import Archive, open_archive
from brokerlab.brokerage.replay.plan import time_of
from brokerlab.calibrate.simulate import (
    Estimation,
    Inputs,
    Limits,
    QueueRules,
    Validation,
)
from brokerlab.calibrate.simulate.archive_check import Brokerage, check_archive
from brokerlab.calibrate.simulate.grid import GridWorld
from brokerlab.calibrate.simulate.options import Fit
from brokerlab.errors import ConfigError, nearest
from brokerlab.report.checks import FEWEST_REPLICATES, problems
from brokerlab.times import duration_us

BROKERAGES = ("seen", "replayed")
"""Where jobs go: where they were, or where the brokerage's rules send them."""


@dataclass(frozen=True)
class Study:
    """What the page is made of.

    Attributes:
        archive: The archive.
        inputs: What was simulated, and what was seen.
        estimation: How queues were read from the archive.
        rules: Options of the queues.
        validation: The comparison.
        repeats: Bootstrap repeats.
        seed: Of simulation and bootstrap.
        world: The world in which the brokerage was replayed; None: jobs stayed at their own queues.
    """

    archive: Archive
    inputs: Inputs
    estimation: Estimation
    rules: QueueRules
    validation: Validation
    repeats: int
    seed: int
    world: GridWorld | None = None


def limits_of(given: Mapping[str, float]) -> Limits:
    """Return the limits with some of them set.

    Raises:
        ConfigError: An unknown name, or a limit that makes no sense.
    """
    known = [entry.name for entry in fields(Limits)]
    wrong = [f"'{name}': {nearest(name, known)}" for name in given if name not in known]
    if wrong:
        raise ConfigError(f"limits: unknown {'; '.join(wrong)}")
    numbers = {name: int(value) if name == "least_jobs" else value for name, value in given.items()}
    return Limits(**numbers)  # type: ignore[arg-type]


def check(
    *,
    limits: Mapping[str, float],
    fit: Fit,
    window: str,
    quantile: float,
    n_boot: int,
    seed: int,
    start: str = "",
    end: str = "",
    brokerage: str = "seen",
    cycle: str = "1h",
) -> None:
    """Refuse impossible parameters, all at once; they are those of the notebook.

    Raises:
        ConfigError: Every parameter that is wrong, with what is allowed.
    """
    told = problems(
        lambda: limits_of(limits),
        lambda: QueueRules(fit=fit),
        lambda: Estimation(quantile=quantile),
        lambda: duration_us(window, "window"),
        lambda: duration_us(cycle, "cycle"),
        lambda: time_of(start or None, "start"),
        lambda: time_of(end or None, "end"),
    )
    if brokerage not in BROKERAGES:
        told.append(f"brokerage='{brokerage}': allowed is {' or '.join(BROKERAGES)}")
    if n_boot < FEWEST_REPLICATES:
        told.append(f"n_boot={n_boot}: allowed is {FEWEST_REPLICATES} or more")
    if seed < 0:
        told.append(f"seed={seed}: allowed is 0 or more")
    if told:
        raise ConfigError("; ".join(told))


def study(
    archive: str | Path,
    *,
    start: str = "",
    end: str = "",
    limits: Mapping[str, float] | None = None,
    fit: Fit = "first",
    window: str = "1d",
    quantile: float = 1.0,
    n_boot: int = 100,
    seed: int = 1,
    brokerage: Brokerage = "seen",
    cycle: str = "1h",
) -> Study:
    """Simulate a period and compare.

    Args:
        archive: Archive folder.
        start: The period begins, ISO 8601, UTC; empty: in the middle of the archive, start-up delays come from before.
        end: It ends; empty: with the archive.
        limits: What the simulation may be off, by names of ``Limits``.
        fit: Which jobs start at free cores, see ``QueueRules``.
        window: Slots are constant so long.
        quantile: Of the cores in use in a window.
        n_boot: Bootstrap repeats over tasks.
        seed: Of simulation and bootstrap.
        brokerage: ``seen``: jobs stay at their own queues; ``replayed``: the brokerage of production places its jobs, under
            the settings that ruled.
        cycle: From one brokerage to the next, where it is replayed.

    Raises:
        ConfigError: Parameters that make no sense.
        InsufficientDataError: No job of the period has run.
    """
    opened = open_archive(archive)
    estimation = Estimation(
        window=timedelta(microseconds=duration_us(window, "window")), quantile=quantile
    )
    made = check_archive(
        opened,
        start=time_of(start or None, "start"),
        end=time_of(end or None, "end"),
        brokerage=brokerage,
        cycle=cycle,
        fit=fit,
        estimation=estimation,
        limits=limits_of(limits or {}),
        n_boot=n_boot,
        seed=seed,
    )
    return Study(
        opened, made.inputs, estimation, made.rules, made.validation, n_boot, seed, made.world
    )
