"""What a trial of memory gives to be translated: allocations of least stated loss."""

from datetime import datetime, timedelta
from types import SimpleNamespace

import numpy as np
import polars as pl

from brokerlab.calibrate import nearest_setting
from brokerlab.calibrate.nearest_setting import allocate_by_stated_loss, translate_trial
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


def test_tasks_are_judged_that_were_created_from_the_first_of_the_trial_to_its_last(monkeypatch):
    frame = whole_tasks(3)
    judged = frame["jeditaskid"].unique(maintain_order=True)
    other = judged.max() + 1
    days = [datetime(2026, 1, day) for day in (9, 3, 5, 1)]
    created = {"jeditaskid": [*judged, other], "creationdate": days}
    archive = SimpleNamespace(scan=lambda _: pl.LazyFrame(created))
    asked = {}
    monkeypatch.setattr(nearest_setting, "translate", lambda *_, **how: asked.update(how))
    translate_trial(tried_on(frame), archive, model="hierarchy", name="ours", learnt=frame)
    assert asked["span"] == (days[1], days[0] + timedelta(microseconds=1))
