"""Every chart of wall times: fields exist in its data, axes say their unit, it renders."""

import polars as pl
import pytest

from brokerlab.charts import theme, walltime
from brokerlab.errors import SchemaError
from tests.charts.specs import units

WORDS = {"finding": "Like jobs err less", "sample": "n = 12 jobs"}


def errors():
    rows = [(log, m, r, x, 0.8 * x, 1.2 * x) for log in ("kth", "lcg") for m, r, x in (("like jobs", "ours", 0.8), ("last two", "best", 1.0), ("requested", "other", 8.0))]  # fmt: skip
    return pl.DataFrame(rows, schema=["log", "method", "role", "ratio", "lo", "hi"], orient="row")


def misses():
    return pl.DataFrame({"name": ["kth: ours", "kth: last two"], "role": ["ours", "other"],
                         "missed_pct": [5.0, 7.0], "lo": [4.0, 3.0], "hi": [6.0, 12.0]})  # fmt: skip


def power():
    rows = [(p, f"Q{i}", 10 * i, 8.0 + i, 1.5 - 0.1 * i) for p in ("task 1, cpu time", "task 1, wall time") for i in range(1, 6)]  # fmt: skip
    return pl.DataFrame(rows, schema=["panel", "queue", "jobs", "corepower", "factor"], orient="row")  # fmt: skip


def lines():
    rows = [(p, k, x, 10.0 / x) for p in ("task 1, cpu time", "task 1, wall time") for k in ("fitted", "rule") for x in (8.0, 13.0)]  # fmt: skip
    return pl.DataFrame(rows, schema=["panel", "kind", "corepower", "factor"], orient="row")


CHARTS = {
    "errors": lambda: walltime.errors_chart(errors(), **WORDS),
    "misses": lambda: walltime.misses_chart(misses(), promised_pct=5.0, **WORDS),
    "power": lambda: walltime.power_chart(power(), lines(), **WORDS),
}


@pytest.mark.parametrize("name", CHARTS)
def test_fields_exist_and_axes_have_units(name):
    spec = CHARTS[name]().to_dict()
    titles = set()
    for encoding, data in units(spec):
        fields = set(spec["datasets"][data][0])
        for channel, definition in encoding.items():
            if isinstance(definition, dict) and "field" in definition:
                assert definition["field"] in fields, (channel, definition)
            if isinstance(definition, dict) and definition.get("type") == "quantitative" and definition.get("title"):  # fmt: skip
                titles.add(definition["title"])
    assert titles
    assert all(title.endswith("]") and "[" in title for title in titles)
    assert spec["title"]["text"] == ["Like jobs err less"]


@pytest.mark.parametrize("name", CHARTS)
def test_renders(name, tmp_path):
    svg = theme.save(CHARTS[name](), tmp_path, name).read_text()
    assert svg.startswith("<svg")
    assert "Like jobs err less" in svg
    assert "NaN" not in svg


def test_what_is_missing_is_named():
    with pytest.raises(SchemaError, match="ratio"):
        walltime.errors_chart(errors().drop("ratio"), **WORDS)
