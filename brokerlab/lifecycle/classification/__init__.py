"""Classes of queues, users, tasks and shares.

Where each section of docs/rules/classes.md is implemented:

* ``wait_stats``: how long analysis jobs wait at each queue (1, 2), with ``weighted`` (upper limit of one wait) and
  ``kernels`` (sums over a sliding sample);
* ``activity``: what queues started, the slot to-running rate; ``site_classes``: hi, mid, lo (3), with all of it in one call;
* ``active_jobs``: slots of users by queue (1.3), HS06 of shares (7); ``user_usage``: slots by class of queue, quotas (4);
* ``task_classes``: S, A, B, C (5); ``settings``: the thresholds (1.3); ``task_history``: tasks and progress as they were;
* ``share_usage``: shares against their targets (7);
* ``rules``: every point where page and production differ (8);
* ``instants``, ``spans``, ``levels``: many instants in one query, status of jobs over time, numbers over time.
"""

from brokerlab.lifecycle.classification.active_jobs import share_job_stats, user_slots
from brokerlab.lifecycle.classification.activity import queue_activity
from brokerlab.lifecycle.classification.instants import Instants
from brokerlab.lifecycle.classification.rules import ClassRules
from brokerlab.lifecycle.classification.share_usage import ShareUsage, share_usage
from brokerlab.lifecycle.classification.site_classes import (
    SiteClasses,
    site_classes,
    site_classes_at,
)
from brokerlab.lifecycle.classification.task_classes import TaskClasses, task_classes
from brokerlab.lifecycle.classification.task_history import task_progress, task_states
from brokerlab.lifecycle.classification.user_usage import TOTAL, UserUsage, user_usage
from brokerlab.lifecycle.classification.wait_stats import wait_stats
from brokerlab.lifecycle.classification.weighted import WeightedLimit, weighted_upper_limit

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
