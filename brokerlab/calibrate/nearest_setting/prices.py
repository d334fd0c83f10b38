"""The stated loss as prices of attempts: what an estimator must minimise to be judged by that loss."""

from __future__ import annotations

from brokerlab.calibrate.percentiles.parameters import Assumptions, LossWeights, parameter_named
from brokerlab.errors import ConfigError
from brokerlab.estimators.allocation import Ladder, Prices


def stated_prices(
    parameter: str = "ramcount",
    *,
    loss: LossWeights | None = None,
    assumptions: Assumptions | None = None,
) -> tuple[Ladder, Prices]:
    """Return the ladder and the prices under which the cheapest allocation costs least of the stated loss.

    The share of slots that cannot take a job is not among them: it is not a job's alone.

    Args:
        parameter: ``ramcount`` or ``cputime``.
        loss: None: the parameter's weights.
        assumptions: With one retry; None: the back-test's.

    Returns:
        Of a ladder that multiplies what failed once, and gives up after that; prices in core h.

    Raises:
        ConfigError: Another parameter, or other than one retry.

    Example:
        >>> ladder, prices = stated_prices("ramcount")
        >>> ladder.factor, ladder.attempts
        (2.0, 2)
        >>> prices
        Prices(idle=0.5, lost=0.0, failure=0.5, waiting_s=0.0, burnt=1.0, giving_up=9.5)
    """
    made = assumptions or Assumptions()
    if parameter_named(parameter).name == "outdiskcount" or len(made.retry_factors) != 1:
        raise ConfigError(
            f"prices of the loss of {parameter} with {len(made.retry_factors)} retries: they are those of "
            "ramcount or cputime with one retry"
        )
    weights = loss or LossWeights.default(parameter)
    memory = parameter == "ramcount"
    share = made.killed_after if memory else 1.0
    prices = Prices(
        idle=weights.over,
        lost=0.0 if memory else weights.killed_coreh,
        burnt=weights.killed_coreh * share if memory else 0.0,
        failure=weights.n_exceed,
        giving_up=max(
            weights.n_lost - weights.n_exceed, 0.0
        ),  # the second kill is not counted again
    )
    ladder = Ladder(kind="factor", factor=made.retry_factors[0], attempts=2)
    return ladder, prices
