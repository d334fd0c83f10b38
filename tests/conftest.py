"""Makes Hypothesis ask the same in every run; prints the number of agreeing vectors at the end of the run, also from parallel workers."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings

from brokerlab.errors import WARNED
from tests.oracle import vectors

settings.register_profile("same", derandomize=True, deadline=None)  # every run asks the same
settings.load_profile("same")


def pytest_configure() -> None:
    """Let each parallel worker keep to one core: what Polars hands from thread to thread waits long for another core to wake."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Search for no garbage while tests are collected: nearly all that is made then stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Leave the tests and the library themselves out of every later search for garbage: a tenth of the run was that."""
    gc.collect()
    gc.freeze()
    # modules go at the end, as without tests; functions are called last to first
    atexit.register(gc.collect)
    atexit.register(gc.unfreeze)


@pytest.fixture(autouse=True, scope="session")
def without_waiting_for_the_disk() -> Iterator[None]:
    """Let no written file wait until it is safe against a power cut: thousands of small archives did; processes that tests start wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture(autouse=True, scope="session")
def without_searching_for_garbage() -> Iterator[None]:
    """Let no library ask for a search for garbage: statsmodels does after every adjustment, and tests hold much to search through."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "collect", lambda *_, **__: 0)
        yield


@pytest.fixture(autouse=True)
def session_without_warnings() -> None:
    """Let every test see all warnings, as a session of its own does."""
    WARNED.clear()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    if call.when == "call":
        item.user_properties.extend(("vectors", count) for count in vectors.counts)
        vectors.counts.clear()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    totals: dict[str, tuple[int, int]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) != "call":
                continue
            for label, value in report.user_properties:
                if label == "vectors":
                    name, n, agree = value
                    before = totals.get(name, (0, 0))
                    totals[name] = (before[0] + n, before[1] + agree)
    if totals:
        terminalreporter.section("recorded vectors")
    for name, (n, agree) in sorted(totals.items()):
        terminalreporter.write_line(f"{name}: {n} vectors, {agree} agree")
