"""Every chart of the network weight's curves: fields exist in its data, axes say their unit, it renders."""

import polars as pl
import pytest

from brokerlab.charts import network, theme
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles

ENDS = ("", "_lo", "_hi")


def curves():
    document = {"curve": "current", "mbps": [0.01, 1.0, 1000.0], "weight": [1.0, 1.1, 2.0]}
    fitted = {"curve": "proposed", "mbps": [0.01, 0.3, 1000.0], "weight": [1.0, 1.4, 2.0]}
    fitted |= {"weight_lo": [1.0, 1.2, 1.9], "weight_hi": [1.1, 1.5, 2.0]}
    return pl.concat([pl.DataFrame(document), pl.DataFrame(fitted)], how="diagonal")


def closeness():
    levels = {"level": ["2", "missing"] * 2, "setting": ["current"] * 2 + ["proposed"] * 2}
    return pl.DataFrame(levels | {f"weight{end}": [1.8, 1.3, 1.7, 1.2] for end in ENDS})


def exchange():
    return pl.DataFrame(
        {"files": [1.0, 100.0, 1e5]} | {f"score{end}": [0.2, 0.4, 0.3] for end in ENDS}
    )


MARKS = pl.DataFrame({"files": [100.0], "score": [0.4], "label": ["current"]})
CHARTS = {
    "curves": (curves, network.weight_curves, {}, "weight"),
    "closeness": (closeness, network.weights_by_closeness, {}, "weight"),
    "exchange": (exchange, network.score_by_exchange, {"marks": MARKS}, "score"),
}


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
