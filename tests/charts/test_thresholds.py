"""Charts of thresholds: fields exist in their data, axes say their unit, they render."""

import polars as pl
import pytest

from brokerlab.charts import theme, thresholds
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles


def settings():
    return pl.DataFrame(
        {
            "setting": ["CAP = 400", "CAP = 800", "CAP = 9000"], "role": ["keeps the limits", "proposed", "breaks a limit"],
            "diff_pct": [-3.0, -8.0, -9.0], "diff_pct_lo": [-5.0, -9.0, -11.0], "diff_pct_hi": [-1.0, -7.0, -7.0],
        }
    )  # fmt: skip


def keys():
    return pl.DataFrame({"key": ["A", "B"], "shift": [0.4, 0.01], "follows": ["simulate", "screened"]})  # fmt: skip


def judged(frame):
    return thresholds.candidates_chart(frame, title="turnaround, change [% of now]")


CHARTS = {
    "candidates": (settings, judged),
    "screen": (keys, thresholds.screen_chart),
}


@pytest.mark.parametrize("name", CHARTS)
def test_encoded_fields_exist_and_axes_have_units(name):
    frame, draw = CHARTS[name]
    titles = axis_titles(draw(frame()).to_dict())
    assert titles
    assert all("[" in title and "]" in title for title in titles)


@pytest.mark.parametrize("name", CHARTS)
def test_renders_or_refuses(name, tmp_path):
    frame, draw = CHARTS[name]
    svg = theme.save(draw(frame()), tmp_path, name).read_text()
    assert "NaN" not in svg
    with pytest.raises(SchemaError, match="chart data lack"):
        draw(frame().drop("key" if name == "screen" else "diff_pct"))
