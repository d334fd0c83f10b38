"""The grid simulator: the brokerage's very rules around the queue core, in lockstep for several seeds.

::

    world = grid.of_archive(archive, start="2026-03-05", end="2026-03-12")    # once; knows no settings
    outcome = grid.run(world, config=other, seeds=(1, 2, 3))                  # the same draws under any settings

* ``archive``: the world of a period of an archive, with ``data``: where its input is and how quick links are;
  ``world``: the same of tables; ``contracts``, ``options``;
* ``running``: a run; ``outcome``: its tables; ``validation``: does it give what was seen; ``recorded``: it as an archive;
* inside: ``arrays`` (codes for names), ``loop`` (from one brokerage to the next), ``numbers`` and ``users`` (what the brokerages of
  production and of users see),
  ``patience`` (timeouts and fast rebrokerage), ``moves`` (links), ``kernel`` (compiled loops).
"""

from brokerlab.calibrate.simulate.grid.archive import cycle_seen, of_archive
from brokerlab.calibrate.simulate.grid.options import Transfers
from brokerlab.calibrate.simulate.grid.outcome import GridOutcome
from brokerlab.calibrate.simulate.grid.recorded import recorded
from brokerlab.calibrate.simulate.grid.running import run
from brokerlab.calibrate.simulate.grid.validation import RUNS, compare, validate
from brokerlab.calibrate.simulate.grid.world import GridWorld, of_tables, with_capacity

__all__ = [
    "RUNS",
    "GridOutcome",
    "GridWorld",
    "Transfers",
    "compare",
    "cycle_seen",
    "of_archive",
    "of_tables",
    "recorded",
    "run",
    "validate",
    "with_capacity",
]
