"""Network of worker nodes: ``wnconnectivity`` of a queue against what a task asks for (production-job-brokerage.md 1.4, 5)."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

FULL, HTTP, NONE = "full", "http", "none"
PAIR_COLUMNS = ("ipconnectivity", "ipstack", "wnconnectivity")


@dataclass(frozen=True, slots=True)
class Connectivity:
    """What worker nodes of a queue can reach.

    Attributes:
        network: ``full``, ``http``, ``none`` or whatever stands there; None for nothing given.
        ip_stack: ``IPv4``, ``IPv6``; None for nothing given.
    """

    network: str | None
    ip_stack: str | None


def parse_connectivity(wnconnectivity: str | None) -> Connectivity:
    """Read ``network#stack``.

    Args:
        wnconnectivity: Of the queue; null and '' give nothing. The network is what stands before the first ``#``; the
            stack is there only with exactly one ``#`` and text after it.

    Source: production-job-brokerage.md 1.4.

    Example:
        >>> parse_connectivity("http#IPv6")
        Connectivity(network='http', ip_stack='IPv6')
        >>> parse_connectivity("full#IPv4#x")
        Connectivity(network='full', ip_stack=None)
    """
    network, *rest = (wnconnectivity or "").split("#")
    return Connectivity(network or None, (rest[0] or None) if len(rest) == 1 else None)


def check_connectivity(
    ipconnectivity: str | None,
    ipstack: str | None,
    wnconnectivity: str | None,
    *,
    ip_stack_strict: bool = False,
) -> str | None:
    """Return the check by which a queue's network fails a task: ``connectivity`` (31), ``ip_stack`` (32) or None.

    Args:
        ipconnectivity: ``full`` or ``http``; null, '' and ``none`` ask for nothing.
        ipstack: ``IPv4`` or ``IPv6``; null and '' ask for nothing.
        wnconnectivity: Of the queue.
        ip_stack_strict: J18, a queue with a stack refuses tasks that ask for none.

    Source: production-job-brokerage.md 5, checks 31 and 32; J17, J18.

    Example:
        >>> check_connectivity("http", None, "full#IPv4"), check_connectivity("full", None, "http")
        (None, 'connectivity')
    """
    queue = parse_connectivity(wnconnectivity)
    asked = ipconnectivity if ipconnectivity and ipconnectivity != NONE else None
    if asked and not (queue.network == FULL or asked == queue.network == HTTP):
        return "connectivity"
    wrong_stack = ipstack != queue.ip_stack if ipstack else (ip_stack_strict and queue.ip_stack)
    return "ip_stack" if wrong_stack else None


def connectivity_pairs(
    tasks: pl.DataFrame, queues: pl.DataFrame, *, ip_stack_strict: bool = False
) -> pl.DataFrame:
    """Check every distinct request against every distinct ``wnconnectivity``.

    Args:
        tasks: ``ipconnectivity, ipstack``, repeated or not.
        queues: ``wnconnectivity``, repeated or not.
        ip_stack_strict: As :func:`check_connectivity`.

    Returns:
        ``ipconnectivity, ipstack, wnconnectivity, skip`` (``connectivity``, ``ip_stack`` or null), one row per
        distinct pair, sorted; join with ``nulls_equal=True``.

    Source: production-job-brokerage.md 5, checks 31 and 32.
    """
    asked = tasks.select(pl.col("ipconnectivity", "ipstack").cast(pl.String)).unique()
    offered = queues.select(pl.col("wnconnectivity").cast(pl.String)).unique()
    pairs = asked.join(offered, how="cross").sort(PAIR_COLUMNS)
    skips = [
        check_connectivity(network, stack, given, ip_stack_strict=ip_stack_strict)
        for network, stack, given in pairs.select(PAIR_COLUMNS).iter_rows()
    ]
    return pairs.with_columns(skip=pl.Series(skips, dtype=pl.String))
