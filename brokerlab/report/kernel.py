"""Run notebooks with papermill in a kernel of this very interpreter, and say why one stopped, if it did."""

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab import errors
from brokerlab.report.parameters import papermill
from brokerlab.report.results import RESERVED
from brokerlab.temporary import TemporaryFolder, sweep

KERNEL_START_S = 120
"""Patience for a kernel to answer [s]; a loaded batch node takes longer than papermill's 60 s."""
TERMINATED = 143  # exit code of a program that was told to end by SIGTERM
LESS_MEMORY = "ask for a shorter period (start, end), or fewer tasks where the report takes max_tasks, or give it more memory"
"""What helps where memory is too small."""
AT_START = "from brokerlab.long_work import keep_to; keep_to({core}); from brokerlab.schemas import jsonschema; jsonschema(); del jsonschema, keep_to"
"""What a kernel does before the notebook: it keeps to its core, and loads jsonschema in our way, before altair does."""
CLEAN = "get_ipython().reset(); get_ipython().execution_count = 0; __spec__ = None"
"""What a kernel does between two notebooks; the first cell of each is number 1, and can start processes, which ask for `__spec__`."""
COLOUR = re.compile(r"\x1b\[.*?[@-~]")
"""What colours a trace on a terminal."""
SOCKET_PATH_BYTES = 90
"""Longest folder of sockets; a socket's path may have 107 bytes on Linux, 103 elsewhere."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a notebook stopped: the cell (1 is the first code cell), the error, its trace.

    Where it was one of our own errors (a wrong parameter, an archive that cannot be read), that is the answer, with its
    exit code; else the report failed.
    """

    cell: int | None
    error: str
    trace: str = ""
    kind: type[errors.BrokerlabError] = errors.ReportError

    @property
    def is_ours(self) -> bool:
        """Whether a report failed, which is our fault; else the input was refused."""
        return issubclass(self.kind, errors.ReportError)

    @property
    def is_answer(self) -> bool:
        """Whether there was too little data, which is an answer."""
        return issubclass(self.kind, errors.InsufficientDataError)

    @property
    def reason(self) -> str:
        """The error without the name of its kind."""
        return self.error.partition(": ")[2] or self.error

    @property
    def line(self) -> str:
        """The error in one line."""
        lines = [line.strip() for line in self.error.splitlines() if line.strip()]
        where = "" if self.cell is None else f"cell {self.cell}: "
        return where + (lines[0] if lines else "no message")


class Kernel:
    """A kernel of this very interpreter, which runs notebooks one after the other, each from an empty namespace.

    What the notebooks import is loaded once for all of them. It starts with the first one; after one that killed it, it
    starts again. Where several run at once each has a part of the threads, as more would only wait for each other, and keeps to
    its core (-1: to none) where it has one.
    """

    def __init__(self, core: int = -1, at_once: int = 1) -> None:
        self._core = core
        self._threads = max(pl.thread_pool_size() // at_once, 1)
        self._manager: Any = None
        self._open = ExitStack()
        self._is_stopped = False

    def execute(self, source: Path, folder: Path, given: Mapping[str, Any]) -> Failure | None:
        """Run a notebook; return why it stopped, if it did."""
        notebooks = papermill()
        try:
            notebooks.execute_notebook(
                str(source),
                str(folder / "notebook.ipynb"),
                parameters={**given, RESERVED: str(folder)},
                progress_bar=False,
                kernel_name="python3",
                km=self._clean(),
                start_timeout=KERNEL_START_S,
            )
        except notebooks.PapermillExecutionError as error:
            return Failure(
                cell=error.exec_count,
                error=f"{error.ename}: {error.evalue}",
                trace=COLOUR.sub("", "\n".join(error.traceback)),
                kind=kind_of(error.ename),
            )
        except Exception as error:
            process = self._process()
            self.close()
            if self._is_stopped:
                raise KeyboardInterrupt from error
            name = type(error).__name__
            why = _end_of(process) if name == "DeadKernelError" else error
            return Failure(cell=None, error=f"{name}: {why}")
        return None

    def stop(self) -> None:
        """Stop the notebook that runs in another thread, and run no other."""
        self._is_stopped = True
        if (process := self._process()) is not None:
            process.kill()

    def close(self) -> None:
        """End the process of the kernel; another notebook would start a new one."""
        from jupyter_core.utils import run_sync

        manager, self._manager = self._manager, None
        if manager is not None:
            manager.end_client()
            run_sync(manager.shutdown_kernel)(now=True)
        self._open.close()
        sweep()  # what the kernel had, which is not asked to end but killed

    def _process(self) -> subprocess.Popen[bytes] | None:
        """Return the process of the kernel; null = there is none."""
        return getattr(getattr(self._manager, "provisioner", None), "process", None)

    def _clean(self) -> Any:
        """Return the manager of the kernel, without the names of the notebook before."""
        if self._is_stopped:
            raise KeyboardInterrupt
        if self._manager is None:
            folder = self._open.enter_context(TemporaryFolder())
            self._manager = _own_kernel(folder, self._threads, self._core)
        else:
            from nbclient import NotebookClient
            from nbformat import v4

            cell = v4.new_code_cell(CLEAN)  # type: ignore[no-untyped-call]
            notebook = v4.new_notebook(cells=[cell])  # type: ignore[no-untyped-call]
            NotebookClient(notebook, km=self._manager).execute()
        return self._manager


def _end_of(process: subprocess.Popen[bytes] | None) -> str:
    """Say how the process of a kernel that died has ended, as far as the system tells."""
    code = None if process is None else process.poll()
    if code is None:
        return "the process of the notebook ended"
    if code >= 0:
        return f"the process of the notebook ended itself with exit code {code}"
    if code == -signal.SIGKILL:
        return f"the process of the notebook was killed, as systems do where memory runs out; {LESS_MEMORY}"
    return f"the process of the notebook was ended by signal {-code} ({signal.strsignal(-code)})"


def kind_of(name: str) -> type[errors.BrokerlabError]:
    """Return one of our errors by its name; all others are those of a failed report."""
    kind = getattr(errors, name, None)
    ours = isinstance(kind, type) and issubclass(kind, errors.BrokerlabError)
    return kind if ours and kind else errors.ReportError


@contextmanager
def interruptible() -> Iterator[None]:
    """Make sure that Ctrl-C ends the runs, and that a scheduler that takes them back (SIGTERM) leaves nothing either.

    Our handler raises, and is remembered in case the exception is swallowed on its way.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    seen: list[int] = []

    def stop(number: int, *_: object) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if seen:
            raise SystemExit(TERMINATED) if signal.SIGTERM in seen else KeyboardInterrupt


def _own_kernel(folder: Path, threads: int, core: int) -> Any:
    """Return the manager of a kernel that is `sys.executable`, whatever kernels are installed.

    A user's `python3` kernelspec may belong to another environment; then the notebook would run
    another brokerlab, or none.
    """
    from ipykernel.kernelspec import get_kernel_dict
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.localinterfaces import localhost
    from jupyter_client.manager import AsyncKernelManager
    from traitlets import default

    fits = os.name == "posix" and len(os.fsencode(folder)) < SOCKET_PATH_BYTES

    class OwnKernelManager(AsyncKernelManager):
        transport = "ipc" if fits else "tcp"

        @default("ip")
        def _ip_default(self) -> str:
            return str(folder / "kernel") if fits else localhost()

        last: Any = None

        def client(self, **options: Any) -> Any:
            """Return a client for one notebook; that of the notebook before ends."""
            self.end_client()
            self.last = super().client(**options)
            return self.last

        def end_client(self) -> None:
            """Close the sockets of the last client."""
            if self.last is not None:
                self.last.stop_channels()

        @property
        def kernel_spec(self) -> KernelSpec:
            # An idle kernel is interrupted when it is told to stop, and would log that as an error.
            options = [
                "--log-level=CRITICAL",
                "--InteractiveShell.xmode=Plain",
                f"--IPKernelApp.exec_lines={AT_START.format(core=core)}",
            ]
            env = {"POLARS_MAX_THREADS": str(threads)}
            return KernelSpec(**get_kernel_dict(options), env=env)

    return OwnKernelManager(connection_file=str(folder / "connection.json"))
