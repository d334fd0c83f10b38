"""WHAT HAPPENED: table contracts, readers, quarantine, the store, the synthetic archive.

``open`` gives the lazy tables of an archive folder, ``profile`` what to look at first in them, ``ingest``
fills one from dumps, ``ArchiveWriter`` writes one, ``validate`` holds a frame to its contract. The parts
load on first use: ``import brokerlab.archive`` is cheap.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brokerlab.archive.ingestion import IngestReport, ingest
    from brokerlab.archive.profiling import Profile, profile
    from brokerlab.archive.schema import validate
    from brokerlab.archive.store import Archive, ArchiveWriter
    from brokerlab.archive.store import open_archive as open  # noqa: A004

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

_HOME = {
    "Archive": ("brokerlab.archive.store", "Archive"),
    "ArchiveWriter": ("brokerlab.archive.store", "ArchiveWriter"),
    "IngestReport": ("brokerlab.archive.ingestion", "IngestReport"),
    "ingest": ("brokerlab.archive.ingestion", "ingest"),
    "Profile": ("brokerlab.archive.profiling", "Profile"),
    "open": ("brokerlab.archive.store", "open_archive"),
    "profile": ("brokerlab.archive.profiling", "profile"),
    "validate": ("brokerlab.archive.schema", "validate"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'brokerlab.archive' has no attribute '{name}'")
    module, attribute = _HOME[name]
    return getattr(importlib.import_module(module), attribute)
