"""Refuse impossible parameters of the report before anything is loaded, all at once, by their own names."""

from __future__ import annotations

from pathlib import Path

from brokerlab.brokerage.replay.plan import time_of
from brokerlab.errors import ConfigError


def check(*, proposals: str, archive: str, config: str, at: str, later: str) -> None:
    """Refuse impossible parameters; they are those of the notebook.

    Raises:
        ConfigError: Every parameter that is wrong, with what is allowed.

    Example:
        >>> check(proposals="", archive="", config="", at="soon", later="")
        Traceback (most recent call last):
        brokerlab.errors.ConfigError: at='soon': allowed is a time such as '2026-03-01T12:00'; proposals='': a folder of reports or of proposals, or one proposal is needed
    """
    told = []
    try:
        time_of(at or None, "at")
    except ConfigError as problem:
        told.append(str(problem))
    if not proposals:
        told.append("proposals='': a folder of reports or of proposals, or one proposal is needed")
    for name, path in (
        ("proposals", proposals),
        ("archive", "" if config else archive),
        ("config", config),
        ("later", later),
    ):
        if path and not Path(path).exists():
            told.append(f"{name}={path!r}: there is no such file or folder")
    if told:
        raise ConfigError("; ".join(told))
