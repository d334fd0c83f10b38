"""What attempts cost, and how much of the quantity an hour of them holds."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from brokerlab.errors import ConfigError
from brokerlab.estimators.records import Quantity
from brokerlab.numerics import FloatArray
from brokerlab.units import HOUR_S, KB


@dataclass(frozen=True)
class Prices:
    r"""What one attempt at allocation a of a job that needs y costs.

    With w the amount per unit of the quantity (:func:`amount_per_unit`):

    * success: ``idle * w * (a - y)``;
    * failure: ``lost * w * a + burnt * core-hours + failure``, and ``waiting_s * wait_s`` for the retry; where no
      retry can follow, ``giving_up`` instead of the waiting.

    All in one currency: in amounts of the quantity (GB h of memory, core h of walltime) as long as idle and lost
    are 1.

    Attributes:
        idle: Per amount reserved and not used by the attempt that succeeds.
        lost: Per amount reserved by an attempt that fails, for as long as it ran. Of walltime these are the
            core-hours until the limit.
        failure: Per failed attempt.
        waiting_s: Per second that a retry waits.
        burnt: Per core-hour of an attempt that fails, where the amount is not core-hours already (memory).
        giving_up: Per job that fails where no larger attempt is possible.

    Source: sizing.md, section 3, is idle 1, lost 1 and nothing else.
    """

    idle: float = 1.0
    lost: float = 1.0
    failure: float = 0.0
    waiting_s: float = 0.0
    burnt: float = 0.0
    giving_up: float = 0.0

    def __post_init__(self) -> None:
        """Refuse prices that are negative, not finite, or all 0."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        bad = [f"{name}={value}" for name, value in values.items() if not 0 <= value < float("inf")]
        if bad or not any(values.values()):
            raise ConfigError(
                f"prices {', '.join(bad) or 'all 0'}: allowed are finite numbers of at least 0, one of "
                "them above 0"
            )


def amount_per_unit(
    quantity: Quantity, *, wall_s: FloatArray | float = HOUR_S, cores: FloatArray | float = 1.0
) -> FloatArray:
    """Return the amount that one unit of an allocation holds: GB h per MB, or core h per second.

    Args:
        quantity: ``memory`` [MB], held for the whole run; ``walltime`` [s], held on all cores.
        wall_s: Expected duration of an attempt [s]; for memory only. A run of less than a second counts
            as one.
        cores: Of the job; for walltime only.

    Example:
        >>> float(amount_per_unit("memory", wall_s=7200.0) * 1024)
        2.0
        >>> float(amount_per_unit("walltime", cores=8.0) * 3600)
        8.0
    """
    if quantity == "memory":
        return np.maximum(np.asarray(wall_s, dtype=np.float64), 1.0) / HOUR_S / KB
    return np.asarray(cores, dtype=np.float64) / HOUR_S
