"""Whatever a source holds: the counts add up and the order of its rows does not matter."""

import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab import archive
from brokerlab.archive.ingestion import ingest
from brokerlab.archive.schema import sift
from tests.examples import examples
from tests.sifting import split

START = datetime(2026, 3, 1)

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "pandaid": st.sampled_from(["1", "2", "3", "4", "", "x"]),
            "jobstatus": st.sampled_from(["finished", "failed", ""]),
            "maxpss": st.sampled_from(["", "100", "200", "-1", "nan", "1.5", "300.0"]),
            "gshare": st.sampled_from(["", "A", "B"]),
            "hour": st.integers(0, 3),
        }
    ),
    max_size=12,
)


def frame_of(rows):
    columns = ["pandaid", "jobstatus", "maxpss", "gshare"]
    times = [str(START + timedelta(hours=row["hour"])) for row in rows]
    frame = pl.DataFrame(
        {name: [row[name] for row in rows] for name in columns},
        schema=dict.fromkeys(columns, pl.String),
    )
    return frame.with_columns(
        pl.Series("modificationtime", times, dtype=pl.String),
        pl.Series("creationtime", times, dtype=pl.String),
        prodsourcelabel=pl.lit("managed"),
        jeditaskid=pl.lit("7"),
    )


@settings(max_examples=examples(25), derandomize=True, deadline=None)
@given(rows=ROWS, random=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    one, two = split("jobs", frame_of(rows)), split("jobs", frame_of(shuffled))
    assert one.accepted.sort("pandaid").equals(two.accepted.sort("pandaid"))
    assert one.duplicates == two.duplicates
    assert sorted(one.quarantine["reason"]) == sorted(two.quarantine["reason"])
    for result in (one, two):
        assert result.accepted["pandaid"].is_unique().all()
    numbers = pl.int_range(1, len(rows) + 1, eager=True)
    good, refused = sift("jobs", frame_of(rows), source="", rows=numbers)
    assert sorted([*good["__row"], *refused["row"]]) == numbers.to_list()
    assert set(one.accepted["pandaid"]) == set(good["pandaid"])


@settings(max_examples=examples(6), derandomize=True, deadline=None)
@given(first=ROWS, second=ROWS)
def test_counts_add_up_over_two_runs_and_twice_is_once(first, second):
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        reports = []
        for name, rows in (("jobs_a.csv", first), ("jobs_b.csv", second)):
            frame_of(rows).write_csv(folder / name)
            reports.append(ingest([folder / name], folder / "archive"))
        for report in reports:
            counts = report.frame().filter(pl.col("table") == "jobs")
            parts = counts.select(pl.sum_horizontal("accepted", "quarantined", "duplicates"))
            assert parts.to_series().to_list() == counts["rows"].to_list()
        opened = archive.open(folder / "archive")
        if opened.has("jobs"):
            ids = opened.scan("jobs").select("pandaid").collect()["pandaid"]
            assert ids.is_unique().all()
        digest = opened.digest
        again = ingest([folder / "jobs_a.csv", folder / "jobs_b.csv"], folder / "archive")
        assert len(again.skipped) + len(again.sources) == 2
        assert again.manifest.digest == digest
