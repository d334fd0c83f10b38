"""Archives of invented jobs with the shapes of real ones, and the truth kept beside them.

``synthesise`` makes one; ``truth("tasks")`` of the archive says what each task's jobs really need.
The parts load on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brokerlab.archive.synthetic.generate import is_made, make_settings, synthesise
    from brokerlab.archive.synthetic.mixture import exceed_probability
    from brokerlab.archive.synthetic.settings import GENERATOR_VERSION, SynthSettings

__all__ = [
    "GENERATOR_VERSION",
    "SynthSettings",
    "exceed_probability",
    "is_made",
    "make_settings",
    "synthesise",
]

_HOME = {
    "GENERATOR_VERSION": "settings",
    "SynthSettings": "settings",
    "exceed_probability": "mixture",
    "is_made": "generate",
    "make_settings": "generate",
    "synthesise": "generate",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'brokerlab.archive.synthetic' has no attribute '{name}'")
    home = importlib.import_module(f"brokerlab.archive.synthetic.{_HOME[name]}")
    return getattr(home, name)
