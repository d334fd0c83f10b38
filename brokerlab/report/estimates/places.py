"""Where the data of a report lie: the folder of real data, and the archive beside it."""

from __future__ import annotations

import os
from pathlib import Path

from brokerlab.archive.store import Archive, open_archive
from brokerlab.errors import DataError

VARIABLE = "BROKERLAB_DATA"
USUAL = "../shared/data"
DEMO = "data/demo"


def data_folder(data: str = "") -> Path | None:
    """Return the folder of real data.

    Args:
        data: The folder; empty: that of the variable ``BROKERLAB_DATA``, or, where it is not set, ``../shared/data``.

    Returns:
        The folder; None where none was named and the usual one is not there.

    Raises:
        DataError: A folder was named and is not there.
    """
    if data:
        folder = Path(data)
        if not folder.is_dir():
            raise DataError(
                f"data={data!r}: no such folder; leave it empty to do without real data"
            )
        return folder
    usual = Path(os.environ.get(VARIABLE, "") or USUAL)
    return usual if usual.is_dir() else None


def archive_at(archive: str = "") -> Archive | None:
    """Open an archive.

    Args:
        archive: Its folder; empty: ``data/demo``.

    Returns:
        The archive; None where none was named and the usual one is not there.

    Raises:
        DataError: A folder was named and is none.
    """
    if not archive and not Path(DEMO).is_dir():
        return None
    return open_archive(archive or DEMO)
