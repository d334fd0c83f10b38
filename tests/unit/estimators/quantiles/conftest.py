"""Few trees: what is tested does not hang on their number, the time does."""

from __future__ import annotations

import pytest

from brokerlab.estimators.quantiles import models


@pytest.fixture(scope="package", autouse=True)
def few_trees():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "TREES", 40)
        yield
