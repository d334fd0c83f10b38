"""What scouts say: measured task parameters, and when they stop a task.

Where each sentence of the scouts document is implemented: ``gather`` chooses the jobs and sums their files,
``quantities`` says what one job says, ``parameters`` takes percentiles, maxima and means, ``expected``
extrapolates the number of jobs, ``ngb`` sets nGBPerJob, ``checks`` and ``exhausted`` stop tasks, ``triggers``
says when, ``write`` replaces the task's columns, ``replay`` goes from trigger to trigger, ``status`` says what becomes of the task, ``retry`` refuses
retries, ``rules`` names every point where document and production differ.
"""

from brokerlab.scouts.estimate import ScoutResult, estimate, job_quantities
from brokerlab.scouts.exhausted import ExhaustedResult
from brokerlab.scouts.exhausted import evaluate as exhausted_checks
from brokerlab.scouts.failures import failure_metrics
from brokerlab.scouts.replay import replay
from brokerlab.scouts.resource_type import resource_types
from brokerlab.scouts.retry import RetryResult, retry_checks
from brokerlab.scouts.rules import ScoutRules
from brokerlab.scouts.status import is_overdue, next_status, status_of_retry
from brokerlab.scouts.triggers import mark_scouts, triggers
from brokerlab.scouts.write import write_tasks

__all__ = [
    "ExhaustedResult",
    "RetryResult",
    "ScoutResult",
    "ScoutRules",
    "estimate",
    "exhausted_checks",
    "failure_metrics",
    "is_overdue",
    "job_quantities",
    "mark_scouts",
    "next_status",
    "replay",
    "resource_types",
    "retry_checks",
    "status_of_retry",
    "triggers",
    "write_tasks",
]
