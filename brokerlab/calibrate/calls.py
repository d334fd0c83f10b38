"""The calls that begin at an archive: a back-test of one scout parameter, and a simulation."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from brokerlab.archive.given import Source, archive_of
from brokerlab.calibrate.percentiles.history import load
from brokerlab.calibrate.percentiles.parameters import Assumptions, LossWeights
from brokerlab.calibrate.percentiles.study import Study, kills, study
from brokerlab.calibrate.simulation.archive import of_archive
from brokerlab.calibrate.simulation.outcome import Outcome, run
from brokerlab.calibrate.simulation.world import World
from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig import Config
from brokerlab.lazy import call
from brokerlab.scouts import ScoutRules


@call("calibrate.backtest")
def backtest(
    source: Source,
    parameter: str = "ramcount",
    *,
    start: datetime | str | None = None,
    end: datetime | str | None = None,
    gshare: str = "",
    processingtype: str = "",
    rules: str | ScoutRules = "document",
    max_exceed: float = 0.02,
    ranks: Iterable[int] = range(50, 100),
    margins: Iterable[int] | None = None,
    minima: Iterable[int | None] = (),
    loss: LossWeights | None = None,
    assumptions: Assumptions | None = None,
) -> Study:
    """Replay what other ranks and margins of a scout parameter would have done, and judge them on tasks that came later.

    Args:
        source: An archive, or its tables by name (``jobs, files, tasks, datasets, queues``).
        parameter: ``ramcount``, ``cputime`` or ``outdiskcount``.
        start: First creation time of a task, UTC without zone, as such or as text; null: no bound.
        end: Tasks created at or after it are left out; null: no bound.
        gshare: Only this share; empty: all.
        processingtype: Only this processing type; empty: all.
        rules: ``document``, ``production``, or a rule set of scouts.
        max_exceed: Largest accepted share of jobs whose first attempt is killed, as a mean over tasks.
        ranks: Percentile ranks tried.
        margins: Margins tried for ramcount [%]; null: those of the parameter.
        minima: Minima tried for ramcount [MB] with another rank or margin, None among them: no minimum.
        loss: Weights; null: the parameter's.
        assumptions: Of the back-test; null: the defaults.

    Returns:
        The study: ``verdict.sentence``, ``comparison.table``; :func:`brokerlab.calibrate.propose` makes its proposal.

    Raises:
        ConfigError: An unknown parameter or rule set, an impossible grid, a time that is none or has a zone.
        DataError: The archive lacks a table.
        InsufficientDataError: No task can be scored.

    Source: docs/rules/calibration.md 2; docs/rules/scouts.md 4, 5, 7.
    """
    inputs = load(
        archive_of(source),
        start=start,
        end=end,
        gshare=gshare,
        processingtype=processingtype,
        rules=rules,
    )
    return study(
        inputs,
        parameter,
        kills(max_exceed),
        ranks=ranks,
        margins=margins,
        minima=minima,
        loss=loss,
        assumptions=assumptions,
    )


def simulate(
    source: Source | World,
    *,
    config: Config | None = None,
    seeds: Sequence[int] = (1,),
    **period: Any,
) -> Outcome:
    """Simulate a period of an archive under settings: its jobs are brokered anew and queue at their sites.

    Args:
        source: An archive, its tables by name, or the world of an outcome, which is not read again
            (``simulate(usual.world, config=other)``).
        config: The settings; null: those that ruled.
        seeds: One simulated world each; the same draws under any settings.
        period: What is read of an archive: ``start``, ``end``, ``cycle`` and the other settings of
            :func:`brokerlab.calibrate.simulation.of_archive`.

    Returns:
        Jobs, tasks and queues of every world.

    Raises:
        ConfigError: Settings that do not exist or that no rule can work with.
        DataError: The archive lacks a table, or no task is brokered in the period.
        InsufficientDataError: No job of the period has run.
    """
    names = inspect.signature(of_archive).parameters.keys() - {"archive"}
    allowed = set() if isinstance(source, World) else names
    if unknown := sorted(period.keys() - allowed):
        hint = nearest(unknown[0], allowed) if allowed else "a world has its period already"
        raise ConfigError(f"simulate has no setting '{unknown[0]}': {hint}")
    world = source if isinstance(source, World) else of_archive(archive_of(source), **period)
    return run(world, config=config, seeds=seeds)
