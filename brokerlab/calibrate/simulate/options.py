"""How slots are filled and killed jobs tried again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from brokerlab.errors import ConfigError

Fit = Literal["first", "strict"]
FITS: tuple[Fit, ...] = ("first", "strict")
Retry = Literal["queue", "brokerage"]
RETRIES: tuple[Retry, ...] = ("queue", "brokerage")


@dataclass(frozen=True)
class QueueRules:
    """Options of the queues, the same for all of them.

    Attributes:
        fit: ``first``: the first job in order that fits the free cores starts, wider ones wait. ``strict``: a job that
            does not fit holds up everyone behind it. The default is ``first``, since pilots of different widths ask
            the batch system independently and it does not keep cores empty while a narrower pilot is there; a site
            that drains nodes for wide jobs lies in between.
        attempts: Most attempts of a job, the first one counted; from 1.
        retry_delay_s: From the end of a killed attempt to the next one being ready [s].
        retry: Where a killed job tries again: at its ``queue``; or, if it did not come with one, nowhere before ``place``
            says so (``brokerage``), from that delay on.
        memory_ladder_mb: Memory limits, ascending [MB]: a job killed for memory asks for the next one above the limit
            that killed it, and for the same again where there is none.
    """

    fit: Fit = "first"
    attempts: int = 3
    retry_delay_s: float = 0.0
    retry: Retry = "queue"
    memory_ladder_mb: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Refuse options that make no sense, all at once."""
        problems = []
        if self.fit not in FITS:
            problems.append(f"fit is '{self.fit}', allowed: {', '.join(FITS)}")
        if self.retry not in RETRIES:
            problems.append(f"retry is '{self.retry}', allowed: {', '.join(RETRIES)}")
        if self.attempts < 1:
            problems.append(f"attempts is {self.attempts}, the first attempt counts: from 1")
        if not (math.isfinite(self.retry_delay_s) and self.retry_delay_s >= 0):
            problems.append(f"retry_delay_s is {self.retry_delay_s}, it must be 0 or more")
        ladder = self.memory_ladder_mb
        if any(not rung > 0 for rung in ladder) or list(ladder) != sorted(set(ladder)):
            problems.append(f"memory_ladder_mb is {ladder}, it must ascend and be above 0")
        if problems:
            raise ConfigError("options of the queues: " + "; ".join(problems))
