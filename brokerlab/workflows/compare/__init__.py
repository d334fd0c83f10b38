"""Strategies compared: the same workflows on the same queues at the same instants.

* ``cells``: what is compared, cut into cells, and their runs; ``comparison``: the whole, and one instant closely;
* ``paired``: differences and ratios with intervals; ``summaries``: grouping against the simple ways, costs, how runs went,
  estimated waits and how well they are predicted; ``published``: the shapes of the published results.
"""

from brokerlab.workflows.compare.cells import BatchSystem, instants
from brokerlab.workflows.compare.comparison import Comparison, Example, compare, example
from brokerlab.workflows.compare.paired import differences, means, ratios
from brokerlab.workflows.compare.published import shape_checks
from brokerlab.workflows.compare.summaries import (
    against_better,
    against_each,
    costs,
    costs_by_queue,
    decisive,
    estimated_waits,
    hour_waits,
    longer_and_shorter,
    score_predictions,
    shapes_by_place,
    shapes_by_rules,
)

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
