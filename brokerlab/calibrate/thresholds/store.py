"""Results that are kept, so that an interrupted study goes on where it was.

One folder per (settings, seed, period, simulation), written under a temporary name and renamed: there is no half result.
"""

from __future__ import annotations

import json
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from brokerlab.calibrate.thresholds.outcomes import Outcome, Period
from brokerlab.errors import DataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.values import digest_of

TABLES = ("tasks", "queues", "system")
FORMAT = 1
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
    def at(cls, folder: str | Path, digest: str) -> Store:
        """Open a folder, or make it.

        Raises:
            DataError: It cannot be made.
        """
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
        folder.parent.mkdir(exist_ok=True)
        temporary = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
        temporary.mkdir()
        try:
            for name in TABLES:
                getattr(outcome, name).write_parquet(temporary / f"{name}.parquet")
            about = {"config": config.digest, "seed": seed, "period": [str(at) for at in period], "simulation": self.digest}  # fmt: skip
            (temporary / "about.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
            if not folder.exists():
                temporary.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was first
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
