"""Threshold calibration: what each key trades, whether it matters here, which value is better, and whether that holds later.

* ``study_archive``: all of it on an archive; ``case_of`` and ``calibrate``: with another simulation, or other values to try.
* A key (``keys``: the table `KEYS`) has a grid and guard rails; a setting gives keys values (``settings``).
* Outcomes: what a simulation must say (``outcomes``; ``grid``: the grid simulator), made once (``runs``, ``store``), as units
  and replications for the judge (``simulations``).
* ``calibration``: which settings are worth judging (``search``), the judge, again over the range of unknown slots;
  the judgement in ``words``, its tables in ``compare`` and ``frames``; ``screening``: does a value change any decision.
"""

from brokerlab.calibrate.thresholds.archive_study import ArchiveStudy, study_archive
from brokerlab.calibrate.thresholds.calibration import Calibration, calibrate
from brokerlab.calibrate.thresholds.case import Case, case_of
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
from brokerlab.calibrate.thresholds.screening import screen, summed

__all__ = [
    "KEYS",
    "LIMITS",
    "OBJECTIVES",
    "QUANTITIES",
    "THRESHOLDS",
    "ArchiveStudy",
    "Calibration",
    "Case",
    "Options",
    "Outcome",
    "Period",
    "Threshold",
    "WhatIf",
    "calibrate",
    "case_of",
    "screen",
    "study_archive",
    "summed",
    "threshold_of",
]
