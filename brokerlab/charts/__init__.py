"""Charts: eight primitives, and named functions of a few lines on top; each takes an aggregated frame.

`theme` has the look and `save`; one module per room has its named charts. A module loads, and altair with it, when something
is drawn: who asks what a report can be asked draws nothing.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from brokerlab.errors import nearest
from brokerlab.lazy import Later
from brokerlab.schemas import jsonschema

jsonschema()  # altair imports it
NAMES = {path.stem for path in Path(__file__).parent.glob("[a-z]*.py")}


if not TYPE_CHECKING:  # a checker of types knows the modules, and which names are none

    def __getattr__(name: str) -> Later:
        """Return a module of this package."""
        if name not in NAMES:
            raise AttributeError(
                f"module '{__name__}' has no attribute '{name}': {nearest(name, NAMES)}"
            )
        return Later(f"{__name__}.{name}")
