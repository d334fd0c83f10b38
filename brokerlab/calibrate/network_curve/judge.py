"""Whether a fitted weight is proven better than the document's, and better at what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from brokerlab.calibrate.network_curve.scores import Scores

Outcome = Literal["better", "not_proven", "worse", "worse_at_top", "demand"]


@dataclass(frozen=True)
class Judgement:
    """What the later period says about a fitted weight.

    Attributes:
        outcome: ``better``: ranks links better beyond doubt and the top tenth no worse. ``not_proven``: the interval
            of the difference includes 0. ``worse``: ranks them worse beyond doubt. ``worse_at_top``: better over
            all, worse among the top tenth. ``demand``: better, but the names of the sites alone rank links
            they have not seen no worse: what is ranked is how much was asked for.
        diff: Difference of the rank correlation.
        lo: Lower end of its interval.
        hi: Upper end.
        value: Rank correlation of the fitted weight.
        reference: That of the reference.
    """

    outcome: Outcome
    diff: float
    lo: float
    hi: float
    value: float
    reference: float


def judge(
    scores: Scores, *, proposed: str = "fitted", sites_behind: float | None = None
) -> Judgement:
    """Judge a fitted weight by its scores on links and times it has not seen.

    Args:
        scores: With ``spearman`` and ``ndcg_top``, differences from the reference.
        proposed: Name of the fitted weight.
        sites_behind: Lower end of the interval of what the fitted weight is ahead of the names of the sites
            alone; null = not asked.
    """
    row, top = scores.of(proposed), scores.of(proposed, "ndcg_top")
    outcome: Outcome
    if row["diff_hi"] < 0:
        outcome = "worse"
    elif row["diff_lo"] <= 0:
        outcome = "not_proven"
    elif top["diff_hi"] < 0:
        outcome = "worse_at_top"
    elif sites_behind is not None and sites_behind <= 0:
        outcome = "demand"
    else:
        outcome = "better"
    return Judgement(
        outcome,
        diff=row["diff"],
        lo=row["diff_lo"],
        hi=row["diff_hi"],
        value=row["value"],
        reference=scores.of(scores.reference)["value"],
    )
