"""Models of quantiles: which of the columns that are left are categories."""

from __future__ import annotations

import numpy as np
import pytest

from brokerlab.estimators.quantiles.features import CATEGORIES, FEATURES
from brokerlab.estimators.quantiles.models import Sample, Trees


def sample(n_tasks: int = 40, size: int = 10) -> Sample:
    """Return rows whose use hangs on cores and queue; both columns vary, and so does the kind."""
    rng = np.random.default_rng(1)
    n = n_tasks * size
    x = np.full((n, len(FEATURES)), np.nan)
    x[:, 0], x[:, 1] = rng.integers(0, 3, n), rng.integers(0, 4, n)
    x[:, 2] = rng.normal(size=n)  # more values than a category may have
    x[:, -1] = 0.0  # a scout or not is always known
    y = 0.5 * x[:, 2] + 0.1 * x[:, 1] + rng.normal(0, 0.05, n)
    ones, none = np.ones(n), np.zeros(n)
    return Sample(x, y, ones, np.repeat(np.arange(n_tasks), size), none.astype(bool), none)


@pytest.mark.parametrize("unknown", [(), (0,), (1,), (0, 1)])
def test_only_kind_and_queue_are_categories_whatever_is_unknown(unknown):
    rows = sample()
    rows.x[:, list(unknown)] = np.nan
    fitted = Trees.fit(rows, seed=1)
    assert list(np.flatnonzero(fitted.used[:3])) == [c for c in (0, 1, 2) if c not in unknown]
    n_left = len(CATEGORIES) - len(unknown)
    for model in fitted.models:
        told_apart = model.is_categorical_
        expected = [True] * n_left + [False] * (model.n_features_in_ - n_left)
        assert (expected if n_left else None) == (
            None if told_apart is None else told_apart.tolist()
        )
