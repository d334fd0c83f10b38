"""Files of every kind that is read, mutated and read again: rows that add up, or an error of ours that names the file."""

from __future__ import annotations

import multiprocessing
import random
import resource
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import polars as pl

from benchmarks.attack_mutations import mutated
from benchmarks.attack_sources import MODEL, sources
from brokerlab.archive import open as open_archive
from brokerlab.archive.ingestion import ingest
from brokerlab.errors import MOST_MESSAGE, BrokerlabError
from brokerlab.gdpconfig import proposal

MOST_S = 20.0
"""A case that needs more time of the processor hangs [s]."""
PATIENCE_S = 300.0
"""A case that has not ended by the clock hangs [s]; a machine that is busy is slow."""
MOST_MB = 2048
"""Most memory of a process that ingests [MB]."""


@dataclass(frozen=True)
class Outcome:
    """How one case ended; an empty ``failure`` held."""

    failure: str = ""
    note: str = ""


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
    from brokerlab.estimators.predicting import sift

    sift(path, "seen")
    return ""


def _mapping(path: Path, _: Path) -> str:
    from brokerlab.archive.mapping import Mapping

    Mapping.read(path)
    return ""


def _model(path: Path, folder: Path) -> str:
    """Put the file into a saved model, in the place of the one of its kind."""
    from brokerlab.estimators import saving

    model = folder / path.name
    shutil.copytree(path.parent / MODEL, model)
    shutil.copy(path, next(model.glob(f"*{path.suffix}")))
    saving.load(model)
    return ""


READERS: dict[str, Callable[[Path, Path], str]] = {
    "ingest": _ingest,
    "mapping": _mapping,
    "model": _model,
    "swf": _swf,
    "proposal": _proposal,
    "workflow": _workflow,
    "slots": _slots,
    "records": _records,
}
"""What reads a file -> the call; it returns what is wrong with the rows, or nothing."""


def read_case(reader: str, path: Path, folder: Path) -> Outcome:
    """Read one file in this process."""
    begun = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrong = READERS[reader](path, folder)
    except BrokerlabError as error:
        text = str(error)
        if len(text) > MOST_MESSAGE or path.name not in text:
            return Outcome("message", f"{len(text)} characters: {text[:200]}")
        wrong = ""
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of Polars is no Exception
        return Outcome("foreign exception", f"{type(error).__name__}: {str(error)[:200]}")
    if (used := time.process_time() - begun) > MOST_S:
        return Outcome("hang", f"{used:.0f} s of the processor")
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
            if self.pipe.poll(PATIENCE_S):
                outcome: Outcome = self.pipe.recv()
                if outcome.failure == "memory":
                    self.end()
                    self._begin()
                return outcome
            outcome = Outcome("hang", f"more than {PATIENCE_S:g} s")
        except EOFError:
            outcome = Outcome("foreign exception", "the process died")
        self.end()
        self._begin()
        return outcome

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()


def files(
    source: Path, folder: Path, n: int, rng: random.Random, kept: Path | None
) -> Iterator[Outcome]:
    """Mutate files and read them; those that fail are kept where that is asked for."""
    sound, worker = sources(source, folder), Worker()
    for number in range(n):
        one = rng.choice(sound)
        name, data = mutated(one, rng)
        path = folder / f"{number}-{name}"
        path.write_bytes(data)
        outcome = worker.read(one.reader, path)
        if outcome.failure:
            yield Outcome(outcome.failure, f"{one.reader} {path.name}: {outcome.note}")
            if kept is not None:
                shutil.copy(path, kept)
        path.unlink()
    worker.end()
