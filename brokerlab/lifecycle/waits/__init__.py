"""What waiting costs in a period: which timeouts fire, what became of the jobs, other limits, the other rule set.

:func:`read_waiting` reads the histories of an archive's period once; :meth:`Waiting.firings` asks them for the rules that
fire. :func:`by_rule`, :func:`by_level` and :func:`wasted_waiting` add firings up, :func:`other_limits` judges the same waits with shorter and longer limits,
:func:`compare_rule_sets` with the rules of the other set, and :func:`fast_rebrokerage_over` looks at the queues of a share
at many instants. All give frames with 95 % intervals from drawing queues or tasks again. :func:`study_waiting` asks for
all of it.
"""

from brokerlab.lifecycle.waits.fast import FastOver, fast_rebrokerage_over
from brokerlab.lifecycle.waits.firings import (
    OUTCOMES,
    firings_over_time,
    label_outcomes,
    wait_of_jobs,
    wasted_waiting,
)
from brokerlab.lifecycle.waits.limits import (
    HALVED_AND_DOUBLED,
    RuleSetComparison,
    all_limits_changed,
    compare_rule_sets,
    fired_before,
    limit_changes,
    other_limits,
    undecided_by_end,
)
from brokerlab.lifecycle.waits.period import Waiting, read_waiting
from brokerlab.lifecycle.waits.study import (
    WaitingStudy,
    by_level,
    by_rule,
    late_rules,
    numbers_of,
    quiet_rules,
    study_waiting,
)

__all__ = [
    "HALVED_AND_DOUBLED",
    "OUTCOMES",
    "FastOver",
    "RuleSetComparison",
    "Waiting",
    "WaitingStudy",
    "all_limits_changed",
    "by_level",
    "by_rule",
    "compare_rule_sets",
    "fast_rebrokerage_over",
    "fired_before",
    "firings_over_time",
    "label_outcomes",
    "late_rules",
    "limit_changes",
    "numbers_of",
    "other_limits",
    "quiet_rules",
    "read_waiting",
    "study_waiting",
    "undecided_by_end",
    "wait_of_jobs",
    "wasted_waiting",
]
