"""The simulator of a grid: what would have happened under other settings.

::

    world = simulation.of_archive(archive, start="2026-03-05", end="2026-03-12")   # once; knows no settings
    simulation.validate(world).sentence                                            # is it to be believed here?
    outcome = simulation.run(world, config=other, seeds=(1, 2, 3))                 # the same draws under any settings

The brokerage's very rules place jobs at every cycle, jobs travel, queue, start where slots are free, are killed and try
again, lose patience and are brokered anew. With ``brokerage="seen"`` every job stays at the queue where it was.

* the world: ``archive`` reads it (``history``: jobs and what they need; ``capacity``: slots), ``world`` makes one of tables;
* a run: ``loop`` goes from one brokerage to the next (``census``: what the brokerages see; ``patience``: timeouts and fast
  rebrokerage), ``kernel`` lets the queues run (``state``: the world in arrays);
* what comes out: ``outcome``; ``validation``: does it give what was seen (``comparison``).
"""

from brokerlab.calibrate.simulation.archive import cycle_seen, of_archive
from brokerlab.calibrate.simulation.comparison import Limits
from brokerlab.calibrate.simulation.outcome import Outcome, run, run_each
from brokerlab.calibrate.simulation.validation import RUNS, Validation, compare, validate
from brokerlab.calibrate.simulation.world import QueueRules, Transfers, World, of_tables

__all__ = [
    "RUNS",
    "Limits",
    "Outcome",
    "QueueRules",
    "Transfers",
    "Validation",
    "World",
    "compare",
    "cycle_seen",
    "of_archive",
    "of_tables",
    "run",
    "run_each",
    "validate",
]
