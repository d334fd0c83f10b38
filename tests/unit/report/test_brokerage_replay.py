"""Shares and steps of time of the reports of replays."""

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest

from brokerlab.report.replays.period import grain
from brokerlab.report.replays.shares import shares, summed


def test_shares_of_sums_with_intervals_over_tasks():
    frame = pl.DataFrame({"jeditaskid": [1, 1, 2, 3], "hit": [1, 0, 1, 0], "all": [1, 1, 1, 1]})
    row = shares(frame, ["hit"], "all", n_boot=200).row(0, named=True)
    assert (row["total"], row["whole"], row["share"], row["n_tasks"]) == (2, 4, 0.5, 3)
    assert 0 <= row["lo"] < 0.5 < row["hi"] <= 1
    single = shares(frame.head(2), ["hit"], "all", n_boot=50).row(0, named=True)
    assert (single["share"], single["lo"], single["hi"]) == (0.5, None, None)
    nothing = shares(frame.with_columns(all=pl.lit(0)), ["hit"], "all", n_boot=50)
    assert nothing.select("share", "lo", "hi").row(0) == (None, None, None)
    assert shares(frame.clear(), ["hit"], "all").is_empty()
    assert shares(frame.clear().with_columns(g=1), ["hit"], "all", by=["g"]).is_empty()


def test_sums_are_the_same_in_any_order():
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"g": rng.integers(0, 5, 2000), "x": rng.lognormal(0, 20, 2000)})
    mixed = frame.sample(fraction=1, shuffle=True, seed=4)
    assert summed(frame, ["g"], ["x"]).equals(summed(mixed, ["g"], ["x"]))
    assert summed(frame, ["g"], ["x"])["x"].sum() == pytest.approx(frame["x"].sum())


def test_weeks_beyond_two_months():
    first = datetime(2026, 1, 1)
    assert grain((first, first + timedelta(days=61))) == "1d"
    assert grain((first, first + timedelta(days=63))) == "1w"
