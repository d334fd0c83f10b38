"""What every report writes of a run: tables, the page with its numbers, and what they were made from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from brokerlab.report.content import Fact, Page, jsonable

if TYPE_CHECKING:
    from brokerlab.archive import Archive
    from brokerlab.gdpconfig import Config
    from brokerlab.rulesets import RuleSet

CSV_ROWS = 2000
"""Tables with at most so many rows are also written as CSV, and stand in `results.json`."""


def write_results(
    folder: Path,
    page: Page,
    numbers: Mapping[str, Any],
    digests: Mapping[str, str],
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write `results.json`.

    Args:
        folder: Of the run.
        page: The page.
        numbers: Every number of the page under a stable name.
        digests: Of archive, configuration and rules.
        more: What else it is to hold.

    Returns:
        What it holds.
    """
    results = {
        "report": page.report,
        "page": page.to_json(),
        "numbers": numbers,
        **(more or {}),
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


def digests_of(archive: Archive, config: Config, rules: RuleSet) -> dict[str, str]:
    """Return the digests of what a report was made from."""
    return {"archive": archive.digest, "gdpconfig": config.digest, "rules": rules.digest}


def facts_of(
    archive: Archive, config: Config, rules: RuleSet, *, window: str, filters: str | None = None
) -> tuple[Fact, ...]:
    """Return what a report knows about how it was made; the runner adds the rest.

    Args:
        archive: What was read.
        config: The settings it was judged under.
        rules: The rule set.
        window: Which part of the archive, in words.
        filters: Which rows of that part; null = not said.
    """
    chosen = () if filters is None else (Fact(label="Filter", value=filters),)
    return (
        archive_fact(archive),
        Fact(label="Window", value=window),
        *chosen,
        Fact(label="Rule set", value=options(rules.to_dict())),
        Fact(label="gdpconfig", value=f"digest {config.digest}"),
    )


def archive_fact(archive: Archive) -> Fact:
    """Say which archive was read."""
    return Fact(label="Archive", value=f"{archive.path.as_posix()}, digest {archive.digest}")


def options(values: Mapping[str, Any]) -> str:
    """Write names and their values in one line."""
    return ", ".join(f"{name} {value}" for name, value in values.items())
