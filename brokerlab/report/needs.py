"""What reports read of an archive, as data: their `load` opens it by this, `check` says beforehand whether they can run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab import words
from brokerlab.archive import Archive
from brokerlab.archive.store import open_archive
from brokerlab.errors import MissingTableError


@dataclass(frozen=True)
class Rows:
    """What must be among the jobs."""

    what: str  # it, in words
    count: pl.Expr  # how many there are: one number over ``jobs``; null counts as 0
    least: int = 1  # so many are needed

    @classmethod
    def tasks(cls, what: str, where: pl.Expr, least: int = 1) -> Rows:
        """Count tasks with such jobs."""
        return cls(what, pl.col("jeditaskid").filter(where).drop_nulls().n_unique(), least)


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a report reads of an archive."""

    tables: Sequence[str] = ()  # it cannot do without these
    one_of: Sequence[str] = ()  # nor without one of these
    derived: Sequence[str] = ()  # those that are made from the jobs where they are absent
    # nor without these: with fewer it finds when it runs that it has no answer
    rows: Sequence[Rows] = ()
    # table to what stands for it where it is absent: a sentence, which the page says
    without: Mapping[str, str] = field(default_factory=dict)
    # memory of the notebook's process with few jobs and what each further million adds [GB], measured on
    # synthetic archives of 60 days with up to 2 million jobs; zeros: not measured
    memory_gb: tuple[float, float] = (0.0, 0.0)

    def lack_of_memory(self, n_jobs: int, free_gb: float) -> str:
        """Say how much memory a report may need where less is free; empty: it is enough, or not known.

        Example:
            >>> Needs(memory_gb=(1.5, 0.5)).lack_of_memory(3_000_000, 2.0)
            'about 3.0 GB of memory are needed for 3,000,000 jobs, 2.0 GB are free'
        """
        first, more = self.memory_gb
        needed = first + more * n_jobs / 1e6
        if needed <= free_gb:
            return ""
        return f"about {needed:.1f} GB of memory are needed for {n_jobs:,} jobs, {free_gb:.1f} GB are free"

    def opened(self, archive: Archive) -> Archive:
        """Return an archive with the tables that are derived."""
        whole = self.derive(archive)
        if lack := self._lack_of_tables(whole):
            present = ", ".join(whole.tables) or "none"
            raise MissingTableError(
                f"the archive has {lack}; its tables: {present}; ingest a source that holds them"
            )
        return whole

    def missing(self, archive: Archive) -> list[str]:
        """Say what an archive lacks; an empty list where the report can run."""
        whole = self.derive(archive)
        lack = self._lack_of_tables(whole)
        return [lack] if lack else self._too_few(whole)

    def derive(self, archive: Archive) -> Archive:
        """Return an archive with the tables that are derived, whatever else it lacks."""
        return archive.derive(*self.derived) if self.derived else archive

    def caveats(self, archive: Archive) -> list[str]:
        """Say what stands for absent tables that are not derived."""
        return [text for table, text in self.without.items() if not _holds(archive, table)]

    def _lack_of_tables(self, archive: Archive) -> str:
        missing = [table for table in self.tables if not _holds(archive, table)]
        if not missing and self.one_of and not any(_holds(archive, t) for t in self.one_of):
            missing = [" or ".join(self.one_of)]
        return f"no {words.listed(missing)}" if missing else ""

    def _too_few(self, archive: Archive) -> list[str]:
        """Say which rows are too few."""
        counts = [rows.count.alias(str(place)) for place, rows in enumerate(self.rows)]
        if not counts:
            return []
        counted = archive.scan("jobs").select(counts).collect(engine="streaming").row(0)
        return [
            f"{n or 0} {rows.what}, {rows.least} needed"
            for n, rows in zip(counted, self.rows, strict=True)
            if (n or 0) < rows.least
        ]


def _holds(archive: Archive, table: str) -> bool:
    """Tell whether a table is there with rows, or is derived."""
    return table in archive.derived or bool(archive.manifest.counts.get(table))


def check(archive: str | Path | Archive) -> pl.DataFrame:
    """Say of every report whether it can run on an archive; none is run.

    Args:
        archive: The folder, or an opened archive.

    Returns:
        One row per report: ``report``, ``can_run``, ``missing`` (what it lacks; empty where it can run), ``derived`` (tables
        that it would make from the jobs), ``without`` (sentences: what stands for other absent tables). A report that can
        run may still find too little in a period that is asked for.

    Raises:
        DataError: The archive cannot be read.

    Example:
        >>> import tempfile
        >>> from brokerlab.archive import ArchiveWriter
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with ArchiveWriter(folder) as writer:
        ...         _ = writer.commit()
        ...     verdicts = check(folder)
        >>> verdicts.filter("can_run")["report"].to_list()
        ['proposal-review', 'workflow-pilots']
    """
    from brokerlab.report import find
    from brokerlab.report.parameters import model

    opened = archive if isinstance(archive, Archive) else open_archive(archive)
    rows = []
    for name in find.names():
        needs = getattr(model(find.notebook(name), ours=True), "needs", Needs())
        missing, whole = needs.missing(opened), needs.derive(opened)
        used = ([], []) if missing else (list(whole.derived), needs.caveats(whole))
        rows.append((name, not missing, missing, *used))
    schema: dict[str, Any] = {
        "report": pl.String,
        "can_run": pl.Boolean,
        "missing": pl.List(pl.String),
        "derived": pl.List(pl.String),
        "without": pl.List(pl.String),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")
