"""How long a job will wait, from an archive.

* ``estimators``: a bound of a quantile with confidence, and the median of the nearest in size; both learn known waits;
* ``scoring``: predict every job of a log at its submission, by estimators or by carrying the simulated queue forward, and
  score it: coverage, tightness, errors;
* ``order``: which order statistic bounds a quantile.
"""

from brokerlab.workflows.predictors.estimators import (
    Classes,
    Estimate,
    Estimator,
    Nearest,
    QuantileBound,
)
from brokerlab.workflows.predictors.order import fewest, place_of_bound
from brokerlab.workflows.predictors.scoring import PREDICTED, carry_forward, fit, predict, score

__all__ = [
    "PREDICTED",
    "Classes",
    "Estimate",
    "Estimator",
    "Nearest",
    "QuantileBound",
    "carry_forward",
    "fewest",
    "fit",
    "place_of_bound",
    "predict",
    "score",
]
