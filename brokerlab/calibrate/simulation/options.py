"""How slots are filled, killed jobs tried again, and data moved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from brokerlab.errors import ConfigError

Fit = Literal["first", "strict"]
Mode = Literal["links", "observed", "none"]


@dataclass(frozen=True)
class QueueRules:
    """Options of the queues, the same for all of them.

    A killed job tries again at the queue it came with; one that the brokerage had placed is brokered again.

    Attributes:
        fit: ``first``: the first job in order that fits the free cores starts, wider ones wait. ``strict``: a job that
            does not fit holds up everyone behind it. The default is ``first``, since pilots of different widths ask
            the batch system independently and it does not keep cores empty while a narrower pilot is there; a site
            that drains nodes for wide jobs lies in between.
        attempts: Most attempts of a job, the first one counted; from 1.
        retry_delay_s: From the end of a killed attempt to the next one being ready [s].
        memory_ladder_mb: Memory limits, ascending [MB]: a job killed for memory asks for the next one above the limit
            that killed it, and for the same again where there is none.
    """

    fit: Fit = "first"
    attempts: int = 3
    retry_delay_s: float = 0.0
    memory_ladder_mb: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Refuse options that make no sense, all at once."""
        problems = []
        if self.fit not in get_args(Fit):
            problems.append(f"fit is '{self.fit}', allowed: {', '.join(get_args(Fit))}")
        if self.attempts < 1:
            problems.append(f"attempts is {self.attempts}, the first attempt counts: from 1")
        if not (math.isfinite(self.retry_delay_s) and self.retry_delay_s >= 0):
            problems.append(f"retry_delay_s is {self.retry_delay_s}, it must be 0 or more")
        ladder = self.memory_ladder_mb
        if any(not rung > 0 for rung in ladder) or list(ladder) != sorted(set(ladder)):
            problems.append(f"memory_ladder_mb is {ladder}, it must ascend and be above 0")
        if problems:
            raise ConfigError("options of the queues: " + "; ".join(problems))


@dataclass(frozen=True)
class Transfers:
    """How inputs come to a queue and outputs to the nucleus.

    Attributes:
        mode: ``links``: what a queue lacks of a job's input comes over the link from the site with the best one, outputs
            go to the nucleus; one transfer at a time, first come first served, inputs and outputs apart. ``observed``: a
            job is ready as long after it was made as it was in the archive, wherever it goes; outputs take no time.
            ``none``: jobs are ready when they are placed.
        default_mbps: Throughput of links that the archive does not know [MB/s]; None: the median of those that it knows
            (10 where it knows none).
        least_mbps: No link is slower [MB/s].
        overhead_s: Of every transfer, before its bytes flow; does not keep the link from others [s].
    """

    mode: Mode = "links"
    default_mbps: float | None = None
    least_mbps: float = 0.1
    overhead_s: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what makes no sense, all at once."""
        problems = []
        if self.mode not in get_args(Mode):
            problems.append(f"mode is '{self.mode}', allowed: {', '.join(get_args(Mode))}")
        rate = 1.0 if self.default_mbps is None else self.default_mbps
        for name, value in (("default_mbps", rate), ("least_mbps", self.least_mbps)):
            if not (math.isfinite(value) and value > 0):
                problems.append(f"{name} is {value}, it must be above 0")
        if not (math.isfinite(self.overhead_s) and self.overhead_s >= 0):
            problems.append(f"overhead_s is {self.overhead_s}, it must be 0 or more")
        if problems:
            raise ConfigError("transfers: " + "; ".join(problems))
