"""What the brokerage saw: its input tables at many instants, rebuilt from an archive.

:func:`build` makes them all; the parts can be called alone. Everywhere a table of the archive (``jobs``, ``tasks``,
``status_log``...) may be of any engine, all those of one call of the same; ``instants`` are ``snapshot, at``, ``clock`` the same
as a :class:`~.clock.Clock`, ``parents`` the parent of each pseudo-queue, and ``pairs`` the ``jeditaskid, snapshot`` asked for.
"""

from brokerlab.brokerage.replaying.activity import (
    network_matrix,
    site_activity_of_data,
    site_activity_of_jobs,
    slots,
    worker_stats,
)
from brokerlab.brokerage.replaying.build import Replay, build, build_once
from brokerlab.brokerage.replaying.clock import instants
from brokerlab.brokerage.replaying.pace import failure_counts, sites_used, to_run_rate
from brokerlab.brokerage.replaying.plan import job_brokerages, task_brokerages
from brokerlab.brokerage.replaying.work import open_tasks, task_resource_types

__all__ = [
    "Replay",
    "build",
    "build_once",
    "failure_counts",
    "instants",
    "job_brokerages",
    "network_matrix",
    "open_tasks",
    "site_activity_of_data",
    "site_activity_of_jobs",
    "sites_used",
    "slots",
    "task_brokerages",
    "task_resource_types",
    "to_run_rate",
    "worker_stats",
]
