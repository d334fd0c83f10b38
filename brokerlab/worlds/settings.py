"""What can be asked of the generator, in one frozen object that is checked before anything is drawn."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Literal, get_args

from brokerlab.errors import ConfigError
from brokerlab.units import DAY_S

GENERATOR_VERSION = 7
"""Raised whenever the same settings would give other bytes ..."""
LIVED_VERSION = 9
"""... and this when that is so of lived worlds alone."""
CALM_APART = 0.6
"""Wall times of a measured task lie closer together than `JobType` lets them (sd of ln over all queues 0.20 to 0.30 in four of
five tasks, limits 1.6 to 2.1 times the median in three; statistics sections 2 and 3). With its spreads 5.5 % of the jobs of a
calm world are beyond what scouts say of cputime, with these 1.2 to 2.7 %; measured are 0.2 to 3.3 %."""
LIVED = "lived"
"""The note of the archive of such a world begins so."""
Planted = Literal["wrong", "none"]
"""What is planted in a lived world, see `brokerlab.worlds.planted`."""


@dataclass(frozen=True, kw_only=True)
class SynthSettings:
    """Settings of a synthetic archive.

    Attributes:
        jobs: Rows of ``jobs``, met exactly [jobs].
        days: Period over which work is submitted [days]; long queues may end jobs a little later.
        seed: Seed of every random draw.
        start: First instant of the period, naive UTC, ``YYYY-MM-DD`` or with a time of day.
        queues: Number of queues.
        drift: Size of the change of campaign in the later part of the period, on the natural
            logarithm: peak memory and wall time grow by this, scouts become lighter against the
            rest of their task by half of it. 0 = both parts alike.
        max_task_jobs: Most jobs of one task before retries; None = a twentieth of ``jobs``, in a lived
            world a 400th (a larger one would be the only work of the grid for days), within 200 to 20,000 [jobs].
        ram_rank: Percentile rank of the memory rule that made the requests.
        ram_margin_pct: Margin of that rule [%].
        network_every_h: Time between snapshots of the links [h]. Above 1, a brokerage late in the gap
            sees no link that is fresh (60 minutes).
        pilots_every_h: Time between snapshots of ``site_data``, the pilots' requests [h].
        lived: Jobs wait because slots are taken; else their waits are drawn.
        planted: Of a lived world: ``wrong``: settings of `planted.PLANTED` are wrong; ``none``: all are as good as they can be.
    """

    jobs: int
    days: float
    seed: int
    start: str = "2026-03-01"
    queues: int = 140
    drift: float = 0.03
    max_task_jobs: int | None = None
    ram_rank: int = 75
    ram_margin_pct: int = 10
    network_every_h: float = 1.0
    pilots_every_h: float = 1.0
    lived: bool = False
    planted: Planted = "wrong"

    def __post_init__(self) -> None:
        """Refuse impossible settings, all at once."""
        wrong = [
            f"{name} = {getattr(self, name)!r}: allowed {kind} {low:g} to {high:g}"
            for name, (kind, low, high) in _BOUNDS.items()
            if not _inside(getattr(self, name), kind, low, high)
            and not (name == "max_task_jobs" and self.max_task_jobs is None)
        ]
        if math.isnan(self._start_us()):
            wrong.append(
                f"start = {self.start!r}: allowed YYYY-MM-DD or YYYY-MM-DDTHH:MM of 1970 to 2200, no zone"
            )
        wrong += [
            f"{name} = {getattr(self, name)!r}: allowed {' or '.join(map(str, allowed))}"
            for name, allowed in _CHOICES.items()
            if getattr(self, name) not in allowed
        ]
        if wrong:
            raise ConfigError("synthetic archive: " + "; ".join(wrong))

    def _start_us(self) -> float:
        try:
            at = datetime.fromisoformat(self.start)
        except (TypeError, ValueError):
            return math.nan
        if at.tzinfo is not None or not 1970 <= at.year <= 2200:
            return math.nan
        return float((at - datetime(1970, 1, 1)).total_seconds() * 1e6)  # noqa: DTZ001 - naive UTC

    @property
    def start_us(self) -> int:
        """First instant [µs since 1970-01-01 UTC]."""
        return int(self._start_us())

    def at(self, second: int) -> datetime:
        """Return the time of a second from the first instant, naive UTC."""
        return datetime(1970, 1, 1) + timedelta(  # noqa: DTZ001 - naive UTC throughout
            microseconds=self.start_us + second * 1_000_000
        )

    @property
    def end_s(self) -> int:
        """End of the period [s]."""
        return int(self.days * DAY_S)

    @property
    def submit_s(self) -> float:
        """Period in which tasks are created [s]: the last fifth, at most two days, is left to finish."""
        return (self.days - min(2.0, 0.2 * self.days)) * DAY_S

    @property
    def apart(self) -> float:
        """Part that there is of the spreads of wall time in `JobType`: of the scouts' gap, and between queues."""
        return CALM_APART if self.calm else 1.0

    @property
    def calm(self) -> bool:
        """Whether jobs wait for slots and nothing is wrong."""
        return self.lived and self.planted == "none"

    @property
    def largest_task(self) -> int:
        """Most jobs of one task before retries [jobs]."""
        if self.max_task_jobs is not None:
            return self.max_task_jobs
        return max(200, min(20_000, self.jobs // (400 if self.lived else 20)))

    def note(self) -> str:
        """Return the manifest's note: what made the archive, with every setting."""
        drawn = {n: v for n, v in asdict(self).items() if n not in ("lived", "planted")}
        drawn |= {n: float(drawn[n]) for n, (kind, *_) in _BOUNDS.items() if kind == _REAL}
        values = json.dumps(drawn, sort_keys=True)
        note = f"synthetic, generated by brokerlab (generator {GENERATOR_VERSION}) with {values}"
        if not self.lived:
            return note
        return f"{LIVED} (version {LIVED_VERSION}, planted {self.planted}), {note}"


_CHOICES: dict[str, tuple[object, ...]] = {"lived": (True, False), "planted": get_args(Planted)}
_WHOLE, _REAL = "a whole number from", "a number from"
_BOUNDS: dict[str, tuple[str, float, float]] = {
    "jobs": (_WHOLE, 1, 1e10),
    "days": (_REAL, 0.01, 3650),
    "seed": (_WHOLE, 0, 2**63 - 1),
    "queues": (_WHOLE, 20, 2000),
    "drift": (_REAL, -0.5, 0.5),
    "max_task_jobs": (_WHOLE, 1, 50_000),
    "ram_rank": (_WHOLE, 0, 100),
    "ram_margin_pct": (_WHOLE, 0, 500),
    "network_every_h": (_REAL, 0.25, 1000),
    "pilots_every_h": (_REAL, 0.25, 1000),
}


def _inside(value: object, kind: str, low: float, high: float) -> bool:
    """Decide whether a value has the right type and lies in its bounds; NaN does not."""
    right = isinstance(value, int if kind == _WHOLE else int | float)
    return right and not isinstance(value, bool) and low <= value <= high  # type: ignore[operator]
