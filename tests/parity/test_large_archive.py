"""An archive that is too large for Polars is joined in DuckDB, and tells the same."""

from __future__ import annotations

from datetime import datetime

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import brokerlab.archive
from brokerlab import scouts
from brokerlab.archive import Archive, ArchiveWriter, store
from brokerlab.brokerage import replaying
from brokerlab.lifecycle import states, waits
from brokerlab.lifecycle.class_history.period import read_period
from brokerlab.worlds import synthesise

pytestmark = pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
STAGES = ("jobs", "tasks", "analysis")
EMPTY = {
    *(
        f"{stage}: {name}"
        for stage in STAGES[:2]
        for name in ("job_stats_workqueue", "job_stats_gshare_only")
    ),
    *(f"{stage}: resource_work_queues" for stage in STAGES),
    *("analysis: site_class", "analysis: user_eval"),
}
"""Tables that made-up archives have no rows for."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    folder = tmp_path_factory.mktemp("archive")
    synthesise(folder, jobs=800, days=4, seed=3)
    recorded = {
        "ts": [datetime(2026, 3, 2, 12)],
        "computingsite": ["Q"],
        "gshare": ["A"],
        "jobstatus": ["running"],
        "njobs": [5],
    }
    with ArchiveWriter(folder, synthetic=True) as writer:
        writer.write("job_stats", pl.DataFrame(recorded))
        writer.commit()
    return brokerlab.archive.open(folder)


def everything(archive: Archive) -> dict[str, pl.DataFrame]:
    """Return what is made of an archive by way of tables that are joined."""
    found = {}
    for stage in STAGES:
        replay = replaying.build(archive, stage=stage, every="6h")
        found |= {f"{stage}: {name}": table for name, table in replay.tables.items()}
    waiting = waits.read_waiting(archive)
    found |= {"spans": waiting.histories.spans, "units": waiting.units, "live": waiting.live}
    period = read_period(archive)
    found |= {
        name: value for name, value in vars(period).items() if isinstance(value, pl.DataFrame)
    }
    found["wait_stats"] = period.wait_stats(period.rules)
    found["waiting_states"] = states.waiting_states(archive)
    found["scouts"] = scouts.estimate(archive).frame()
    return found


def test_duckdb_joins_what_is_large(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    here = everything(archive)
    monkeypatch.setattr(store, "MOST_ROWS_POLARS", max(archive.manifest.counts.values()) - 1)
    assert isinstance(archive.joinable("queues"), duckdb.DuckDBPyRelation)
    there = everything(archive)
    assert here.keys() == there.keys()
    assert {name for name, table in here.items() if table.is_empty()} <= EMPTY
    for name, table in here.items():
        assert_frame_equal(there[name], table, check_row_order=False)
