"""What should be set: back-tests of history, a choice under stated limits, a proof on a later period.

``percentiles`` replays scout ranks and margins, ``finite_sample`` says what n scouts can promise at all,
``propose`` turns choice and proof into a verdict and a proposal document.
"""

from brokerlab.calibrate.verdict import Verdict, current_setting, propose

__all__ = ["Verdict", "current_setting", "propose"]
