"""What is planted in a lived world is in force in its gdpconfig, and its truth says so."""

from pathlib import Path

import pytest

import brokerlab.archive
from brokerlab import worlds
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig.proposal.planted import TRUTH
from brokerlab.worlds import planted
from tests.unit.worlds.conftest import ASKED, Made

pytestmark = pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")


def values(archive: brokerlab.archive.Archive) -> dict[str, str]:
    rows = archive.scan("gdpconfig").select("key", "value").collect().iter_rows()
    names = {plant.key for plant in planted.PLANTED}
    return {key: value for key, value in rows if key in names}


def test_the_values_in_force_are_those_of_the_truth(tmp_path: Path) -> None:
    worlds.synthesise(tmp_path, **{**ASKED, "jobs": 600, "days": 3.0, "planted": "wrong"})
    archive = brokerlab.archive.open(tmp_path)
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


def test_the_best_value_is_in_its_range_and_a_wrong_one_is_not() -> None:
    for plant in planted.PLANTED:
        highest = float("inf") if plant.highest is None else plant.highest
        assert plant.lowest <= plant.best <= highest, plant.key
        if plant.planted != plant.best:
            assert not plant.lowest <= plant.planted <= highest, plant.key


def test_only_known_worlds_are_planted(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="allowed: wrong, none"):
        worlds.synthesise(tmp_path, **{**ASKED, "planted": "some"})


def test_the_page_says_what_is_planted() -> None:
    page = (Path(__file__).parents[3] / "docs" / "worlds.md").read_text()
    for plant in planted.PLANTED:
        assert f"| {plant.key} | {plant.planted} | {plant.best} | {plant.lowest:g}" in page, (
            plant.key
        )
