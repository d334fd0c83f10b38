"""Classes of queues, users, tasks and shares.

Where each section of docs/rules/classes.md is implemented:

* ``wait_stats``: how long analysis jobs wait at each queue, and the upper limit of one wait (1, 2);
* ``site_classes``: what queues started, the slot to-running rate; hi, mid, lo (3), with all of it in one call;
* ``usage``: slots of users by queue (1.3) and by class of queue, quotas (4), shares against their targets (7);
* ``task_classes``: S, A, B, C (5), tasks and progress as they were;
* ``rules``: every point where page and production differ (8), and the thresholds (1.3);
* ``instants``: many instants in one query, numbers over time.
"""

from brokerlab.lifecycle.classification.instants import Instants
from brokerlab.lifecycle.classification.rules import ClassRules
from brokerlab.lifecycle.classification.site_classes import (
    SiteClasses,
    queue_activity,
    site_classes,
    site_classes_at,
)
from brokerlab.lifecycle.classification.task_classes import (
    TaskClasses,
    task_classes,
    task_progress,
    task_states,
)
from brokerlab.lifecycle.classification.usage import (
    TOTAL,
    ShareUsage,
    UserUsage,
    share_job_stats,
    share_usage,
    user_slots,
    user_usage,
)
from brokerlab.lifecycle.classification.wait_stats import (
    WeightedLimit,
    wait_stats,
    weighted_upper_limit,
)

__all__ = [
    "TOTAL",
    "ClassRules",
    "Instants",
    "ShareUsage",
    "SiteClasses",
    "TaskClasses",
    "UserUsage",
    "WeightedLimit",
    "queue_activity",
    "share_job_stats",
    "share_usage",
    "site_classes",
    "site_classes_at",
    "task_classes",
    "task_progress",
    "task_states",
    "user_slots",
    "user_usage",
    "wait_stats",
    "weighted_upper_limit",
]
