"""Every chart of workflows: fields exist in its data, axes say their unit, it renders."""

import polars as pl
import pytest

from brokerlab.charts import theme, workflows
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles


def by_queue():
    ends = {"ratio": [9.0, 0.5], "ratio_lo": [5.0, None], "ratio_hi": [12.0, None]}
    return pl.DataFrame({"label": ["KTH, easy", "LCG, easy"], **ends})


def by_place():
    flows = pl.DataFrame({"label": ["blast", "soykb"]})
    rest = {"rules": ["paper", "notes"], "system": ["KTH, easy", "LCG, easy"]}
    every = flows
    for name, values in rest.items():
        every = every.join(pl.DataFrame({name: values}), how="cross")
    return every.with_columns(ratio=pl.lit(1.5), ratio_lo=pl.lit(1.2), ratio_hi=pl.lit(2.0))


CHARTS = {
    "queues": (by_queue, workflows.turnaround_ratios, {"of": "notes over paper"}, "ratio"),
    "places": (by_place, workflows.turnaround_ratios, {"of": "a over b", "panels": "system"}, "ratio"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHARTS)
def test_axes_have_units_and_it_renders(name, tmp_path):
    make, draw, options, _ = CHARTS[name]
    chart = draw(make(), **options)
    titles = [title for title in axis_titles(chart.to_dict(), may_be_empty=True) if title]
    assert titles
    assert all(title.endswith("]") and "[" in title for title in titles), titles
    svg = theme.save(chart, tmp_path, name).read_text()
    assert svg.startswith("<svg")
    assert "NaN" not in svg


@pytest.mark.parametrize("name", CHARTS)
def test_missing_columns_are_refused(name):
    make, draw, options, column = CHARTS[name]
    with pytest.raises(SchemaError, match=f"chart data lack {column}"):
        draw(make().drop(column), **options)
