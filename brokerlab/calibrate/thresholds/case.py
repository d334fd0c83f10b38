"""What a calibration of thresholds is asked: keys with values to try, two periods, options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from brokerlab.brokerage.replaying.plan import time_of
from brokerlab.calibrate.thresholds.keys import THRESHOLDS
from brokerlab.calibrate.thresholds.options import Options
from brokerlab.calibrate.thresholds.outcomes import Period
from brokerlab.calibrate.thresholds.settings import Space, space_of
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.rulesets import RuleSetName

Given = tuple[datetime | str, datetime | str]
"""A period as it is given: from, and before; UTC without zone."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is asked.

    Attributes:
        space: Keys and configuration.
        periods: Of the choice, and scored.
        options: Objective, limits, simulations.
        created_at: Of the proposal, UTC without zone.
        rules: Rule set that simulations decide by, ``document`` or ``production``.
        archive_digest: Null without an archive.
        synthetic: The archive was generated.
    """

    space: Space
    periods: tuple[Period, Period]
    options: Options
    created_at: datetime
    rules: RuleSetName = "document"
    archive_digest: str | None = None
    synthetic: bool = False

    @property
    def places(self) -> list[str]:
        """``app/component/KEY`` of every entry that the choice is between."""
        return [place for key in self.space.keys for place in key.places]


def case_of(
    config: Config,
    options: Options,
    *,
    calibration: Given,
    proof: Given,
    created_at: datetime,
    grids: Mapping[str, Iterable[Any]] | None = None,
    shares: Sequence[str] = (),
    rules: RuleSetName = "document",
    archive_digest: str | None = None,
    synthetic: bool = False,
) -> Case:
    """Return what is asked; refuse what cannot be before anything is simulated, all at once.

    Args:
        config: The configuration that acts, without a history.
        options: Keys (patterns are set for every share; none: all thresholds), objective, limits, simulations.
        calibration: Period of the choice, from and before, UTC without zone.
        proof: A later period.
        created_at: Time of the proposal, UTC without zone.
        grids: Values to try, by key; others have the default grid.
        shares: Global shares that occur.
        rules: Rule set that simulations decide by.
        archive_digest: Of the archive; null without one.
        synthetic: The archive was generated.

    Raises:
        ConfigError: Unknown keys, values out of the guard rails, grids of one value, periods that are none or do not
            follow each other.
    """
    names = options.keys or [known.key for known in THRESHOLDS]
    problems, periods = [], []
    for name, given in (("calibration", calibration), ("proof", proof)):
        try:
            periods.append(_period(name, given))
        except (ConfigError, ValueError) as problem:
            problems.append(str(problem))
    if len(periods) == 2 and periods[1].start < periods[0].end:
        problems.append(
            f"proof: begins {periods[1].start}, before the calibration period ends ({periods[0].end}): prove on what was "
            "not looked at"
        )
    space = None
    try:
        space = space_of(config, names, shares=shares, grids=grids, points=options.points)
    except ConfigError as problem:
        problems.append(str(problem))
    if problems or space is None:
        raise ConfigError("; ".join(problems))
    return Case(
        space=space,
        periods=(periods[0], periods[1]),
        options=options,
        created_at=created_at,
        rules=rules,
        archive_digest=archive_digest,
        synthetic=synthetic,
    )


def _period(name: str, given: Given) -> Period:
    start, end = (time_of(at, name) for at in given)
    if start is None or end is None or start >= end:
        raise ConfigError(f"{name}: from {start} to {end} is no period: end it after its start")
    return Period(start, end)
