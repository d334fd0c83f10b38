"""Results made from an archive, kept beside its tables: what is asked for again is read and not made again.

A result lies in a folder ``.kept/NAME-KEY`` of the archive, its frames in Arrow files. The key is a digest of the
archive's content, of the question and of this package's sources. A folder appears whole or not at all; one that is
damaged is made anew; the oldest give way to new ones. Where the archive cannot be written nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

import brokerlab
from brokerlab.archive.store import Archive

FOLDER = ".kept"
MOST = 12
"""Results kept per archive."""
_INDEX = "index.json"


@dataclass(frozen=True)
class Result:
    """What can be kept: tables by name, and sentences that go with them."""

    frames: Mapping[str, pl.DataFrame]
    texts: tuple[str, ...] = ()


def kept(
    archive: Archive, name: str, question: Mapping[str, Any], make: Callable[[], Result]
) -> Result:
    """Return a result as it was kept, or make and keep it; the question is all that it depends on besides the archive."""
    asked = json.dumps(question, sort_keys=True, default=str)
    key = hashlib.sha256(f"{archive.digest}\n{_sources()}\n{asked}".encode()).hexdigest()
    folder = archive.path / FOLDER / f"{name}-{key[:24]}"
    # whatever a damaged folder holds, the result can be made anew
    with contextlib.suppress(
        OSError, ValueError, LookupError, TypeError, pl.exceptions.PolarsError
    ):
        return _read(folder)
    result = make()
    with contextlib.suppress(OSError):
        _keep(folder, result)
    return result


def _read(folder: Path) -> Result:
    """Read a result, refusing files that have changed."""
    index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
    frames = {}
    for name, digest in index["frames"].items():
        content = (folder / f"{name}.arrow").read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise ValueError(f"{folder}: {name} has changed")
        frames[name] = pl.read_ipc(io.BytesIO(content))
    with contextlib.suppress(OSError):  # it may be read only
        os.utime(folder)  # it was of use
    return Result(frames, tuple(index["texts"]))


def _keep(folder: Path, result: Result) -> None:
    """Write a result beside its place and move it there in one step."""
    folder.parent.mkdir(exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix="partial-", dir=folder.parent))
    try:
        digests = {}
        for name, frame in result.frames.items():
            content = io.BytesIO()
            frame.write_ipc(content, compression="zstd")
            (fresh / f"{name}.arrow").write_bytes(content.getvalue())
            digests[name] = hashlib.sha256(content.getvalue()).hexdigest()
        index = {"frames": digests, "texts": list(result.texts)}
        (fresh / _INDEX).write_text(json.dumps(index), encoding="utf-8")
        if folder.exists():  # damaged
            shutil.rmtree(folder)
        fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    by_age = sorted(folder.parent.glob("*-*"), key=lambda path: path.stat().st_mtime)
    for old in by_age[:-MOST]:
        shutil.rmtree(old, ignore_errors=True)


@lru_cache(maxsize=1)
def _sources() -> str:
    """Return a digest of this package: other code, other results."""
    root = Path(brokerlab.__file__).parent
    digest = hashlib.sha256(brokerlab.__version__.encode())
    for file in sorted(path for kind in ("py", "csv", "json") for path in root.rglob(f"*.{kind}")):
        digest.update(f"{file.relative_to(root).as_posix()}\0".encode() + file.read_bytes())
    return digest.hexdigest()
