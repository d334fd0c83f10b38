"""The settings that acted in an archive."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from brokerlab.gdpconfig import Config

if TYPE_CHECKING:
    from brokerlab.archive import Archive


def settings_at(archive: Archive, at: datetime) -> Config:
    """Return the configuration that acts in an archive at a time; without one the catalogue's defaults."""
    if not archive.has("gdpconfig"):
        return Config.empty()
    return Config.from_frame(archive.scan("gdpconfig").collect()).at(at)
