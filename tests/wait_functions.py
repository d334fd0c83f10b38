"""Waits as functions of the request: growing, or in steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from brokerlab.workflows.decide import Wait


def linear(
    *,
    base: float = 0.0,
    per_host: float = 0.0,
    per_second: float = 0.0,
    per_host_second: float = 0.0,
) -> Wait:
    """Return a wait that grows with hosts, seconds and their product."""
    return lambda n, w: base + per_host * n + per_second * w + per_host_second * n * w


def stepped(steps: Mapping[float, float], *, of: Callable[[int, float], float]) -> Wait:
    """Return a wait in steps: that of the smallest limit which holds the request, else that of the largest."""
    limits = sorted(steps)

    def found(hosts: int, request: float) -> float:
        size = of(hosts, request)
        return steps[next((limit for limit in limits if size <= limit), limits[-1])]

    return found
