"""The chart of the validation: its fields exist, axes say their unit, red stays for limits, it renders."""

import polars as pl
import pytest

from brokerlab.calibrate.simulation.validation import STATES
from brokerlab.charts import simulation, theme
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles


def waits():
    n = len(STATES)
    return pl.DataFrame(
        {
            "panda_queue": [f"Q{i}" for i in range(n)],
            "state": list(STATES),
            "observed_h": [0.1 + i for i in range(n)],
            "simulated_h": [0.2 + 2 * i for i in range(n)],
        }
    )


def test_encoded_fields_exist_and_axes_have_units():
    titles = axis_titles(simulation.waits_chart(waits()).to_dict())
    assert set(titles) == {"observed wait [h]", "simulated wait [h]"}


def test_no_state_is_drawn_in_the_colour_of_limits(tmp_path):
    svg = theme.save(simulation.waits_chart(waits()), tmp_path, "waits").read_text()
    assert theme.LIMIT not in svg
    assert all(state in svg for state in STATES)
    assert "NaN" not in svg


def test_missing_columns_are_refused():
    with pytest.raises(SchemaError, match="chart data lack state"):
        simulation.waits_chart(waits().drop("state"))
