"""The grid's estimate is what scouts.estimate writes at the first trigger, task by task."""

import polars as pl
import pytest

from brokerlab import archive, scouts
from brokerlab.calibrate.percentiles import Assumptions, Setting
from brokerlab.gdpconfig import Config
from brokerlab.scouts.triggers import triggers
from brokerlab.worlds import synthesise
from tests.unit.calibrate.toys import backtest


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    synthesise(folder, jobs=12_000, days=10, seed=11)
    opened = archive.open(folder)
    return {
        name: opened.scan(name).collect()
        for name in ("jobs", "files", "tasks", "datasets", "queues")
    }


@pytest.mark.parametrize("rules", ["document", "production"])
@pytest.mark.parametrize(("rank", "margin"), [(75, 10), (82, 17)])
def test_estimates_equal_those_of_scouts(tables, rules, rank, margin):
    jobs, files, tasks, datasets, queues = tables.values()
    keys = {
        "SCOUT_RAMCOUNT_RANK": rank,
        "SCOUT_RAMCOUNT_MARGIN": margin,
        "SCOUT_CPUTIME_RANK": rank,
    }
    first = triggers(jobs, files, tasks, datasets).filter(pl.col("trigger").str.starts_with("T1"))
    written = scouts.estimate(
        tables,
        rules=scouts.ScoutRules(rules),
        config=Config.empty().with_values(keys),
        at=first.select("jeditaskid", "at"),
    ).parameters
    quantities = scouts.job_quantities(tables, rules=scouts.ScoutRules(rules))
    made = Assumptions(rules=scouts.ScoutRules(rules), min_scored=1)
    for parameter, setting in {
        "ramcount": (rank, margin),
        "cputime": (rank, 50),
        "outdiskcount": (75, 0),
    }.items():
        found = backtest(
            quantities,
            tasks,
            queues,
            jobs,
            parameter=parameter,
            ranks=[setting[0]],
            margins=[setting[1]],
            current=setting,
            assumptions=made,
        ).under([Setting(*setting)])
        both = found.join(written, on="jeditaskid", how="left")
        assert both.height > 20
        expected = pl.col(parameter)
        if parameter == "cputime":
            milli = pl.col("cputimeunit") == "mHS06sPerEvent"
            expected = pl.when(milli).then(expected).otherwise(expected * 1000)
        wrong = both.filter(pl.col("estimate") != expected)
        assert wrong.is_empty(), wrong.select("jeditaskid", "estimate", parameter)
