"""Fast rebrokerage over the instants of a period."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from brokerlab.brokerage.replaying.counts import Counts
from brokerlab.lifecycle.waits import FastOver, Waiting, fast_rebrokerage_over, read_waiting
from brokerlab.lifecycle.waits.fast import with_dry_run
from brokerlab.times import instants_of
from tests.unit.lifecycle.waits.toys import BACKLOG, QUEUES, at, write


def judged(waiting: Waiting, every: str = "6h", n_boot: int = 50) -> FastOver | None:
    instants = instants_of(waiting.start, waiting.end, every)
    counts = Counts.of(waiting.archive.jobs, None, instants)
    by_place = counts.table("computingsite", "gshare", "jobstatus")
    return fast_rebrokerage_over(waiting, by_place, instants, n_boot=n_boot)


@pytest.fixture(scope="module")
def backlog(tmp_path_factory: pytest.TempPathFactory) -> Waiting:
    folder = tmp_path_factory.mktemp("fast") / "backlog"
    return read_waiting(write(folder, BACKLOG, QUEUES))


def test_instants_lie_on_the_grid_within_the_period() -> None:
    found = instants_of(datetime(2026, 3, 1, 5), datetime(2026, 3, 2, 0), "6h")
    assert found.rows() == [(0, at(6)), (1, at(12)), (2, at(18))]
    assert instants_of(datetime(2026, 3, 1), datetime(2026, 3, 1, 6), "6h")["at"].to_list() == [at(0)]  # fmt: skip


def test_episodes_end_where_an_instant_is_left_out() -> None:
    frame = pl.DataFrame(
        {"snapshot": [0, 1, 2, 4, 5], "computingsite": "A", "gshare": "MC", "excess": [5, 3, None, 2, 4],
         "exempt": [False, False, False, False, True]}
    )  # fmt: skip
    told = with_dry_run(frame, too_few=1)
    assert told["to_move"].to_list() == [4, 2, 0, 1, 0]
    assert told["onset"].to_list() == [True, False, False, True, False]


def test_nobody_has_ten_jobs_waiting(period: Waiting) -> None:
    found = judged(period, "12h")
    assert found is not None
    assert found.places.is_empty()
    assert found.totals["to_move"].to_list() == [0]


def test_no_job_at_any_instant(period: Waiting) -> None:
    instants = instants_of(period.start, period.end, "12h")
    none = pl.DataFrame(
        schema={"snapshot": pl.Int64, "computingsite": pl.String, "gshare": pl.String, "jobstatus": pl.String,
                "njobs": pl.Int64}
    )  # fmt: skip
    assert fast_rebrokerage_over(period, none, instants) is None


def test_a_backlog_triggers_until_it_is_gone(backlog: Waiting) -> None:
    found = judged(backlog)
    assert found is not None
    assert found.dry_run
    assert (found.n_places_as_set, found.moved_as_set) == (0, 0)
    (place,) = found.places.to_dicts()
    # 30 wait, none run: 30 less 10, at 0, 6, 12 and 18 h; at 0 h one job at B takes part in the fraction
    assert (place["n_instants"], place["n_onsets"], place["onset_jobs"], place["max_jobs"]) == (4, 1, 20, 20)  # fmt: skip
    assert place["met_share"] == 4 / found.n_instants
    assert found.by_time["to_move"].sum() == 80
    now = found.keys.filter("is_current")
    assert now["to_move"].to_list() == [found.totals["to_move"][0]] * 3
    assert now["to_move_lo"].to_list() == [0] * 3
    least = found.keys.filter(pl.col("key").str.contains("NQUEUE_<"))
    assert least.sort("value")["to_move"].is_sorted(descending=True)
    widest = found.keys.filter(name=found.widest_key["name"])["to_move"]
    assert (widest.min(), widest.max()) == (found.widest_key["low"], found.widest_key["high"])
    spread = found.keys.group_by("key").agg(width=pl.col("to_move").max() - pl.col("to_move").min())
    assert spread["width"].max() == widest.max() - widest.min()
    assert found.keys["value"].min() > 0  # 0 would mean the default


def test_shares_with_a_threshold_of_their_own(backlog: Waiting) -> None:
    config = backlog.config.with_values({"FAST_REBRO_THRESHOLD_NQUEUE_MC": 25})
    known = judged(replace(backlog, config=config))
    assert known is not None
    assert (known.dry_run, known.n_places_as_set) == (False, 1)
    assert known.places["onset_jobs"].to_list() == [5]
    mean = known.totals["to_move"][0]
    assert known.moved_as_set == mean == pytest.approx(20 / known.n_instants)


def test_queues_with_slots_set_by_hand_are_left_out(tmp_path: Path) -> None:
    archive = write(tmp_path / "slots", BACKLOG, QUEUES, slots=["A"])
    found = judged(read_waiting(archive))
    assert found is not None
    assert found.n_slots == 1
    assert set(found.shares["computingsite"]) == {"B"}
