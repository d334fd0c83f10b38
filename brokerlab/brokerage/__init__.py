"""Where work goes: production task and job brokerage and analysis brokerage, replayed as queries.

What a brokerage decided (``production_jobs.decide.decide``, ``production_tasks.decide``, ``analysis_jobs.decide``) is
asked: `funnel` (what each
check removed), `explain` and `explain_task` (why, in words), `what_would_help` and `single_obstacles` (which single
checks stand in the way), `compare` (who is decided differently), `sensitivity` and `keys_read` (what another setting
would have decided), `checks_table` (what is checked). `world` makes the tables to decide on from a few rows by hand. Importing this package loads none of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brokerlab.brokerage.check_table import checks_table
    from brokerlab.brokerage.comparison import Comparison, compare
    from brokerlab.brokerage.explanations import Explanation, TaskExplanation, explain, explain_task
    from brokerlab.brokerage.funnels import funnel
    from brokerlab.brokerage.obstacles import single_obstacles, what_would_help
    from brokerlab.brokerage.sensitivities import keys_read, sensitivity
    from brokerlab.brokerage.worlds import world

__all__ = [
    "Comparison",
    "Explanation",
    "TaskExplanation",
    "checks_table",
    "compare",
    "explain",
    "explain_task",
    "funnel",
    "keys_read",
    "sensitivity",
    "single_obstacles",
    "what_would_help",
    "world",
]

_HOMES = {
    **dict.fromkeys(("Comparison", "compare"), "comparison"),
    **dict.fromkeys(("Explanation", "TaskExplanation", "explain", "explain_task"), "explanations"),
    **dict.fromkeys(("single_obstacles", "what_would_help"), "obstacles"),
    **dict.fromkeys(("keys_read", "sensitivity"), "sensitivities"),
    "checks_table": "check_table",
    "funnel": "funnels",
    "world": "worlds",
}


def __getattr__(name: str) -> Any:
    """Load a function when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
