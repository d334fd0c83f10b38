"""From keys to a proposal: screen, what-if over a grid, joint refinement, choice, proof on a later period."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import polars as pl

from brokerlab.calibrate.thresholds import check
from brokerlab.calibrate.thresholds.choice import Limits
from brokerlab.calibrate.thresholds.keys import HOLDS, POINTS
from brokerlab.calibrate.thresholds.outcomes import Period, WhatIf
from brokerlab.calibrate.thresholds.result import Calibration
from brokerlab.calibrate.thresholds.runs import Runs
from brokerlab.calibrate.thresholds.screening import screen
from brokerlab.calibrate.thresholds.store import Store
from brokerlab.calibrate.thresholds.study import Study
from brokerlab.calibrate.thresholds.sweep import Replications
from brokerlab.gdpconfig import Config

if TYPE_CHECKING:
    from brokerlab.archive import Archive

Propose = Literal["together", "each"]


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
    *,
    keys: Sequence[str],
    calibration: tuple[datetime | str, datetime | str],
    proof: tuple[datetime | str, datetime | str],
    created_at: datetime,
    config: Config | None = None,
    grids: Mapping[str, Iterable[Any]] | None = None,
    points: int = POINTS,
    objective: str = "turnaround_h",
    limits: Limits | None = None,
    relevant: float = 0.01,
    alpha: float = 0.05,
    replications: Replications | None = None,
    trials: int = 12,
    rounds: int = 3,
    most_keys: int = 3,
    propose: Propose = "together",
    n_boot: int = 2000,
    seed: int = 0,
    store: str | Path | None = None,
    workers: int = 1,
    what_if: WhatIf | None = None,
    validation: Validated | Callable[[], Validated] | None = None,
    validate: bool = True,
    screened: pl.DataFrame | None = None,
    screening: bool = True,
    shares: Sequence[str] | None = None,
) -> Calibration:
    """Find better values of some keys on history, prove them on a later period, or say that there are none.

    The choice is made on the calibration period alone; the proof is one comparison per proposal on a period that nothing
    was chosen on. Nothing is proposed from a simulation that does not give back what was seen.

    Args:
        archive: An archive; null: ``what_if`` and ``config`` are needed, and nothing is screened.
        keys: Keys of :data:`.keys.KEYS` (patterns are set for every share that occurs), or exact keys.
        calibration: Period of the choice, from and before, UTC without zone.
        proof: A later period.
        created_at: Time of the proposal, UTC without zone.
        config: The configuration that acts; null: the archive's at the end of the calibration period.
        grids: Values to try, by key; others have the default grid.
        points: Values of a default grid.
        objective: Quantity to lower, of :data:`.outcomes.QUANTITIES`.
        limits: What may get worse, and by how much.
        relevant: Smallest reduction that is worth a change, as a part of the current value.
        alpha: Rate of false proposals that is put up with; intervals have confidence 1 - alpha.
        replications: How often settings are simulated.
        trials: Of the search over the keys that matter, together; 0: none.
        rounds: How often the steps beside the best setting are halved after it.
        most_keys: Keys of that search at most.
        propose: ``together``: one proposal for all keys; ``each``: one per key, proven together (Holm).
        n_boot: Bootstrap replicates.
        seed: Of simulations, intervals and search.
        store: Folder where results are kept: an interrupted study goes on where it was; null: nowhere.
        workers: Processes at most; others are started only where that pays.
        what_if: A simulation instead of the grid simulator of production jobs, such as ``grid.of_archive(archive, periods,
            stage="analysis")``; its attribute ``stages``, if it has one, says of which stages it holds keys.
        validation: Whether the simulation is to be believed, or what finds that out; null: the grid simulator's own check.
        validate: False: the caller vouches for it; allowed with ``what_if`` only.
        screened: A screen that was made already.
        screening: Leave out keys that change no decision.
        shares: Global shares for patterns; null: those of the archive.

    Returns:
        What was found, with verdict and proposal.

    Raises:
        ConfigError: Unknown keys, values out of the guard rails, grids of one value and other arguments that cannot be, all
            at once.
        InsufficientDataError: The archive is too short for the periods, or the present settings cannot be simulated.

    Source: design.md, idea 6; gdpconfig.md, Calibration.
    """
    asked = check.Asked(
        keys=tuple(keys), points=points, grids={name: list(values) for name, values in (grids or {}).items()},
        calibration=calibration, proof=proof, objective=objective, limits=limits or Limits(), relevant=relevant,
        alpha=alpha, replications=replications or Replications(), trials=trials, rounds=rounds, most_keys=most_keys, propose=propose,
        n_boot=n_boot, seed=seed, workers=workers, config=config, shares=shares,
    )  # fmt: skip
    periods, space = check.checked(archive, asked, what_if=what_if, validate=validate)
    if screened is None and screening and archive is not None:
        screened = screen(
            archive, asked.keys, period=periods[0], config=space.config,
            grids={key.name: key.grid for key in space.keys},
            stages=getattr(what_if, "stages", HOLDS["jobs"]),
        )  # fmt: skip
    study = Study(asked, periods, space, screened, created_at, archive)
    if not study.open_keys:
        return study.unsimulated()
    simulation, told = _simulation(archive, what_if, periods, validation, validate=validate)
    if told is not None and not told.ok:
        return study.refused(told.sentence)
    held = Store.at(store, check.digest_of(simulation)) if store is not None else None
    return study.simulated(Runs(simulation, held, workers), None if told is None else told.sentence)


def _simulation(
    archive: Archive | None,
    what_if: WhatIf | None,
    periods: tuple[Period, Period],
    validation: Validated | Callable[[], Validated] | None,
    *,
    validate: bool,
) -> tuple[WhatIf, Validated | None]:
    """Return the simulation, and whether it is to be believed: asked before it is used, on the calibration period."""
    given = validation() if callable(validation) else validation
    if given is not None and not given.ok and what_if is None:
        return _unused, given
    if what_if is not None or archive is None:  # check saw to it that there is one of them
        return what_if or _unused, given
    from brokerlab.calibrate.thresholds.grid import of_archive

    simulation = of_archive(archive, periods)
    return simulation, given if given is not None or not validate else simulation.validate(
        periods[0]
    )


def _unused(config: Config, seeds: tuple[int, ...], period: Period) -> Any:
    """Stand for a simulation that is not used."""
    raise NotImplementedError
