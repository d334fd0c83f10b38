"""Temporary folders that are private to a process, and go with it however it ends."""

import contextlib
import fcntl
import shutil
import tempfile
import weakref
from functools import cache
from pathlib import Path
from typing import IO

PREFIX = "brokerlab-"
MARK = ".temporary"
"""File in a folder that its process holds a lock on; a folder without it is not ours to remove."""


class TemporaryFolder:
    """A folder in the system's temporary folder that only this user can enter.

    It goes when it is closed, when nothing holds it any more, or when Python ends. Those of processes that were killed go when
    the next one is made.

    Attributes:
        path: The folder.

    Example:
        >>> with TemporaryFolder() as path:
        ...     path.is_dir()
        True
        >>> path.exists()
        False
    """

    def __init__(self) -> None:
        sweep()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
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
