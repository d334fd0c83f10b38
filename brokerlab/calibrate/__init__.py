"""What should be set: back-tests of history and simulations, one judge, proposals with their evidence.

``judge`` chooses settings block by block and scores them on what came after, ``percentiles`` replays scout ranks and
margins, ``finite_sample`` says what n scouts can promise at all, ``propose`` turns a judgement into a verdict and a
proposal document. The parts load on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brokerlab.calibrate.verdict import Verdict, current_setting, propose

__all__ = ["Verdict", "current_setting", "propose"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'brokerlab.calibrate' has no attribute '{name}'")
    from brokerlab.calibrate import verdict

    return getattr(verdict, name)
