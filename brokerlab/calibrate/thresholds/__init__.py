"""Threshold calibration: what each key trades, whether it matters here, which value is better, and whether that holds later.

* ``study_archive``: all of it on an archive; ``case_of`` and ``calibrate``: with another simulation, or other values to try.
* ``settings``: a key (`THRESHOLDS`) has a grid and guard rails; a setting gives keys values, a case says what is asked.
* ``outcomes``: what a simulation must say, such as the grid simulator; ``simulations``: made once, as units and replications for
  the judge.
* ``screening``: does a value change any decision; ``calibration``: which settings are worth judging, the judge, again over the
  range of unknown slots; the judgement in words and ``tables``.
"""

from brokerlab.calibrate.thresholds.archive_study import study_archive
from brokerlab.calibrate.thresholds.calibration import Calibration, calibrate
from brokerlab.calibrate.thresholds.outcomes import LIMITS, QUANTITIES, Period, WhatIf
from brokerlab.calibrate.thresholds.screening import Screen, screen
from brokerlab.calibrate.thresholds.settings import THRESHOLDS, Options, case_of, threshold_of

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
