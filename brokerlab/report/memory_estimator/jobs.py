"""Parts two and three: jobs of whole tasks, each task tested by estimators that have not seen it."""

from __future__ import annotations

from dataclasses import dataclass

from brokerlab.estimators.memory_tasks import Evaluation


@dataclass(frozen=True, kw_only=True, eq=False)
class JobStudy(Evaluation):
    """What the jobs of one source showed.

    Attributes:
        kind: ``tasks`` (real ones, each left out in turn) or ``archive`` (the later ones).
        called: What sentences call it.
    """

    kind: str
    called: str
