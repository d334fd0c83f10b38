"""Charts of a table of jobs: fields exist in their data, axes say their unit, colours mean the same everywhere."""

from datetime import datetime, timedelta

import polars as pl
import pytest

from brokerlab.archive.explore import OTHER
from brokerlab.charts import explore as charts
from brokerlab.charts import theme
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles, units

START = datetime(2026, 3, 1)
TIMES = [START, START + timedelta(hours=6)]
OVER_TIME = pl.DataFrame(
    {
        "at": TIMES * 3,
        "level": ["closed"] * 2 + ["finished"] * 2 + [OTHER] * 2,
        "jobs": [1, 2, 3, 0, 5, 6],
    }
)
BINS = pl.DataFrame(
    {
        "what": ["memory [MB]", "wait [s]"],
        "lower": [10.0, 100.0],
        "upper": [20.0, 200.0],
        "jobs": [3, 4],
    }
)
SPENT = pl.DataFrame(
    {
        "level": ['A<b>&\n"x"', 'A<b>&\n"x"', "B"],
        "state": ["activated", "pending", "activated"],
        "hours": [3.0, 1.0, 2.0],
    }
)
CHARTS = {
    "over_time": (charts.jobs_over_time, OVER_TIME, "jobs", ["jobs created"]),
    "distributions": (
        charts.distributions,
        BINS,
        "lower",
        ["memory [MB]", "jobs", "wait [s]", "jobs"],
    ),
    "states": (charts.waiting_states, SPENT, "hours", ["waited [h]"]),
}


@pytest.mark.parametrize("name", CHARTS)
def test_renders(name, tmp_path):
    draw, frame, _, titles = CHARTS[name]
    svg = theme.save(draw(frame), tmp_path, name).read_text()
    assert svg.startswith("<svg")
    assert "NaN" not in svg
    assert "<b>" not in svg
    assert axis_titles(draw(frame).to_dict()) == titles


@pytest.mark.parametrize("name", CHARTS)
def test_missing_columns_are_refused(name):
    draw, frame, drawn, _ = CHARTS[name]
    with pytest.raises(SchemaError, match=f"chart data lack {drawn}"):
        draw(frame.drop(drawn))


def colours(chart):
    scales = [
        e["color"]["scale"] for e, _ in units(chart.to_dict()) if "scale" in e.get("color", {})
    ]
    return dict(zip(scales[0]["domain"], scales[0]["range"], strict=True))


def test_what_ends_how_has_its_colour_and_the_rest_is_grey():
    found = colours(charts.jobs_over_time(OVER_TIME))
    assert list(found) == ["finished", "closed", OTHER]
    assert found["finished"] == charts.STATUSES["finished"]
    assert found[OTHER] == theme.OTHER
    assert found["closed"] not in charts.STATUSES.values()


def test_states_are_in_the_order_of_a_job_and_the_first_levels_are_drawn():
    assert list(colours(charts.waiting_states(SPENT))) == ["pending", "activated"]
    rows = [
        r
        for rows in charts.waiting_states(SPENT, most=1).to_dict()["datasets"].values()
        for r in rows
    ]
    assert {row["level"] for row in rows} == {'A<b>&\n"x"'}


@pytest.mark.parametrize(("hours", "unit"), [(24, "yearmonthdate"), (6, "yearmonthdatehours")])
def test_steps_within_a_day_are_not_one_bar(hours, unit):
    frame = OVER_TIME.with_columns(
        at=pl.Series([START, START + timedelta(hours=hours)] * 3, dtype=pl.Datetime("us"))
    )
    found = {
        e["x"]["timeUnit"] for e, _ in units(charts.jobs_over_time(frame).to_dict()) if "x" in e
    }
    assert found == {unit}
