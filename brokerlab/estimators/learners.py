"""The estimators that learn from earlier tasks, by name: what reports and tests hold against the deployed rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from brokerlab.errors import ConfigError, nearest
from brokerlab.estimators.estimator import Estimator
from brokerlab.estimators.hierarchy import Hierarchy
from brokerlab.estimators.records import Quantity

MODEL = "hierarchy"  # the estimator that is never left out
Make = Callable[[], Estimator]


def learners(quantity: Quantity, *names: str, seed: int = 0) -> Mapping[str, Make]:
    """Return how estimators that learn are made, the hierarchy first."""
    from brokerlab.estimators.quantiles import LinearQuantiles, QuantileBoosting

    makes: tuple[Make, ...] = (
        partial(Hierarchy, quantity),
        partial(QuantileBoosting, quantity, seed=seed),
        partial(LinearQuantiles, quantity, seed=seed),
    )
    known = {make().name: make for make in makes}
    wrong = [f"'{name}': {nearest(name, known)}" for name in names if name not in known]
    if wrong:
        raise ConfigError("models: " + "; ".join(wrong))
    return {name: make for name, make in known.items() if not names or name in {MODEL, *names}}
