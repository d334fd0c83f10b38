"""The generator's own writing of the scout rule against the library's, on a whole archive."""

import polars as pl
import pytest

import brokerlab.archive
from brokerlab import scouts
from brokerlab.gdpconfig import Config
from tests.unit.worlds.drawn.conftest import Made

PARAMETERS = [
    *("ramcount", "cputime", "cputimeunit", "outdiskcount", "workdiskcount"),
    *("iointensity", "diskio", "walltime"),
]


@pytest.fixture(scope="module")
def recomputed(made: Made) -> pl.DataFrame:
    archive = brokerlab.archive.open(made.path)
    result = scouts.estimate(
        archive,
        rules=scouts.ScoutRules(rules="production"),
        config=Config.from_frame(made.tables["gdpconfig"]),
        at=made.truth.select("jeditaskid", at="decided_at"),
    )
    tasks = made.tables["tasks"].filter(pl.col("status") != "scouting")
    return tasks.join(result.parameters, on="jeditaskid", suffix="_again")


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_recorded_parameters_can_be_recomputed(recomputed: pl.DataFrame, parameter: str) -> None:
    differ = recomputed.filter(pl.col(parameter).ne_missing(pl.col(f"{parameter}_again")))
    assert len(recomputed) > 100
    assert recomputed[parameter].null_count() < len(recomputed)
    assert differ.select("jeditaskid", parameter, f"{parameter}_again").rows() == []
