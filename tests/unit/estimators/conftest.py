import pytest

from tests.unit.estimators.trial_toys import tried_on, whole_tasks


@pytest.fixture(scope="session")
def tried():
    """Rules and a hierarchy on four whole tasks."""
    return tried_on(whole_tasks())


@pytest.fixture(scope="session")
def one_by_one():
    """The same, where each job of a task has ended before the next one is decided: bounds are promised."""
    return tried_on(whole_tasks(apart_s=600.0))
