"""Every chart of estimators: fields exist in its data, axes say their unit, names do not lie on each other, it renders."""

import polars as pl
import pytest

from brokerlab.charts import estimators, theme
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles


def points():
    rows = [
        ("current", 0.02, 0.3, True), ("current", 0.04, 0.2, False), ("proposed", 0.01, 0.25, True),
        ("hierarchy", 0.03, 0.2, True), ("best per group, in hindsight", 0.0, 0.1, True),
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=["line", "exceed", "over_allocation", "named"], orient="row")


def by_known():
    rows = [(k, e, 0.95, 0.9, 0.97) for k in ("0", "1-4") for e in ("hierarchy", "lines")]
    columns = ["known", "estimator", "coverage", "coverage_lo", "coverage_hi"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def ratios():
    rows = [("mag", "proposed", 0.7, 0.4, 1.1), ("mag", "peer", 1.0, None, None)]
    columns = ["trace", "role", "ratio", "ratio_lo", "ratio_hi"]
    return pl.DataFrame(rows, schema=columns, orient="row")


MARKS = pl.DataFrame({"label": ["current"], "exceed": [0.02], "over_allocation": [0.3]})
DRAWN = {
    "exceed_frontier": (points, estimators.exceed_frontier, {"marks": MARKS}),
    "coverage_by_known": (by_known, estimators.coverage_by_known, {"level": 0.95}),
    "waste_ratios": (ratios, estimators.waste_ratios, {}),
}


@pytest.mark.parametrize("name", DRAWN)
def test_charts_on_primitives_draw_what_is_there(name, tmp_path):
    frame, draw, more = DRAWN[name]
    chart = draw(frame(), **more)
    titles = axis_titles(chart.to_dict(), may_be_empty=True)
    assert titles
    assert all(title.endswith("]") for title in titles if "[" in title)
    svg = theme.save(chart, tmp_path, name).read_text()
    assert "NaN" not in svg
    with pytest.raises(SchemaError, match="chart data lack"):
        draw(frame().drop(frame().columns[0]), **more)


def test_current_is_grey_and_proposed_blue(tmp_path):
    svg = theme.save(estimators.exceed_frontier(points(), marks=MARKS), tmp_path, "x").read_text()
    assert theme.CURRENT in svg
    assert theme.PROPOSED in svg
    assert theme.LIMIT not in svg  # hindsight is no limit that must be kept
