"""Records of what jobs used, from an archive, from job tables of whole tasks, from batch logs, and from workflow traces.

Every source says how many of its rows became records, and why each other one did not.
"""

from brokerlab.estimators.sources.foreign import of_log, of_trace, read_runs
from brokerlab.estimators.sources.panda import of_archive, of_invex, real_tasks
from brokerlab.estimators.sources.source import Source

__all__ = [
    "Source",
    "of_archive",
    "of_invex",
    "of_log",
    "of_trace",
    "read_runs",
    "real_tasks",
]
