"""Every chart of the network weight's curves: fields exist in its data, axes say their unit, it renders."""

import numpy as np
import polars as pl
import pytest

from brokerlab.charts import network, theme
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles

WORDS = {"finding": "Curves differ", "sample": "n = 12 links"}


def curves():
    corners = {"document": ([0.01, 1.0, 100.0, 1000.0], [1.0, 1.1, 2.0, 2.0]),
               "fitted": ([0.01, 0.3, 30.0, 1000.0], [1.0, 1.4, 2.0, 2.0])}  # fmt: skip
    return pl.concat(
        pl.DataFrame({"curve": name, "mbps": mbps, "weight": weight})
        for name, (mbps, weight) in corners.items()
    )


def band():
    mbps = np.geomspace(0.01, 1000, 20)
    return pl.DataFrame({"mbps": mbps, "weight_lo": np.linspace(1, 1.9, 20), "weight_hi": np.linspace(1.1, 2, 20)})  # fmt: skip


def bins():
    edges = np.geomspace(0.01, 1000, 11)
    return pl.DataFrame({"mbps_lo": edges[:-1], "mbps_hi": edges[1:], "share": [0.1] * 10})


def scores():
    names = ["document", "fitted", "log throughput"]
    return pl.DataFrame(
        {
            "name": names * 2,
            "measure": ["Rank correlation"] * 3 + ["NDCG"] * 3,
            "value": [0.6, 0.7, -0.1] * 2,
            "lo": [0.5, 0.6, -0.2] * 2,
            "hi": [0.7, 0.8, 0.1] * 2,
            "role": ["current", "proposed", "other"] * 2,
        }
    )


def steps():
    return pl.DataFrame(
        {
            "curve": ["document", "document", "fitted"],
            "label": ["lowest (1.00)", "> 1 (1.10)", "lowest (1.00)"],
            "q10": [0.01, 0.1, 0.01],
            "q50": [0.1, 1.0, 0.05],
            "q90": [1.0, 40.0, 0.4],
            "words": ["60 %", "40 %", "100 %"],
        }
    )


def sizes():
    error = [5.0, 3.0, 2.5]
    return pl.DataFrame(
        {"n_steps": [0, 1, 2], "error": error, "lo": error, "hi": error, "chosen": [False, False, True]}
    )  # fmt: skip


def fallback():
    return pl.DataFrame(
        {
            "closeness": ["2", "11", "missing"],
            "line": [1.8, 1.0, 1.3],
            "weight": [1.7, 1.1, 1.2],
            "weight_lo": [1.6, 1.05, 1.1],
            "weight_hi": [1.8, 1.2, 1.3],
            "words": ["12", "40", "9"],
        }
    )


def exchange():
    return pl.DataFrame({"files": [1.0, 100.0, 1e5], "score": [0.2, 0.4, 0.3], "lo": [0.1, 0.3, 0.2], "hi": [0.3, 0.5, 0.4]})  # fmt: skip


MARKS = pl.DataFrame(
    {
        "files": [150.0, 80.0],
        "role": ["current", "proposed"],
        "words": ["now", "best"],
        "place": [0.5, 0.5],
    }
)

CHARTS = {
    "curves": (curves, lambda f: network.curves_chart(f, band(), bins(), **WORDS), "weight"),
    "scores": (scores, lambda f: network.scores_chart(f, **WORDS), "value"),
    "steps": (steps, lambda f: network.steps_chart(f, **WORDS), "q50"),
    "sizes": (sizes, lambda f: network.sizes_chart(f, **WORDS), "error"),
    "fallback": (fallback, lambda f: network.fallback_chart(f, **WORDS), "line"),
    "exchange": (exchange, lambda f: network.exchange_chart(f, MARKS, **WORDS), "score"),
    "exchange without marks": (exchange, lambda f: network.exchange_chart(f, MARKS.clear(), **WORDS), "score"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHARTS)
def test_encoded_fields_exist_and_axes_have_units(name):
    make, draw, _ = CHARTS[name]
    spec = draw(make()).to_dict()
    titles = axis_titles(spec, may_be_empty=True)
    assert titles
    assert all(title.endswith("]") and "[" in title for title in titles), titles
    assert spec["title"]["text"] == ["Curves differ"]


@pytest.mark.parametrize("name", CHARTS)
def test_renders(name, tmp_path):
    make, draw, _ = CHARTS[name]
    svg = theme.save(draw(make()), tmp_path, name).read_text()
    assert svg.startswith("<svg")
    assert "NaN" not in svg


@pytest.mark.parametrize("name", CHARTS)
def test_missing_columns_are_refused(name):
    make, draw, column = CHARTS[name]
    with pytest.raises(SchemaError, match=f"chart data lack {column}"):
        draw(make().drop(column))
