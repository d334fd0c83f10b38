"""What is planted in a lived world is in force in its gdpconfig, and its truth says so."""

from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

import brokerlab.archive
from brokerlab import worlds
from brokerlab.gdpconfig.proposal.planted import TRUTH
from brokerlab.worlds import planted, snapshots, stage
from tests.unit.worlds.conftest import ASKED, Made

pytestmark = pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")


def values(archive: brokerlab.archive.Archive) -> dict[str, str]:
    rows = archive.scan("gdpconfig").select("key", "value").collect().iter_rows()
    names = {plant.key for plant in planted.PLANTED}
    return {key: value for key, value in rows if key in names}


def test_the_values_in_force_are_those_of_the_truth(small: Path) -> None:
    archive = brokerlab.archive.open(small)
    truth = archive.truth(TRUTH)
    assert dict(truth.select("key", "planted").iter_rows()) == values(archive)
    wrong = truth.filter("wrong")
    assert (wrong["planted"] != wrong["best"]).all()
    assert wrong["report"].to_list() == ["scout-percentiles", "thresholds", "thresholds"]
    right = truth.filter(~truth["wrong"])
    assert right["key"].to_list() == ["SCOUT_RAMCOUNT_RANK", "MAX_DISKIO_DEFAULT"]
    assert (right["planted"] == right["best"]).all()


def test_a_world_without_anything_wrong_says_so(made: Made) -> None:
    truth = made.archive.truth(TRUTH)
    assert not truth["wrong"].any()
    assert dict(truth.select("key", "best").iter_rows()) == values(made.archive)
    rows = made.table("gdpconfig").select("key", "value").iter_rows()
    assert {key: str(value) for key, value in planted.FURTHER["none"].items()}.items() <= dict(
        rows
    ).items()


def test_the_best_value_is_in_its_range_and_a_wrong_one_is_not() -> None:
    for plant in planted.PLANTED:
        highest = float("inf") if plant.highest is None else plant.highest
        assert plant.lowest <= plant.best <= highest, plant.key
        if plant.planted != plant.best:
            assert not plant.lowest <= plant.planted <= highest, plant.key


def test_the_page_says_what_is_planted() -> None:
    page = (Path(__file__).parents[3] / "docs" / "worlds.md").read_text()
    for plant in planted.PLANTED:
        assert f"| {plant.key} | {plant.planted} | {plant.best} | {plant.lowest:g}" in page, (
            plant.key
        )


CAP = next(plant for plant in planted.PLANTED if plant.key == "NQUEUED_NUC_CAP_FOR_JOBS")
FILES = "Production Output_queued"


def waiting_files(archive: brokerlab.archive.Archive) -> pl.DataFrame:
    """Return the files on their way to every nucleus at every noon: ``nucleus, day, files``."""
    rows = archive.scan("network_matrix").filter(pl.col("ts").dt.hour() == 12, key=FILES)
    day = pl.col("ts").dt.truncate("1d")
    return rows.group_by(nucleus="dst", day=day).agg(files=pl.col("value").sum()).collect()


def test_the_planted_cap_starves_the_same_half_of_the_nuclei_all_the_time(made: Made) -> None:
    tasks = made.table("tasks").filter(prodsourcelabel="managed").select("nucleus").unique()
    over = pl.col("files") > CAP.planted
    seen = waiting_files(made.archive).group_by("nucleus").agg(over=over.mean())
    seen = seen.join(tasks, on="nucleus")
    steady = seen["over"].is_in([0.0, 1.0])
    assert steady.sum() >= seen.height - 1  # everything waits longer to one of them for some hours
    assert 1 / 3 <= (seen["over"] > 0.5).mean() <= 2 / 3


def test_who_waits_is_asked_by_what_holds_on_that_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after many days: the largest nucleus is over the cap for a week, then no more, and its tasks run."""
    monkeypatch.setattr(snapshots, "NUCLEUS_QUEUED", (600, 300, 300, 300))
    monkeypatch.setattr(snapshots, "JAM", (0.0, 0.6))
    monkeypatch.setattr(stage, "CYCLE", timedelta(hours=4))
    asked = {**ASKED, "jobs": 2000, "days": 12.0, "network_every_h": 6.0, "planted": "wrong"}
    worlds.synthesise(tmp_path, **asked)
    archive = brokerlab.archive.open(tmp_path)
    drawn = archive.scan("jobs").collect().join(archive.truth("tasks"), on="jeditaskid", how="semi")
    bulk = drawn.filter(
        pl.col("prodsourcelabel") == "managed", pl.col("specialhandling").is_null(),
        pl.col("processingtype") != "pmerge", pl.col("parentid").is_null(),
    )  # fmt: skip
    came = archive.scan("tasks").select("jeditaskid", came="creationdate").collect()
    waits = pl.col("creationtime") - pl.col("came")
    waited = bulk.join(came, on="jeditaskid").filter(waits > timedelta(days=5))
    assert waited["nucleus"].n_unique() == 1
    assert waited.height > 10
