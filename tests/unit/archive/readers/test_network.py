"""Links: every value under the key the brokerage reads, with its own time; odd ones kept and told."""

import polars as pl
import pytest

from brokerlab.archive.readers import detect
from brokerlab.errors import SchemaError

T0, T1, T2 = "2026-03-01T12:00:03", "2026-03-01T12:30:05", "2026-03-01T12:35:16"


def link(src="A", dst="B", **changes):
    base = {
        "src": src,
        "dst": dst,
        "closeness": {"latest": 4, "timestamp": T0},
        "mbps": {"dashb": {"1h": 1.5, "1w": 2, "timestamp": T2}},
        "files": {
            "queued": {
                "Express": {"latest": 3, "timestamp": T1},
                "Staging": {"latest": 4, "timestamp": T1},
            },
            "queued-total": 7,
            "done": {"Express": {"1h": 0, "6h": 9, "timestamp": T2}},
            "done-total-1h": 0,
            "done-total-6h": 9,
        },
        "bytes": {"queued": {"Express": {"latest": 5000, "timestamp": T1}}, "queued-total": 5000},
    }
    return {**base, **changes}


def test_every_value_becomes_a_row_with_its_own_time(write, outcome):
    found = outcome(write({"A:B": link()}, "network_metrics.json.gz"))
    rows = found.table("network_matrix").with_columns(
        pl.col("ts").dt.to_string("%Y-%m-%dT%H:%M:%S")
    )
    assert rows.rows() == [
        ("A", "B", "AGIS_closeness", 4.0, T0),
        ("A", "B", "Express_done_1h", 0.0, T2),
        ("A", "B", "Express_done_6h", 9.0, T2),
        ("A", "B", "Express_queued", 3.0, T1),
        ("A", "B", "Express_queued_bytes", 5000.0, T1),
        ("A", "B", "Staging_queued", 4.0, T1),
        ("A", "B", "dashb_mbps_1h", 1.5, T2),
        ("A", "B", "dashb_mbps_1w", 2.0, T2),
    ]
    assert "4 total(s) equal the sum of their activities: not kept" in found.notes


def test_links_both_ways_and_to_itself_are_kept(write, outcome):
    links = {"A:B": link(), "B:A": link("B", "A"), "A:A": link("A", "A")}
    rows = outcome(write(links)).table("network_matrix")
    assert rows.select("src", "dst").unique().sort("src", "dst").rows() == [
        ("A", "A"), ("A", "B"), ("B", "A"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("closeness", "value"),
    [("5", 5.0), (-1, -1.0), (None, None), (" 7 ", 7.0), ("NULL", None)],
)
def test_closeness_as_text_or_null(write, outcome, closeness, value):
    path = write({"A:B": {"closeness": {"latest": closeness, "timestamp": T0}}})
    assert outcome(path).table("network_matrix").select("key", "value").rows() == [
        ("AGIS_closeness", value)
    ]


def test_values_that_cannot_be_read_are_refused_one_by_one(write, outcome):
    links = {
        "A:B": link(closeness={"latest": "far", "timestamp": T0}),
        "A:C": link("A", "C", closeness={"latest": True, "timestamp": T0}),
        "A:D": link("A", "D", closeness=5),
        "A:E": link("A", "E", closeness={"latest": 5, "timestamp": "yesterday"}),
        "A:F": link("A", "F", mbps={"dashb": {"1h": float("nan"), "1d": [1], "timestamp": T2}}),
        "A:G": link("A", "G", files=[1], bytes=None),
        "A:H": link("A", "H", files={"queued": {"Express": 5}}),
        "A:I": link("A", "I", files={"queued-total": 5}),
        "A:J": link("A", "K"),
        "AJ": link(),
        "A:B:C": link(),
        "A:": link("A", ""),
        "A:L": [1],
    }
    found = outcome(write(links))
    told = [(row, reason) for _, row, _, reason in found.refused]
    assert told == [
        (1, "value 'far' cannot be read as a number"),
        (2, "value 'true' cannot be read as a number"),
        (3, "ts is null, it is required"),
        (4, "ts 'yesterday' cannot be read as a time (YYYY-MM-DD HH:MM:SS, Z or offset)"),
        (5, "value NaN is not a number (NaN), allowed: a finite number or null"),
        (5, "value is [1], allowed: a number"),
        (6, "is no record of names and values: [1]"),
        (6, "is no record of names and values: null"),
        (7, "is no record of names and values: 5"),
        (8, "total 5 is not the sum of its activities, 0"),
        (9, 'src, dst inside of it are ["A", "K"]; allowed: as its name'),
        (10, "the name of a link is not SRC:DST"),
        (11, "the name of a link is not SRC:DST"),
        (12, "the name of a link is not SRC:DST"),
        (13, "is no record of names and values: [1]"),
    ]
    rows, accepted, refused, _ = found.counts["network_matrix"]
    assert (refused, rows - accepted) == (15, 15)


def test_names_that_occur_twice(write, outcome):
    half = '{"closeness": {"latest": %d, "timestamp": "2026-03-01T12:00:03"}}'
    text = f'{{"A:B": {half % 1}, "A:B": {half % 2}, "C:D": {{"mbps": {{}}, "mbps": {{}}}}}}'
    found = outcome(write(text))
    assert [(row, reason) for _, row, _, reason in found.refused] == [
        (2, "value 2.0 contradicts 1.0 (kept, of document.json)"),
        (3, "is no record of names and values: names occur twice: mbps"),
    ]


def test_what_is_odd_is_told(write, outcome):
    late_link = "A:D 2026-03-09T21:35:16"
    late = {"dashb": {"1h": 1.5, "1w": 2, "timestamp": "2026-03-09T21:35:16"}}
    idle = {"dashb": {"timestamp": T2}}
    links = {
        "A:B": link(),
        "A:C": link("A", "C"),
        "A:D": link("A", "D", mbps=late),
        "A:E": {"mbps": idle, "closeness": {"latest": 1, "timestamp": T0}},
        "A:F": {"src": "A", "dst": "F", "jitter": 5},
    }
    notes = outcome(write(links)).notes
    assert notes[1:] == (
        "1 link(s) hold no value: no row",
        "1 mbps object(s) hold a time and no value: no row",
        "jitter: not read, in 1 link(s)",
        f"2 time(s) are more than a day from the others ({T2}), kept as they are: {late_link}",
        "2 of 3 link(s) with traffic repeat all values of another one (shared storage, or few values): kept",
    )


def flat(**columns):
    base = {
        "src": ["A", "A", "B"],
        "dst": ["B", "C", "A"],
        "closeness": [4, None, None],
        "mbps_1h": [1.25, None, None],
        "files_queued": [7, 2, None],
        "bytes_queued": [5000, None, None],
        "mbps_timestamp": [T2, None, None],
    }
    return pl.DataFrame({**base, **columns})


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_flat_table_of_links(tmp_path, outcome, suffix):
    path = tmp_path / f"links.{suffix}"
    flat().write_csv(path) if suffix == "csv" else flat().write_parquet(path)
    assert detect(path).format == "links"
    found = outcome(path)
    assert found.table("network_matrix").select("src", "dst", "key", "value").rows() == [
        ("A", "B", "AGIS_closeness", 4.0),
        ("A", "B", "dashb_mbps_1h", 1.25),
        ("A", "B", "total_queued", 7.0),
        ("A", "B", "total_queued_bytes", 5000.0),
        ("A", "C", "total_queued", 2.0),
    ]
    assert found.notes[0] == (
        "closeness, files and bytes have no time in a flat table; the most frequent "
        f"mbps_timestamp ({T2}) stands for it"
    )
    assert found.notes[1:] == ("1 link(s) hold no value: no row",)


def test_a_flat_table_without_any_time_is_refused_value_by_value(tmp_path, outcome):
    path = tmp_path / "links.csv"
    flat().drop("mbps_timestamp").write_csv(path)
    found = outcome(path)
    assert found.counts["network_matrix"] == (5, 0, 5, 0)
    assert {reason for *_, reason in found.refused} == {"ts is null, it is required"}


def test_flat_values_that_are_no_numbers(tmp_path, outcome):
    path = tmp_path / "links.csv"
    flat(closeness=["far", "3", ""]).write_csv(path)
    found = outcome(path)
    assert [(row, reason) for _, row, _, reason in found.refused] == [
        (1, "value 'far' cannot be read as a number")
    ]
    path = tmp_path / "nested.parquet"
    flat(closeness=[[1], [2], None]).write_parquet(path)
    with pytest.raises(SchemaError, match=r"network_matrix\.closeness: found type List"):
        outcome(path)


def test_the_long_form_is_no_flat_table(tmp_path):
    path = tmp_path / "network_matrix.parquet"
    pl.DataFrame({"src": ["A"], "dst": ["B"], "key": ["closeness"], "value": [1.0]}).write_parquet(
        path
    )
    assert detect(path).format == "parquet"
