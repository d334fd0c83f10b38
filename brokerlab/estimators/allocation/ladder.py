"""What follows a failed attempt: the retry ladders of deployed systems."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Self

from brokerlab.errors import ConfigError

Kind = Literal["free", "factor", "largest", "rungs"]
KINDS: tuple[Kind, ...] = ("free", "factor", "largest", "rungs")

PANDA_RUNGS_MB = (1000.0, 2000.0, 3000.0, 4000.0, 6000.0, 8000.0)
"""Memory per core that PanDA raises a killed job to, one after the other: sizing.md, section 6."""


@dataclass(frozen=True)
class Ladder:
    """Which attempts may follow the first one.

    Attributes:
        kind: ``free``: any larger allocation; ``factor``: the failed one times ``factor``; ``largest``: the
            largest value seen, beyond it times ``factor``; ``rungs``: the next higher one of ``rungs``, after
            which nothing follows.
        factor: Of ``factor`` and ``largest``.
        rungs: Ascending [MB or s].
        maximum: Largest allocation that exists [MB or s]; a job that fails there is given up. Infinite:
            there is always a larger one.
        per_core: Rungs and maximum are per core of the job.
        attempts: Most attempts, the first one among them; null: no limit. Not with ``free``.
    """

    kind: Kind = "free"
    factor: float = 2.0
    rungs: tuple[float, ...] = ()
    maximum: float = float("inf")
    per_core: bool = False
    attempts: int | None = None

    def __post_init__(self) -> None:
        """Refuse impossible ladders, all that is wrong at once."""
        rising = all(a < b for a, b in pairwise((0.0, *self.rungs)))
        checks = {
            "kind": (self.kind in KINDS, ", ".join(KINDS)),
            "factor": (1 < self.factor < float("inf"), "finite and above 1"),
            "rungs": (
                rising and bool(self.rungs) == (self.kind == "rungs"),
                "rising numbers above 0 with kind='rungs', none otherwise",
            ),
            "maximum": (self.maximum > 0, "above 0"),
            "attempts": (
                self.attempts is None or (self.attempts >= 1 and self.kind != "free"),
                "at least 1, and none with kind='free'",
            ),
        }
        wrong = [
            f"{name}={getattr(self, name)!r}: allowed is {allowed}"
            for name, (good, allowed) in checks.items()
            if not good
        ]
        if wrong:
            raise ConfigError("retry ladder: " + "; ".join(wrong))

    @classmethod
    def doubling(
        cls, *, maximum: float = float("inf"), per_core: bool = False, attempts: int | None = None
    ) -> Self:
        """Return the ladder that doubles what failed."""
        return cls(kind="factor", maximum=maximum, per_core=per_core, attempts=attempts)

    @classmethod
    def panda(cls) -> Self:
        """Return PanDA's ladder of memory per core.

        Source: sizing.md, section 6. That the whole task is raised once many of its jobs were is
        not part of it.
        """
        return cls(kind="rungs", rungs=PANDA_RUNGS_MB, per_core=True)
