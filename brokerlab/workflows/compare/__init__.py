"""Strategies compared: the same workflows on the same queues at the same instants.

* ``plan``: what is compared, cut into cells; ``cells``: the runs of one cell, and cells in processes;
* ``comparison``: the whole; ``paired``: differences and ratios with intervals; ``summaries``: grouping against the simple
  ways, costs, how runs went; ``waits``: estimated waits, and how well they are predicted; ``examples``: one instant closely;
  ``published``: the shapes of the published results.
"""

from brokerlab.workflows.compare.comparison import Comparison, compare
from brokerlab.workflows.compare.examples import Example, example
from brokerlab.workflows.compare.paired import differences, means, ratios
from brokerlab.workflows.compare.plan import BatchSystem, instants
from brokerlab.workflows.compare.published import shape_checks
from brokerlab.workflows.compare.summaries import (
    against_better,
    against_each,
    costs,
    costs_by_queue,
    decisive,
    longer_and_shorter,
    shapes_by_place,
    shapes_by_rules,
)
from brokerlab.workflows.compare.waits import estimated_waits, hour_waits, score_predictions

__all__ = [
    "BatchSystem",
    "Comparison",
    "Example",
    "against_better",
    "against_each",
    "compare",
    "costs",
    "costs_by_queue",
    "decisive",
    "differences",
    "estimated_waits",
    "example",
    "hour_waits",
    "instants",
    "longer_and_shorter",
    "means",
    "ratios",
    "score_predictions",
    "shape_checks",
    "shapes_by_place",
    "shapes_by_rules",
]
