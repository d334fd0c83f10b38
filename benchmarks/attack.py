"""Is it hard to break: ``python -m benchmarks.attack --cases 10000 --kills 100 --seed N``.

Files of every kind that is read are mutated and read again; ingests are killed; parts of an archive are damaged. A case holds
if it ends with rows that add up or with an error of ours that names the file in at most 2 kB, within 20 s. The table says what
was tried and what failed; the exit status is 1 where anything failed. Everything here is synthetic.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import multiprocessing
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from multiprocessing.connection import Connection
from pathlib import Path

import polars as pl

from brokerlab.archive import manifest as manifests
from brokerlab.archive import open as open_archive
from brokerlab.archive import synthetic
from brokerlab.archive.ingestion import ingest
from brokerlab.errors import MOST_MESSAGE, BrokerlabError
from brokerlab.gdpconfig import Config, proposal

MOST_S = 20.0
"""A case that takes longer hangs [s]."""
MOST_MB = 2048
"""Most memory of a process that ingests [MB]."""
ROWS = 60
"""Rows of a file that is mutated."""
KINDS = ("foreign exception", "lost rows", "hang", "memory", "message", "silent damage")
"""What may fail."""
ODD = (
    b"", b"-1", b"1e400", b"9" * 400, b"NaN", b"inf", b"null", b"true", b'"', b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\r",
    b"\n", b"\xef\xbb\xbf", b"'; drop table jobs; --", b"=cmd()", b"../../x", b"%s%n", b"\xe2\x80\xae", b"-0", b"0x10",
    b"1e-400", b"99999-01-01", b"0000-00-00 00:00:00", b"2026-02-30", b"24:60:61", b"[", b"{", b"]", b"}", b",,,,", b"\t",
)  # fmt: skip
"""Texts that are put in the place of others."""


@dataclass(frozen=True)
class Outcome:
    """How one case ended; an empty ``failure`` held."""

    failure: str = ""
    note: str = ""


# --- readers ----------------------------------------------------------------------------------------------------------


def _ingest(path: Path, folder: Path) -> str:
    """Ingest a file and count its rows; return what is wrong with them."""
    report = ingest([path], folder / "archive")
    frame = report.frame()
    parts = frame["accepted"].sum() + frame["quarantined"].sum() + frame["duplicates"].sum()
    made = open_archive(folder / "archive")
    refused = made.scan("quarantine").select(pl.len()).collect().item() if made.has("quarantine") else 0  # fmt: skip
    if frame["rows"].sum() != parts:
        return f"{frame['rows'].sum()} rows in, {parts} accounted for"
    if refused != frame["quarantined"].sum():
        return f"{frame['quarantined'].sum()} rows refused, {refused} in quarantine"
    return ""


def _swf(path: Path, _: Path) -> str:
    from brokerlab.workflows import swf

    log = swf.read(path)
    return "" if log.jobs.height + log.quarantine.height == log.rows else "rows do not add up"


def _proposal(path: Path, _: Path) -> str:
    proposal.read(path)
    return ""


def _workflow(path: Path, _: Path) -> str:
    from brokerlab.workflows.readers import read_workflow

    read_workflow(path)
    return ""


def _slots(path: Path, _: Path) -> str:
    from brokerlab.calibrate.simulation.capacity import read_capacity

    read_capacity(path)
    return ""


def _records(path: Path, _: Path) -> str:
    from brokerlab.estimators.jobfiles import sift

    sift(path, "seen")
    return ""


READERS: dict[str, Callable[[Path, Path], str]] = {
    "ingest": _ingest,
    "swf": _swf,
    "proposal": _proposal,
    "workflow": _workflow,
    "slots": _slots,
    "records": _records,
}
"""What reads a file -> the call; it returns what is wrong with the rows, or nothing."""


def read_case(reader: str, path: Path, folder: Path) -> Outcome:
    """Read one file in this process."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrong = READERS[reader](path, folder)
    except BrokerlabError as error:
        text = str(error)
        if len(text) > MOST_MESSAGE or path.name not in text:
            return Outcome("message", f"{len(text)} characters: {text[:200]}")
        return Outcome()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of Polars is no Exception
        return Outcome("foreign exception", f"{type(error).__name__}: {str(error)[:200]}")
    return Outcome("lost rows", wrong) if wrong else Outcome()


def _work(pipe: Connection) -> None:
    """Read cases until there are no more."""
    while (case := pipe.recv()) is not None:
        reader, path = case
        with tempfile.TemporaryDirectory() as folder:
            outcome = read_case(reader, path, Path(folder))
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        if not outcome.failure and used > MOST_MB:
            outcome = Outcome("memory", f"{used:,.0f} MB")
        pipe.send(outcome)


class Worker:
    """A process that reads cases, begun again after one that hangs or dies."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def read(self, reader: str, path: Path) -> Outcome:
        """Return how a case ended."""
        self.pipe.send((reader, path))
        try:
            if self.pipe.poll(MOST_S):
                outcome: Outcome = self.pipe.recv()
                if outcome.failure == "memory":
                    self.end()
                    self._begin()
                return outcome
            outcome = Outcome("hang", f"more than {MOST_S:g} s")
        except EOFError:
            outcome = Outcome("foreign exception", "the process died")
        self.process.kill()
        self.process.join()
        self._begin()
        return outcome

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()


# --- files, and what is done to them ----------------------------------------------------------------------------------


def seeds(source: Path) -> Iterator[tuple[str, str, bytes]]:
    """Return reader, ending and bytes of sound files of every kind, from an archive."""
    archive = open_archive(source)
    for table in ("jobs", "tasks", "files", "queues", "job_status_log", "gdpconfig"):
        frame = archive.scan(table).head(ROWS).collect()
        yield "ingest", ".csv", _plain(frame).write_csv().encode()
        yield "ingest", ".json", json.dumps(_plain(frame).to_dicts()).encode()
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        yield "ingest", ".parquet", buffer.getvalue()
    jobs = archive.scan("jobs").head(ROWS).collect()
    yield "ingest", ".csv.gz", gzip.compress(_plain(jobs).write_csv().encode(), mtime=0)
    later = jobs.select(
        "pandaid", "jeditaskid", cores=pl.lit(8), used=pl.lit(2000.0), ended_s=pl.lit(9e9)
    )
    yield "records", ".csv", later.write_csv().encode()
    slots = pl.DataFrame({"panda_queue": ["A", "B"], "slots": [10, 20]})
    yield "slots", ".csv", slots.write_csv().encode()
    rows = [" ".join(["1", *[str(10 * n + k) for k in range(17)]]) for n in range(ROWS)]
    yield "swf", ".swf", ("; UnixStartTime: 1000000000\n; MaxProcs: 8\n" + "\n".join(rows)).encode()
    yield "workflow", ".json", json.dumps(WORKFLOW).encode()
    yield "proposal", ".json", proposal.dumps(_proposed()).encode()


WORKFLOW = {
    "name": "w",
    "schemaVersion": "1.5",
    "workflow": {
        "specification": {
            "tasks": [
                {"name": "a", "id": "a", "children": ["b"], "parents": []},
                {"name": "b", "id": "b", "children": [], "parents": ["a"]},
            ]
        },
        "execution": {
            "makespanInSeconds": 3,
            "executedAt": "2026-01-01T00:00:00Z",
            "tasks": [{"id": "a", "runtimeInSeconds": 1}, {"id": "b", "runtimeInSeconds": 2}],
            "machines": [{"nodeName": "n"}],
        },
    },
}


def _proposed() -> proposal.Proposal:
    effect = proposal.Effect("jobs over their request", "%", 7.5, 4.5, -3.0, -3.5, -2.5, 0.95)
    return proposal.Proposal.to_change(
        Config.empty(),
        {"SCOUT_RAMCOUNT_RANK": 80},
        title="Raise the rank",
        created_at=datetime(2026, 10, 1),  # noqa: DTZ001 - naive UTC throughout
        evidence=proposal.Evidence(verdict="80 meets the limit", effects=(effect,)),
    )


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame whose values stand in text."""
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    times = pl.col(pl.Datetime).dt.to_string("%Y-%m-%d %H:%M:%S")
    return frame.drop(nested).with_columns(times)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Change some bytes, lines, words, or the encoding."""
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        data = rng.choice(MUTATIONS)(data, rng)
    return data


def _flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randint(0, len(data))]


def _without(data: bytes, rng: random.Random) -> bytes:
    low, high = sorted(rng.randint(0, len(data)) for _ in range(2))
    return data[:low] + data[high:]


def _again(data: bytes, rng: random.Random) -> bytes:
    low, high = sorted(rng.randint(0, len(data)) for _ in range(2))
    return data[:high] + data[low:high] * rng.randint(1, 3) + data[high:]


def _odd_word(data: bytes, rng: random.Random) -> bytes:
    mark = rng.choice((b",", b'"', b" ", b":", b"\n"))
    words = data.split(mark)
    words[rng.randrange(len(words))] = rng.choice(ODD)
    return mark.join(words)


def _odd_bytes(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice(ODD) + data[at:]


def _lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one] = rng.choice((lines[other], b"", lines[one] + b"," + lines[other], lines[one] * 50))
    return b"\n".join(lines)


def _encoded(data: bytes, rng: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(
        rng.choice(("utf-16", "utf-32", "utf-16-le", "utf-8-sig", "latin-1")), "replace"
    )


def _nested(data: bytes, rng: random.Random) -> bytes:
    depth = rng.choice((30, 700, 20_000))
    left, right = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'{"http://x":', b"}")))
    return left * depth + data + right * depth


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip, _flip, _cut, _without, _again, _odd_word, _odd_word, _odd_bytes, _lines, _encoded, _nested,
)  # fmt: skip


def files(source: Path, folder: Path, n: int, rng: random.Random, failures: Counter[str]) -> None:
    """Mutate files and read them."""
    sound, worker = list(seeds(source)), Worker()
    for number in range(n):
        reader, ending, data = rng.choice(sound)
        path = folder / f"case-{number}{ending}"
        path.write_bytes(mutated(data, rng))
        outcome = worker.read(reader, path)
        if outcome.failure:
            failures[outcome.failure] += 1
            print(f"case {number} ({reader} {ending}): {outcome.failure}: {outcome.note}", flush=True)  # fmt: skip
        path.unlink()
    worker.end()


# --- archives ---------------------------------------------------------------------------------------------------------


def kills(source: Path, folder: Path, n: int, rng: random.Random, failures: Counter[str]) -> None:
    """Kill an ingest at any time: the archive is the old or the new one, and nothing else is left after the next."""
    jobs = open_archive(source).scan("jobs").collect()
    first, second = folder / "first.csv", folder / "second.csv"
    _plain(jobs.head(ROWS)).write_csv(first)
    _plain(jobs).write_csv(second)
    ingest([first], folder / "old")
    shutil.copytree(folder / "old", folder / "new")
    begun = time.perf_counter()
    _process(second, folder / "new").wait()
    lasts = time.perf_counter() - begun
    allowed = {open_archive(folder / name).digest for name in ("old", "new")}
    for number in range(n):
        archive = folder / f"kill-{number}"
        shutil.copytree(folder / "old", archive)
        process = _process(second, archive)
        time.sleep(rng.uniform(0, 1.05 * lasts))
        process.send_signal(signal.SIGKILL)
        process.wait()
        problem = ""
        if open_archive(archive).digest not in allowed:
            problem = "neither the old nor the new archive"
        else:
            ingest([second], archive)
            known = {
                file.path
                for place in (archive, folder / "old")  # a generation is kept
                for file in manifests.read(place).files()
            }
            left = [p for p in archive.rglob("*") if p.is_file() and str(p.relative_to(archive)) not in known]  # fmt: skip
            strange = [p.name for p in left if p.name not in ("manifest.json", ".lock")]
            if open_archive(archive).digest not in allowed or strange:
                problem = f"left behind: {', '.join(strange)}"
        if problem:
            failures["silent damage"] += 1
            print(f"kill {number}: {problem}", flush=True)
        shutil.rmtree(archive)


def _process(file: Path, archive: Path) -> subprocess.Popen[bytes]:
    code = "import sys; from brokerlab.archive.ingestion import ingest; ingest([sys.argv[1]], sys.argv[2])"
    return subprocess.Popen([sys.executable, "-c", code, str(file), str(archive)])


def damage(source: Path, folder: Path, n: int, rng: random.Random, failures: Counter[str]) -> None:
    """Change bytes of a part of an archive: who reads its table is told which part."""
    for number in range(n):
        archive = folder / f"damaged-{number}"
        shutil.copytree(source, archive)
        part = rng.choice(manifests.read(archive).files())
        path = archive / part.path
        path.write_bytes(
            _flip(path.read_bytes(), rng) if number % 2 else _cut(path.read_bytes(), rng)
        )
        outcome = _damaged(archive, part.path)
        if outcome.failure:
            failures[outcome.failure] += 1
            print(f"damage {number} ({part.path}): {outcome.failure}: {outcome.note}", flush=True)
        shutil.rmtree(archive)


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


def main() -> None:
    """Attack, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000, help="mutated files")
    parser.add_argument("--kills", type=int, default=100, help="ingests that are killed")
    parser.add_argument("--damaged", type=int, default=100, help="archives with a damaged part")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    attacks = {"files": (files, asked.cases), "kills": (kills, asked.kills), "damaged parts": (damage, asked.damaged)}  # fmt: skip
    total = 0
    table = []
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        source = folder / "source"
        synthetic.synthesise(source, jobs=3000, days=4, seed=asked.seed)
        for name, (attack, n) in attacks.items():
            failures: Counter[str] = Counter()
            begun = time.perf_counter()
            rng = random.Random(f"{asked.seed} {name}")  # noqa: S311 - repeatable, no secret
            attack(source, folder, n, rng, failures)
            lasted = time.perf_counter() - begun
            table.append((name, n, *(failures[kind] for kind in KINDS), round(lasted)))
            total += failures.total()
    with pl.Config(tbl_cols=-1, tbl_width_chars=160, tbl_hide_column_data_types=True):
        print(pl.DataFrame(table, schema=["attack", "tried", *KINDS, "seconds"], orient="row"))
    print(f"{total} failed" if total else "all held")
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
