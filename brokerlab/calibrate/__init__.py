"""What should be set: back-tests of history and simulations, one judge, proposals with their evidence.

``judge`` chooses settings block by block and scores them on what came after, ``verdict`` turns a judgement into a sentence
and a proposal document. The kinds of settings: ``percentiles`` replays scout ranks and margins, ``nearest_setting`` asks
which of them comes nearest to an estimator, ``thresholds`` simulates, ``network_curve`` looks at transfers. ``drift`` asks
the judge again on later data. The parts load on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brokerlab.calibrate.percentiles import backtest, current_setting, propose

__all__ = ["backtest", "current_setting", "propose"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'brokerlab.calibrate' has no attribute '{name}'")
    from brokerlab.calibrate import percentiles

    return getattr(percentiles, name)
