"""MADE UP: archives of invented jobs with the shapes of real ones, and the truth beside them.

``synthesise`` makes one. Its waits are drawn, or, in a lived world, jobs wait because slots are taken: what lives is the
grid simulator, ``brokerlab.calibrate.simulation``. The parts load on first use.

* what may be asked: ``settings``; one after the other: ``generate``; the command: ``command``;
* what is drawn: ``queues`` and ``world`` (with ``storage``, ``software``, ``snapshots``), tasks and jobs block by block
  (``tasks``, ``chains``, ``block``, ``orders``, ``assemble``), what is laid out one by one (``stories``, ``small_jobs``);
* what is set, and planted in a lived world: ``planted``. ``truth/planted_settings`` holds one row per key: ``key``, ``component``,
  ``scope`` (null: everywhere), ``wrong`` (false: the answer is to keep it), ``planted`` (the value in force), ``best``,
  ``best_lo`` and ``best_hi`` (values between are as good; null: no bound), ``report`` (which one judges it), ``trades``;
* the life: ``work`` puts the blocks side by side, ``stage`` says what slots queues have and makes the simulator's world of it,
  ``life`` lets jobs come, go and try again, ``lived`` puts what happened in the place of what was drawn;
* the archive: ``frames_jobs``, ``frames_tasks``, ``story_frames``, ``truth``; ``writing`` writes it;
* beside real ones: ``measured`` compares waits, use, kills and transfers with what was measured.

Most of its lines draw what is rare (texts that are damaged, spells, piles, wishes of tasks), so that every rule of the chapters
finds something in an archive.
"""

from typing import TYPE_CHECKING

from brokerlab.lazy import lazy

if TYPE_CHECKING:
    from brokerlab.worlds.generate import is_made, is_simulated, make_settings, synthesise
    from brokerlab.worlds.measured import shapes
    from brokerlab.worlds.settings import GENERATOR_VERSION, SynthSettings

__all__ = [
    "GENERATOR_VERSION",
    "SynthSettings",
    "is_made",
    "is_simulated",
    "make_settings",
    "shapes",
    "synthesise",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        **dict.fromkeys(("is_made", "is_simulated", "make_settings", "synthesise"), "generate"),
        **dict.fromkeys(("GENERATOR_VERSION", "SynthSettings"), "settings"),
        "shapes": "measured",
    },
)
