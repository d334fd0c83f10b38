"""The chart of proposals: fields exist in its data, the axis says its unit, far changes end at the edge, it renders."""

import polars as pl
import pytest

from brokerlab.charts import proposals, theme
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles

EFFECTS = pl.DataFrame(
    {
        "proposal": ["1. scouts", "1. scouts", "2. caps"],
        "quantity": ["Memory reserved", "Killed", "Mean waiting"],
        "change_pct": [-4.1, 900.0, 0.0],
        "change_pct_lo": [-5.0, 400.0, None],
        "change_pct_hi": [-3.2, 1300.0, None],
        "interval": ["excludes 0", "excludes 0", "none"],
    }
)


def test_encoded_fields_exist_and_the_axis_has_a_unit():
    titles = axis_titles(proposals.promises_chart(EFFECTS).to_dict())
    assert set(titles) == {"change [% of the present value]"}


def test_far_changes_are_drawn_at_the_edge():
    spec = proposals.promises_chart(EFFECTS).to_dict()
    rows = [row for rows in spec["datasets"].values() for row in rows if "change_pct" in row]
    assert {row["change_pct"] for row in rows} == {-4.1, proposals.FARTHEST, 0.0}
    assert max(row["change_pct_hi"] for row in rows if row["change_pct_hi"]) == proposals.FARTHEST


def test_renders_without_the_colour_of_limits(tmp_path):
    svg = theme.save(proposals.promises_chart(EFFECTS), tmp_path, "promises").read_text()
    assert svg.startswith("<svg")
    assert "NaN" not in svg
    assert theme.LIMIT not in svg


def test_missing_columns_are_refused():
    with pytest.raises(SchemaError, match="chart data lack"):
        proposals.promises_chart(EFFECTS.drop("interval"))
