"""WHAT HAPPENED: table contracts, readers, quarantine, the store.

``open`` gives the lazy tables of an archive folder, ``profile`` what to look at first in them, ``ingest``
fills one from dumps, ``ArchiveWriter`` writes one, ``validate`` holds a frame to its contract. The parts
load on first use: ``import brokerlab.archive`` is cheap.

A fifth of its lines are readers (CSV, Parquet, records of JSON, DuckDB, SQLite, answers of monitor and search, queue records,
links, software, site lists, transfers, InVEx), a tenth are contracts (33 tables, 525 columns), a seventh says what foreign
columns, units and dates mean: that is why the room is larger than others of its depth.
"""

from typing import TYPE_CHECKING

from brokerlab.lazy import lazy

if TYPE_CHECKING:
    from brokerlab.archive.ingestion import IngestReport, ingest
    from brokerlab.archive.profiling import Profile, profile
    from brokerlab.archive.schema import validate
    from brokerlab.archive.store import Archive
    from brokerlab.archive.store import open_archive as open  # noqa: A004
    from brokerlab.archive.writer import ArchiveWriter

__all__ = [
    "Archive",
    "ArchiveWriter",
    "IngestReport",
    "Profile",
    "ingest",
    "open",
    "profile",
    "validate",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "Archive": "store",
        "ArchiveWriter": "writer",
        **dict.fromkeys(("IngestReport", "ingest"), "ingestion"),
        **dict.fromkeys(("Profile", "profile"), "profiling"),
        "open": "store:open_archive",
        "validate": "schema",
    },
)
