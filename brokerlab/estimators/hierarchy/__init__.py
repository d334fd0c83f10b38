"""Per-task estimates: what earlier tasks did, updated by the task's own jobs as they finish."""

from brokerlab.estimators.hierarchy.estimator import Hierarchy

__all__ = ["Hierarchy"]
