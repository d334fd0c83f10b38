"""What a calibration of thresholds is asked: keys with values to try over the configuration that acts, two periods, options.

The keys are package data (``keys.csv``); type, unit, default and guard rails are those of the catalogue, so that they stand
in one place only.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from importlib import resources
from math import floor, isfinite, log10
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from brokerlab.calibrate.thresholds.outcomes import LIMITS, QUANTITIES, Period
from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig import keys as catalogue
from brokerlab.gdpconfig.keys import CatalogueKey, scope_names
from brokerlab.gdpconfig.ranges import entries_of, scale_of, spread
from brokerlab.rulesets import RuleSetName
from brokerlab.times import duration_us

Stage = Literal["jobs", "tasks", "analysis", "lifecycle"]
STAGES: dict[str, str] = {
    "jobs": "production job brokerage",
    "tasks": "choice of the nucleus",
    "analysis": "analysis brokerage",
    "lifecycle": "fast rebrokerage",
}
"""Stages and what decides in them."""
HOLDS: dict[str, tuple[str, ...]] = {
    "jobs": ("jobs", "lifecycle"),
    "analysis": ("analysis", "lifecycle"),
}
"""Stage of a grid simulation to the stages whose keys it holds: what waits too long is moved in either."""
POINTS = 9
"""Values of a default grid, the current one not counted."""
APART = 1.3
"""Values of a logarithmic grid nearer than this factor to the current one are left out ..."""
THIRD = 1 / 3
"""... and those of a linear one nearer than this part of a step."""


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """One key: where it is read, which decision reads it, what grows and what shrinks when it is raised."""

    key: str
    component: str
    stage: Stage
    grows: str
    shrinks: str

    @cached_property
    def row(self) -> CatalogueKey:
        """The catalogue's row."""
        return catalogue.find(self.key, component=self.component)

    @property
    def scale(self) -> Literal["linear", "log"]:
        """How it is searched: evenly, or by factors (sizes, counts, rates)."""
        return scale_of(self.row)

    @property
    def rails(self) -> tuple[float, float]:
        """Guard rails [unit]; a 0 that only means the default is outside."""
        low, high = self.row.minimum or 0.0, self.row.maximum or 0.0
        return (1.0 if low <= 0 and self.row.zero_is_undefined else low), high

    @property
    def judged_by(self) -> str:
        """``simulation``, or ``screen``: no simulation of the grid holds what the key decides."""
        held = {stage for stages in HOLDS.values() for stage in stages}
        return "simulation" if self.stage in held else "screen"

    def problem(self, value: Any) -> str | None:
        """Say why a value cannot be tried; null if it can.

        Example:
            >>> threshold_of("NQUEUED_SAT_CAP").problem(5)
            'NQUEUED_SAT_CAP=5: outside the guard rails 10 to 10000 [files]'
        """
        if value is None:
            return None
        low, high = self.rails
        whole, integer = type(value) is int, self.row.type == "int"
        if not whole and (integer or not isinstance(value, float) or not isfinite(value)):
            kind = "a whole number" if integer else "a number"
            return f"{self.key}={value!r}: {kind} is needed [{self.row.unit}]"
        if not low <= value <= high:
            return f"{self.key}={value:g}: outside the guard rails {low:g} to {high:g} [{self.row.unit}]"
        return None

    def grid(self, current: Any = None, *, points: int = POINTS) -> tuple[Any, ...]:
        """Return values to try between the guard rails: ``points`` of them and the current one (null: none, it stands at the end).

        On a linear scale the half and the double of the current one are too: where it lies near an end, steps are too wide there.

        Example:
            >>> threshold_of("NQUEUED_SAT_CAP").grid(150, points=4)
            (10, 100, 150, 1000, 10000)
            >>> threshold_of("NW_QUEUE_IMPORTANCE").grid(0.5, points=3)
            (0.0, 0.25, 0.5, 1.0)
            >>> threshold_of("MAX_DISKIO_DEFAULT").grid(None, points=3)
            (100, 3200, 100000, None)
        """
        if points < 2:
            raise ConfigError(f"{self.key}: a grid of {points} values: allowed are 2 or more")
        values = {self.snapped(value) for value in spread(self.row, points)}
        if current is not None:
            times = (0.5, 2.0) if self.scale == "linear" else ()
            near = {self.snapped(current * factor) for factor in times} | {current}
            low, high = self.rails
            step = (high - low) / (points - 1)
            values = {v for v in values if not any(self._beside(v, n, step) for n in near)} | near
        return (*sorted(values), *([None] if current is None else []))

    def snapped(self, value: float) -> Any:
        """Return a value as a person would write it, two digits on a logarithmic scale, within the guard rails."""
        low, high = self.rails
        number = min(max(value, low), high)
        if self.scale == "log" and number not in (low, high):
            number = round(number, 1 - floor(log10(number)))
        return round(number) if self.row.type == "int" else float(f"{number:.3g}")

    def _beside(self, value: float, near: float, step: float) -> bool:
        """Tell whether a value says nothing that a value near the current one does not."""
        if value in self.rails:
            return value == near
        if self.scale == "linear" or min(value, near) <= 0:
            return abs(value - near) < step * THIRD
        return max(value, near) < APART * min(value, near)


TEXT = resources.files("brokerlab.calibrate.thresholds").joinpath("keys.csv").read_text("utf-8")
ROWS: Iterable[dict[str, Any]] = csv.DictReader(TEXT.splitlines())
THRESHOLDS: tuple[Threshold, ...] = tuple(Threshold(**row) for row in ROWS)
"""The keys, those of the production job brokerage first."""


def threshold_of(name: str) -> Threshold:
    """Return what is known of a key: as the catalogue writes it, or one exact key of a pattern; ConfigError names the nearest.

    Example:
        >>> threshold_of("NQUEUELIMITSITE_Express").key
        'NQUEUELIMITSITE_<gshare>'
        >>> threshold_of("NQUEUED_SAT_CUP")
        Traceback (most recent call last):
        brokerlab.errors.ConfigError: no threshold 'NQUEUED_SAT_CUP': did you mean 'NQUEUED_SAT_CAP'?
    """
    known = {entry.key: entry for entry in THRESHOLDS}
    if name in known:
        return known[name]
    for row in catalogue.rows_of(name):
        if row.key in known:
            return known[row.key]
    raise ConfigError(f"no threshold {name!r}: {nearest(name, known)}")


# --- what is asked ----------------------------------------------------------------------------------------------------


class Options(BaseModel):
    """Keys, values to try, objective, limits, and how often is simulated.

    Reports take over these fields, so that their defaults are plain values; impossible ones raise
    ``pydantic.ValidationError``, all at once.

    Example:
        >>> Options(keys=["NQUEUED_SAT_CAP"], limits={"moved_pct": None}).allowed
        {'lost_pct': 1.0, 'unfairness': 0.02, 'unfinished': 0.01}
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: list[str] = Field([], description="keys to look at, empty for all thresholds [gdpconfig key]")  # fmt: skip
    points: int = Field(
        5,
        ge=2,
        description="values per key between its guard rails, the current one not counted [1]",
    )
    objective: str = Field(
        "turnaround_h", description="what is to be small, or waiting_h, moved_tb... [name]"
    )
    limits: dict[str, float | None] = Field(
        {},
        description="limits other than the defaults, by name, such as moved_pct; null for none [%]",
    )
    relevant: float = Field(
        0.05, gt=0, le=1, description="smallest effect that matters, part of what is now [1]"
    )
    alpha: float = Field(0.05, gt=0, le=0.5, description="intervals hold all but this part [1]")
    replications: int = Field(4, ge=2, description="simulations of every setting [1]")
    most_replications: int = Field(
        8, ge=2, description="simulations of settings that are judged [1]"
    )
    most_keys: int = Field(3, ge=1, description="keys of that search at most [1]")
    rounds: int = Field(3, ge=0, description="halvings of the steps beside the best value [1]")
    n_boot: int = Field(2000, ge=20, description="bootstrap replicates [1]")
    seed: int = Field(1, ge=0, description="seed of simulations, bootstrap and search")
    cycle: str = Field(
        "", description="from one brokerage to the next, empty: as the archive shows [duration]"
    )
    capacity: str = Field(
        "", description="file of known slots (panda_queue, slots, perhaps ts), empty: none [path]"
    )
    capacity_most: float = Field(
        4.0,
        ge=1,
        description="most slots of a queue that was never full, 1: none more than seen [times its busiest time]",
    )
    workers: int = Field(2, ge=1, description="processes for simulations, at most [1]")

    @field_validator("keys")
    @classmethod
    def _known_keys(cls, keys: list[str]) -> list[str]:
        problems = []
        for name in keys:
            try:
                threshold_of(name)
            except ConfigError as problem:
                problems.append(str(problem))
        problems += [f"{name!r} is given twice" for name in dict.fromkeys(keys) if keys.count(name) > 1]  # fmt: skip
        if problems:
            raise ValueError("; ".join(problems))
        return keys

    @field_validator("objective")
    @classmethod
    def _known_objective(cls, name: str) -> str:
        names = [quantity.name for quantity in QUANTITIES]
        if name not in names:
            raise ValueError(nearest(name, names))
        return name

    @field_validator("limits")
    @classmethod
    def _known_limits(cls, limits: dict[str, float | None]) -> dict[str, float | None]:
        known = list(LIMITS)
        problems = [f"unknown {name!r}: {nearest(name, known)}" for name in limits if name not in known]  # fmt: skip
        problems += [f"{name}={value}: 0 or more, or none" for name, value in limits.items() if value is not None and not value >= 0]  # fmt: skip
        if problems:
            raise ValueError("; ".join(problems))
        return limits

    @field_validator("cycle")
    @classmethod
    def _a_duration(cls, text: str) -> str:
        if text:
            try:
                duration_us(text, "it")
            except ConfigError as problem:
                raise ValueError(str(problem)) from None
        return text

    @model_validator(mode="after")
    def _more_at_most(self) -> Self:
        if self.replications > self.most_replications:
            raise ValueError(
                f"replications={self.replications} is more than most_replications={self.most_replications}"
            )
        return self

    @property
    def allowed(self) -> dict[str, float]:
        """What may get worse, and by how much: the limits that there are."""
        most = {name: limited.most for name, limited in LIMITS.items()} | self.limits
        return {name: value for name, value in most.items() if value is not None}


FEWEST_VALUES = 2


@dataclass(frozen=True)
class Setting:
    """Values of some keys (key as asked, value; None: no entry), sorted by key; none: what acts now."""

    values: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Setting:
        """Return the setting of some keys."""
        return cls(tuple(sorted(values.items())))

    @property
    def name(self) -> str:
        """The setting in words.

        Example:
            >>> Setting.of({"NQUEUED_SAT_CAP": 320, "IO_INTENSITY_CUTOFF": 4}).name
            'IO_INTENSITY_CUTOFF = 4, NQUEUED_SAT_CAP = 320'
            >>> Setting().name
            'as it is'
        """
        return ", ".join(f"{key} = {shown(value)}" for key, value in self.values) or "as it is"

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys that it sets."""
        return tuple(key for key, _ in self.values)


NOW = Setting()
"""The setting that acts."""


def shown(value: Any) -> str:
    """Write a value of a key."""
    return "none" if value is None else str(value) if isinstance(value, int) else f"{value:g}"


@dataclass(frozen=True)
class Key:
    """A key that is calibrated.

    Attributes:
        name: As asked: a key, or a pattern, which then has one value for all it stands for.
        places: ``app/component/KEY`` of every entry that is set.
        current: Value in force; of a pattern the one of most of what it stands for.
        mixed: What a pattern stands for has different values now.
        grid: Values to try, the current one among them.
    """

    name: str
    threshold: Threshold
    places: tuple[str, ...]
    current: Any
    mixed: bool
    grid: tuple[Any, ...]


@dataclass(frozen=True)
class Space:
    """The keys of a study, in the order asked for, and the configuration that acts."""

    config: Config
    keys: tuple[Key, ...]
    _memo: dict[Setting, Config] = field(default_factory=dict, repr=False, compare=False)

    def key(self, name: str) -> Key:
        """Return a key by the name it was asked for."""
        return next(key for key in self.keys if key.name == name)

    def only(self, names: Collection[str]) -> Space:
        """Return the space of some of the keys."""
        return replace(self, keys=tuple(key for key in self.keys if key.name in names), _memo={})

    def configured(self, setting: Setting) -> Config:
        """Return the configuration of a setting."""
        if setting not in self._memo:
            places = self.entries(setting)
            self._memo[setting] = self.config.with_values(places) if places else self.config
        return self._memo[setting]

    def entries(self, setting: Setting) -> dict[str, Any]:
        """Return ``app/component/KEY`` to value of every entry that a setting changes."""
        wanted = {place: value for name, value in setting.values for place in self.key(name).places}
        return {
            place: value for place, value in wanted.items() if _acting(self.config, place) != value
        }

    def single(self, name: str) -> list[Setting]:
        """Return the settings of a key's grid that change something."""
        result = [Setting.of({name: value}) for value in self.key(name).grid]
        return [setting for setting in result if self.entries(setting)]


def space_of(
    config: Config,
    keys: Sequence[str],
    *,
    shares: Sequence[str] = (),
    grids: Mapping[str, Iterable[Any]] | None = None,
    points: int = POINTS,
) -> Space:
    """Look the keys up, and the values to try; a pattern is set for every global share that occurs.

    ``grids`` gives values by key, to which the current one is added; other keys have the default grid of ``points`` values.
    """
    given = {name: list(values) for name, values in (grids or {}).items()}
    problems = [f"grids: {name!r} is not among the keys" for name in given if name not in keys]
    result = []
    for name in keys:
        try:
            result.append(_key(config, name, shares, given.get(name), points))
        except ConfigError as problem:
            problems.append(str(problem))
    if problems:
        raise ConfigError("thresholds: " + "; ".join(problems))
    return Space(config, tuple(result))


def _key(
    config: Config, name: str, shares: Sequence[str], values: list[Any] | None, points: int
) -> Key:
    known = threshold_of(name)
    places = _places(known, name, shares)
    acting = [_acting(config, place) for place in places]
    current = max(dict.fromkeys(acting), key=acting.count)
    if values is None:
        grid = known.grid(current, points=points)
    else:
        problems = [problem for value in values if (problem := known.problem(value))]
        if len(set(values)) < FEWEST_VALUES:
            problems.append(
                f"{name}: a grid of {len(set(values))} value(s) compares nothing; give {FEWEST_VALUES} or more"
            )
        if problems:
            raise ConfigError("; ".join(problems))
        grid = tuple(sorted({*values, current}, key=lambda v: (v is None, v or 0)))
    return Key(name, known, places, current, len(set(acting)) > 1, grid)


def _places(known: Threshold, name: str, shares: Sequence[str]) -> tuple[str, ...]:
    """Return the entries of the key asked for, or those of a pattern, one per share."""
    if name != known.key:
        return (f"{known.row.app}/{known.component}/{name}",)
    if scope_names(name)[0] and not shares:
        example = name.replace("<gshare>", "Express")
        raise ConfigError(f"{name}: no global share is known; name one, as in {example}")
    return tuple(entries_of(known.row, {"gshare": shares}))


def _acting(config: Config, place: str) -> Any:
    app, component, key = place.split("/", 2)
    return config.get(key, app=app, component=component, vo="atlas")


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is asked.

    Attributes:
        periods: Of the choice, and scored.
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
    calibration: Period,
    proof: Period,
    grids: Mapping[str, Iterable[Any]] | None = None,
    shares: Sequence[str] = (),
    **about: Any,
) -> Case:
    """Return what is asked; refuse what cannot be before anything is simulated, all at once.

    The proof is the later period. ``grids``: values to try by key; others have the default grid.
    ``shares``: global shares that occur; patterns are set for every one. ``about`` is of `Case`.

    Raises:
        ConfigError: Unknown keys, values out of the guard rails, grids of one value, periods that are none or do not
            follow each other.
    """
    names = options.keys or [known.key for known in THRESHOLDS]
    problems = [
        f"{name}: from {one.start} to {one.end} is no period: end it after its start"
        for name, one in (("calibration", calibration), ("proof", proof))
        if one.start >= one.end
    ]
    if proof.start < calibration.end:
        problems.append(
            f"proof: begins {proof.start}, before the calibration period ends ({calibration.end}): prove on what was not looked at"
        )
    space = None
    try:
        space = space_of(config, names, shares=shares, grids=grids, points=options.points)
    except ConfigError as problem:
        problems.append(str(problem))
    if problems or space is None:
        raise ConfigError("; ".join(problems))
    return Case(space=space, periods=(calibration, proof), options=options, **about)
