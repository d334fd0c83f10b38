"""Every chart of waiting: fields exist in its data, axes say their unit, it renders."""

import polars as pl
import pytest

from brokerlab.charts import theme, waiting
from brokerlab.errors import SchemaError


def with_ends(frame, *names):
    ends = {
        f"{name}{end}": pl.col(name) * by
        for name in names
        for end, by in (("_lo", 0.5), ("_hi", 2))
    }
    return frame.with_columns(**ends)


CHANGES = with_ends(
    pl.DataFrame(
        {
            "setting": ["current", "other limits", "other limits"],
            "label": ["current", None, "× 0.5"],
            "more_soon": [0.0, 4.0, -3.0],
            "more_after_h": [0.0, 40.0, -30.0],
        }
    ),
    "more_soon",
    "more_after_h",
)
KEYS = with_ends(
    pl.DataFrame({"name": ["RATIO"] * 3, "times": [0.5, 1.0, 500.0], "to_move": [9.0, 6.0, 1.0]}),
    "to_move",
)
CHARTS = {
    "limits": (waiting.limits_chart, CHANGES, "more_after_h"),
    "fast_keys": (waiting.fast_keys_chart, KEYS, "to_move"),
}


@pytest.mark.parametrize("name", CHARTS)
def test_renders(name, tmp_path):
    draw, frame, _ = CHARTS[name]
    svg = theme.save(draw(frame), tmp_path, name).read_text()
    assert svg.startswith("<svg")
    assert "NaN" not in svg


@pytest.mark.parametrize("name", CHARTS)
def test_missing_columns_are_refused(name):
    draw, frame, drawn = CHARTS[name]
    with pytest.raises(SchemaError, match=f"chart data lack {drawn}"):
        draw(frame.drop(drawn))


def rows_of(chart):
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


def test_values_far_from_the_current_one_are_not_drawn():
    assert {row["times"] for row in rows_of(waiting.fast_keys_chart(KEYS))} == {0.5, 1.0}
