"""Queues of a synthetic archive at which something goes wrong: who they are, and when nothing starts there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.units import DAY_S
from brokerlab.worlds.settings import SynthSettings

NAMES = (
    *("pile", "crowd", "own", "virtual", "stay", "paused", "hospital"),
    *("week", "bad", "pushes", "late", "stuck", "starting"),
)
"""Roles, those of the smallest queues first: little else runs at these."""
SMALLEST = 7
"""So many of the roles are those of the smallest queues; the others are spread over the sizes."""
SPELLS = (
    ("stuck", "activated", 0.22, 2.6),
    ("starting", "starting", 0.48, 3.1),
    ("week", "activated", 0.10, 8.6),
)
"""Role, status in which jobs hang, begin as a part of the period, length [days]."""
LONGEST_PART = 0.4
"""Longest spell as a part of the period."""
AFTER = 0.2
"""Once a spell is over, jobs start after this part of their ordinary wait."""


@dataclass(frozen=True)
class Spell:
    """A time [s] in which a queue starts nothing and jobs hang in ``activated`` or ``starting``."""

    queue: int
    status: str
    begin_s: int
    end_s: int

    def holds(self, queue: int | IntArray, second: int | IntArray) -> BoolArray:
        """Decide whether jobs created then at a queue hang."""
        inside = (second >= self.begin_s) & (second < self.end_s)
        return np.asarray((queue == self.queue) & inside)


def choose_roles(size: FloatArray, able: BoolArray) -> dict[str, int]:
    """Choose a queue for each of ``NAMES`` among the able ones (online, production and analysis, one core); few queues have several."""
    order = np.argsort(np.where(able, size, np.inf), kind="stable")[: max(int(able.sum()), 1)]
    wide = np.linspace(0.2, 0.7, len(NAMES) - SMALLEST) * len(order)
    places = [*range(SMALLEST), *np.maximum(wide, SMALLEST).astype(np.int64).tolist()]
    return {name: int(order[place % len(order)]) for name, place in zip(NAMES, places, strict=True)}


def draw_spells(settings: SynthSettings, roles: dict[str, int]) -> tuple[Spell, ...]:
    """Return the spells in which queues start nothing."""
    result = []
    for role, status, begin, days in SPELLS:
        first = int(begin * settings.submit_s)
        length = min(days * DAY_S, LONGEST_PART * settings.submit_s)
        result.append(Spell(roles[role], status, first, first + int(length)))
    return tuple(result)


def held(
    spells: Sequence[Spell], queue: IntArray, second: IntArray, wait_s: FloatArray
) -> FloatArray:
    """Let jobs wait [s] until the spell of their queue is over."""
    for spell in spells:
        longer = spell.end_s - second + AFTER * wait_s
        wait_s = np.where(spell.holds(queue, second), np.maximum(wait_s, longer), wait_s)
    return wait_s


def truth_spells(
    settings: SynthSettings, spells: Sequence[Spell], names: Sequence[str]
) -> pl.DataFrame:
    """Return when which queue starts nothing: ``panda_queue, status, begin, end``."""
    micro = [(s.begin_s, s.end_s) for s in spells]
    stamps = pl.DataFrame(micro, schema=["begin", "end"], orient="row")
    return pl.DataFrame(
        {"panda_queue": [names[s.queue] for s in spells], "status": [s.status for s in spells]}
    ).hstack(stamps.select((pl.all() * 1_000_000 + settings.start_us).cast(pl.Datetime("us"))))
