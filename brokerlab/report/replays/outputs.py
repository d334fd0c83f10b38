"""The files of a run of a replay report: tables, and the page with its numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.report.content import Page, jsonable

CSV_ROWS = 2000
"""Tables with at most so many rows are also written as CSV, and stand in `results.json`."""


def write_results(
    folder: Path, page: Page, numbers: Mapping[str, Any], digests: Mapping[str, str]
) -> dict[str, Any]:
    """Write `results.json`.

    Args:
        folder: Of the run.
        page: The page.
        numbers: Every number of the page under a stable name.
        digests: Of archive, configuration and rules.

    Returns:
        What it holds.
    """
    results = {
        "report": page.report,
        "page": page.to_json(),
        "numbers": numbers,
        "digests": digests,
    }
    text = json.dumps(jsonable(results), indent=1, ensure_ascii=False, allow_nan=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    return results


def write_tables(
    folder: Path, frames: Mapping[str, pl.DataFrame], large: Mapping[str, pl.DataFrame]
) -> None:
    """Write tables as Parquet, small ones as CSV too.

    Args:
        folder: Where; made if it is not there.
        frames: Tables behind the page.
        large: Tables that are written as Parquet only.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in frames.items():
        frame.write_parquet(folder / f"{name}.parquet")
        if frame.height <= CSV_ROWS:
            frame.write_csv(folder / f"{name}.csv")
    for name, frame in large.items():
        frame.write_parquet(folder / f"{name}.parquet")


def listed_rows(frames: Mapping[str, pl.DataFrame]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of tables that are small enough to stand among the numbers."""
    return {name: frame.to_dicts() for name, frame in frames.items() if frame.height <= CSV_ROWS}
