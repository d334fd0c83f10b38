"""What the brokerage saw: its input tables at many instants, rebuilt from an archive.

:func:`build` makes them all; the parts can be called alone. Everywhere a table of the archive (``jobs``, ``tasks``,
``status_log``...) may be of any engine, all those of one call of the same; ``instants`` are ``snapshot, at``, ``clock`` the same
as a :class:`~.clock.Clock`, ``parents`` the parent of each pseudo-queue, and ``pairs`` the ``jeditaskid, snapshot`` asked for.
"""

from brokerlab.brokerage.replaying.build import Replay, build, build_once
from brokerlab.brokerage.replaying.clock import instants
from brokerlab.brokerage.replaying.plan import job_brokerages

__all__ = ["Replay", "build", "build_once", "instants", "job_brokerages"]
