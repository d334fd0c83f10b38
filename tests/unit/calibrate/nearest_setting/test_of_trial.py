"""What a trial of memory gives to be translated: allocations of least stated loss, and two halves of its tasks."""

import numpy as np
import polars as pl

from brokerlab.calibrate.nearest_setting.of_trial import _halves, allocate_by_stated_loss
from brokerlab.units import HOUR_S
from tests.unit.estimators.trial_toys import tried_on, whole_tasks


def test_longer_jobs_are_given_less_above_their_use():
    """Idle memory costs by the hour, a kill costs the same: the longer a job, the dearer what it does not use."""
    frame = whole_tasks(2)
    tried = tried_on(frame)
    short, long = (
        allocate_by_stated_loss(
            tried, "hierarchy", frame.with_columns(pl.lit(seconds).alias("wall_s"))
        )
        for seconds in (0.1 * HOUR_S, 20.0 * HOUR_S)
    )
    known = np.isfinite(short)
    assert known.any()
    assert (np.isfinite(long) == known).all()
    assert (long[known] <= short[known] + 1e-6).all()
    assert long[known].sum() < short[known].sum()


def test_later_tasks_prove():
    (first, middle), (again, end) = _halves(whole_tasks(4))
    assert middle == again
    seconds = [(each - first).total_seconds() for each in (middle, end)]
    assert seconds[0] == 20_000  # the third task of four begins there
    assert seconds[1] > 30_000
