"""Which jobs are failed, killed or sent back to brokerage because they wait too long (docs/rules/waiting.md).

:func:`decide` judges the live jobs of an instant, :func:`fast_rebrokerage` the queues of a share (``_at``: at many instants),
:func:`would_fire` the histories of an archive; :func:`histories` reads them once to be asked again and again.
:func:`decision_table` shows the rules; what limits cost says :mod:`brokerlab.lifecycle.waits`. Every rule is a value
(:class:`TimeoutRule`); the two rule sets are :class:`TimeoutRules`.
"""

from brokerlab.lifecycle.timeouts.catalogue import decision_table
from brokerlab.lifecycle.timeouts.decide import Timeouts, decide
from brokerlab.lifecycle.timeouts.fast import FastRebrokerage, fast_rebrokerage, fast_rebrokerage_at
from brokerlab.lifecycle.timeouts.histories import Histories, histories, would_fire
from brokerlab.lifecycle.timeouts.rule import TimeoutRule, TimeoutRules

__all__ = [
    "FastRebrokerage",
    "Histories",
    "TimeoutRule",
    "TimeoutRules",
    "Timeouts",
    "decide",
    "decision_table",
    "fast_rebrokerage",
    "fast_rebrokerage_at",
    "histories",
    "would_fire",
]
