"""Run a report notebook with papermill into a folder of its own and render its page.

A run is written to a hidden folder and renamed when it is complete: a run that was interrupted leaves
nothing, a run that failed leaves a page that says so. No finished run is ever overwritten.
"""

import json
import shlex
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from brokerlab.errors import ReportError
from brokerlab.report import find, index, made, page, runs
from brokerlab.report.content import Page, Verdict, jsonable
from brokerlab.report.kernel import Failure, execute
from brokerlab.report.parameters import RESERVED, Parameter, declared, resolve


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run: where it is and what it answered.

    Attributes:
        report: Name of the report.
        run_id: Name of the run.
        folder: Its folder.
        page: Its page.
        results: What `results.json` holds.
        manifest: What `manifest.json` holds.
        reused: It was there already, with the same inputs.
        failure: Why the notebook stopped; null = it did not.
    """

    report: str
    run_id: str
    folder: Path
    page: Path
    results: Mapping[str, Any]
    manifest: Mapping[str, Any]
    reused: bool = False
    failure: Failure | None = None

    @property
    def error(self) -> ReportError | None:
        """What to raise for a run that failed, with the exit code of its cause; null = it did not."""
        if self.failure is None:
            return None
        error = ReportError(f"{self.report} failed: {self.failure.line} | page: {self.page}")
        error.exit_code = self.failure.exit_code
        return error


def run(
    report_name: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    out_root: str | Path = "reports",
    notebooks: str | Path | None = None,
    at: datetime | None = None,
    run_id: str | None = None,
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

    Returns:
        The run: folder, page and results.

    Raises:
        ConfigError: Unknown report or parameter, or a value of another type; a run id that is no name.
        ReportError: No parameters cell; the run id is taken by a run with other inputs, or being made; or the notebook
            failed: then the page is there and says why.
    """
    done = attempt(
        report_name, parameters, out_root=out_root, notebooks=notebooks, at=at, run_id=run_id
    )
    if done.error is not None:
        raise done.error
    return done


def attempt(
    report_name: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    out_root: str | Path = "reports",
    notebooks: str | Path | None = None,
    at: datetime | None = None,
    run_id: str | None = None,
) -> Run:
    """As :func:`run`, but return also a run whose notebook failed, with its ``error``."""
    started = at or datetime.now(UTC)
    source = find.notebook(report_name, None if notebooks is None else Path(notebooks))
    job = _Job(
        name=source.stem.replace("_", "-"),
        source=source,
        out_root=Path(out_root),
        known=(known := declared(source)),
        given=resolve(parameters or {}, known),
        started=started,
        run_id=None if run_id is None else runs.checked_id(run_id),
    )
    job.home.mkdir(parents=True, exist_ok=True)
    inputs = None if run_id is None else runs.inputs_of(known, job.values, source)
    name = job.run_id or runs.free_id(job.home, started, job.given)
    if inputs is not None and runs.finished(job.home / name, inputs):
        return job.done(name, reused=True)
    with runs.workshop(job.home, name) as folder:
        if inputs is not None and runs.finished(job.home / name, inputs):
            shutil.rmtree(folder)  # another process has made it in the meantime
            return job.done(name, reused=True)
        failure = _make(job, name, folder, inputs)
    index.rebuild(out_root)
    return job.done(name, failure=failure)


@dataclass(frozen=True, kw_only=True)
class _Job:
    """What is to be run, and where it goes."""

    name: str
    source: Path
    out_root: Path
    known: Mapping[str, Parameter]
    given: Mapping[str, Any]
    started: datetime
    run_id: str | None

    @property
    def home(self) -> Path:
        return self.out_root / self.name

    @property
    def values(self) -> dict[str, Any]:
        """Every parameter with the value used, in the order of the notebook."""
        return {n: self.given.get(n, p.default) for n, p in self.known.items() if n != RESERVED}

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


def _make(job: _Job, run_id: str, folder: Path, inputs: Mapping[str, str] | None) -> Failure | None:
    """Run the notebook in a hidden folder, write the page and put everything in its place."""
    clock = time.monotonic()
    try:
        failure = execute(job.source, folder, job.given)
        archive = str(job.values.get("archive", ""))
        results, failure = _collect(job.name, folder, failure, archive)
        manifest = made.manifest(
            report=job.name,
            run_id=run_id,
            state="failed" if failure else "finished",
            parameters=job.values,
            command=command(job.name, job.given, job.out_root),
            notebook=job.source,
            started=job.started,
            duration_s=time.monotonic() - clock,
            results=results,
            folder=folder,
            inputs=inputs,
        )
        results = made.complete(results, manifest, folder)
        _write(folder, results, manifest)
        runs.put(folder, job.home / run_id)
    except BaseException:  # Ctrl-C included: no half run stays behind
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return failure


def command(name: str, given: Mapping[str, Any], out_root: str | Path = "reports") -> str:
    """Return the command line that repeats a run.

    Example:
        >>> command("scout-percentiles", {"archive": "data/demo", "ranks": [50, 99]})
        'brokerlab report scout-percentiles -p archive=data/demo -p ranks=50,99'
    """
    words = ["brokerlab", "report", name]
    for key, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value)
        if isinstance(value, list) and all(isinstance(item, int | float | str) for item in value):
            text = ",".join(str(item) for item in value)
        words += ["-p", f"{key}={text}"]
    if str(out_root) != "reports":
        words += ["--out", str(out_root)]
    return shlex.join(words)


def _collect(
    name: str, folder: Path, failure: Failure | None, archive: str
) -> tuple[dict[str, Any], Failure | None]:
    """Read what the notebook wrote; a missing or broken `results.json` is a failure too.

    The page of a failed run names the archive it was asked about, if it was.
    """
    path = folder / "results.json"
    if failure is None:
        try:
            results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            Page.from_json(results["page"])
        except FileNotFoundError:
            failure = Failure(cell=None, error="the notebook wrote no results.json to out_dir")
        except (ValueError, KeyError, TypeError, ReportError) as error:
            failure = Failure(cell=None, error=f"results.json is not usable: {error}")
        else:
            return results, None
    broken = Page(
        report=name,
        question=name.replace("-", " ").capitalize(),
        verdict=Verdict(kind="failed", sentence=f"Failed: {failure.line}"),
        archive=archive,
        cannot_tell=("Anything: the run stopped before it had an answer.",),
    )
    return {
        "report": name,
        "page": broken.to_json(),
        "numbers": {},
        "error": {"line": failure.line, "message": failure.error, "trace": failure.trace},
    }, failure


def _write(folder: Path, results: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
    """Write results, page and manifest of a run."""
    for name, plain in (("results.json", results), ("manifest.json", manifest)):
        text = json.dumps(jsonable(plain), indent=1, ensure_ascii=False, allow_nan=False)
        (folder / name).write_text(text + "\n", encoding="utf-8")
    stored = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    (folder / "index.html").write_text(page.render(stored, folder), encoding="utf-8")
