"""Every chart of waiting: fields exist in its data, axes say their unit, it renders."""

from datetime import datetime, timedelta

import polars as pl
import pytest

from brokerlab.charts import theme, waiting
from brokerlab.errors import SchemaError

DAYS = [datetime(2026, 3, 1) + timedelta(days=d) for d in range(4)]
RULES = ["sent", "activated", "pending"]


def with_ends(frame, *names):
    ends = {
        f"{name}{end}": pl.col(name) * by
        for name in names
        for end, by in (("_lo", 0.5), ("_hi", 2))
    }
    return frame.with_columns(**ends)


CHANGES = with_ends(
    pl.DataFrame(
        {
            "name": ["activated", "activated", "sent"],
            "limits": ["halved", "doubled", "halved"],
            "setting": ["current", "other limits", "other limits"],
            "label": ["current", None, "× 0.5"],
            "more_soon": [0.0, 4.0, -3.0],
            "more_after_h": [0.0, 40.0, -30.0],
        }
    ),
    "more_soon",
    "more_after_h",
)
JOBS = with_ends(
    pl.DataFrame(
        {"rule": [r for r in RULES for _ in DAYS], "time": DAYS * 3, "jobs": [float(n) for n in range(12)]}
    ),
    "jobs",
)  # fmt: skip
KEYS = with_ends(
    pl.DataFrame({"name": ["RATIO"] * 3, "times": [0.5, 1.0, 500.0], "to_move": [9.0, 6.0, 1.0]}),
    "to_move",
)
CHARTS = {
    "limits": (waiting.limits_chart, CHANGES, {}),
    "outcomes": (
        waiting.outcomes_chart,
        pl.DataFrame({"name": ["sent"] * 2, "outcome": ["went on soon", "still waits"], "share": [0.2, 0.8]}),
        {},
    ),
    "limit_changes": (waiting.limit_changes_chart, CHANGES, {}),
    "over_time": (waiting.over_time_chart, JOBS, {"rules": ["activated", "sent"], "step": "day"}),
    "fast_over_time": (waiting.fast_over_time_chart, pl.DataFrame({"at": DAYS, "to_move": [0, 4, 9, 0]}), {}),
    "fast_keys": (waiting.fast_keys_chart, KEYS, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CHARTS)
def test_renders(name, tmp_path):
    draw, frame, options = CHARTS[name]
    svg = theme.save(draw(frame, **options), tmp_path, name).read_text()
    assert svg.startswith("<svg")
    assert "NaN" not in svg


@pytest.mark.parametrize("name", CHARTS)
def test_missing_columns_are_refused(name):
    draw, frame, options = CHARTS[name]
    drawn = "jobs" if name == "over_time" else "to_move" if name.startswith("fast") else "share"
    drawn = drawn if drawn in frame.columns else "more_after_h"
    with pytest.raises(SchemaError, match="chart data lack"):
        draw(frame.drop(drawn), **options)


def rows_of(chart):
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


def test_rules_that_are_asked_for_are_drawn_in_their_order():
    chart = waiting.over_time_chart(JOBS, rules=["activated", "sent"], step="week")
    spec = chart.to_dict()
    assert [panel["title"]["text"] for panel in spec["vconcat"]] == ["activated", "sent"]
    assert {row["rule"] for row in rows_of(chart)} == {"activated", "sent"}


def test_values_far_from_the_current_one_are_not_drawn():
    assert {row["times"] for row in rows_of(waiting.fast_keys_chart(KEYS))} == {0.5, 1.0}


def test_the_last_step_is_as_wide_as_the_others():
    for name in ("over_time", "fast_over_time"):
        draw, frame, options = CHARTS[name]
        times = [row.get("time", row.get("at")) for row in rows_of(draw(frame, **options))]
        assert max(times).startswith("2026-03-05")
