"""How long a pilot job asks for: padding for predecessors that still run, margin, rounding."""

from __future__ import annotations

import math
from collections.abc import Callable

from brokerlab.workflows.rules import PilotRules
from brokerlab.workflows.schedule import instant

Wait = Callable[[int, float], float]
"""Estimated wait [s] of a request of so many hosts for so many seconds."""
ROUNDS = 64
"""Steps of padding at most: an estimate that falls as requests grow could swing for ever."""


def padded(n: int, run: float, ear: float, wait: Wait, rules: PilotRules) -> float:
    """Return the request of a pilot before margin and rounding.

    A pilot that would start before its predecessors are done needs the gap on top of its run time.

    Source: workflows.md 7; row W9.
    """
    if rules.padding == "none" or ear <= 0 or wait(n, run) >= ear:
        return run
    if rules.padding == "halving":
        return _halving(n, run, ear, wait, rules.tolerance_s)
    slack = ear - wait(n, run)
    if rules.padding == "slack":
        while slack > rules.tolerance_s and wait(n, run + slack / 2) > ear:
            slack /= 2
        return run + slack
    return run + _bisect(n, run, ear, wait, rules.tolerance_s)


def _halving(n: int, run: float, ear: float, wait: Wait, tolerance: float) -> float:
    request = run
    for _ in range(ROUNDS):
        gap = (ear + run) - (wait(n, request) + request)
        if gap <= tolerance:
            break
        request += gap / 2
    else:
        gap = (ear + run) - (wait(n, request) + request)
    return request + max(gap, 0.0)


def _bisect(n: int, run: float, ear: float, wait: Wait, tolerance: float) -> float:
    """Return a slack whose estimated start leaves a gap of 0 to the tolerance."""
    low, high = 0.0, ear - wait(n, run)
    for _ in range(ROUNDS):
        slack = (low + high) / 2
        gap = ear - (wait(n, run + slack) + slack)
        if 0 <= gap <= tolerance:
            return slack
        low, high = (slack, high) if gap > 0 else (low, slack)
    return high


def walltime(request: float, rules: PilotRules) -> int:
    """Return the walltime [s] that is submitted for a request (workflows.md 3; row W15)."""
    wanted = request * rules.margin
    if rules.round_to == "next_minute":
        return 60 * (1 + math.floor(instant(wanted) / 60))
    return whole(wanted)


def whole(seconds: float) -> int:
    """Return the first whole second that holds a run time; the noise of its decimals is none.

    Example:
        >>> whole(0.1 + 2.7 + 0.2), whole(4.001)
        (3, 5)
    """
    return math.ceil(instant(seconds))
