"""Every chart of the replay of user tasks: axes say their unit, fields exist, it renders."""

from datetime import datetime

import polars as pl
import pytest

from brokerlab.charts import analysis, theme
from tests.charts.specs import axis_titles

ENDS = {"share": 0.3, "share_lo": 0.2, "share_hi": 0.4}


def held():
    return pl.DataFrame([{"part": name} | ENDS for name in ("cap_running_jobs", "global_quota")])


def over_time():
    days = [datetime(2026, 3, day) for day in (1, 2)]
    return pl.DataFrame(
        [{"time": day, "part": part} | ENDS for day in days for part in ("caps", "input")]
    )


def removed():
    rows = [{"loop": loop, "part": part} | ENDS for loop in (1, 2) for part in ("disk", "status")]
    return pl.DataFrame(rows)


def places():
    rows = [
        {"weight": weight, "task_class": level, "part": part} | ENDS
        for weight in ("original", "new")
        for level in ("all", "S")
        for part in ("hi", "lo")
    ]
    return pl.DataFrame(rows)


def curves():
    rows = [
        {"quantity": name, "users": x, "part": x**2}
        for name in ("asked", "equal")
        for x in (0.0, 0.5, 1.0)
    ]
    return pl.DataFrame(rows)


CHARTS = {
    "held": lambda: analysis.held_by_rule(held()),
    "over_time": lambda: analysis.held_over_time(over_time()),
    "removed": lambda: analysis.removed_by_loop(removed()),
    "places": lambda: analysis.places_by_weight(places(), current="original"),
    "lorenz": lambda: analysis.lorenz(curves()),
}


@pytest.mark.parametrize("name", CHARTS)
def test_axes_have_units_and_it_renders(name, tmp_path):
    chart = CHARTS[name]()
    titles = set(axis_titles(chart.to_dict())) - {"time (UTC)"}
    assert titles
    assert all(title.endswith("]") and "[%" in title for title in titles)
    svg = theme.save(chart, tmp_path, name).read_text()
    assert svg.startswith("<svg")
    assert "NaN" not in svg


def test_the_weight_in_use_is_grey():
    text = str(CHARTS["places"]().to_dict())
    assert f"'domain': ['current', 'new'], 'range': ['{theme.CURRENT}'" in text


def test_loops_and_quantities_are_named():
    assert "with locality" in str(CHARTS["removed"]().to_dict())
    assert "all the same" in str(CHARTS["lorenz"]().to_dict())
