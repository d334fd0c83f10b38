"""Does an accepted proposal still hold on later data? The judge asked again, on what the proposal never saw.

``later`` asks any proposal on an archive; ``percentiles`` replays later tasks, ``exchange`` looks at later links, ``thresholds``
simulates later tasks. Where a proof cannot be repeated on an archive, the answer is that, never that the proposal holds.
"""

from brokerlab.calibrate.drift.answer import Drift, NotRepeatableError, Status
from brokerlab.calibrate.drift.later import LaterArchive

__all__ = ["Drift", "LaterArchive", "NotRepeatableError", "Status"]
