"""Settings as they are tried: some keys, each with a value, over the configuration that acts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from brokerlab.calibrate.key_trials import entries_of
from brokerlab.calibrate.thresholds.keys import POINTS, Threshold, threshold_of
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.fallbacks import scope_names

FEWEST_VALUES = 2


@dataclass(frozen=True)
class Setting:
    """Values of some keys; none: what acts now.

    Attributes:
        values: (key as asked, value), sorted by key; a value of None is no entry.
    """

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
    """Write a value of a key.

    Example:
        >>> shown(None), shown(0.25), shown(10000)
        ('none', '0.25', '10000')
    """
    return "none" if value is None else str(value) if isinstance(value, int) else f"{value:g}"


@dataclass(frozen=True)
class Key:
    """A key that is calibrated.

    Attributes:
        name: As asked: a key, or a pattern, which then has one value for all it stands for.
        threshold: What is known of it.
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
    """The keys of a study and the configuration that acts.

    Attributes:
        config: The configuration.
        keys: The keys, in the order asked for.
    """

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
        found = [Setting.of({name: value}) for value in self.key(name).grid]
        return [setting for setting in found if self.entries(setting)]


def space_of(
    config: Config,
    keys: Sequence[str],
    *,
    shares: Sequence[str] = (),
    grids: Mapping[str, Iterable[Any]] | None = None,
    points: int = POINTS,
) -> Space:
    """Look the keys up, and the values to try.

    Args:
        config: The configuration that acts, without a history.
        keys: Keys of :data:`.keys.THRESHOLDS`, or exact keys of their patterns.
        shares: Global shares that occur: a pattern is set for each.
        grids: Values to try, by key; others have the default grid. The current value is added.
        points: Values of a default grid, see :meth:`.keys.Threshold.grid`.

    Raises:
        ConfigError: Keys that are unknown or without any share, values out of the guard rails, grids of one value; all at
            once.
    """
    given = {name: list(values) for name, values in (grids or {}).items()}
    problems = [f"grids: {name!r} is not among the keys" for name in given if name not in keys]
    found = []
    for name in keys:
        try:
            found.append(_key(config, name, shares, given.get(name), points))
        except ConfigError as problem:
            problems.append(str(problem))
    if problems:
        raise ConfigError("thresholds: " + "; ".join(problems))
    return Space(config, tuple(found))


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
        return (f"{known.place}/{name}",)
    if scope_names(name)[0] and not shares:
        example = name.replace("<gshare>", "Express")
        raise ConfigError(f"{name}: no global share is known; name one, as in {example}")
    return tuple(entries_of(known.row, {"gshare": shares}))


def _acting(config: Config, place: str) -> Any:
    app, component, key = place.split("/", 2)
    return config.get(key, app=app, component=component, vo="atlas")
