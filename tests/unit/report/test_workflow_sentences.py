"""What the workflow-pilots report says, case by case."""

from types import SimpleNamespace

import polars as pl
import pytest

from brokerlab.report.workflow_pilots import sentences as say
from brokerlab.report.workflow_pilots.study import NOTES, PAPER

SCHEMA = {"system": pl.String, "strategy": pl.String, "reference": pl.String, "ratio": pl.Float64, "ratio_lo": pl.Float64, "ratio_hi": pl.Float64}  # fmt: skip


def study(*rows):
    table = [(system, NOTES, PAPER, ratio, lo, hi) for system, ratio, lo, hi in rows]
    return SimpleNamespace(by_queue=pl.DataFrame(table, schema=SCHEMA, orient="row"))


@pytest.mark.parametrize(
    ("rows", "begins"),
    [
        ([("A", 5.0, 4.0, 6.0), ("B", 2.0, 1.5, 3.0)], "Group by the paper's rule"),
        ([("A", 0.5, 0.4, 0.6)], "Keep the rule of the notes"),
        ([("A", 5.0, 4.0, 6.0), ("B", 0.5, 0.4, 0.6)], "Which rule of grouping is right hangs on the queue"),
        ([("A", 5.0, 4.0, 6.0), ("B", 0.5, 0.4, 1.6)], "Group by the paper's rule"),
        ([("A", 1.1, 0.9, 1.3)], "The two rules of grouping cannot be told apart"),
        ([("A", 1.1, None, None)], "The two rules of grouping cannot be told apart"),
        ([], "The two rules of grouping could not be compared"),
    ],
)  # fmt: skip
def test_the_advice_follows_from_the_intervals(rows, begins):
    assert say._advice(study(*rows)).startswith(begins)


def test_queues_are_listed_from_the_longest():
    told = say._advice(study(("A", 0.5, 0.4, 0.6), ("B", 5.0, 4.0, 6.0)))
    assert told.index("5.00 (4.00 to 6.00) at B") < told.index("0.50 (0.40 to 0.60) at A")


def test_names_and_ratios():
    assert say.name_of("one_job_per_task") == "one job per task"
    assert say.name_of("pilot_levels:notes,tie=stops") == "pilot_levels:notes,tie=stops"
    assert say.times(None) == "an unknown number of"
    assert say.times({"ratio": 97.34, "ratio_lo": 58.1, "ratio_hi": 149.2}) == "97 (58 to 149)"
