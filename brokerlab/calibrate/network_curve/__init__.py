"""Curves of the network weight from what links deliver: chosen on some links, scored later on others.

``read_links`` reads what links showed and what they delivered later (``from_metrics``, ``from_transfers``);
``study_links`` asks the one judge about every subject that they can tell something about: ``study_curve``,
``study_fallback`` and ``study_exchange`` are the same question with other weights (``study_weights``);
``propose`` writes the answer down. A fitted curve is a :class:`brokerlab.brokerage.network_weight.ThroughputCurve`: data
that ``network_weight.at_links(curve=...)`` takes.

Source: network-weight.md; calibration.md 2.
"""

from brokerlab.calibrate.network_curve.curves import StepFit, beside_current, fit_steps
from brokerlab.calibrate.network_curve.evidence import (
    Evidence,
    Links,
    from_metrics,
    from_transfers,
    read_links,
)
from brokerlab.calibrate.network_curve.study import (
    LinkStudy,
    Study,
    marks,
    propose,
    study_curve,
    study_exchange,
    study_fallback,
    study_links,
    study_weights,
)
from brokerlab.calibrate.network_curve.weights import Weight, files_per_unit, levels_by_setting

__all__ = [
    "Evidence",
    "LinkStudy",
    "Links",
    "StepFit",
    "Study",
    "Weight",
    "beside_current",
    "files_per_unit",
    "fit_steps",
    "from_metrics",
    "from_transfers",
    "levels_by_setting",
    "marks",
    "propose",
    "read_links",
    "study_curve",
    "study_exchange",
    "study_fallback",
    "study_links",
    "study_weights",
]
