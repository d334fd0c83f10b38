"""Why a notebook stopped, where its kernel cannot say so itself."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from brokerlab.report import kernel


class DeadKernelError(RuntimeError):
    """Stands for that of nbclient."""


ENDS = {
    "os.kill(os.getpid(), 9)": f"was killed, as systems do where memory runs out; {kernel.LESS_MEMORY}",
    "os.kill(os.getpid(), 6)": "was ended by signal 6 (Aborted)",
    "os.kill(os.getpid(), 37)": "was ended by signal 37 (Real-time signal 3)",
    "os._exit(3)": "ended itself with exit code 3",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_kernel_that_died_names_memory_only_where_it_was_killed(
    end: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", f"import os; {end}"])  # noqa: S603 - our own script

    async def shut(*, now: bool) -> None:
        assert now

    manager = SimpleNamespace(
        provisioner=SimpleNamespace(process=process),
        end_client=lambda: None,
        shutdown_kernel=shut,
    )

    def dies(*_: Any, **__: Any) -> None:
        process.wait()
        raise DeadKernelError("Kernel died")

    papermill = SimpleNamespace(execute_notebook=dies, PapermillExecutionError=KeyError)
    monkeypatch.setattr(kernel, "papermill", lambda: papermill)
    monkeypatch.setattr(kernel.Kernel, "_clean", lambda _: None)
    one = kernel.Kernel()
    one._manager = manager
    failure = one.execute(tmp_path / "x.ipynb", tmp_path, {})
    assert failure is not None
    assert failure.line == f"DeadKernelError: the process of the notebook {ENDS[end]}"
    assert failure.is_ours


def test_traces_have_no_colours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class StoppedError(Exception):
        exec_count, ename, evalue = 2, "ValueError", "no"
        traceback = ("\x1b[31mValueError\x1b[39m: \x1b[1;32mno", "x = [1]\x1b[0m")

    def stops(*_: Any, **__: Any) -> None:
        raise StoppedError

    papermill = SimpleNamespace(execute_notebook=stops, PapermillExecutionError=StoppedError)
    monkeypatch.setattr(kernel, "papermill", lambda: papermill)
    monkeypatch.setattr(kernel.Kernel, "_clean", lambda _: None)
    failure = kernel.Kernel().execute(tmp_path / "x.ipynb", tmp_path, {})
    assert failure is not None
    assert (failure.line, failure.trace) == ("cell 2: ValueError: no", "ValueError: no\nx = [1]")


def test_kernels_at_once_share_the_threads(tmp_path, monkeypatch):
    monkeypatch.setattr("polars.thread_pool_size", lambda: 8)
    assert [kernel.Kernel(at_once=n)._threads for n in (1, 3, 16)] == [8, 2, 1]
    assert kernel._own_kernel(tmp_path, 2, core=1).kernel_spec.env == {"POLARS_MAX_THREADS": "2"}
