"""Brokerages as values, found through the entry-point group ``brokerlab.brokerages``.

An organisation gives its own brokerage a name in the ``pyproject.toml`` of its package; whoever installs the package
has it. Ours are registered the same way. A module is imported when its brokerage is asked for, not before.

    [project.entry-points."brokerlab.brokerages"]
    lighthouse = "lighthouse_brokerage:BROKERAGE"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import dataframely as dy
import polars as pl

from brokerlab.brokerage.engine.own import Own
from brokerlab.brokerage.engine.recipe import Recipe
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.words import listed
from brokerlab.errors import ConfigError, nearest

GROUP = "brokerlab.brokerages"


@dataclass(frozen=True, kw_only=True)
class Brokerage:
    """A brokerage as a value.

    Attributes:
        name: Its name, the one of its entry point.
        organisation: Who answers for it.
        description: What it decides, in a line.
        documentation: Where its rules are written: an address, or chapters.
        decide: Takes the input tables by name first, then keywords: at least ``rules`` and ``config``.
        table: Takes rules and rules of one's own, gives the table of all rules; see :func:`.check_table.checks_table`.
        tables: Contracts of the input tables by name.
        absent: Table to what is taken where it is not given; see :func:`.inputs.given.absent_means`.
        own: Rules that were added, see :meth:`with_rule`.
    """

    name: str
    organisation: str
    description: str
    documentation: str
    decide: Callable[..., Any]
    table: Callable[[Any, Sequence[Own]], pl.DataFrame]
    tables: Mapping[str, type[dy.Schema]]
    absent: Mapping[str, str] = field(default_factory=dict)
    own: tuple[Own, ...] = ()

    def with_rule(self, rule: Rule, *, after: str) -> Brokerage:
        """Return the brokerage with one rule more; decisions, funnel, explanations and sensitivity know it.

        Args:
            rule: Of a pair, or (``scope="task"``) of all places of a task that are left: then its expression may use
                :data:`.engine.steps.LEFT`, :func:`.engine.steps.any_left` and windows ``.over("t")``.
            after: Name of the rule that it follows.

        Raises:
            ConfigError: When it decides: no rule of that name to follow, a name that is taken, columns that are not there.
        """
        own = (*self.own, Own(rule, after))
        return replace(self, own=own, decide=partial(self.decide, own=own))

    def checks_table(self, rules: Any = None) -> pl.DataFrame:
        """Return the table of all rules, those that were added among them; see :func:`.check_table.checks_table`."""
        return self.table(rules, self.own)


def brokerage_of(
    recipe: Recipe,
    *,
    stage: str,
    decide: Callable[..., Any],
    tables: Mapping[str, type[dy.Schema]],
    absent: Mapping[str, str],
    organisation: str,
    description: str,
    documentation: str,
) -> Brokerage:
    """Return the brokerage that decides by a recipe.

    Args:
        recipe: Checks, weight, tables and facts.
        stage: See :func:`.check_table.checks_table`.
        decide: That of the stage; the brokerage takes what it takes.
        tables: Contracts of the tables of the stage.
        absent: See :class:`Brokerage`.
        organisation: Who answers for it.
        description: What it decides, in a line.
        documentation: Where its rules are written.
    """

    def table(rules: Any, own: Sequence[Own]) -> pl.DataFrame:
        from brokerlab.brokerage.check_table import checks_table  # loaded when it is first asked

        return checks_table(rules, stage=stage, own=own, recipe=recipe)

    return Brokerage(
        name=recipe.name,
        organisation=organisation,
        description=description,
        documentation=documentation,
        decide=partial(decide, recipe=recipe),
        table=table,
        tables={**tables, **recipe.tables},
        absent=absent,
    )


def available() -> pl.DataFrame:
    """Return every brokerage that is installed; each is loaded to ask for its description.

    Returns:
        One row per entry point, sorted: ``name``; ``package`` and ``version`` that brought it; ``description``;
        ``problem``, why it cannot be had (null: it can).
    """
    columns = ("name", "package", "version", "description", "problem")
    found = _registered()
    rows = []
    for point in found:
        description, problem = None, _rivals(point, found)
        if problem is None:
            try:
                description = _loaded(point).description
            except ConfigError as error:
                problem = str(error)
        rows.append((point.name, *_package(point), description, problem))
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")


def get(name: str) -> Brokerage:
    """Return a brokerage; no other one is loaded.

    Args:
        name: Its name, as in :func:`available`.

    Raises:
        ConfigError: There is none of that name, or two, or it does not load, or is no :class:`Brokerage`.

    Example:
        >>> get("production-jobs").tables["queues"].__name__
        'Queues'
    """
    found = _registered()
    point = next((point for point in found if point.name == name), None)
    if point is None:
        known = {point.name for point in found}
        hint = (
            nearest(name, known) if known else "none is installed: install brokerlab itself again"
        )
        raise ConfigError(f"brokerage {name!r} is not installed: {hint}")
    rivals = _rivals(point, found)
    if rivals:
        raise ConfigError(rivals)
    return _loaded(point)


def _registered() -> list[EntryPoint]:
    """Return the entry points, sorted by name, package and value."""
    return sorted(
        entry_points(group=GROUP), key=lambda point: (point.name, *_package(point), point.value)
    )


def _package(point: EntryPoint) -> tuple[str, str]:
    """Return name and version of the package that brought an entry point."""
    return (point.dist.name, point.dist.version) if point.dist else ("unknown", "unknown")


def _rivals(point: EntryPoint, found: list[EntryPoint]) -> str | None:
    """Say who else claims the name, null if nobody does."""
    same = [_package(other)[0] for other in found if other.name == point.name]
    if len(same) == 1:
        return None
    return f"brokerage {point.name!r} is in {listed(same)}: none is taken; uninstall or rename all but one"


def _loaded(point: EntryPoint) -> Brokerage:
    """Load what an entry point names.

    Raises:
        ConfigError: It does not load, is no brokerage, or calls itself otherwise.
    """
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
