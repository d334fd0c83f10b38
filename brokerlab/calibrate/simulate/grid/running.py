"""Run a grid simulation: several seeds in lockstep, under settings of choice."""

from __future__ import annotations

from collections.abc import Sequence

from brokerlab.calibrate.simulate.grid.loop import Loop
from brokerlab.calibrate.simulate.grid.outcome import GridOutcome, outcome_of
from brokerlab.calibrate.simulate.grid.patience import Patience
from brokerlab.calibrate.simulate.grid.users import Users
from brokerlab.calibrate.simulate.grid.world import GridWorld
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts import TimeoutRules


def run(
    world: GridWorld,
    *,
    config: Config | None = None,
    seeds: Sequence[int] = (1,),
    timeouts: TimeoutRules | None = None,
) -> GridOutcome:
    """Simulate the period under settings.

    At every cycle the queues stand where they are; the brokerage's own rules decide once for all tasks with jobs that
    have no queue, in all worlds: the jobs made in the coming cycle, those that found no candidate before, killed ones
    that try again and those taken back. Each job draws one of its task's candidates by their shares (in the order of the
    queue's name), with a draw of (seed, pandaid, number of the placement): the same draw under any settings. It waits at
    the queue from when it was made and its inputs are there. Timeouts and fast rebrokerage, asked at every cycle, take
    jobs back that wait too long: the brokerage places them again at once, by its rules as they stand then. All tasks of a cycle see the same numbers of jobs.

    Args:
        world: From :func:`of_archive` or :func:`of_tables`.
        config: The settings; None: those that ruled in the world. A history is read at the beginning of the period.
        seeds: One world each, 0 or more; the same seed gives the same world, alone or among others.

        timeouts: Rule set of timeouts and fast rebrokerage; default ``document``.

    Returns:
        The outcome of every world.

    Raises:
        ConfigError: No seeds, negative or repeated ones; settings that no rule can work with.
    """
    wanted = tuple(int(seed) for seed in seeds)
    loop, settings = looped(world, config, wanted, timeouts)
    return outcome_of(world, loop.copies, wanted, settings)


def looped(
    world: GridWorld,
    config: Config | None,
    seeds: tuple[int, ...],
    timeouts: TimeoutRules | None = None,
) -> tuple[Loop, Config]:
    """Run the worlds to their end and return them with the settings; arguments and errors as :func:`run`."""
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds are {list(seeds)}: name one or more, each once, from 0")
    settings = config if config is not None else world.config
    settings = settings.at(world.start) if settings.has_history else settings
    patience = Patience.of(world, settings, timeouts or TimeoutRules())
    users = Users.of(world, settings) if world.stage == "analysis" else None
    loop = Loop(world, world.standing.with_config(settings), seeds, patience, users)
    loop.run()
    return loop, settings
