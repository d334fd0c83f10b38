"""Makes Hypothesis ask the same in every run; prints the number of agreeing vectors at the end of the run, also from parallel workers."""

from __future__ import annotations

import pytest
from hypothesis import settings

from brokerlab.errors import WARNED
from tests.oracle import vectors

settings.register_profile("same", derandomize=True, deadline=None)  # every run asks the same
settings.load_profile("same")


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
