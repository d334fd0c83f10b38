"""Another order of the waiting line: by size and waiting time, as Maui's priorities do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brokerlab.errors import ConfigError, nearest
from brokerlab.numerics import IntArray
from brokerlab.units import DAY_S

FAVOURED = ("large", "small")  # which jobs a priority can favour
_US = 1_000_000


@dataclass(frozen=True)
class Priority:
    """A priority that is the sum of a capped term of size and an uncapped one of waiting time.

    All jobs age alike, so the order of two jobs never changes: a job stands as if it had been submitted earlier by what
    its size is worth. The first job that does not fit is then protected as under EASY.

    Source: workflows.md section 5 (FL and FS). The paper gives neither weights nor caps: these are ours.
    """

    favour: str  # "large" or "small"
    worth_s: float = DAY_S  # waiting time that the full term of size is worth [s]
    # size from which on a job counts no larger [hosts]; None: the whole machine
    cap_hosts: int | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense, all at once."""
        problems = []
        if self.favour not in FAVOURED:
            problems.append(f"favour: unknown '{self.favour}': {nearest(self.favour, FAVOURED)}")
        if not 0 <= self.worth_s < float("inf"):
            problems.append(f"worth_s: {self.worth_s}, allowed: a number of seconds >= 0")
        if self.cap_hosts is not None and self.cap_hosts < 1:
            problems.append(f"cap_hosts: {self.cap_hosts}, allowed: 1 or more")
        if problems:
            raise ConfigError("priority: " + "; ".join(problems))

    def earlier_us(self, hosts: IntArray, machine: int) -> IntArray:
        """Return by how much earlier jobs stand [µs]."""
        cap = machine if self.cap_hosts is None else self.cap_hosts
        part = np.minimum(hosts, cap) / cap
        part = part if self.favour == "large" else 1 - part
        return np.round(part * self.worth_s * _US).astype(np.int64)
