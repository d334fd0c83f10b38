"""Threshold calibration: what each key trades, whether it matters here, which value is better, and whether that holds later.

* ``keys``: the table `KEYS`; ``screening``: does a value change any decision;
* ``calibration``: `calibrate`: ``search`` (which settings are worth judging), then the judge of every setting on ``simulations``
  (outcomes with spans of time as units), again over the range of unknown slots; ``verdict``: sentence and document;
* ``outcomes``: what a simulation must say; ``grid``: the grid simulator as one; ``compare``: two settings by every quantity;
* ``options``: what may be asked for; ``archive_study``: all of it on an archive, in one call; ``frames``: its result as frames;
* inside: ``settings`` (keys with values), ``runs`` and ``store`` (simulations made once, whatever fails), ``check``.
"""

from brokerlab.calibrate.thresholds.archive_study import ArchiveStudy, study_archive
from brokerlab.calibrate.thresholds.calibration import Calibration, calibrate
from brokerlab.calibrate.thresholds.keys import KEYS, THRESHOLDS, Threshold, threshold_of
from brokerlab.calibrate.thresholds.options import Options
from brokerlab.calibrate.thresholds.outcomes import (
    LIMITS,
    OBJECTIVES,
    QUANTITIES,
    Outcome,
    Period,
    WhatIf,
)
from brokerlab.calibrate.thresholds.screening import screen, screen_by_value

__all__ = [
    "KEYS",
    "LIMITS",
    "OBJECTIVES",
    "QUANTITIES",
    "THRESHOLDS",
    "ArchiveStudy",
    "Calibration",
    "Options",
    "Outcome",
    "Period",
    "Threshold",
    "WhatIf",
    "calibrate",
    "screen",
    "screen_by_value",
    "study_archive",
    "threshold_of",
]
