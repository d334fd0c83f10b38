"""How the grid moves data, and how often it brokers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from brokerlab.errors import ConfigError

Mode = Literal["links", "observed", "none"]
MODES: tuple[Mode, ...] = ("links", "observed", "none")


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
        if self.mode not in MODES:
            problems.append(f"mode is '{self.mode}', allowed: {', '.join(MODES)}")
        rate = 1.0 if self.default_mbps is None else self.default_mbps
        for name, value in (("default_mbps", rate), ("least_mbps", self.least_mbps)):
            if not (math.isfinite(value) and value > 0):
                problems.append(f"{name} is {value}, it must be above 0")
        if not (math.isfinite(self.overhead_s) and self.overhead_s >= 0):
            problems.append(f"overhead_s is {self.overhead_s}, it must be 0 or more")
        if problems:
            raise ConfigError("transfers: " + "; ".join(problems))
