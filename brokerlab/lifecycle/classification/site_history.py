"""Classes of queues straight from the jobs of an archive, at one instant or many.

Source: docs/rules/classes.md 1 to 3.
"""

from __future__ import annotations

from typing import Any

from brokerlab.lifecycle.classification.activity import queue_activity
from brokerlab.lifecycle.classification.instants import At
from brokerlab.lifecycle.classification.rules import ClassRules
from brokerlab.lifecycle.classification.site_classes import SiteClasses, site_classes
from brokerlab.lifecycle.classification.wait_stats import wait_stats


def site_classes_at(
    jobs: Any,
    queues: Any,
    *,
    status_log: Any | None = None,
    at: At,
    vo: str | None = None,
    rules: ClassRules | None = None,
) -> SiteClasses:
    """Rate queues from jobs: :func:`wait_stats`, :func:`queue_activity` and :func:`site_classes` in one call."""
    stats = wait_stats(jobs, queues, status_log=status_log, at=at, rules=rules)
    return site_classes(stats, queues, queue_activity(jobs, at=at, vo=vo), rules=rules)
