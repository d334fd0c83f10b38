"""Look at boosted trees that were read from a file before anything is predicted with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_CATEGORIES = 256


def check_trees(state: Any) -> None:
    """Refuse trees that would lead prediction out of their own arrays, or around in circles.

    scikit-learn follows the numbers in a tree without looking: those of a file that was tampered with end
    the process, or read memory that is not theirs.

    Source: skops 0.16, reasons for types that it does not trust; scikit-learn pull request 34558.
    """
    for model in _models(state):
        categorical = _categorical(model)
        trees = [tree for stage in model._predictors for tree in stage]  # noqa: SLF001 - no other way
        if not trees:
            raise ValueError("a boosted model without trees")
        for tree in trees:
            _check(tree, categorical)


def _models(state: Any) -> list[Any]:
    """Return the boosted models anywhere in plain containers."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    if isinstance(state, HistGradientBoostingRegressor):
        return [state]
    inside = state.values() if isinstance(state, Mapping) else state
    if isinstance(state, Mapping | list | tuple):
        return [model for each in inside for model in _models(each)]
    return []


def _categorical(model: Any) -> npt.NDArray[np.bool_]:
    """Return which columns hold categories, each of which must fit a set of 256."""
    mapper = model._bin_mapper  # noqa: SLF001 - no other way
    result = mapper.is_categorical_
    if result.shape != (int(model.n_features_in_),):
        raise ValueError("a boosted model of another number of columns than its trees")
    for known in mapper.known_categories or ():
        if known is not None and not ((known >= 0) & (known < MOST_CATEGORIES)).all():
            raise ValueError("a boosted model with more categories than fit")
    return np.asarray(result, dtype=bool)


def _check(tree: Any, categorical: npt.NDArray[np.bool_]) -> None:
    """Hold one tree to its own size: children come after their parent, columns and sets exist."""
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    nodes = tree.nodes
    if (
        not isinstance(nodes, np.ndarray)
        or nodes.dtype != PREDICTOR_RECORD_DTYPE
        or nodes.ndim != 1
    ):
        raise ValueError("nodes of a tree have another form")
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    part = nodes[inner]
    sound = nodes.size > 0 and all(
        ((part[side] > inner) & (part[side] < nodes.size)).all() for side in ("left", "right")
    )
    column, by_set = part["feature_idx"], part["is_categorical"] != 0
    sound = sound and bool(((column >= 0) & (column < categorical.size)).all())
    sound = sound and bool((categorical[column] | ~by_set).all())
    for sets in (tree.raw_left_cat_bitsets, tree.binned_left_cat_bitsets):
        shape = isinstance(sets, np.ndarray) and sets.dtype == np.uint32 and sets.shape[1:] == (8,)
        sound = sound and shape and bool((part["bitset_idx"][by_set] < sets.shape[0]).all())
    if not sound:
        raise ValueError("a tree points out of its own nodes, columns or sets of categories")
