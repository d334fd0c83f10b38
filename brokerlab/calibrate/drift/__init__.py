"""Does an accepted proposal still hold on later data? Its proof again, on what it never saw.

``percentiles`` scores percentiles of the scouts on later tasks, ``exchange`` the importance of the network weight on
later links. Where a proof cannot be repeated on an archive, the answer is that, never that the proposal holds.
"""

from brokerlab.calibrate.drift.answer import WORDS, Drift, NotRepeatableError, Status, refused
from brokerlab.calibrate.drift.exchange import exchange_drift, is_of_exchange
from brokerlab.calibrate.drift.percentiles import drift, is_of_percentiles, question_of

__all__ = [
    "WORDS",
    "Drift",
    "NotRepeatableError",
    "Status",
    "drift",
    "exchange_drift",
    "is_of_exchange",
    "is_of_percentiles",
    "question_of",
    "refused",
]
