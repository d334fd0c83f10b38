"""Does an accepted proposal still hold on later data? Its proof again, on what it never saw.

``percentiles`` scores percentiles of the scouts on later tasks, ``exchange`` the importance of the network weight on
later links, ``thresholds`` simulates thresholds on later tasks; ``later`` asks any proposal on an archive. Where a proof cannot be repeated on an archive, the answer is that, never that the proposal holds.
"""

from brokerlab.calibrate.drift.answer import (
    WORDS,
    Drift,
    NotRepeatableError,
    Status,
    all_of,
    refused,
)
from brokerlab.calibrate.drift.exchange import exchange_drift, is_of_exchange
from brokerlab.calibrate.drift.later import LaterArchive
from brokerlab.calibrate.drift.percentiles import drift, is_of_percentiles, question_of
from brokerlab.calibrate.drift.thresholds import is_of_thresholds, thresholds_drift

__all__ = [
    "WORDS",
    "Drift",
    "LaterArchive",
    "NotRepeatableError",
    "Status",
    "all_of",
    "drift",
    "exchange_drift",
    "is_of_exchange",
    "is_of_percentiles",
    "is_of_thresholds",
    "question_of",
    "refused",
    "thresholds_drift",
]
