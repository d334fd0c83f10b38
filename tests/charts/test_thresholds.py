"""Every chart of the thresholds report: fields exist in its data, axes say their unit, it renders, nothing included."""

import polars as pl
import pytest

from brokerlab.charts import theme, thresholds
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles

WORDS = {"finding": "Turnaround falls", "sample": "n = 12 tasks"}


def effects():
    rows = [
        ("NQUEUED_SAT_CAP", "files", 10.0, 150.0, "log", 0.4, "tried"),
        ("NQUEUED_SAT_CAP", "files", 800.0, 150.0, "log", -0.1, "chosen"),
        ("SIZE_CUTOFF_TO_MOVE_INPUT", "GB", 0.0, 10.0, "log", 2.4, "tried"),
        ("NW_QUEUE_IMPORTANCE", "fraction", 0.2, None, "linear", 0.01, "tried"),
    ]
    names = ["key", "unit", "value", "current", "scale", "effect", "state"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return frame.with_columns(lo=pl.col("effect") - 0.02, hi=pl.col("effect") + 0.02)


def settings():
    return pl.DataFrame(
        {"x": [1.0, 2.0, 3.0, 2.5], "y": [4.0, 3.0, 2.0, 5.0], "state": list(thresholds.STATES), "limit": 2.8}
    )  # fmt: skip


def screened():
    return pl.DataFrame(
        {"key": ["A", "B"], "share": [0.4, 0.01], "judge": list(thresholds.JUDGES), "words": ["40 %", "1 %"]}
    )  # fmt: skip


CHARTS = {
    "effects": (effects, lambda frame: thresholds.effects_chart(frame, effect_title="change [% of now]", **WORDS)),
    "pareto": (settings, lambda frame: thresholds.pareto_chart(frame, x_title="moved [TB]", y_title="turnaround [h]", **WORDS)),
    "screen": (screened, lambda frame: thresholds.screen_chart(frame, **WORDS)),
}  # fmt: skip


@pytest.mark.parametrize("name", CHARTS)
def test_encoded_fields_exist_and_axes_have_units(name):
    frame, draw = CHARTS[name]
    spec = draw(frame()).to_dict()
    titles = axis_titles(spec)
    assert titles
    assert all(title.endswith("]") and "[" in title for title in titles)


@pytest.mark.parametrize("name", CHARTS)
def test_renders_or_refuses(name, tmp_path):
    frame, draw = CHARTS[name]
    svg = theme.save(draw(frame()), tmp_path, name).read_text()
    assert "Turnaround falls" in svg
    assert "NaN" not in svg
    with pytest.raises(SchemaError, match="chart data lack"):
        draw(frame().drop(frame().columns[-1]))


def test_a_pareto_without_a_limit_has_no_line(tmp_path):
    draw = CHARTS["pareto"][1]
    frame = settings().with_columns(limit=pl.lit(None, pl.Float64))
    assert theme.LIMIT not in theme.save(draw(frame), tmp_path, "free").read_text()
