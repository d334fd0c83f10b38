import pytest

from tests.unit.estimators.trial_toys import tried_on, whole_tasks


@pytest.fixture(scope="session")
def tried():
    """Rules and a hierarchy on four whole tasks."""
    return tried_on(whole_tasks())
