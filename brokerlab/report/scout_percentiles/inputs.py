"""Load what a scout calibration needs, with times as text."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from brokerlab.calibrate.inputs import Inputs
from brokerlab.calibrate.inputs import load as loaded
from brokerlab.errors import ConfigError

__all__ = ["Inputs", "load", "time_of"]


def load(
    archive: str | Path, *, window_start: str = "", window_end: str = "", **chosen: Any
) -> Inputs:
    """Load the tasks of a window and what their finished jobs say."""
    start, end = time_of("window_start", window_start), time_of("window_end", window_end)
    return loaded(archive, start=start, end=end, **chosen)


def time_of(name: str, text: str) -> datetime | None:
    """Read a time of a parameter; archive times are UTC without zone.

    Raises:
        ConfigError: It is not ISO 8601, or has a zone.
    """
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{name}={text!r}: must be ISO 8601, such as 2026-03-01T00:00") from None
    if at.tzinfo is not None:
        raise ConfigError(f"{name}={text!r}: times are UTC, leave the zone out")
    return at
