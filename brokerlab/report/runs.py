"""Names of runs: a free one from time and parameters, or the one that a scheduler asks for.

A name that is asked for is a promise: the same inputs under it are one run, however often it is asked for. Other
inputs are refused; what failed or was broken off is done again.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from brokerlab import __version__
from brokerlab.errors import BrokerlabError, ConfigError, ReportError
from brokerlab.report.results import RESERVED, jsonable

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+=-]{0,99}")
"""Names that a folder and a link can have; Airflow's run ids are among them."""
UNIT_PATH, UNIT_REPORTS = "[path]", "[path of reports]"
"""Ends of the meaning of a parameter that names a file or folder; of reports only the proposals are read."""
PROPOSALS = "proposal*.json"
UNFINISHED = ".unfinished"
"""End of the name of a run's folder, which is hidden, until the run is complete."""


def free_id(home: Path, started: datetime, given: Mapping[str, Any]) -> str:
    """Return an id that is free: UTC time, and a digest of the parameters."""
    stem = f"{started.astimezone(UTC):%Y%m%dT%H%M%SZ}-{digest_of(given)[:8]}"
    taken = {path.name.removeprefix(".").removesuffix(UNFINISHED) for path in home.iterdir()}
    number = 1
    while (run_id := stem if number == 1 else f"{stem}-{number}") in taken:
        number += 1
    return run_id


def check_id(run_id: str) -> str:
    """Return an id that was asked for.

    Example:
        >>> check_id("scheduled__2026-03-24T04:00:00+00:00")
        'scheduled__2026-03-24T04:00:00+00:00'
    """
    if not RUN_ID.fullmatch(run_id):
        raise ConfigError(
            f"--run-id {run_id!r}: allowed are 1 to 100 letters, digits and . _ : + = -, a letter or digit first"
        )
    return run_id


def inputs_of(
    meanings: Mapping[str, str], values: Mapping[str, Any], notebook: Path
) -> dict[str, str]:
    """Return everything that decides what a run finds, by name: equal inputs, equal answer.

    These are ``brokerlab`` (version) and ``notebook`` (digest); every parameter as JSON; for those that name a file or
    folder, by their meaning, also ``content of NAME`` (digest, or "absent").
    """
    result = {"brokerlab": __version__, "notebook": digest_of_file(notebook)}
    for name, value in values.items():
        result[name] = json.dumps(jsonable(value), sort_keys=True)
        meaning = meanings[name].strip()
        if name != RESERVED and value and meaning.endswith((UNIT_PATH, UNIT_REPORTS)):
            only = PROPOSALS if meaning.endswith(UNIT_REPORTS) else "*"
            result[f"content of {name}"] = _content(Path(str(value)), only)
    return result


def _content(path: Path, only: str) -> str:
    """Return the digest of an archive, a file, or all visible files of a folder."""
    if path.is_file():
        return digest_of_file(path)
    if not path.is_dir():
        return "absent"
    if only == "*":
        from brokerlab.archive.store import open_archive

        with contextlib.suppress(BrokerlabError):
            return open_archive(path).digest
    digest = hashlib.sha256()
    for file in sorted(path.rglob(only)):
        name = file.relative_to(path)
        if file.is_file() and not any(part.startswith(".") for part in name.parts):
            digest.update(f"{name.as_posix()}\0{digest_of_file(file)}\n".encode())
    return digest.hexdigest()


def digest_of(plain: Any) -> str:
    """Return the digest of what JSON can hold."""
    return hashlib.sha256(json.dumps(jsonable(plain), sort_keys=True).encode()).hexdigest()


def digest_of_file(path: Path) -> str:
    """Return the digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def finished(folder: Path, inputs: Mapping[str, str]) -> bool:
    """Tell whether a run is there already; one that failed, or whose files cannot be read, is not."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        state, before = manifest["state"], manifest.get("inputs")
        whole = bool(results["page"]) and (folder / "index.html").is_file()
    except (OSError, ValueError, LookupError, TypeError):
        return False
    if state != "finished" or not whole:
        return False
    if not isinstance(before, dict):
        raise ReportError(f"{folder} was not made under --run-id: choose another id")
    differ = [
        f"{name}: {_short(before.get(name))} there, {_short(inputs.get(name))} now"
        for name in sorted(before.keys() | inputs.keys())
        if before.get(name) != inputs.get(name)
    ]
    if differ:
        raise ReportError(
            f"run id {folder.name!r} is taken by a run with other inputs ({'; '.join(differ)}); "
            f"choose another id, or remove {folder}"
        )
    return True


def _short(value: str | None) -> str:
    """Shorten a digest."""
    if value is None:
        return "none"
    return value[:12] if re.fullmatch(r"(sha256:)?[0-9a-f]{64}", value) else value


@contextlib.contextmanager
def workshop(home: Path, run_id: str) -> Iterator[Path]:
    """Give a run an empty hidden folder that no other process works in.

    Whoever was killed in it before has left files and no lock; they go.
    """
    folder = home / f".{run_id}{UNFINISHED}"
    with contextlib.ExitStack() as stack:
        while not (folder.is_dir() and stack.enter_context(_lock(folder, run_id))):
            stack.close()  # it was renamed by who had the lock before
            folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        yield folder


@contextlib.contextmanager
def _lock(folder: Path, run_id: str) -> Iterator[bool]:
    """Lock a folder however the process ends, where the system can; tell whether it is still in its place."""
    try:
        import fcntl
    except ImportError:  # not POSIX
        yield True
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ReportError(f"run {run_id} is being made by another process") from None
        yield folder.is_dir() and folder.stat().st_ino == os.fstat(handle).st_ino
    finally:
        os.close(handle)


def put(folder: Path, final: Path) -> None:
    """Put a run in its place; one that failed before goes."""
    old = final.with_name(f".{final.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if final.exists():
        final.rename(old)
    folder.rename(final)
    shutil.rmtree(old, ignore_errors=True)


def earlier_looks(
    report: str,
    folder: str | Path,
    asked: Mapping[str, Any],
    archive: str,
    questions: Sequence[str],
) -> list[dict[str, Any]]:
    """Return what earlier runs beside this one asked of the same archive with other limits or filters (``questions``).

    The same question under several of them is several questions: of twenty that have no effect one has a verdict by chance.
    No two alike are returned; runs that cannot be read are passed over.
    """
    here = Path(folder)
    chance = {*questions, "archive", "n_boot", "seed", RESERVED}
    wanted = json.loads(json.dumps(jsonable(dict(asked))))
    rest = {name: value for name, value in wanted.items() if name not in chance}
    result: list[dict[str, Any]] = []
    for path in sorted(here.parent.glob("*/results.json")):
        if path.parent == here:
            continue
        try:
            results = json.loads(path.read_text(encoding="utf-8"))
            same = results["report"] == report and results["digests"]["archive"] == archive
            given = results["parameters"]
            other = {name: given[name] for name in questions}
            same = same and all(given[name] == value for name, value in rest.items())
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if same and other != {name: wanted[name] for name in questions} and other not in result:
            result.append(other)
    return result
