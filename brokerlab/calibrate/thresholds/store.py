"""Results that are kept, so that an interrupted study goes on where it was.

One folder per (settings, seed, period, simulation), written under a temporary name and renamed: there is no half result.
"""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from brokerlab.calibrate.thresholds.outcomes import Outcome, Period, WhatIf
from brokerlab.errors import ConfigError, DataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.values import digest_of

TABLES = ("tasks", "queues")
FORMAT = 2
"""Changes with the columns of the tables: older results are then not found."""


@dataclass(frozen=True)
class Store:
    """A folder of results.

    Attributes:
        folder: Where.
        digest: Of the simulation: archive, rules, options.
    """

    folder: Path
    digest: str

    @classmethod
    def at(cls, folder: str | Path, what_if: WhatIf) -> Store:
        """Open a folder for the results of a simulation, or make it.

        Raises:
            ConfigError: The simulation does not say what its results depend on besides settings, seed and period.
            DataError: It cannot be made.
        """
        digest = getattr(what_if, "digest", None)
        if not isinstance(digest, str) or not digest:
            raise ConfigError(
                "store: the simulation has no attribute `digest`, so that kept results could be of another one; give it one, "
                "or leave store out"
            )
        path = Path(folder)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise DataError(f"store {path}: {problem}; name a folder that can be made") from None
        return cls(path, digest)

    def place(self, config: Config, seed: int, period: Period) -> Path:
        """Return the folder of a result."""
        what = [FORMAT, self.digest, config.digest, seed, *(at.isoformat() for at in period)]
        name = digest_of(what).removeprefix("sha256:")[:32]
        return self.folder / name[:2] / name

    def get(self, config: Config, seed: int, period: Period) -> Outcome | None:
        """Return a result; null if it is not there, or is damaged."""
        folder = self.place(config, seed, period)
        if not folder.is_dir():
            return None
        try:
            return Outcome(**{name: pl.read_parquet(folder / f"{name}.parquet") for name in TABLES})
        except (OSError, pl.exceptions.PolarsError):
            shutil.rmtree(folder, ignore_errors=True)  # it is made again
            return None

    def put(self, config: Config, seed: int, period: Period, outcome: Outcome) -> None:
        """Keep a result; one that is there stays."""
        folder = self.place(config, seed, period)
        temporary = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
        temporary.mkdir(parents=True)
        try:
            for name in TABLES:
                getattr(outcome, name).write_parquet(temporary / f"{name}.parquet")
            temporary.rename(folder)
        except OSError:
            if not folder.is_dir():  # else it was there, or another process was first
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
