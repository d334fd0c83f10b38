"""MADE UP: archives of invented jobs with the shapes of real ones, and the truth beside them.

``synthesise`` makes one whose waits are drawn, ``live`` one whose jobs wait because slots are taken: what lives is the grid
simulator, ``brokerlab.calibrate.simulation``. The parts load on first use.

* what is planted: ``planted``. ``truth/planted_settings`` holds one row per key: ``key``, ``component``, ``scope`` (null:
  everywhere), ``wrong`` (false: the answer is to keep it), ``planted`` (the value in force), ``best``, ``best_lo`` and
  ``best_hi`` (values between are as good; null: no bound), ``report`` (which one judges it), ``trades`` (in words);
* what is drawn: ``generate`` block by block; of a lived world ``work`` puts the blocks side by side, ``slots`` says what queues have and what an operator knows of it;
* the life: ``stage`` makes the simulator's world of it, ``life`` lets jobs come, go and try again;
* the archive: ``lived`` puts what happened in the place of what was drawn, ``make`` writes it; ``command``;
* beside real ones: ``measured`` compares waits, use, kills and transfers with what was measured.
"""

from typing import TYPE_CHECKING

from brokerlab.lazy import lazy

if TYPE_CHECKING:
    from brokerlab.worlds.generate import make_settings, synthesise
    from brokerlab.worlds.make import is_made, is_simulated, live
    from brokerlab.worlds.measured import shapes
    from brokerlab.worlds.mixture import exceed_probability
    from brokerlab.worlds.settings import GENERATOR_VERSION, SynthSettings

__all__ = [
    "GENERATOR_VERSION",
    "SynthSettings",
    "exceed_probability",
    "is_made",
    "is_simulated",
    "live",
    "make_settings",
    "shapes",
    "synthesise",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        **dict.fromkeys(("make_settings", "synthesise"), "generate"),
        **dict.fromkeys(("is_made", "is_simulated", "live"), "make"),
        **dict.fromkeys(("GENERATOR_VERSION", "SynthSettings"), "settings"),
        "exceed_probability": "mixture",
        "shapes": "measured",
    },
)
