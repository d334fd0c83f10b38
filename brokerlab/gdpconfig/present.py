"""The configuration that acts now, from a file or from an archive."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from brokerlab.gdpconfig.config import Config


def present(path: str | Path | None, at: datetime | None = None) -> Config:
    """Read a gdpconfig.

    Args:
        path: CSV, JSON, or the folder of an archive; null: no entries, every key has its default.
        at: Time (UTC) at which to look at a gdpconfig with a history; null: it is returned with its history.

    Raises:
        DataError: The file or the archive cannot be read.
        SchemaError: A column is missing.
    """
    if path is None:
        return Config.empty()
    if Path(path).is_dir():
        from brokerlab import archive

        config = Config.from_frame(archive.open(path).scan("gdpconfig"))
    else:
        config = Config.from_file(path)
    return config if at is None else config.at(at)
