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


def waits():
    rows = [(p, s, run, run / 2) for p in ("KTH", "LCG") for s in ("1 host", "all") for run in (0.1, 10.0)]  # fmt: skip
    return pl.DataFrame(rows, schema=["system", "size", "run_h", "wait"], orient="row")


def bars():
    rows = [
        ("one job", "P0: levels 1 to 3", "waits", 0.0, 2.0),
        ("one job", "P0: levels 1 to 3", "runs", 2.0, 3.0),
        ("one job per task", "level 1", "cancelled", 0.0, 1.0),
    ]
    schema = ["strategy", "line", "phase", "begin_h", "end_h"]
    return pl.DataFrame(rows, schema=schema, orient="row")


CHARTS = {
    "queues": (by_queue, workflows.turnaround_ratios, {"of": "notes over paper"}, "ratio"),
    "places": (by_place, workflows.turnaround_ratios, {"of": "a over b", "panels": "system"}, "ratio"),
    "waits": (waits, workflows.waits_by_run_time, {}, "wait"),
    "phases": (bars, workflows.job_phases, {}, "phase"),
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
