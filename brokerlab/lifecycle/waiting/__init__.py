"""What waiting costs in a period: which timeouts fire, what became of the jobs, other limits, the other rule set.

:func:`read_waiting` reads the histories of an archive's period once; :meth:`Waiting.firings` asks them for the rules that
fire. :func:`wasted_waiting` adds firings up, :func:`other_limits` judges the same waits with shorter and longer limits,
:func:`compare_rule_sets` with the rules of the other set, and :func:`fast_rebrokerage_over` looks at the queues of a share
at many instants. All give frames with 95 % intervals from drawing queues or tasks again.
"""

from brokerlab.lifecycle.waiting.fast import FastOver, fast_rebrokerage_over
from brokerlab.lifecycle.waiting.firings import (
    OUTCOMES,
    RULE,
    firings_over_time,
    label_outcomes,
    usual_limits,
    wait_of_jobs,
    wasted_waiting,
)
from brokerlab.lifecycle.waiting.limits import (
    ALL_RULES,
    SCALES,
    limit_changes,
    other_limits,
    undecided_by_end,
)
from brokerlab.lifecycle.waiting.period import Waiting, read_waiting
from brokerlab.lifecycle.waiting.rule_sets import RuleSetComparison, compare_rule_sets

__all__ = [
    "ALL_RULES",
    "OUTCOMES",
    "RULE",
    "SCALES",
    "FastOver",
    "RuleSetComparison",
    "Waiting",
    "compare_rule_sets",
    "fast_rebrokerage_over",
    "firings_over_time",
    "label_outcomes",
    "limit_changes",
    "other_limits",
    "read_waiting",
    "undecided_by_end",
    "usual_limits",
    "wait_of_jobs",
    "wasted_waiting",
]
