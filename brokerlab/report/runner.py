"""Run a report notebook with papermill into a folder of its own and render its page.

A run is written to a hidden folder and renamed when it is complete: a run that was interrupted leaves
nothing, a run that failed leaves a page that says so. No finished run is ever overwritten.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from brokerlab.archive import manifest as manifests
from brokerlab.errors import ConfigError, ReportError, nearest, warn_once
from brokerlab.long_work import cores_for
from brokerlab.report import find, index, made, runs
from brokerlab.report.kernel import LESS_MEMORY, Failure, Kernel, interruptible
from brokerlab.report.results import RESERVED, jsonable, write_json
from brokerlab.results import Result, Shows

if TYPE_CHECKING:
    from brokerlab.report.kit import Bare


@dataclass(frozen=True, kw_only=True, repr=False)
class Run(Result):
    """A run: where it is and what it answered."""

    shows = Shows(
        about="a run of a report, one row",
        columns="report, run_id, kind, sentence, page",
        keys=("report", "run_id"),
        next=(".results", ".page"),
    )

    report: str  # name of the report
    run_id: str  # name of the run
    folder: Path
    page: Path
    results: Mapping[str, Any]  # what `results.json` holds
    manifest: Mapping[str, Any]  # what `manifest.json` holds
    reused: bool = False  # it was there already, with the same inputs
    failure: Failure | None = None  # why the notebook stopped; null = it did not

    @property
    def error(self) -> ReportError | None:
        """What to raise for a run that failed, with the exit code of its cause; null = it did not."""
        if self.failure is None:
            return None
        verb = "failed" if self.failure.is_ours else "refused"
        error = ReportError(f"{self.report} {verb}: {self.failure.line} | page: {self.page}")
        error.exit_code = self.failure.kind.exit_code
        return error

    def frame(self) -> pl.DataFrame:
        """Return one row: ``report, run_id, kind, sentence, page``."""
        verdict = self.results.get("page", {}).get("verdict", {})
        answer = {name: verdict.get(name) for name in ("kind", "sentence")}
        named = {"report": self.report, "run_id": self.run_id, **answer, "page": str(self.page)}
        return pl.DataFrame(named, schema=dict.fromkeys(named, pl.String))


def run(
    report_name: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    out_root: str | Path = "reports",
    notebooks: str | Path | None = None,
    at: datetime | None = None,
    run_id: str | None = None,
    check: bool = True,
) -> Run:
    """Run a report and render its page.

    Args:
        report_name: Such as ``scout-percentiles``.
        parameters: Values for the notebook's parameters; text is converted to the declared types.
        out_root: Folder of all reports; the run goes to ``<out_root>/<report>/<run id>/``.
        notebooks: Folder to look for the notebook; default the package's own.
        at: Start of the run, UTC; default now. It is part of the run id.
        run_id: Name for the run. A finished run of that name with the same inputs is returned as it is; one that
            failed or was broken off is made again. Null: a name of its own, and always a new run.
        check: Raise the error of a notebook that failed; False: return its run, with its ``error``.

    Returns:
        The run: folder, page and results.

    Raises:
        ConfigError: Unknown report or parameter, or a value of another type; a run id that is no name.
        DataError: A file of the archive has changed since it was written.
        ReportError: No parameters cell; the run id is taken by a run with other inputs, or being made; or the notebook
            failed: then the page is there and says why.
    """
    job = _job(report_name, parameters or {}, out_root, notebooks, at, run_id)
    done = list[Run]()
    _make_all([[job]], 1, done.append)
    if check and done[0].error is not None:
        raise done[0].error
    return done[0]


def run_many(
    report_names: Sequence[str],
    parameters: Mapping[str, Any] | None = None,
    *,
    out_root: str | Path = "reports",
    notebooks: str | Path | None = None,
    at: datetime | None = None,
    run_id: str | None = None,
    workers: int = 2,
    each: Callable[[Run], object] = bool,
) -> list[Run]:
    """Run reports, some at once; what they import and keep in memory is shared.

    Reports that read what others propose come last, and read it from ``out_root`` where nothing else is asked for.

    Args:
        report_names: Such as ``["thresholds", "proposal-review"]``; they begin in this order.
        parameters: As for `run`; each report takes those that it has.
        out_root: As for `run`.
        notebooks: As for `run`.
        at: As for `run`.
        run_id: As for `run`, one name for the runs of all.
        workers: Reports at once.
        each: Called with each run when it is there.

    Returns:
        The runs, first the first that ended; those that failed have an ``error``.

    Raises:
        ConfigError: As for `run`, before anything is run; or a parameter that none of the reports has.
        DataError: As for `run`.
        ReportError: As for `run`, but for notebooks that fail.
    """
    given = parameters or {}
    fields = {name: _parameters(name, notebooks)[1].model_fields for name in report_names}
    known = {field for of_report in fields.values() for field in of_report} - {RESERVED}
    if unknown := sorted(given.keys() - known):
        raise ConfigError(
            "; ".join(f"unknown parameter {name!r}: {nearest(name, known)}" for name in unknown)
        )
    jobs, readers = list[_Job](), list[_Job]()
    for name, of_report in fields.items():
        reads = {
            field: str(out_root)
            for field, about in of_report.items()
            if (about.description or "").endswith(runs.UNIT_REPORTS)
        }
        own = {field: value for field, value in given.items() if field in of_report}
        if reads:
            Path(out_root).mkdir(parents=True, exist_ok=True)
        job = _job(name, reads | own, out_root, notebooks, at, run_id)
        (readers if reads else jobs).append(job)
    done = list[Run]()

    def keep(one: Run) -> None:
        done.append(one)
        each(one)

    _make_all([jobs, readers], workers, keep)
    return done


def _make_all(
    groups: Sequence[Sequence[_Job]], workers: int, each: Callable[[Run], object]
) -> None:
    """Run jobs, several at once, group after group; whatever stops one of them stops all."""
    here, kernels = threading.local(), list[Kernel]()
    at_once = max(min(workers, max(map(len, groups))), 1)
    cores = iter(cores_for(at_once))

    def start() -> None:
        # its sockets belong to the loop of one thread
        here.kernel = Kernel(next(cores), at_once)
        kernels.append(here.kernel)

    def make(job: _Job) -> Run:
        return _done(job, here.kernel)

    def end() -> None:
        for kernel in kernels:
            kernel.close()

    with ExitStack() as stack:
        stack.enter_context(interruptible())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # the Jupyter stack's own; the notebook's stay visible
        stack.callback(end)
        threads = stack.enter_context(ThreadPoolExecutor(at_once, initializer=start))
        try:
            for group in groups:
                for future in as_completed([threads.submit(make, job) for job in group]):
                    each(future.result())
        except BaseException:  # Ctrl-C included
            threads.shutdown(wait=False, cancel_futures=True)
            for kernel in kernels:
                kernel.stop()
            raise


def _parameters(report_name: str, notebooks: str | Path | None) -> tuple[Path, type[Bare]]:
    """Return the notebook of a report and its parameters."""
    from brokerlab.report.parameters import model

    source = find.notebook(report_name, None if notebooks is None else Path(notebooks))
    return source, model(source, ours=notebooks is None)


def _job(
    report_name: str,
    parameters: Mapping[str, Any],
    out_root: str | Path,
    notebooks: str | Path | None,
    at: datetime | None,
    run_id: str | None,
) -> _Job:
    """Check what is asked for, and warn where it may need more memory than there is."""
    source, params = _parameters(report_name, notebooks)
    job = _Job(
        name=source.stem.replace("_", "-"),
        source=source,
        out_root=Path(out_root),
        params=_check(params, parameters),
        names=tuple(parameters),
        started=_utc(at) if at else datetime.now(UTC),
        run_id=None if run_id is None else runs.check_id(run_id),
    )
    if lack := _lack_of_memory(job):
        warn_once(f"{job.name}: {lack}; {LESS_MEMORY}")
    return job


def _utc(at: datetime) -> datetime:
    """Return a time with its zone; without one it is UTC."""
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def free_gb(system: Path = Path("/")) -> float:
    """Return the memory that a process can still have [GB], of the machine and of its container; infinity where nothing tells.

    Source: Linux, proc(5) and cgroup v2: ``memory.max`` less ``memory.current``, of which files that were read can be dropped.
    """
    free = [_number(system / "proc/meminfo", r"MemAvailable: +(\d+) kB") * 1024]
    group = system / "sys/fs/cgroup"
    used = _number(group / "memory.current", r"(\d+)")
    if math.isfinite(used):
        cached = _number(group / "memory.stat", r"(?m)^inactive_file (\d+)")
        cached = cached if math.isfinite(cached) else 0
        free.append(_number(group / "memory.max", r"(\d+)") - used + cached)
    return min(free) / 1e9


def _number(file: Path, pattern: str) -> float:
    """Return what a file of the system tells; infinity where it does not."""
    try:
        known = re.search(pattern, file.read_text("ascii"))
    except OSError:
        known = None
    return int(known[1]) if known else math.inf


def _lack_of_memory(job: _Job) -> str:
    """Say how much memory a report may need on all jobs of its archive, where less is free."""
    archive, needs = job.values.get("archive"), getattr(job.params, "needs", None)
    less = any(job.values.get(name) for name in ("spark", "max_tasks", "start", "end"))
    if not archive or not needs or less:
        return ""
    if not (Path(archive) / manifests.NAME).is_file():
        return ""
    n_jobs = manifests.read(Path(archive)).counts.get("jobs", 0)
    lack: str = needs.lack_of_memory(n_jobs, free_gb())
    return lack


def _done(job: _Job, kernel: Kernel) -> Run:
    """Run a report, or return the finished run of the same name and inputs."""
    if not job.values.get("spark"):  # its workers read what is too large for one process
        _verify(job.values.get("archive"))
    job.home.mkdir(parents=True, exist_ok=True)
    named = job.run_id is not None
    inputs = runs.inputs_of(job.meanings, job.values, job.source) if named else None
    name = job.run_id or runs.free_id(job.home, job.started, job.given)
    if inputs is not None and runs.finished(job.home / name, inputs):
        return job.done(name, reused=True)
    with runs.workshop(job.home, name) as folder:
        if inputs is not None and runs.finished(job.home / name, inputs):
            shutil.rmtree(folder)  # another process has made it in the meantime
            return job.done(name, reused=True)
        failure = _make(job, name, folder, inputs, kernel)
    index.rebuild(job.out_root)
    return job.done(name, failure=failure)


@dataclass(frozen=True, kw_only=True)
class _Job:
    """What is to be run, and where it goes."""

    name: str
    source: Path
    out_root: Path
    params: Bare
    names: tuple[str, ...]
    started: datetime
    run_id: str | None

    @property
    def home(self) -> Path:
        return self.out_root / self.name

    @property
    def values(self) -> dict[str, Any]:
        """Every parameter with the value used, in the order of the notebook."""
        return self.params.model_dump(mode="json", exclude={RESERVED})

    @property
    def given(self) -> dict[str, Any]:
        """The parameters that were given, as the notebook takes them."""
        return {name: self.values[name] for name in self.names}

    @property
    def meanings(self) -> dict[str, str]:
        """Description of every parameter."""
        fields = type(self.params).model_fields
        return {name: field.description or "" for name, field in fields.items()}

    def done(self, run_id: str, *, reused: bool = False, failure: Failure | None = None) -> Run:
        folder = self.home / run_id
        results, manifest = (
            json.loads((folder / name).read_text(encoding="utf-8"))
            for name in ("results.json", "manifest.json")
        )
        return Run(
            report=self.name,
            run_id=run_id,
            folder=folder,
            page=folder / "index.html",
            results=results,
            manifest=manifest,
            reused=reused,
            failure=failure,
        )


def _verify(archive: object) -> None:
    """Hold the files of an archive to its manifest; a folder without one is for the report to refuse."""
    if isinstance(archive, str) and archive and (Path(archive) / manifests.NAME).is_file():
        files = manifests.read(Path(archive)).files()
        manifests.check(Path(archive), files, again=True)


def _make(
    job: _Job, run_id: str, folder: Path, inputs: Mapping[str, str] | None, kernel: Kernel
) -> Failure | None:
    """Run the notebook in a hidden folder, write the page and put everything in its place."""
    clock, lack = time.monotonic(), _lack_of_memory(job)
    try:
        failure = kernel.execute(job.source, folder, job.given)
        results, failure = _collect(job.params, folder, failure)
        manifest = {
            "report": job.name,
            "run_id": run_id,
            "state": "failed" if failure else "finished",
            "started": job.started.astimezone(UTC).isoformat(timespec="seconds"),
            "duration_s": round(time.monotonic() - clock, 3),
            "command": made.command(job.name, job.given, job.out_root),
            "parameters": jsonable(job.values),
            "parameters_digest": runs.digest_of(job.values),
            "seed": job.values.get("seed"),
            "notebook": job.source.name,
            "notebook_digest": runs.digest_of_file(job.source),
            "digests": results.get("digests", {}),
            "proposals": made.proposals(folder),
            **({} if inputs is None else {"inputs": dict(inputs)}),
            **({"memory": lack} if lack else {}),
            "versions": made.versions(),
        }
        results = made.complete(results, manifest, folder)
        _write(folder, results, manifest)
        runs.put(folder, job.home / run_id)
    except BaseException:  # Ctrl-C included: no half run stays behind
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return failure


def _check(params: type[Bare], given: Mapping[str, Any]) -> Bare:
    """Return the parameters of a run; the folder is the runner's."""
    problems = []
    if RESERVED in given:
        problems.append(
            f"parameter {RESERVED!r} is set by the runner; use --out for another folder"
        )
    try:
        checked = params.checked({n: value for n, value in given.items() if n != RESERVED})
    except ConfigError as error:
        problems.append(str(error))
    if problems:
        raise ConfigError("; ".join(problems))
    return checked


def _collect(
    params: Bare, folder: Path, failure: Failure | None
) -> tuple[dict[str, Any], Failure | None]:
    """Read what the notebook wrote; a missing or broken `results.json` is a failure too.

    Too little data is an answer, not a failure; the page of refused input says what was wrong with it.
    """
    path = folder / "results.json"
    if failure is None or (failure.is_answer and path.exists()):
        try:
            results = jsonable(json.loads(path.read_text(encoding="utf-8")))
            _ = results["page"]["verdict"]["sentence"], results["page"]["sections"]
        except FileNotFoundError:
            failure = Failure(cell=None, error="the notebook wrote no results.json to out_dir")
        except (ValueError, KeyError, TypeError) as error:
            failure = Failure(cell=None, error=f"results.json is not usable: {error}")
        else:
            return results, None
    return _refusal(params, failure), None if failure.is_answer else failure


def _refusal(params: Bare, failure: Failure) -> dict[str, Any]:
    """Return the results of a run without an answer of its own: refused input, or a fault of ours."""
    from brokerlab.report import kit, publishing

    if not failure.is_ours:
        page = kit.no_answer(failure.reason)
        return publishing.results_of(page, params)
    verdict = kit.Verdict(kind="failed", sentence=f"The run stopped: {failure.line}")
    details = {"line": failure.line, "message": failure.error, "trace": failure.trace}
    return {**publishing.results_of(kit.Page(verdict=verdict), params), "error": details}


def _write(folder: Path, results: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
    """Write results, page and manifest of a run."""
    from brokerlab.report import rendering

    write_json(folder / "results.json", results)
    write_json(folder / "manifest.json", manifest)
    (folder / "index.html").write_text(rendering.render(results, folder), encoding="utf-8")
