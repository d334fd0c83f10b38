"""What to expect of a task before any of its jobs has finished, from its kind and its request."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import polars as pl

from brokerlab.estimators.records import Quantity
from brokerlab.numerics import FloatArray

FIRST_LEVEL: dict[Quantity, float] = {"memory": log(2000), "walltime": log(3600)}  # MB, s
FEWEST_TASKS = 5  # below, the mean of the tasks is all that is learnt
_REQUEST = pl.col("requested")
ALPHAS = np.logspace(-2, 3, 11)


class Levels:
    """A ridge regression of tasks' levels on their kind and on the logarithm of their request.

    Attributes:
        mean: Level of a task of which nothing is known.
        model: Fitted scikit-learn pipeline for what is known beyond; None: nothing.
    """

    def __init__(self, mean: float, model: Any = None) -> None:
        self.mean = mean
        self.model = model

    @classmethod
    def unknown(cls, quantity: Quantity) -> Levels:
        """Return what is expected before any task was seen: 2000 MB, or an hour."""
        return cls(FIRST_LEVEL[quantity])

    @classmethod
    def fit(
        cls, tasks: pl.DataFrame, level: FloatArray, quantity: Quantity
    ) -> tuple[Levels, FloatArray]:
        """Learn from tasks."""
        mean, known = float(level.mean()), _known(tasks)
        if level.size == 1:
            return cls(mean), np.full(1, FIRST_LEVEL[quantity])
        if level.size < FEWEST_TASKS or not any(known):
            return cls(mean), (level.sum() - level) / (level.size - 1)
        from sklearn.feature_extraction import DictVectorizer
        from sklearn.linear_model import RidgeCV
        from sklearn.model_selection import KFold, cross_val_predict
        from sklearn.pipeline import make_pipeline

        model = make_pipeline(DictVectorizer(sparse=False), RidgeCV(ALPHAS))
        apart = level - mean
        parts = KFold(min(10, level.size), shuffle=True, random_state=0)
        others = cross_val_predict(model, known, apart, cv=parts)
        return cls(mean, model.fit(known, apart)), mean + others

    def expect(self, tasks: pl.DataFrame) -> FloatArray:
        """Return the (t,) levels to expect of tasks; rows as for :meth:`fit`."""
        if self.model is None or not tasks.height:
            return np.full(tasks.height, self.mean)
        return np.asarray(self.mean + self.model.predict(_known(tasks)))


def _known(tasks: pl.DataFrame) -> list[dict[str, Any]]:
    """Return what is known of tasks; the size of the request counts beside that there is one.

    A request of 0 or less, or without a limit, is none.
    """
    asked = pl.when((_REQUEST > 0) & _REQUEST.is_finite()).then(_REQUEST.log())
    rows = tasks.select("kind", asked).rows()
    return [
        {
            **({} if kind is None else {"kind": kind}),
            **({} if asked is None else {"asked": 1.0, "request": asked - log(2000)}),
        }
        for kind, asked in rows
    ]
