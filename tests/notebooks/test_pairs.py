"""Notebooks: the pair of files is in sync, no outputs are kept, every parameter is understood."""

import ast
from pathlib import Path

import jupytext
import nbformat
import pytest

from brokerlab.report import find
from brokerlab.report.kit import Params, parameters_cell
from brokerlab.report.parameters import model

NOTEBOOKS = sorted(find.REPOSITORY.glob("*.ipynb"))


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request) -> Path:
    return request.param


def test_there_are_notebooks():
    assert find.names() == [path.stem.replace("_", "-") for path in NOTEBOOKS]
    assert "scout-percentiles" in find.names()


def test_pair_is_in_sync(notebook):
    stored = nbformat.read(notebook, as_version=4)
    source = jupytext.read(notebook.with_suffix(".py"))
    cells = [(cell.cell_type, cell.source, cell.metadata.get("tags")) for cell in stored.cells]
    assert cells == [(c.cell_type, c.source, c.metadata.get("tags")) for c in source.cells], (
        f"run: jupytext --to ipynb {notebook.with_suffix('.py').name}"
    )


def test_no_outputs(notebook):
    cells = nbformat.read(notebook, as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


def test_every_line_of_the_parameters_cell_is_understood(notebook):
    cells = nbformat.read(notebook, as_version=4).cells
    (tagged,) = [c for c in cells if "parameters" in c.metadata.get("tags", [])]
    lines = ast.parse(tagged.source).body
    known = model(notebook, ours=True)
    assert [line.target.id for line in lines if isinstance(line, ast.AnnAssign)] == list(
        known.model_fields
    )
    assert len(lines) == len(known.model_fields)
    assert all(entry.description for entry in known.model_fields.values())
    if issubclass(known, Params):
        assert tagged.source == parameters_cell(known)
        assert known.report == notebook.stem.replace("_", "-")
        assert known.question


def test_thin(notebook):
    """No function of its own, no absolute path, nothing from the network."""
    source = notebook.with_suffix(".py").read_text(encoding="utf-8")
    assert not [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)]
    assert "http" not in source
    assert '"/' not in source
