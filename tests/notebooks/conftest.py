"""A small synthetic archive for the notebooks, made once."""

import pytest

from brokerlab.worlds import synthesise


@pytest.fixture(scope="session")
def archive(tmp_path_factory):
    """20 000 jobs: some thirty tasks on either side that can be scored."""
    folder = tmp_path_factory.mktemp("archives") / "small"
    synthesise(folder, jobs=20_000, days=28, seed=3)
    return folder
