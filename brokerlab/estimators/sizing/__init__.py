"""Size the memory of runs one after the other: traces, methods, scoring, and their comparison.

A method sizes one task type: it is started with a history, asked for the first allocation of each
arriving run, asked for the next one after each kill, and shown the truth afterwards.
"""

from brokerlab.estimators.sizing.allocation import CheapestAttempts
from brokerlab.estimators.sizing.comparison import SEEDS, Comparison, compare, sized_types
from brokerlab.estimators.sizing.online import Method, size, size_knowing_others
from brokerlab.estimators.sizing.sizer import History, Run, Sizer
from brokerlab.estimators.sizing.store import Store
from brokerlab.estimators.sizing.trace import Trace, read_trace, trace_of

__all__ = [
    "SEEDS",
    "CheapestAttempts",
    "Comparison",
    "History",
    "Method",
    "Run",
    "Sizer",
    "Store",
    "Trace",
    "compare",
    "read_trace",
    "size",
    "size_knowing_others",
    "sized_types",
    "trace_of",
]
