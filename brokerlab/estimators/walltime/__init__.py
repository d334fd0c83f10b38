"""Predict how long jobs run, at their submission, and bound it: simple rules, ours, their comparison.

Predictors see a job when it has finished, never before; what they predict is cut at the request.
"""

from brokerlab.estimators.walltime.comparison import (
    all_predictors,
    compare,
    compare_predicted,
    score,
    second_half,
)
from brokerlab.estimators.walltime.likejobs import LikeJobs
from brokerlab.estimators.walltime.online import predict_log, usable_jobs
from brokerlab.estimators.walltime.predictor import HeldLevel, Job, Predictor, RollingQuantile
from brokerlab.estimators.walltime.rules import LastTwo, UserRules, simple_rules

__all__ = [
    "HeldLevel",
    "Job",
    "LastTwo",
    "LikeJobs",
    "Predictor",
    "RollingQuantile",
    "UserRules",
    "all_predictors",
    "compare",
    "compare_predicted",
    "predict_log",
    "score",
    "second_half",
    "simple_rules",
    "usable_jobs",
]
