"""Warnings that brokerlab keeps for a page."""

from __future__ import annotations

import warnings

import pytest

from brokerlab.errors import MOST_MESSAGE, BrokerlabWarning, collect_warnings


def warn_and_collect() -> list[str]:
    with collect_warnings() as messages:
        for message in ("odd", "odd", "strange", "long\0" * 900):
            warnings.warn(message, BrokerlabWarning, stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    return messages


def test_own_warnings_are_kept_once_and_others_passed_on() -> None:
    with pytest.warns(DeprecationWarning, match="old"):
        messages = warn_and_collect()
    assert messages[:-1] == ["odd", "strange"]
    assert len(messages[-1]) == MOST_MESSAGE
    assert messages[-1].startswith("long<U+0000>long")
