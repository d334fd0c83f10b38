"""Jobs read into an archive, from CSV and from Parquet, against DuckDB's own reading and writing of the same file.

``csv``, ``parquet``            ``archive.ingest``: contracts, quarantine, doubled rows, layout by day and task, seal
``duckdb_csv``, ``duckdb_parquet``  ``COPY (SELECT * FROM file) TO Parquet``: nothing is checked, nothing is sorted
``laid_csv``, ``laid_parquet``  the same rows by day and task in zstd, as they lie in an archive: nothing is checked, doubled
                                rows stay, and there are no stand-ins for files

The rows are those of the benchmark of scouts, shuffled.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from benchmarks import scouts
from benchmarks.sides import Figures, Line, main, million

SIZE = 1_000_000
FORMATS = ("csv", "parquet")
LABELS = "'managed' AS prodsourcelabel, 'MC 16' AS gshare, 'simul' AS processingtype, 'ann' AS produsername"


def make(folder: Path, jobs: int) -> None:
    """Write the same jobs as one file of each format."""
    import duckdb

    with tempfile.TemporaryDirectory() as made:
        scouts.make(Path(made), jobs)
        rows = f"SELECT *, {LABELS} FROM '{made}/jobs/*.parquet'"
        for suffix in FORMATS:
            duckdb.sql(f"COPY ({rows}) TO '{folder / f'jobs.{suffix}'}'")


def run_ours(suffix: str, folder: Path) -> Figures:
    """Ingest one file."""
    from brokerlab import archive

    found = archive.ingest(folder / f"jobs.{suffix}", folder / f"archive_{suffix}")
    counts = found.frame()
    return {"accepted": float(counts["accepted"].sum())}


def run_duckdb(suffix: str, folder: Path) -> Figures:
    """Read and write one file, nothing else."""
    import duckdb

    out = folder / f"copied_{suffix}.parquet"
    duckdb.sql(f"COPY (SELECT * FROM '{folder / f'jobs.{suffix}'}') TO '{out}'")
    return {}


def run_laid(suffix: str, folder: Path) -> Figures:
    """Read one file and write its rows by day and task."""
    import duckdb

    rows = f"SELECT *, modificationtime::DATE AS day FROM '{folder / f'jobs.{suffix}'}'"
    ordered = f"{rows} ORDER BY day, jeditaskid, pandaid"
    how = "FORMAT parquet, COMPRESSION zstd, PARTITION_BY (day)"
    duckdb.sql(f"COPY ({ordered}) TO '{folder / f'laid_{suffix}'}' ({how})")
    return {}


SIDES = {suffix: partial(run_ours, suffix) for suffix in FORMATS} | {
    f"{peer}_{suffix}": partial(run, suffix)
    for peer, run in (("duckdb", run_duckdb), ("laid", run_laid))
    for suffix in FORMATS
}


def lines(figures: dict[str, Figures], size: int) -> list[Line]:
    """Compare CPU seconds, format by format."""
    return [
        Line(
            what=f"ingest of {million(size)} jobs from {suffix}, {ours['accepted']:,.0f} accepted",
            ours=f"{million(size / ours['wall_s'])} rows/s",
            against=f"ours / DuckDB's own {does}",
            ratio=ours["cpu_s"] / figures[f"{peer}_{suffix}"]["cpu_s"],
            asked=asked,
            cpu_s=ours["cpu_s"],
            peak_gb=ours["peak_gb"],
        )
        for suffix, ours in ((suffix, figures[suffix]) for suffix in FORMATS)
        for peer, does, asked in (
            ("duckdb", "reading and writing", "at most 2.5; below 2 GB"),
            ("laid", "reading, sorting by day and task, and writing", ""),
        )
    ]


if __name__ == "__main__":
    main("benchmarks.ingest", __doc__)
