"""Brokerages as values, found through the entry-point group ``brokerlab.brokerages``.

An organisation gives its own brokerage a name in the ``pyproject.toml`` of its package; whoever installs the package
has it. Ours are registered the same way. A module is imported when its brokerage is asked for, not before.

    [project.entry-points."brokerlab.brokerages"]
    lighthouse = "lighthouse_brokerage:BROKERAGE"
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import polars as pl

from brokerlab.brokerage.engine.brokerage import Brokerage
from brokerlab.brokerage.words import listed
from brokerlab.errors import ConfigError, nearest

GROUP = "brokerlab.brokerages"
STAGES = {"jobs": "production-jobs", "tasks": "production-tasks", "analysis": "analysis-jobs"}
"""Stage of a replay to our brokerage of it."""


def of_stage(stage: str) -> Brokerage[Any, Any]:
    """Return our brokerage of a stage of a replay."""
    if stage not in STAGES:
        raise ConfigError(f"stage={stage!r}: {nearest(stage, STAGES)}")
    module = import_module(f"brokerlab.brokerage.{STAGES[stage].replace('-', '_')}.brokerage")
    result: Brokerage[Any, Any] = module.BROKERAGE
    return result


def available() -> pl.DataFrame:
    """Return every brokerage that is installed; each is loaded to ask for its description.

    Returns:
        One row per entry point, sorted: ``name``; ``package`` and ``version`` that brought it; ``description``;
        ``problem``, why it cannot be had (null: it can).
    """
    columns = ("name", "package", "version", "description", "problem")
    result = _registered()
    rows = []
    for point in result:
        description, problem = None, _rivals(point, result)
        if problem is None:
            try:
                description = _load(point).description
            except ConfigError as error:
                problem = str(error)
        rows.append((point.name, *_package(point), description, problem))
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")


def get(name: str) -> Brokerage[Any, Any]:
    """Return a brokerage by its name, as in :func:`available`; no other one is loaded.

    Raises:
        ConfigError: There is none of that name, or two, or it does not load, or is no :class:`~.engine.brokerage.Brokerage`.
    """
    result = _registered()
    point = next((point for point in result if point.name == name), None)
    if point is None:
        known = {point.name for point in result}
        hint = (
            nearest(name, known) if known else "none is installed: install brokerlab itself again"
        )
        raise ConfigError(f"brokerage {name!r} is not installed: {hint}")
    rivals = _rivals(point, result)
    if rivals:
        raise ConfigError(rivals)
    return _load(point)


def _registered() -> list[EntryPoint]:
    """Return the entry points, sorted by name, package and value."""
    return sorted(
        entry_points(group=GROUP), key=lambda point: (point.name, *_package(point), point.value)
    )


def _package(point: EntryPoint) -> tuple[str, str]:
    """Return name and version of the package that brought an entry point."""
    return (point.dist.name, point.dist.version) if point.dist else ("unknown", "unknown")


def _rivals(point: EntryPoint, entries: list[EntryPoint]) -> str | None:
    """Say who else claims the name, null if nobody does."""
    same = [_package(other)[0] for other in entries if other.name == point.name]
    if len(same) == 1:
        return None
    return f"brokerage {point.name!r} is in {listed(same)}: none is taken; uninstall or rename all but one"


def _load(point: EntryPoint) -> Brokerage[Any, Any]:
    """Load what an entry point names."""
    package, version = _package(point)
    where = f"brokerage {point.name!r} of package {package} {version} ({point.value})"
    try:
        value = point.load()
    except (Exception, SystemExit) as error:  # a module of somebody else may raise anything
        raise ConfigError(
            f"{where} does not load: {type(error).__name__}: {error}; mend or uninstall the package"
        ) from error
    if not isinstance(value, Brokerage):
        raise ConfigError(
            f"{where} is a {type(value).__name__}; the entry point must name a value of brokerlab's Brokerage"
        )
    if value.name != point.name:
        raise ConfigError(f"{where} calls itself {value.name!r}: give both the same name")
    return value
