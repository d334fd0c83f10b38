"""Strategies compared: the same workflows on the same queues at the same instants.

* ``plan``: what is compared, cut into cells; ``cells``: the runs of one cell; ``workers``: cells in processes; ``store``: cells
  on disk, so that a comparison goes on where it was broken off;
* ``comparison``: the whole; ``paired``: differences with intervals; ``published``: the shapes of the published results.
"""

from brokerlab.workflows.compare.comparison import Comparison, compare
from brokerlab.workflows.compare.paired import differences, means
from brokerlab.workflows.compare.plan import BatchSystem, instants
from brokerlab.workflows.compare.published import shape_checks

__all__ = [
    "BatchSystem",
    "Comparison",
    "compare",
    "differences",
    "instants",
    "means",
    "shape_checks",
]
