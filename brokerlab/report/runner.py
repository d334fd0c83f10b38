"""Run a report notebook with papermill into a folder of its own and render its page.

A run is written to a hidden folder and renamed when it is complete: a run that was interrupted leaves
nothing, a run that failed leaves a page that says so. Nothing is ever overwritten.
"""

import hashlib
import json
import os
import shlex
import shutil
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from brokerlab.errors import ReportError
from brokerlab.report import find, index, made, page
from brokerlab.report.content import Page, Verdict, jsonable
from brokerlab.report.parameters import RESERVED, Parameter, declared, resolve

KERNEL_START_S = 120
"""Patience for a kernel to answer [s]; a loaded batch node takes longer than papermill's 60 s."""
SOCKET_PATH_BYTES = 90
"""Longest folder of sockets; a socket's path may have 107 bytes on Linux, 103 elsewhere."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished run: where it is and what it answered."""

    report: str
    run_id: str
    folder: Path
    page: Path
    results: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a notebook stopped: the cell (1 is the first code cell), the error, its trace."""

    cell: int | None
    error: str
    trace: str = ""

    @property
    def line(self) -> str:
        """The error in one line."""
        lines = [line.strip() for line in self.error.splitlines() if line.strip()]
        where = "" if self.cell is None else f"cell {self.cell}: "
        return where + (lines[0] if lines else "no message")


def run(
    report_name: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    out_root: str | Path = "reports",
    notebooks: str | Path | None = None,
    at: datetime | None = None,
) -> Run:
    """Run a report and render its page.

    Args:
        report_name: Such as ``scout-percentiles``.
        parameters: Values for the notebook's parameters; text is converted to the declared types.
        out_root: Folder of all reports; the run goes to ``<out_root>/<report>/<run id>/``.
        notebooks: Folder to look for the notebook; default the package's own.
        at: Start of the run, UTC; default now. It is part of the run id.

    Returns:
        The run: folder, page and results.

    Raises:
        ConfigError: Unknown report or parameter, or a value of another type.
        ReportError: No parameters cell, or the notebook failed; then the page is there and says why.
    """
    started, clock = at or datetime.now(UTC), time.monotonic()
    source = find.notebook(report_name, None if notebooks is None else Path(notebooks))
    name = source.stem.replace("_", "-")
    known = declared(source)
    given = resolve(parameters or {}, known)
    home = Path(out_root) / name
    home.mkdir(parents=True, exist_ok=True)
    run_id = _run_id(home, started, given)
    folder = home / f".{run_id}.unfinished"
    folder.mkdir()
    try:
        failure = _execute(source, folder, given)
        values = _all_values(known, given)
        results, failure = _collect(name, folder, failure, str(values.get("archive", "")))
        manifest = made.manifest(
            report=name,
            run_id=run_id,
            state="failed" if failure else "finished",
            parameters=values,
            command=command(name, given, out_root),
            notebook=source,
            started=started,
            duration_s=time.monotonic() - clock,
            results=results,
        )
        results = made.complete(results, manifest, folder)
        _write(folder, results, manifest)
        final = home / run_id
        folder.rename(final)
    except BaseException:  # Ctrl-C included: no half run stays behind
        shutil.rmtree(folder, ignore_errors=True)
        raise
    index.rebuild(out_root)
    if failure:
        raise ReportError(f"{name} failed: {failure.line} | page: {final / 'index.html'}")
    return Run(report=name, run_id=run_id, folder=final, page=final / "index.html", results=results)


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


def _run_id(home: Path, started: datetime, given: Mapping[str, Any]) -> str:
    """Return an id that is free: UTC time, and a digest of the parameters."""
    canonical = json.dumps(jsonable(given), sort_keys=True)
    digest = hashlib.blake2b(canonical.encode(), digest_size=4).hexdigest()
    stem = f"{started.astimezone(UTC):%Y%m%dT%H%M%SZ}-{digest}"
    taken = {path.name.removeprefix(".").removesuffix(".unfinished") for path in home.iterdir()}
    number = 1
    while (run_id := stem if number == 1 else f"{stem}-{number}") in taken:
        number += 1
    return run_id


def _all_values(known: Mapping[str, Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return every parameter with the value used, in the order of the notebook."""
    return {n: given.get(n, p.default) for n, p in known.items() if n != RESERVED}


def _execute(source: Path, folder: Path, given: Mapping[str, Any]) -> Failure | None:
    """Run the notebook in a kernel of this very interpreter; return why it stopped, if it did."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import papermill

    try:
        with _sockets() as sockets, _interruptible(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the Jupyter stack's own; the notebook's stay visible
            papermill.execute_notebook(
                str(source),
                str(folder / "notebook.ipynb"),
                parameters={**given, RESERVED: str(folder)},
                progress_bar=False,
                kernel_name="python3",
                kernel_manager_class=_own_kernel(sockets),
                start_timeout=KERNEL_START_S,
            )
    except papermill.PapermillExecutionError as error:
        trace = "\n".join(_without_colours(error.traceback))
        return Failure(cell=error.exec_count, error=f"{error.ename}: {error.evalue}", trace=trace)
    except Exception as error:  # noqa: BLE001 - a kernel that dies or never starts is a failed run
        return Failure(cell=None, error=f"{type(error).__name__}: {error}")
    return None


@contextmanager
def _interruptible() -> Iterator[None]:
    """Make sure that Ctrl-C ends the run.

    asyncio turns the first Ctrl-C into the cancellation of a task, which nbclient takes for the end
    of the cell: the notebook would go on with the next one. Our handler raises, and is remembered in
    case the exception is swallowed on its way.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    pressed = []

    def stop(*_: object) -> None:
        pressed.append(True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed:
            raise KeyboardInterrupt


@contextmanager
def _sockets() -> Iterator[Path | None]:
    """Give a run a folder for its kernel's sockets; None where the system has none that fit.

    Jupyter's own choice is one fixed name in the working directory: two runs started there at once
    would talk to each other's kernels.
    """
    with tempfile.TemporaryDirectory(prefix="brokerlab-", ignore_cleanup_errors=True) as folder:
        fits = os.name == "posix" and len(os.fsencode(folder)) < SOCKET_PATH_BYTES
        yield Path(folder) if fits else None


def _own_kernel(sockets: Path | None) -> type:
    """Return a kernel manager that starts `sys.executable`, whatever kernels are installed.

    A user's `python3` kernelspec may belong to another environment; then the notebook would run
    another brokerlab, or none.

    Args:
        sockets: A folder that only this user can enter; the kernel then listens on files in it, not on
            TCP ports that everybody on the machine can connect to. None: TCP.
    """
    from ipykernel.kernelspec import get_kernel_dict
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.localinterfaces import localhost
    from jupyter_client.manager import AsyncKernelManager
    from traitlets import default

    class OwnKernelManager(AsyncKernelManager):
        transport = "tcp" if sockets is None else "ipc"

        @default("ip")
        def _ip_default(self) -> str:
            return localhost() if sockets is None else str(sockets / "kernel")

        @property
        def kernel_spec(self) -> KernelSpec:
            # An idle kernel is interrupted when it is told to stop, and would log that as an error.
            return KernelSpec(**get_kernel_dict(["--log-level=CRITICAL"]))

    return OwnKernelManager


def _without_colours(lines: list[str]) -> list[str]:
    """Remove terminal colour codes from a trace."""
    from nbconvert.filters.ansi import strip_ansi

    clean: Callable[[str], str] = strip_ansi
    return [clean(line) for line in lines]


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
