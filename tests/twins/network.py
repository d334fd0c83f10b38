"""Network weight of one link (network-weight.md)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.twins.world import World

MAX_AGE = timedelta(minutes=60)
FARTHEST = 11
PLOT_FILES = 300
STEPS = ((200, 2.0), (100, 1.9), (75, 1.8), (50, None), (20, 1.5), (10, 1.3), (2, 1.2), (1, 1.1))
OWN_SITE = 2.5


def links_to(world: World, nucleus: str, at: Any) -> dict[str, dict[str, float]]:
    """Return source -> metric -> value of the links to a nucleus, without what is older than an hour."""
    links: dict[str, dict[str, float]] = {}
    for row in world.links_to.get(nucleus, []):
        time = row.get("ts")
        if row.get("value") is None or time is None or (at is not None and time <= at - MAX_AGE):
            continue
        links.setdefault(row["src"], {})[row["key"]] = row["value"]
    return links


def queued_key(express: bool) -> str:
    return "Express_queued" if express else "Production Output_queued"


def throughput_weight(mbps: float, rules: Any) -> float:
    """Return the step that a throughput [MB/s] stands on."""
    for edge, weight in STEPS:
        if mbps > edge:
            return float(rules.throughput_step_50) if weight is None else weight
    return 1.0


def throughput(link: dict[str, float], rules: Any) -> float | None:
    """Return the throughput that counts, none where closeness takes its place (2.3)."""
    windows = ("dashb_mbps_1h", "dashb_mbps_1d", "dashb_mbps_1w")
    if rules.newest_window_first:
        return next((link[key] for key in windows if key in link), None)
    last = None
    for key in reversed(windows):
        if key not in link:
            break
        last = link[key]
    return last


def network_weight(
    site: str | None, nucleus: str, link: dict[str, float] | None, express: bool, world: World
) -> float:
    """Return the weight of the link from a storage site (none: unknown) to a nucleus."""
    if site == nucleus:
        return OWN_SITE
    metrics = (link or {}) if site is not None else {}
    queued = metrics.get(queued_key(express), 0)
    queued_weight: float = 2 - queued / world.setting("NQUEUED_SAT_CAP")
    if world.rules.queued_line == "plot":
        queued_weight = max(2 - queued / PLOT_FILES, 1)
    mbps = throughput(metrics, world.rules)
    if mbps is not None:
        by_throughput: float = throughput_weight(mbps, world.rules)
    else:
        closeness = metrics.get("AGIS_closeness", 0.7 * FARTHEST)
        by_throughput = 1 + (FARTHEST - closeness) / FARTHEST
    importance = float(world.setting("NW_QUEUE_IMPORTANCE"))
    return importance * queued_weight + (1 - importance) * by_throughput
