"""Cases of the plots of the section on the network weight (002): one link to a nucleus."""

from __future__ import annotations

import pytest

from brokerlab.brokerage.rules import ProductionRules
from tests.one_value import network_weight
from tests.unit.brokerage.test_network_weight import NOON, link


def weight(*, rules: str = "document", queued=0, hour=None):
    """Return the weight; without throughput closeness 0 weighs 2."""
    rows = link(0, queued, None, None, hour)
    return network_weight(
        rows, nucleus="NUC", storage_site="SAT", at=NOON, rules=ProductionRules(rules)
    )


@pytest.mark.parametrize(
    ("queued", "by_queue"), [(0, 2.0), (75, 1.75), (150, 1.5), (300, 1.0), (450, 1.0)]
)
def test_the_queued_weight(queued, by_queue):
    """002, Network Weight: where the queued and throughput weight are calculated as in the plot below: queuedWeight
    throughputWeight

    The plot falls from 2 to 1 at 300 files, where it ends; production reaches 1 at NQUEUED_SAT_CAP, 150 files.
    """
    assert weight(queued=queued, hour=30) == (by_queue + 1.5) / 2
    assert weight(rules="production", queued=queued) == (2 - queued / 150 + 2) / 2


@pytest.mark.parametrize(
    ("mbps", "by_throughput"),
    [(201, 2.0), (200, 1.9), (100, 1.8), (75, 1.7), (50, 1.5), (20, 1.3), (10, 1.2), (2, 1.1), (1, 1.0)],
)  # fmt: skip
def test_the_throughput_weight(mbps, by_throughput):
    """002, Network Weight: where the queued and throughput weight are calculated as in the plot below: queuedWeight
    throughputWeight
    """
    assert weight(hour=mbps) == pytest.approx((2 + by_throughput) / 2, rel=1e-15)
