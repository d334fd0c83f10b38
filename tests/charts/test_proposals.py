"""The chart of proposals: fields exist in its data, the axis says its unit, it renders."""

import polars as pl
import pytest

from brokerlab.charts import proposals, theme
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles, units

WORDS = {"finding": "Two effects", "sample": "n = 12 tasks"}
EFFECTS = pl.DataFrame(
    {
        "proposal": ["1. scouts", "1. scouts", "2. caps"],
        "quantity": ["Memory reserved", "Killed", "Mean waiting"],
        "diff_pct": [-4.1, 900.0, 0.0],
        "lo_pct": [-5.0, 400.0, None],
        "hi_pct": [-3.2, 1300.0, None],
        "words": ["−4.1 %", "+900 %", "0 %"],
        "sure": [True, True, False],
    }
)


def test_encoded_fields_exist_and_the_axis_has_a_unit():
    spec = proposals.effects_chart(EFFECTS, **WORDS).to_dict()
    titles = axis_titles(spec)
    assert titles == ["change [% of the present value]"]
    assert spec["title"]["text"] == ["Two effects"]


def test_panels_share_an_axis_that_ends_where_changes_are_drawn_at_the_edge():
    spec = proposals.effects_chart(EFFECTS, **WORDS).to_dict()
    scales = {
        tuple(encoding["x"]["scale"]["domain"])
        for encoding, _ in units(spec)
        if "scale" in encoding.get("x", {})
    }
    ((low, high),) = scales
    assert low == pytest.approx(-5 - 0.05 * 155)
    assert high == pytest.approx(150 + 0.05 * 155)


def test_renders(tmp_path):
    svg = theme.save(proposals.effects_chart(EFFECTS, **WORDS), tmp_path, "effects").read_text()
    assert svg.startswith("<svg")
    assert "NaN" not in svg


def test_missing_columns_are_refused():
    with pytest.raises(SchemaError, match="chart data lack sure"):
        proposals.effects_chart(EFFECTS.drop("sure"), **WORDS)
