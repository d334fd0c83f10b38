"""From keys to a proposal: screen, what-if over a grid, joint refinement, choice, proof on a later period."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from brokerlab.calibrate.thresholds import check
from brokerlab.calibrate.thresholds.check import Given
from brokerlab.calibrate.thresholds.keys import HOLDS, KEYS
from brokerlab.calibrate.thresholds.options import Options
from brokerlab.calibrate.thresholds.outcomes import OfCapacity, Period, WhatIf
from brokerlab.calibrate.thresholds.result import Calibration
from brokerlab.calibrate.thresholds.runs import Runs
from brokerlab.calibrate.thresholds.screening import screen
from brokerlab.calibrate.thresholds.store import Store
from brokerlab.calibrate.thresholds.study import Propose, Study
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config

if TYPE_CHECKING:
    from brokerlab.archive import Archive


class Validated(Protocol):
    """Whether the simulation gives back what was seen; see ``simulate.Validation``."""

    @property
    def ok(self) -> bool:
        """It may be used."""

    @property
    def sentence(self) -> str:
        """The verdict in words."""


def calibrate(
    archive: Archive | None,
    options: Options,
    *,
    calibration: Given,
    proof: Given,
    created_at: datetime,
    config: Config | None = None,
    grids: Mapping[str, Iterable[Any]] | None = None,
    shares: Sequence[str] | None = None,
    propose: Propose = "together",
    store: str | Path | None = None,
    what_if: WhatIf | None = None,
    capacity: pl.DataFrame | str | Path | None = None,
    validation: Validated | Callable[[], Validated] | None = None,
    validate: bool = True,
    screened: pl.DataFrame | None = None,
    screening: bool = True,
) -> Calibration:
    """Find better values of some keys on history, prove them on a later period, or say that there are none.

    The choice is made on the calibration period alone; the proof is one comparison per proposal on a period that nothing
    was chosen on. Nothing is proposed from a simulation that does not give back what was seen. Where the slots of queues are
    unknown, an answer counts that is the same with as many as were seen and with ``options.capacity_most`` times as many;
    else there is none.

    Args:
        archive: An archive; null: ``what_if`` and ``config`` are needed, and nothing is screened.
        options: Keys (patterns are set for every share that occurs; none: all thresholds), objective, limits, simulations.
        calibration: Period of the choice, from and before, UTC without zone.
        proof: A later period.
        created_at: Time of the proposal, UTC without zone.
        config: The configuration that acts; null: the archive's at the end of the calibration period.
        grids: Values to try, by key; others have the default grid.
        shares: Global shares for patterns; null: those of the archive.
        propose: ``together``: one proposal for all keys; ``each``: one per key, proven together (Holm).
        store: Folder where results are kept: an interrupted study goes on where it was; null: nowhere.
        what_if: A simulation instead of the grid simulator of production jobs, such as ``grid.of_archive(archive, periods,
            stage="analysis")``; its attribute ``stages``, if it has one, says of which stages it holds keys.
        capacity: Known slots of queues for the grid simulator, see :func:`.grid.of_archive`; null: as ``options`` say.
        validation: Whether the simulation is to be believed, or what finds that out; null: the grid simulator's own check.
        validate: False: the caller vouches for it; allowed with ``what_if`` only.
        screened: A screen that was made already.
        screening: Leave out keys that change no decision.

    Returns:
        What was found, with verdict and proposal.

    Raises:
        ConfigError: Unknown keys, values out of the guard rails, grids of one value and other arguments that cannot be.
        InsufficientDataError: The archive is too short for the periods, or the present settings cannot be simulated.

    Source: design.md, idea 6; gdpconfig.md, Calibration.
    """
    if archive is None and (what_if is None or config is None):
        raise ConfigError("without an archive, what_if and config are needed")
    if what_if is None and not validate:
        raise ConfigError("validate=False: only for a simulation of your own (what_if)")
    keys = options.keys or KEYS["key"].to_list()
    periods, space = check.checked(
        archive,
        keys,
        calibration=calibration,
        proof=proof,
        config=config,
        grids=grids,
        points=options.points,
        shares=shares,
    )
    if screened is None and screening and archive is not None:
        screened = screen(
            archive, keys, period=periods[0], config=space.config,
            grids={key.name: key.grid for key in space.keys},
            stages=getattr(what_if, "stages", HOLDS["jobs"]),
        )  # fmt: skip
    study = Study(options, propose, periods, space, screened, created_at, archive)
    if not study.open_keys:
        return study.unsimulated()
    known = options.capacity if capacity is None else capacity
    simulation, told = _simulation(
        archive, what_if, periods, validation,
        validate=validate, cycle=options.cycle, capacity=known,
    )  # fmt: skip
    if told is not None and not told.ok:
        return study.refused(told.sentence)
    held = Store.at(store, check.digest_of(simulation)) if store is not None else None
    why = None if told is None else told.sentence
    found = study.simulated(Runs(simulation, held, options.workers), why)
    if not isinstance(simulation, OfCapacity):
        return found
    unknown = simulation.unknown()
    if found.verdict.kind == "no_answer" or not unknown or options.capacity_most == 1:
        return replace(found, unknown=unknown)
    larger = simulation.larger(options.capacity_most)
    more = Store.at(store, check.digest_of(larger)) if store is not None else None
    return study.over_range(found, Runs(larger, more, options.workers), unknown)


def _simulation(
    archive: Archive | None,
    what_if: WhatIf | None,
    periods: tuple[Period, Period],
    validation: Validated | Callable[[], Validated] | None,
    *,
    validate: bool,
    cycle: str,
    capacity: pl.DataFrame | str | Path,
) -> tuple[WhatIf, Validated | None]:
    """Return the simulation, and whether it is to be believed: asked before it is used, on the calibration period."""
    given = validation() if callable(validation) else validation
    if given is not None and not given.ok and what_if is None:
        return _unused, given
    if what_if is not None or archive is None:  # check saw to it that there is one of them
        return what_if or _unused, given
    from brokerlab.calibrate.thresholds.grid import of_archive

    simulation = of_archive(archive, periods, cycle=cycle, capacity=capacity)
    return simulation, given if given is not None or not validate else simulation.validate(
        periods[0]
    )


def _unused(config: Config, seeds: tuple[int, ...], period: Period) -> Any:
    """Stand for a simulation that is not used."""
    raise NotImplementedError
