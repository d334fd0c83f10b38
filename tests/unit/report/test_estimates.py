"""What the reports on estimators share: tables of a trial, sentences of doubts, where data lie."""

import polars as pl
import pytest

from brokerlab.errors import DataError
from brokerlab.estimators.doubts import check_model
from brokerlab.report.estimates import data_folder, tables, trust
from tests.unit.estimators.trial_toys import tried_on, whole_tasks


@pytest.fixture(scope="module")
def tried():
    return tried_on(whole_tasks())


def test_tables_show_what_was_compared(tried):
    shown = tables.overall(tried)
    rows = {row.cells["estimator"]: row for row in shown.rows}
    assert rows[tried.comparison.reference].note == "deployed"
    assert rows[tried.policies[0]].note == "ours"
    assert rows["hierarchy, 90 %"].cells["over"].value == pytest.approx(
        100 * tried.comparison.row("hierarchy", 0.9)["over_allocation_task_mean"]
    )
    matched = tables.at_equal_exceed(tried, {"as sent": 0.5})
    assert matched.rows[-1].note == "limit"
    assert tables.by_task(tried, tried.policies[0]).rows[0].cells["jobs"].value == 30
    assert {row.cells["estimator"] for row in tables.by_known(tried).rows} == {
        tried.comparison.reference, "hierarchy", *tried.policies
    }  # fmt: skip


def test_doubts_are_never_empty(tried):
    learnt = tried.records
    found = check_model(tried, "hierarchy", lambda task: learnt.filter(pl.col("jeditaskid") != task), by_task=True)  # fmt: skip
    assert found.tasks["jeditaskid"].to_list() == [0, 1, 2, 3]
    assert found.scouts.height == 4
    assert trust.sentences(found)[-1].startswith("Jobs of queues, kinds and sizes that nobody ran")
    assert len(trust.table(found, name="x").rows) == 4


def test_data_are_looked_for_where_they_were_named(tmp_path, monkeypatch):
    monkeypatch.setenv("BROKERLAB_DATA", str(tmp_path / "none"))
    assert data_folder() is None
    monkeypatch.setenv("BROKERLAB_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    with pytest.raises(DataError, match="no such folder"):
        data_folder("nowhere")
