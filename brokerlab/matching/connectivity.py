"""Network of worker nodes: ``wnconnectivity`` of a queue (docs/rules/matching.md 9)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Connectivity:
    """What worker nodes of a queue can reach."""

    # ``full``, ``http``, ``none`` or whatever stands there; None for nothing given
    network: str | None
    ip_stack: str | None  # ``IPv4``, ``IPv6``; None for nothing given


def parse_connectivity(wnconnectivity: str | None) -> Connectivity:
    """Read ``network#stack`` (docs/rules/matching.md 9).

    Null and '' give nothing; the network is what stands before the first ``#``, the stack is there only with exactly one ``#``
    and text after it.
    """
    network, *rest = (wnconnectivity or "").split("#")
    return Connectivity(network or None, (rest[0] or None) if len(rest) == 1 else None)
