"""Processing groups: what ``type=`` of a fair share policy looks at instead of the processing type."""

from __future__ import annotations

TEST = "test"
OTHERS = "others"
_OF_THEIR_OWN = ("evgen", "simul", "reprocessing", "mcore", "group", "deriv", "pile", "merge")
_TESTS = ("prod_test", "validation", "ptest", "rc_test", "rc_test2", "rc_alrb")
_GROUPS = {name: name for name in _OF_THEIR_OWN} | dict.fromkeys(_TESTS, TEST)

PROCESSING_GROUPS = (*_OF_THEIR_OWN, TEST, OTHERS)


def processing_group(processingtype: str | None) -> str:
    """Return the processing group of a processing type (docs/rules/zero-share.md 2)."""
    return _GROUPS.get(processingtype or "", OTHERS)
