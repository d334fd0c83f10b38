"""Documents written to files, and what became of them."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from brokerlab import archive
from brokerlab.archive.ingestion import IngestReport, ingest


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Return a writer of JSON files; text is written as it is."""

    def made(data: Any, name: str = "document.json") -> Path:
        path = tmp_path / name
        text = data if isinstance(data, str) else json.dumps(data)
        raw = text.encode("utf-8", "surrogatepass")
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return path

    return made


class Outcome:
    """An ingested file: its tables, refused rows, counts and notes."""

    def __init__(self, report: IngestReport, folder: Path) -> None:
        self.report, self.opened = report, archive.open(folder)

    def table(self, name: str) -> pl.DataFrame:
        """Return a table, sorted by its key."""
        return self.opened.scan(name).collect().sort(archive.contracts.key_columns(name))

    @property
    def refused(self) -> list[tuple[str, int, str | None, str]]:
        """Return table, row, key, reason of every refused row."""
        if not self.opened.has("quarantine"):
            return []
        rows = self.opened.scan("quarantine").collect().sort("table", "row", "reason")
        return rows.select("table", "row", "key", "reason").rows()

    @property
    def counts(self) -> dict[str, tuple[int, int, int, int]]:
        """Return (rows, accepted, quarantined, duplicates) by table."""
        return {row[1]: row[2:] for row in self.report.frame().rows()}

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the readers told."""
        return self.report.sources[0].notes


@pytest.fixture
def outcome(tmp_path: Path) -> Callable[..., Outcome]:
    """Return an ingester; the counts of every source must add up."""

    def made(path: Path, **options: Any) -> Outcome:
        folder = tmp_path / "archive"
        report = ingest([path], folder, **options)
        for _, _, rows, accepted, refused, doubled in report.frame().iter_rows():
            assert rows == accepted + refused + doubled
        before = archive.open(folder).digest
        again = ingest([path], folder, **options)
        assert again.skipped == (path.name,)
        assert archive.open(folder).digest == before
        return Outcome(report, folder)

    return made
