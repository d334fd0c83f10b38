"""What scouts say: measured task parameters, and when they stop a task.

Where each sentence of the scouts document is implemented (sections of docs/rules/scouts.md and docs/rules/exhausted.md in brackets):

* ``triggers``: twice per task, when half of the scouts and the first 100 jobs have finished (7); ``replay``
  goes from trigger to trigger (7, 9);
* ``tables``: what is read of tables of any engine, resource types found again; ``per_job`` deals jobs and files out by task,
  joins them and sums files (2, 3.3); ``settings``: what is known of the task before, its split rule (1, 15);
* ``used_jobs``: which jobs speak (2, 11), did the scouts succeed (6), how many jobs are to come (8);
* ``quantities``: what one job says of cpuTime, ramCount, outDiskCount, ... (3, 5, 12); ``benchmarks``: core
  power by host (3.2);
* ``parameters``: percentiles, maxima and means of the jobs (4, 5), nGBPerJob (5.10);
* ``checks``, ``exhausted``: the task status is set to exhausted (X1 to X7); ``retry``: other ways there (E1 to
  E10), with how much of a task failed (15);
* ``write``: the task with its new values (9, 10), and what becomes of it;
* ``rules``: every point where document and production differ (14).

``estimate`` puts them together.
"""

from brokerlab.scouts.estimate import ScoutResult, estimate, job_quantities
from brokerlab.scouts.exhausted import ExhaustedResult, exhausted
from brokerlab.scouts.replay import replay
from brokerlab.scouts.retry import RetryResult, failure_metrics, retry_checks
from brokerlab.scouts.rules import ScoutRules
from brokerlab.scouts.tables import resource_types
from brokerlab.scouts.triggers import triggers
from brokerlab.scouts.write import is_overdue, next_status, status_of_retry, write_tasks

__all__ = [
    "ExhaustedResult",
    "RetryResult",
    "ScoutResult",
    "ScoutRules",
    "estimate",
    "exhausted",
    "failure_metrics",
    "is_overdue",
    "job_quantities",
    "next_status",
    "replay",
    "resource_types",
    "retry_checks",
    "status_of_retry",
    "triggers",
    "write_tasks",
]
