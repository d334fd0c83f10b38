"""Threshold calibration: what each key trades, whether it matters here, which value is better, and whether that holds later.

* ``study_archive``: all of it on an archive; ``case_of`` and ``calibrate``: with another simulation, or other values to try.
* A key (``keys``: `THRESHOLDS`) has a grid and guard rails; a setting gives keys values, a case says what is asked (``settings``).
* Outcomes: what a simulation must say (``outcomes``; ``grid``: the grid simulator), made once (``runs``), as units and
  replications for the judge (``simulations``).
* ``screening``: does a value change any decision; ``calibration``: which settings are worth judging, the judge, again over the
  range of unknown slots; the judgement in words and ``tables``.
"""

from brokerlab.calibrate.thresholds.archive_study import study_archive
from brokerlab.calibrate.thresholds.calibration import Calibration, calibrate
from brokerlab.calibrate.thresholds.keys import THRESHOLDS, threshold_of
from brokerlab.calibrate.thresholds.outcomes import LIMITS, QUANTITIES, Period, WhatIf
from brokerlab.calibrate.thresholds.screening import Screen, screen
from brokerlab.calibrate.thresholds.settings import Options, case_of

__all__ = [
    "LIMITS",
    "QUANTITIES",
    "THRESHOLDS",
    "Calibration",
    "Options",
    "Period",
    "Screen",
    "WhatIf",
    "calibrate",
    "case_of",
    "screen",
    "study_archive",
    "threshold_of",
]
