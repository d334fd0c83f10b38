"""Temporary folders that are private to a process, and go with it however it ends."""

import contextlib
import errno
import fcntl
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO

from brokerlab.errors import DataError, room

PREFIX = "brokerlab-"
MARK = ".temporary"
"""File in a folder that its process holds a lock on; a folder without it is not ours to remove."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


class TemporaryFolder:
    """A folder in the system's temporary folder that only this user can enter.

    It goes when it is closed, when nothing holds it any more, or when Python ends. Those of processes that were killed go when
    the next one is made.

    Attributes:
        path: The folder.
        share: How much of what it is to hold it holds, for `filling`; 0: not known.

    Raises:
        DataError: The system's temporary folder cannot be written.

    Example:
        >>> with TemporaryFolder() as path:
        ...     path.is_dir()
        True
        >>> path.exists()
        False
    """

    def __init__(self) -> None:
        try:
            sweep()
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        except OSError as error:
            place = tempfile.tempdir or "the temporary folder"
            raise DataError(
                f"{place}: no temporary folder can be made there ({error.strerror}); set TMPDIR to one that can be written"
            ) from error
        self.share = 0.0
        unlocked = self.path / f"{MARK}-new"
        lock = unlocked.open("wb")
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unlocked.rename(self.path / MARK)
        self.close = weakref.finalize(self, _remove, self.path, lock)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def filling(self) -> Iterator[None]:
        """Remove the folder where writing to it fails; a disk without room is a `DataError` with what was needed."""
        try:
            yield
        except BaseException as error:
            held = sum(file.stat().st_size for file in self.path.glob("*")) / 1e9
            needed = f"about {held / self.share:,.1f}" if self.share else "more than this"
            message = f"{self.path}: temporary rows do not fit: {held:,.1f} GB written, {needed} needed, {room(self.path)}"
            self.close()
            if isinstance(error, OSError) and error.errno in _NO_ROOM:
                raise DataError(
                    f"{message}; make room, or set TMPDIR to a folder with it"
                ) from error
            raise


@cache
def _of_process() -> TemporaryFolder:
    return TemporaryFolder()


def lasting() -> Path:
    """Return a new temporary folder that stays until Python ends."""
    return Path(tempfile.mkdtemp(dir=_of_process().path))


def _remove(path: Path, lock: IO[bytes]) -> None:
    """Remove a folder while its lock is held."""
    shutil.rmtree(path, ignore_errors=True)
    lock.close()


def sweep() -> None:
    """Remove the folders of processes that are gone; where locks cannot be had all of them stay."""
    for mark in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{MARK}"):
        with contextlib.suppress(OSError), mark.open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(mark.parent, ignore_errors=True)
