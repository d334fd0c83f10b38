"""Jobs that are unlike what was learnt are counted, by what makes them so."""

from __future__ import annotations

import polars as pl
import pytest

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.trust import support
from tests.unit.estimators.trust.toys import records


def test_the_same_jobs_are_learnt():
    frame = records(100)
    table = support(frame, frame)
    assert table["verdict"].unique().to_list() == ["learnt"]
    assert table["outside"].sum() == 0
    assert table["feature"].to_list()[:4] == ["kind", "queue", "cores", "kind / queue / cores"]


def test_new_queues_and_numbers_beyond_the_range_are_named():
    old = records(100)
    new = records(100, queue=["C"] * 60 + ["A"] * 40, events=[500] * 4 + [100] * 96)
    found = {row["feature"]: row for row in support(old, new).rows(named=True)}
    assert found["queue"]["outside"] == 60
    assert found["queue"]["example"] == "C"
    assert found["queue"]["verdict"] == "partly learnt"
    assert found["queue"]["lo"] < 0.6 < found["queue"]["hi"]
    assert (found["events"]["outside"], found["events"]["verdict"]) == (4, "learnt")
    assert (found["events"]["learnt_from"], found["events"]["learnt_to"]) == (100, 100)


def test_nothing_known_is_learnt_only_where_it_was_seen():
    known, unknown = records(10), records(10, kind=[None] * 10, corepower=[None] * 10)
    found = dict(support(known, unknown).select("feature", "verdict").rows())
    assert found["kind"] == found["corepower"] == "not learnt"
    both = dict(support(unknown, unknown).select("feature", "verdict").rows())
    assert both["kind"] == both["corepower"] == "learnt"
    back = dict(support(unknown, known).select("feature", "verdict").rows())
    assert back["corepower"] == "not learnt"


def test_no_jobs_are_no_answer():
    with pytest.raises(InsufficientDataError, match="0 jobs learnt from"):
        support(records(10).filter(pl.col("pandaid") < 0), records(10))
