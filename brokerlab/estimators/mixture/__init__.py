"""Per-task estimates from several views of the task's earlier jobs: what work with structure needs."""

from brokerlab.estimators.mixture.estimator import Views

__all__ = ["Views"]
