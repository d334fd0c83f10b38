"""Curves of the network weight from what links deliver: fit on some links, prove later on others.

``from_metrics`` and ``from_transfers`` give the outcomes, ``fit_steps``, ``fit_fallback`` and ``fit_exchange``
choose, ``compare`` and ``prove_*`` score the choice on links and times that it has not seen, ``judge`` says
what that proves. A fitted curve is a :class:`brokerlab.brokerage.curves.ThroughputCurve`: data that
``network_weight.links(curve=...)`` and the sensitivity of a brokerage take.

Source: network-weight.md; design.md, idea 6.
"""

from brokerlab.calibrate.network_curve import alternatives
from brokerlab.calibrate.network_curve.evidence import Evidence
from brokerlab.calibrate.network_curve.exchange import (
    ExchangeFit,
    files_per_unit,
    fit_exchange,
    importance,
    prove_exchange,
)
from brokerlab.calibrate.network_curve.fallback import FallbackFit, fit_fallback, prove_fallback
from brokerlab.calibrate.network_curve.judge import Judgement, judge
from brokerlab.calibrate.network_curve.metrics import from_metrics
from brokerlab.calibrate.network_curve.mirrors import mirror_groups, unseen
from brokerlab.calibrate.network_curve.periods import from_transfers
from brokerlab.calibrate.network_curve.resolution import resolution, told_apart
from brokerlab.calibrate.network_curve.scores import Scores, compare
from brokerlab.calibrate.network_curve.sources import Links, read_links
from brokerlab.calibrate.network_curve.steps import StepFit, fit_steps

__all__ = [
    "Evidence",
    "ExchangeFit",
    "FallbackFit",
    "Judgement",
    "Links",
    "Scores",
    "StepFit",
    "alternatives",
    "compare",
    "files_per_unit",
    "fit_exchange",
    "fit_fallback",
    "fit_steps",
    "from_metrics",
    "from_transfers",
    "importance",
    "judge",
    "mirror_groups",
    "prove_exchange",
    "prove_fallback",
    "read_links",
    "resolution",
    "told_apart",
    "unseen",
]
