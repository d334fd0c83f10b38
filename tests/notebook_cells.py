"""Run a notebook in this process, cell by cell: a kernel of its own would start for seconds and import everything anew.

What only a kernel does has tests of its own: `tests/unit/report/test_runner.py`, and `tests/notebooks/test_explore.py`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import altair as alt
import nbformat

from brokerlab.report.kernel import Failure, kind_of
from brokerlab.report.results import RESERVED


def run_cells(source: Path, folder: Path, given: Mapping[str, object]) -> Failure | None:
    """Do what `Kernel.execute` does; nothing is displayed."""
    names: dict[str, Any] = {"display": lambda *_: None}
    cells = [c for c in nbformat.read(source, as_version=4).cells if c.cell_type == "code"]
    with _settings_of_its_own():
        for number, cell in enumerate(cells, 1):
            try:
                code = compile(cell.source, source.name, "exec", dont_inherit=True)
                exec(code, names)  # noqa: S102 - our own notebook
            except Exception as error:  # noqa: BLE001 - as a kernel does
                name = type(error).__name__
                return Failure(cell=number, error=f"{name}: {error}", kind=kind_of(name))
            if "parameters" in cell.metadata.get("tags", []):
                names |= {**given, RESERVED: str(folder)}
    return None


@contextmanager
def _settings_of_its_own() -> Iterator[None]:
    """Let warnings pass as in a kernel; leave altair as it was."""
    registries = (alt.renderers, alt.theme)
    before = [(one, one.active, one.options) for one in registries]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            for one, name, options in before:
                one.enable(name, **options)
