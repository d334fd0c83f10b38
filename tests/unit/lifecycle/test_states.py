"""In which states jobs waited: hours that can be added up on paper, from the status log and from times."""

from datetime import datetime, timedelta

import polars as pl
import pytest

from brokerlab import archive
from brokerlab.archive.explore import UNKNOWN
from brokerlab.errors import ConfigError
from brokerlab.lifecycle.states import waiting_states

START = datetime(2026, 3, 1)


def hours(n: float) -> datetime:
    return START + timedelta(hours=n)


JOBS = pl.DataFrame(
    {
        "pandaid": [1, 2, 3],
        "jobstatus": ["finished", "finished", "activated"],
        "prodsourcelabel": "managed",
        "computingsite": ["Q1", "Q1", None],
        "gshare": "A",
        "creationtime": [hours(0), hours(10), hours(20)],
        "activatedtime": [hours(2), None, hours(21)],
        "starttime": [hours(5), hours(11), None],
        "endtime": [hours(6), hours(12), None],
        "modificationtime": [hours(6), hours(30), hours(21)],
    }
)
LOG = pl.DataFrame(
    {
        "pandaid": [1, 1, 1, 1, 1],
        "jobstatus": ["defined", "assigned", "activated", "starting", "running"],
        "modificationtime": [hours(0), hours(0.5), hours(2), hours(4), hours(5)],
        "computingsite": "Q1",
    }
)


@pytest.fixture
def opened(tmp_path):
    def make(**tables: pl.DataFrame):
        with archive.ArchiveWriter(tmp_path) as writer:
            for name, frame in tables.items():
                writer.write(name, frame)
            writer.commit()
        return archive.open(tmp_path)

    return make


def test_the_log_tells_each_state(opened):
    found = waiting_states(opened(jobs=JOBS.head(1), job_status_log=LOG))
    assert found.rows() == [
        ("Q1", "defined", 1, 0.5),
        ("Q1", "assigned", 1, 1.5),
        ("Q1", "activated", 1, 2.0),
        ("Q1", "starting", 1, 1.0),
    ]


def test_without_a_log_times_tell_two_states(opened):
    """Job 2 has no activatedtime, job 3 still waits at the end of the archive, 9 h after it was activated."""
    found = waiting_states(opened(jobs=JOBS))
    assert found.rows() == [
        (UNKNOWN, "assigned", 1, 1.0),
        (UNKNOWN, "activated", 1, 9.0),
        ("Q1", "assigned", 1, 2.0),
        ("Q1", "activated", 2, 3.0 + 1.0),
    ]


def test_by_another_column_and_in_a_period(opened):
    made = opened(jobs=JOBS)
    by_share = waiting_states(made, "gshare")
    assert by_share.rows() == [("A", "assigned", 2, 3.0), ("A", "activated", 3, 13.0)]
    early = waiting_states(made, start=hours(0), end=hours(10))
    assert early["hours"].to_list() == [2.0, 3.0]


def test_another_column_is_refused(opened):
    with pytest.raises(ConfigError, match="by='computingsit': did you mean 'computingsite'"):
        waiting_states(opened(jobs=JOBS), by="computingsit")
