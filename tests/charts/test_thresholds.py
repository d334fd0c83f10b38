"""Charts of thresholds: fields exist in their data, axes say their unit, they render."""

import polars as pl
import pytest

from brokerlab.charts import theme, thresholds
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles


def settings():
    frame = pl.DataFrame(
        {"role": ["current", "proposed", "on the front", "tried"], "a_pct": [0.0, -8.0, -5.0, 3.0], "b_pct": [0.0, 2.0, 1.0, 6.0]}
    )  # fmt: skip
    return frame.with_columns(
        pl.col(name).add(step).alias(f"{name}{end}")
        for name in ("a_pct", "b_pct")
        for end, step in (("_lo", -1.0), ("_hi", 1.0))
    )


def keys():
    return pl.DataFrame({"key": ["A", "B"], "shift": [0.4, 0.01], "follows": ["simulate", "screened"]})  # fmt: skip


def front(frame):
    return thresholds.front_chart(
        frame, x="a_pct", y="b_pct", x_title="turnaround [% of now]", y_title="moved [% of now]"
    )


CHARTS = {
    "front": (settings, front),
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
        draw(frame().drop("key" if name != "front" else "a_pct"))


def test_only_the_proposed_setting_has_bars():
    drawn = front(settings()).to_dict()
    rows = max(drawn["datasets"].values(), key=lambda rows: len(rows[0]))
    assert [row["a_pct_lo"] for row in rows] == [None, -9.0, None, None]
    assert [row["name"] for row in rows] == ["current", "proposed", None, None]
