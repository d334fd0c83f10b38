"""What the brokerage saw: its input tables at many instants, rebuilt from an archive.

:func:`build` makes them all; the parts can be called alone.
"""

from brokerlab.brokerage.replay.build import Replay, build
from brokerlab.brokerage.replay.clock import instants
from brokerlab.brokerage.replay.counts import job_counts

__all__ = ["Replay", "build", "instants", "job_counts"]
