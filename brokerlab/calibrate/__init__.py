"""What should be set: back-tests of history and simulations, one judge, proposals with their evidence.

``judge`` chooses settings block by block and scores them on what came after, ``verdict`` turns a judgement into a sentence
and a proposal. The kinds of settings: ``percentiles`` replays scout ranks and margins, ``nearest_setting`` asks which of them
comes nearest to an estimator, ``thresholds`` simulates, ``network_curve`` looks at transfers. ``drift`` asks the judge again on
later data.

The room is larger than was planned, since every kind makes outcomes in a way of its own: three tenths of it are the grid
simulator, which has to be as quick as compiled code and to be held against history before it is believed, two tenths the replay
of requests job by job, one and a half the search among thresholds, one and a bit the evidence of links. What all kinds share, the
judge, its words, its documents and drift, is a tenth.
"""

from typing import TYPE_CHECKING

from brokerlab.lazy import lazy

if TYPE_CHECKING:
    from brokerlab.calibrate.calls import backtest, simulate
    from brokerlab.calibrate.percentiles import current_setting, propose

__all__ = ["backtest", "current_setting", "propose", "simulate"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        **dict.fromkeys(("backtest", "simulate"), "calls"),
        **dict.fromkeys(("current_setting", "propose"), "percentiles"),
    },
)
