"""Every chart of estimators: fields exist in its data, axes say their unit, names do not lie on each other, it renders."""

import polars as pl
import pytest

from brokerlab.charts import estimators, memory, theme
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles

WORDS = {"finding": "Models allocate less", "sample": "n = 12 jobs"}


def frontier():
    rows = [("at submission", "rule", "deployed", 0.02, 0.3, True), ("at submission", "other", "rule", 0.02, 0.3, True),
            *(("at submission", "model", "ours", 0.05 / (i + 1), 0.1 * i, i == 1) for i in range(4)),
            ("at the start", "limit", "limit", 0.0, 0.1, True), ("at the start", "far", "rule", 0.9, 0.1, True)]  # fmt: skip
    columns = ["panel", "estimator", "role", "exceed", "over", "named"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def coverage():
    rows = [(k, e, r, 0.95, 0.9, 0.97) for k in ("0", "1 to 4") for e, r in (("hierarchy", "ours"), ("lines", "model"))]  # fmt: skip
    return pl.DataFrame(
        rows, schema=["known", "estimator", "role", "coverage", "lo", "hi"], orient="row"
    )


CHARTS = {
    "frontier": (frontier, estimators.frontier_chart, {"over_title": "for nothing [%]", "exceed_title": "above [%]"}),
    "coverage": (coverage, estimators.coverage_chart, {"level": 0.95}),
}  # fmt: skip


@pytest.mark.parametrize("name", CHARTS)
def test_fields_exist_and_axes_have_units(name):
    frame, draw, more = CHARTS[name]
    spec = draw(frame(), **more, **WORDS).to_dict()
    titles = axis_titles(spec, may_be_empty=True)
    assert titles
    assert all(title.endswith("]") and "[" in title for title in titles)
    assert spec["title"]["text"] == ["Models allocate less"]


@pytest.mark.parametrize("name", CHARTS)
def test_renders(name, tmp_path):
    frame, draw, more = CHARTS[name]
    svg = theme.save(draw(frame(), **more, **WORDS), tmp_path, name).read_text()
    assert svg.startswith("<svg")
    assert "Models allocate less" in svg
    assert "NaN" not in svg


@pytest.mark.parametrize("name", CHARTS)
def test_missing_columns_are_refused(name):
    frame, draw, more = CHARTS[name]
    with pytest.raises(SchemaError, match="chart data lack"):
        draw(frame().drop(frame().columns[-1]), **more, **WORDS)


def test_names_that_would_lie_on_others_move_aside():
    points = frontier().filter(pl.col("named"), pl.col("panel") == "at submission")
    placed = estimators._placed(points.with_columns(pl.col("over", "exceed") * 100), 40.0, 20.0, 300)  # fmt: skip
    assert placed["estimator"].to_list() == ["rule", "model", "other"]
    at_one_place = placed.filter(pl.col("estimator") != "model")
    assert at_one_place.select("side", "below").n_unique() == 2


def test_the_last_of_many_names_at_one_place_is_left_out():
    one = {"panel": "p", "role": "rule", "exceed": 2.0, "over": 20.0, "named": True}
    points = pl.DataFrame([{**one, "estimator": f"name {i}"} for i in range(6)])
    placed = estimators._placed(points, 40.0, 20.0, 300)
    assert placed["estimator"].to_list() == [f"name {i}" for i in range(4)]


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
    "waste_ratios": (ratios, memory.waste_ratios, {"target": 0.7}),
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
