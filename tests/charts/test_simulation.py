"""Every chart of the simulator: fields exist in its data, axes say their unit, it renders, nothing included."""

import polars as pl
import pytest

from brokerlab.charts import simulation, theme
from brokerlab.errors import SchemaError
from tests.charts.specs import axis_titles

WORDS = {"finding": "Waits agree", "sample": "n = 12 jobs"}


def waits():
    frame = pl.DataFrame({"queue": ["A", "B", "C"], "state": list(simulation.STATES)})
    numbers = frame.with_columns(
        observed_h=pl.Series([0.0, 1.5, 40.0]), simulated_h=pl.Series([0.0, 2.0, 0.1])
    )
    return pl.concat(numbers.with_columns(panel=pl.lit(name)) for name in ("median", "90th"))


def reasons():
    return pl.DataFrame(
        {"reason": ["timing", "kills"], "queues": [3, 1], "words": ["3 queues", "1"]}
    )


CHARTS = {
    "waits": (waits, lambda frame: simulation.waits_chart(frame, **WORDS)),
    "reasons": (reasons, lambda frame: simulation.reasons_chart(frame, **WORDS)),
}


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
    assert "Waits agree" in svg
    assert "NaN" not in svg
    with pytest.raises(SchemaError, match="chart data lack"):
        draw(frame().drop(frame().columns[-1]))
