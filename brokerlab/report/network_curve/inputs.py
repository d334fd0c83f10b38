"""Load the evidence on links: from an archive folder, or from files as they were dumped."""

from __future__ import annotations

from brokerlab.brokerage.replay.plan import time_of
from brokerlab.calibrate.network_curve import Links as Inputs
from brokerlab.calibrate.network_curve import read_links

__all__ = ["Inputs", "load"]


def load(archive: str, *, transfers: str = "", start: str = "", end: str = "") -> Inputs:
    """Load metrics of links and matrices of transfers; times are ISO 8601, UTC, empty: no bound."""
    return read_links(
        *filter(None, (archive, transfers)),
        start=time_of(start or None, "start"),
        end=time_of(end or None, "end"),
    )
