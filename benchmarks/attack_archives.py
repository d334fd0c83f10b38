"""Archives and reports under attack: processes that are killed, interrupted or out of room, parts and manifests that are lost.

A process is stopped at one of its steps (files it opens, renames and removes), so that an attack is the same whenever it is
repeated; every other kill is after some time of the processor, to meet what is no step of Python.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Literal

import duckdb
from typer.testing import CliRunner

from benchmarks.attack_files import Outcome
from benchmarks.attack_mutations import flipped, truncated
from benchmarks.attack_sources import ROWS, plain
from brokerlab.archive import Archive
from brokerlab.archive import manifest as manifests
from brokerlab.archive import open as open_archive
from brokerlab.archive.ingestion import ingest
from brokerlab.errors import MOST_MESSAGE, BrokerlabError

STEPS = ("open", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree")
"""Events of Python at which a process is stopped."""
INTERRUPTED = 130
"""Exit code of a command after Ctrl-C."""
OURS = range(2, 8)
"""Exit codes of our errors."""


@dataclass(frozen=True)
class Fate:
    """What happens to a command.

    Attributes:
        what: ``none``; ``kill`` or ``interrupt`` at a step; ``late``: killed after a time; ``full``: no file becomes larger.
        at: Number of the step, the time of the processor [s], the size [B].
    """

    what: Literal["none", "kill", "interrupt", "late", "full"] = "none"
    at: float = 0


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        code: Exit code.
        text: What it printed, and the error that nobody caught.
        steps: How many it made.
        lasted_s: Time of the processor [s].
    """

    code: int
    text: str
    steps: int
    lasted_s: float


class Steps:
    """Counts the steps of this process in a folder, and stops it at one of them."""

    def __init__(self) -> None:
        self._folder, self._fate, self.n = "", Fate(), 0
        sys.addaudithook(self._see)

    def watch(self, folder: Path | None, fate: Fate) -> None:
        """Count from now on; None: no more."""
        self._folder, self._fate, self.n = str(folder or ""), fate, 0

    def _see(self, event: str, what: tuple[object, ...]) -> None:
        if event in STEPS and self._folder and self._folder in str(what[0]):
            self.n += 1
            if self.n == self._fate.at and self._fate.what in ("kill", "interrupt"):
                os.kill(os.getpid(), signal.SIGKILL if self._fate.what == "kill" else signal.SIGINT)


@cache
def _steps() -> Steps:
    return Steps()


def run(arguments: list[str], folder: Path, fate: Fate) -> Ended:
    """Run a command of ``brokerlab``.

    Args:
        arguments: Of the command.
        folder: Of the steps that count.
        fate: What happens to it; what kills it kills this process.
    """
    from brokerlab.cli import app

    steps, begun = _steps(), time.process_time()
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    steps.watch(folder, fate)
    if fate.what == "full":
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(fate.at), most[1]))
    if fate.what == "late":  # nobody handles the signal: the process ends there
        signal.setitimer(signal.ITIMER_PROF, fate.at)
    try:
        done = CliRunner().invoke(app, arguments)
        code, text = done.exit_code, done.output
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            text += f"\n{type(done.exception).__name__}: {done.exception}"
    except BaseException as error:  # noqa: BLE001 - interrupts, and panics of Polars
        code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
        text = f"{type(error).__name__}: {error}"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
        n = steps.n
        steps.watch(None, Fate())
    return Ended(code, text, n, time.process_time() - begun)


class Grown:
    """An archive of a few jobs, a file with more, and the archive with both.

    Attributes:
        old: The archive before.
        new: The archive after the file was read.
        second: The file.
        arguments: Of the command that reads the file into an archive, but its folder.
        digests: Those that are allowed.
        steps: Of the command.
        lasts_s: Time of the processor that the command needs [s].
    """

    def __init__(self, source: Path, folder: Path) -> None:
        jobs = plain(open_archive(source).scan("jobs").collect())
        first, second = folder / "first.csv", folder / "second.csv"
        jobs.head(ROWS).write_csv(first)
        jobs.write_csv(second)
        self.old, self.new = folder / "old", folder / "new"
        self.second = second
        self.arguments = ["ingest", str(second), "--into"]
        run(["ingest", str(first), "--into", str(self.old)], self.old, Fate())
        shutil.copytree(self.old, self.new)
        ended = self.read_into(self.new, Fate())
        self.steps, self.lasts_s = ended.steps, ended.lasted_s
        self.digests = {open_archive(path).digest for path in (self.old, self.new)}

    def read_into(self, archive: Path, fate: Fate) -> Ended:
        """Run the command."""
        return run([*self.arguments, str(archive)], archive, fate)

    def wrong(self, archive: Path) -> str:
        """Say why an archive is neither the old nor the new one."""
        try:
            opened = open_archive(archive)
            opened.verify()
        except BrokerlabError as error:
            return f"cannot be read: {error}"
        return "" if opened.digest in self.digests else "neither the old nor the new archive"

    def left(self, archive: Path) -> str:
        """Say what lies in an archive besides its own files and those of the generation before."""
        known = {
            file.path for place in (archive, self.old) for file in manifests.read(place).files()
        }
        names = {str(p.relative_to(archive)) for p in archive.rglob("*") if p.is_file()}
        strange = sorted(names - known - {manifests.NAME, ".lock"})
        return f"left behind: {', '.join(strange[:5])}" if strange else ""


def kills(source: Path, folder: Path, n: int, rng: random.Random) -> Iterator[Outcome]:
    """Kill an ingest: the archive is the old or the new one, and nothing is left after the next."""
    grown = Grown(source, folder)
    for number in range(n):
        archive = folder / f"kill-{number}"
        shutil.copytree(grown.old, archive)
        fate = Fate("late", rng.uniform(0.001, 1.05 * grown.lasts_s))
        if number % 2:
            fate = Fate("kill", rng.randint(1, grown.steps))
        process = multiprocessing.get_context("spawn").Process(
            target=grown.read_into, args=(archive, fate)
        )
        process.start()
        process.join()
        problem = grown.wrong(archive)
        if not problem:
            grown.read_into(archive, Fate())
            problem = grown.wrong(archive) or grown.left(archive)
        if problem:
            yield Outcome("silent damage", f"kill {number}, {fate}: {problem}")
        shutil.rmtree(archive)


def interrupts(source: Path, folder: Path, n: int, rng: random.Random) -> Iterator[Outcome]:
    """Press Ctrl-C in an ingest, or while an archive is synthesised: nothing is left at once."""
    grown = Grown(source, folder)
    made = folder / "made"
    making = ["synthesise", "--jobs", "2000", "--days", "1", "--seed", "1", "--into"]
    steps = run([*making, str(made)], made, Fate()).steps
    digest = open_archive(made).digest
    for number in range(n):
        archive = folder / f"interrupt-{number}"
        if number % 5:
            shutil.copytree(grown.old, archive)
            at = rng.randint(1, grown.steps)
            ended = grown.read_into(archive, Fate("interrupt", at))
            problem = grown.wrong(archive) or grown.left(archive)
        else:
            at = rng.randint(1, steps)
            ended = run([*making, str(archive)], archive, Fate("interrupt", at))
            left = [p for p in archive.rglob("*") if p.is_file() and p.name != ".lock"]
            whole = (archive / manifests.NAME).exists() and open_archive(archive).digest == digest
            problem = "" if whole or not left else f"left behind: {left[:5]}"
        if problem:
            yield Outcome("silent damage", f"interrupt {number}, step {at}: {problem}")
        elif ended.code not in (0, INTERRUPTED):
            yield Outcome("foreign exception", f"interrupt {number}: {ended.code} {ended.text[-300:]}")  # fmt: skip
        shutil.rmtree(archive)


def full_disks(source: Path, folder: Path, n: int, rng: random.Random) -> Iterator[Outcome]:
    """Let no file grow beyond a size: an error that names a place, and the archive as it was."""
    grown = Grown(source, folder)
    largest = max(path.stat().st_size for path in grown.new.rglob("*") if path.is_file())
    for number in range(n):
        archive = folder / f"full-{number}"
        shutil.copytree(grown.old, archive)
        at = int(largest ** rng.random())
        ended = grown.read_into(archive, Fate("full", at))
        outcome = _ended_well(ended, archive)
        if problem := grown.wrong(archive) or grown.left(archive):
            outcome = Outcome("silent damage", problem)
        if outcome.failure:
            yield Outcome(outcome.failure, f"full {number}, at {at} B: {outcome.note}")
        shutil.rmtree(archive)


def _ended_well(ended: Ended, place: Path) -> Outcome:
    """Whether a command ended with an answer, or with an error of ours that names a place."""
    if ended.code != 0 and (ended.code not in OURS or "Traceback" in ended.text):
        return Outcome("foreign exception", f"exit {ended.code}: {ended.text[-400:]}")
    if ended.code and (len(ended.text) > 2 * MOST_MESSAGE or place.name not in ended.text):
        return Outcome("message", ended.text[-400:])
    return Outcome()


def lost_manifests(source: Path, folder: Path, n: int, rng: random.Random) -> Iterator[Outcome]:
    """Take the manifest away or damage it: the next ingest refuses the folder and removes nothing."""
    grown = Grown(source, folder)
    for number in range(n):
        archive = folder / f"lost-{number}"
        shutil.copytree(rng.choice((grown.old, grown.new)), archive)
        manifest = archive / manifests.NAME
        data = manifest.read_bytes()
        manifest.unlink()
        if number % 3:
            manifest.write_bytes(rng.choice((flipped, truncated))(data, rng))
        before = _content(archive)
        ended = grown.read_into(archive, Fate())
        outcome = _ended_well(ended, archive)
        if ended.code == 0:
            try:
                open_archive(archive).verify()
            except BrokerlabError as error:
                outcome = Outcome("silent damage", str(error))
        elif _content(archive) != before:
            outcome = Outcome("silent damage", "tables were changed")
        if outcome.failure:
            yield Outcome(outcome.failure, f"lost {number}: {outcome.note}")
        shutil.rmtree(archive)


def _content(archive: Path) -> dict[str, str]:
    """Return the digests of the tables' files."""
    return {
        str(path.relative_to(archive)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(archive.rglob("*.parquet"))
    }


def damage(source: Path, folder: Path, n: int, rng: random.Random) -> Iterator[Outcome]:
    """Change bytes of a part of an archive: who reads its table is told which part."""
    for number in range(n):
        archive = folder / f"damaged-{number}"
        shutil.copytree(source, archive)
        part = rng.choice(manifests.read(archive).files())
        path = archive / part.path
        path.write_bytes(_changed(path.read_bytes(), flipped if number % 2 else truncated, rng))
        outcome = _damaged(archive, part.path)
        if outcome.failure:
            yield Outcome(outcome.failure, f"damage {number} ({part.path}): {outcome.note}")
        shutil.rmtree(archive)


def _changed(
    data: bytes, mutation: Callable[[bytes, random.Random], bytes], rng: random.Random
) -> bytes:
    """Mutate until something is different: a cut may fall on the end, and a bit may be flipped twice."""
    while (changed := mutation(data, rng)) == data:
        pass
    return changed


def _damaged(archive: Path, part: str) -> Outcome:
    changed = manifests.read(archive)
    try:
        if (table := Path(part).parts[0]) != "truth":
            open_archive(archive).scan(table).collect()
        manifests.check(archive, changed.files(), again=True)
    except BrokerlabError as error:
        named = Path(part).name in str(error)
        return Outcome() if named else Outcome("message", str(error)[:200])
    except BaseException as error:  # noqa: BLE001 - a panic of Polars is no Exception
        return Outcome("foreign exception", f"{type(error).__name__}: {str(error)[:200]}")
    return Outcome("silent damage", "read as if nothing had happened")


def readers(source: Path, folder: Path, n: int, rng: random.Random) -> Iterator[Outcome]:
    """Read an archive while ingests commit: every reader sees the old or the new one, whole."""
    del rng
    grown = Grown(source, folder)
    allowed = {_rows(open_archive(path)) for path in (grown.old, grown.new)}
    for number in range(n):
        archive = folder / f"read-{number}"
        shutil.copytree(grown.old, archive)
        held = open_archive(archive)
        before = _rows(open_archive(grown.old))
        writer = threading.Thread(target=ingest, args=([grown.second], archive))
        writer.start()
        problem = ""
        while writer.is_alive() and not problem:
            problem = _read_wrong(open_archive, archive, allowed)
        writer.join()
        problem = problem or _read_wrong(lambda _, held=held: held, archive, {before})
        if problem:
            yield Outcome("silent damage", f"reader {number}: {problem}")
        shutil.rmtree(archive)


def _read_wrong(opening: Callable[[Path], Archive], path: Path, allowed: set[str]) -> str:
    """Say what is wrong with what is read of an archive now."""
    try:
        return "" if _rows(opening(path)) in allowed else "other rows than before and after"
    except Exception as error:  # noqa: BLE001 - whatever a reader meets
        return f"{type(error).__name__}: {error}"


def _rows(archive: Archive) -> str:
    """Return a digest of all rows of an archive, but of the order in which they lie."""
    lines = []
    for table in archive.tables:
        frame = archive.scan(table).collect()
        lines.append(f"{table} {frame.height} {frame.hash_rows(seed=1).sum()}")
    return "\n".join(lines)


def queries(source: Path, folder: Path, n: int, rng: random.Random) -> Iterator[Outcome]:
    """Ask an archive for what is no reading of its tables: nothing is written, no other file is read."""
    place = folder / "queries"
    place.mkdir()
    secret = place / "secret.csv"
    secret.write_text("word\nhidden\n")
    archive = open_archive(source)
    before = _content(source)
    for number in range(n):
        text = rng.choice(QUERIES).format(out=place / "out", secret=secret)
        text = rng.choice(DISGUISES)(text)
        try:
            seen = str(archive.sql(text).fetchall())
        except (
            BrokerlabError,
            duckdb.Error,
        ):  # the second is the relation's own, asked for its rows
            seen = ""
        except BaseException as error:  # noqa: BLE001
            yield Outcome("foreign exception", f"query {text}: {type(error).__name__}: {error}")
            continue
        if "hidden" in seen or {path.name for path in place.iterdir()} != {secret.name}:
            yield Outcome("silent damage", f"query {number}: {text}")
    if _content(source) != before:
        yield Outcome("silent damage", "tables were changed")
    shutil.rmtree(place)


QUERIES = (
    "copy (select 1) to '{out}'", "copy jobs to '{out}' (format parquet)", "explain analyze copy (select 1) to '{out}'",
    "explain (analyze, format json) copy jobs to '{out}'", "export database '{out}'", "attach '{out}'",
    "attach '{out}' as x; create table x.t as from jobs", "create table t as from read_csv('{secret}')", "install httpfs",
    "load '{out}'", "set enable_external_access = true", "set enable_external_access = true; from '{secret}'",
    "select 1; copy (select 1) to '{out}'", "from '{secret}'", "from read_csv('{secret}')", "from read_text('{secret}')",
    "from read_blob('{secret}')", "select * from sniff_csv('{secret}')", "from glob('{secret}')",
    "with a as (from read_csv_auto('{secret}')) from a", "select (select word from '{secret}')", "insert into jobs from jobs",
    "delete from jobs", "update jobs set jobstatus = 'x'", "drop view jobs", "alter view jobs rename to x",
    "pragma database_list", "call pragma_version()", "prepare p as copy (select 1) to '{out}'", "checkpoint", "vacuum",
    "create or replace view jobs as select 1", "create secret (type s3)", "create macro f() as table from '{secret}'",
    "describe copy (select 1) to '{out}'", "summarize '{secret}'", "pivot '{secret}' on word", "import database '{out}'",
    "begin; copy (select 1) to '{out}'; commit", "select getenv('HOME')", "from duckdb_settings()", "set temp_directory='{out}'",
)  # fmt: skip
"""Statements that write, or read what is not of the archive."""
DISGUISES: tuple[Callable[[str], str], ...] = (
    str, str.upper, lambda text: f"/* a */ {text}", lambda text: f"-- b\n{text}", lambda text: f"{text};",
    lambda text: f";{text}", lambda text: text.replace(" ", "\n"), lambda text: f"explain analyze {text}",
    lambda text: f"explain {text}", lambda text: f"from ({text})", lambda text: f"select 1; {text}",
    lambda text: text.replace(" ", " /**/ "),
)  # fmt: skip
"""How a statement is hidden."""


def reports(source: Path, folder: Path, n: int, rng: random.Random) -> Iterator[Outcome]:
    """End a report by a signal: nothing is left in the temporary folder, after a kill once the next begins."""
    code = "from brokerlab.cli import app; app()"
    for number in range(n):
        temporary, out = folder / f"tmp-{number}", folder / f"reports-{number}"
        temporary.mkdir()
        own = os.environ | {"TMPDIR": str(temporary)}
        arguments = ["report", "explore", "-p", f"archive={source}", "--out", str(out)]
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments], env=own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )  # fmt: skip
        _wait(lambda temporary=temporary: not _is_clean(temporary, None))
        time.sleep(rng.uniform(0, 10))
        how = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)[number % 3]
        process.send_signal(how)
        process.wait()
        swept = own if how == signal.SIGKILL else None
        if not _wait(
            partial(_is_clean, temporary, swept)
        ):  # a kernel sees a moment later that it is alone
            left = [str(path.relative_to(temporary)) for path in temporary.rglob("*")]
            yield Outcome("silent damage", f"report {number}, {how.name}: left {left[:5]}")
        if [path for path in out.glob("*/*/index.html") if "finished" not in _state(path)]:
            yield Outcome("silent damage", f"report {number}, {how.name}: half a page")
        shutil.rmtree(temporary)
        shutil.rmtree(out, ignore_errors=True)


def _is_clean(temporary: Path, sweep: dict[str, str] | None) -> bool:
    """Whether a temporary folder is empty; of a killed process once the next one makes a folder there."""
    if sweep is not None:
        code = "from brokerlab.temporary import TemporaryFolder; TemporaryFolder().close()"
        subprocess.run([sys.executable, "-c", code], env=sweep, check=True)
    return not any(temporary.iterdir())


def _state(page: Path) -> str:
    """Return how the run of a page ended, as its manifest says."""
    return str(json.loads(page.with_name("manifest.json").read_text())["state"])


def _wait(until: Callable[[], bool], most_s: float = 60.0) -> bool:
    """Wait until something holds; whether it did."""
    end = time.monotonic() + most_s
    while not (done := until()) and time.monotonic() < end:
        time.sleep(0.2)
    return done
