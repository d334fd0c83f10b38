"""What an estimator means for settings: the rank, margin and minimum of the scouts' rule that come nearest to it.

``translate`` scores an estimator's allocations, the best member of the family that the deployed system has, and the
current setting on the same jobs by the same loss; what lies between the first two is lost by having to set a rule.
``translate_trial`` does so for an estimator of memory as it was tested on the later tasks of an archive, ``translate_bound``
for the bound of one of walltime.
"""

from brokerlab.calibrate.nearest_setting.of_trial import (
    stated_prices,
    translate_bound,
    translate_trial,
)
from brokerlab.calibrate.nearest_setting.translate import Given, Translation, translate

__all__ = [
    "Given",
    "Translation",
    "stated_prices",
    "translate",
    "translate_bound",
    "translate_trial",
]
