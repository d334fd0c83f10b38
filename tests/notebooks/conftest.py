"""Small synthetic archives for the notebooks, made once, and a run of notebooks that starts no kernel."""

import shutil

import pytest

from brokerlab.report.kernel import Kernel
from brokerlab.worlds import synthesise
from tests.notebook_cells import run_cells
from tests.notebooks.odd import synthesise_odd


@pytest.fixture(scope="session")
def archive(tmp_path_factory):
    """20 000 jobs: some thirty tasks on either side that can be scored."""
    folder = tmp_path_factory.mktemp("archives") / "small"
    synthesise(folder, jobs=20_000, days=28, seed=3)
    return folder


@pytest.fixture(scope="session")
def week(tmp_path_factory):
    """A week of 4 000 jobs with odd names."""
    return synthesise_odd(tmp_path_factory.mktemp("archives") / "week", jobs=4_000, days=7, seed=3)


@pytest.fixture(scope="module", autouse=True)
def without_kernels():
    """Run notebooks in this process; `test_explore.py` runs its own in a kernel."""

    def execute(_, source, folder, given):
        shutil.copy(source, folder / "notebook.ipynb")
        return run_cells(source, folder, given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "execute", execute)
        yield
