"""Threshold calibration: what each key trades, whether it matters here, which value is better, and whether that holds later.

* ``keys``: the table `KEYS`; ``screening``: does a value change any decision;
* ``calibration``: `calibrate`, whose steps are ``study`` (in order), ``sweep`` (a grid against the current setting),
  ``refine`` (the keys that matter together), ``pareto``, ``choice`` and ``proof``, ``verdict``; ``result`` holds what came out;
* ``outcomes``: what a simulation must say; ``grid``: the grid simulator as one;
* ``options``: what may be asked for; ``archive_study``: all of it on an archive, in one call; ``frames``: its result as frames;
* inside: ``settings`` (keys with values), ``intervals`` (paired differences), ``runs`` and ``store`` (simulations made once,
  whatever fails), ``check``.
"""

from brokerlab.calibrate.thresholds.archive_study import ArchiveStudy, study_archive
from brokerlab.calibrate.thresholds.calibration import calibrate
from brokerlab.calibrate.thresholds.choice import Choice, Limits
from brokerlab.calibrate.thresholds.keys import KEYS, THRESHOLDS, Threshold, threshold_of
from brokerlab.calibrate.thresholds.options import Options
from brokerlab.calibrate.thresholds.outcomes import (
    OBJECTIVES,
    QUANTITIES,
    Outcome,
    Period,
    WhatIf,
)
from brokerlab.calibrate.thresholds.proof import Proof
from brokerlab.calibrate.thresholds.result import Calibration
from brokerlab.calibrate.thresholds.screening import screen, screen_by_value
from brokerlab.calibrate.thresholds.sweep import Replications
from brokerlab.calibrate.thresholds.verdict import Verdict

__all__ = [
    "KEYS",
    "OBJECTIVES",
    "QUANTITIES",
    "THRESHOLDS",
    "ArchiveStudy",
    "Calibration",
    "Choice",
    "Limits",
    "Options",
    "Outcome",
    "Period",
    "Proof",
    "Replications",
    "Threshold",
    "Verdict",
    "WhatIf",
    "calibrate",
    "screen",
    "screen_by_value",
    "study_archive",
    "threshold_of",
]
