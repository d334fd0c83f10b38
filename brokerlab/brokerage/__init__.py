"""Where work goes: production task and job brokerage and analysis brokerage, replayed as queries.

`replay` rebuilds what a brokerage saw from an archive, `decide` decides it. Decisions are asked: `funnel` (what each
check removed), `explain` and `explain_task` (why, in words), `what_would_help` and `single_obstacles` (which single
checks stand in the way), `compare` (who is decided differently), `what_if` and `keys_read` (what another setting
would have decided), `checks_table` (what is checked). `world` makes the tables to decide on from a few rows by hand.
Importing this package loads none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerlab.lazy import lazy

if TYPE_CHECKING:
    from brokerlab.brokerage.check_table import checks_table
    from brokerlab.brokerage.comparison import Comparison, compare
    from brokerlab.brokerage.deciding import decide, world
    from brokerlab.brokerage.explanations import Explanation, TaskExplanation, explain, explain_task
    from brokerlab.brokerage.funnels import funnel, single_obstacles, what_would_help
    from brokerlab.brokerage.replaying.build import build as replay
    from brokerlab.brokerage.sensitivities import keys_read, what_if

__all__ = [
    "Comparison",
    "Explanation",
    "TaskExplanation",
    "checks_table",
    "compare",
    "decide",
    "explain",
    "explain_task",
    "funnel",
    "keys_read",
    "replay",
    "single_obstacles",
    "what_if",
    "what_would_help",
    "world",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        **dict.fromkeys(("Comparison", "compare"), "comparison"),
        **dict.fromkeys(
            ("Explanation", "TaskExplanation", "explain", "explain_task"), "explanations"
        ),
        **dict.fromkeys(("funnel", "single_obstacles", "what_would_help"), "funnels"),
        **dict.fromkeys(("decide", "world"), "deciding"),
        **dict.fromkeys(("keys_read", "what_if"), "sensitivities"),
        "checks_table": "check_table",
        "replay": "replaying.build:build",
    },
)
