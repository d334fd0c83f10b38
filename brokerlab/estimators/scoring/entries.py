"""What estimators said of the judged jobs: one entry per estimator and level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from brokerlab.errors import DataError
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.scoring.judged import Judged
from brokerlab.numerics import FloatArray


@dataclass(frozen=True)
class Entry:
    """One bound per judged job."""

    estimator: str  # its name
    level: float | None  # of the bound; None for a rule that says one number at every level
    bound: FloatArray = field(repr=False)  # (n,) [MB or s]
    judged: Judged = field(repr=False)  # the jobs

    @cached_property
    def sums(self) -> FloatArray:
        """(n_tasks, len(COUNTED)) sums over the jobs of each task."""
        return self.judged.sums(self.bound)


def said(
    judged: Judged, predicted: Mapping[str, Predicted], levels: Sequence[float]
) -> list[Entry]:
    """List the bounds of every estimator at some of its levels; once for a rule without levels."""
    result = []
    for name, each in predicted.items():
        if without_levels(each):
            result.append(Entry(name, None, each.bounds[judged.rows, 0], judged))
            continue
        result += [Entry(name, at, each.at(at)[judged.rows], judged) for at in levels]
    return result


def without_levels(predicted: Predicted) -> bool:
    """Tell whether an estimator says the same number at every level; one that can refuse bounds has levels."""
    return predicted.own is None and bool((predicted.bounds == predicted.bounds[:, :1]).all())


def check_said(
    name: str, predicted: Predicted, pandaid: np.ndarray, levels: Sequence[float]
) -> None:
    """Refuse predictions that are not of all records, in their order, or lack a level, or hold NaN."""
    if not np.array_equal(predicted.pandaid, pandaid):
        raise DataError(
            f"predictions of '{name}': {predicted.pandaid.size} jobs, {pandaid.size} records in the order of"
            " their decision are needed; give those of `replay` on the same records"
        )
    if np.isnan(predicted.bounds).any():
        raise DataError(f"predictions of '{name}': NaN among the bounds; infinite means no answer")
    missing = [f"{each:g}" for each in levels if each not in predicted.levels]
    if missing and not without_levels(predicted):
        raise DataError(
            f"predictions of '{name}': levels {', '.join(missing)} are missing; replay at `all_levels`"
        )
