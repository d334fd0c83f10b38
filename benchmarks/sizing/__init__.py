"""Size the memory of runs one after the other: traces, methods, scoring, and their comparison.

A method sizes one task type: it is started with a history, asked for the first allocation of each
arriving run, asked for the next one after each kill, and shown the truth afterwards.
"""

from benchmarks.sizing.allocation import CheapestAttempts
from benchmarks.sizing.comparison import SEEDS, Comparison, compare, sized_types
from benchmarks.sizing.online import Method, size, size_knowing_others
from benchmarks.sizing.sizer import History, Run, Sizer
from benchmarks.sizing.store import Store
from benchmarks.sizing.trace import Trace, read_trace, trace_of

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
