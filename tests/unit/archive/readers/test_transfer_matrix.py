"""Transfer matrices: rows by the position that the key names; windows by their length."""

import polars as pl
import pytest

from brokerlab.errors import DataError, SchemaError

KEY = {"src_site": 0, "dst_site": 1, "bytes_xs": 2, "files_xs": 3, "errors_xs": 4}


def matrix(rows, key=None, **params):
    base = {"interval": 720, "from_date": "2026-02-23T07:00:00", "to_date": "2026-02-23T19:00:00"}
    return {
        "transfers": {"key": key or KEY, "rows": rows},
        "deletions": {"key": {}, "rows": [["A", 1]]},
        "stagings": {"rows": 5},
        "params": {**base, **params},
    }


def test_a_window(write, outcome):
    found = outcome(
        write(matrix([["A", "B", 5000, 2, 1], ["A", "A", 0, 0, 3]]), "12hours_sites.json")
    )
    rows = found.table("transfers")
    assert rows.drop("from_date", "to_date").rows() == [
        ("A", "A", "12hours", 720, 0, 0, 3),
        ("A", "B", "12hours", 720, 5000, 2, 1),
    ]
    assert str(rows["from_date"][0]) == "2026-02-23 07:00:00"
    assert str(rows["to_date"][0]) == "2026-02-23 19:00:00"
    assert found.notes == ("deletions: 1 row(s) not read, no table holds them",)


def test_columns_stand_where_the_key_says(write, outcome):
    key = {
        "bytes_xs": 0,
        "src_site": 1,
        "errors_xs": 2,
        "files_xs": 3,
        "dst_site": 4,
        "dst_cloud": 5,
    }
    (row,) = (
        outcome(write(matrix([[5000, "A", 1, 2, "B", "XX"]], key))).table("transfers").to_dicts()
    )
    assert (row["src_site"], row["dst_site"], row["bytes_xs"]) == ("A", "B", 5000)
    assert (row["files_xs"], row["errors_xs"], row["dst_cloud"]) == (2, 1, "XX")


def test_rows_that_cannot_be_read(write, outcome):
    rows = [
        ["A", "B", "5000", 2.0, 1],
        ["A", "C", -5, 2, 1],
        ["A", "D", 1, True, 1],
        ["A", None, 1, 1, 1],
        ["A", "E", 1, 1],
        "A",
        ["A", "F", [1], 1, 1],
        ["A", "G", 1, 1.5, float("nan")],
        ["A", "H", None, None, None],
    ]
    found = outcome(write(matrix(rows)))
    assert found.table("transfers").select("dst_site", "bytes_xs", "files_xs").rows() == [
        ("B", 5000, 2),
        ("H", None, None),
    ]
    assert [(row, reason) for _, row, _, reason in found.refused] == [
        (2, "bytes_xs -5 is negative, allowed: 0 and above"),
        (3, "files_xs 'true' cannot be read as a whole number"),
        (4, "dst_site is null, it is required"),
        (5, '4 values, \'key\' has 5 (["A", "E", 1, 1])'),
        (6, 'is no list of values: "A"'),
        (7, "holds [1], allowed: one value per column"),
        (
            8,
            "files_xs '1.5' cannot be read as a whole number; errors_xs 'NaN' cannot be read as a whole number",
        ),
    ]


def test_a_window_without_times_or_backwards(write, outcome):
    found = outcome(write(matrix([["A", "B", 1, 1, 1]], from_date=None, interval="?")))
    assert "from_date is null, it is required" in found.refused[0][3]
    assert "interval_min '?' cannot be read" in found.refused[0][3]
    found = outcome(write(matrix([["A", "B", 1, 1, 1]], from_date="2027-01-01T00:00:00"), "b.json"))
    assert "is before from_date" in found.refused[-1][3]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (
            {"src_site": 0, "dst_site": 1},
            r"transfers\.bytes_xs: not in 'key', found: .*transfers\.errors_xs",
        ),
        ({**KEY, "errors_xs": 9}, r"transfers\.errors_xs: stands at 9, allowed: 0 to 4"),
        ({**KEY, "errors_xs": "4"}, r"transfers\.errors_xs: stands at \"4\", allowed: 0 to 4"),
        ({**KEY, "errors_xs": 3}, r"transfers\.errors_xs: stands at 3, allowed: 0 to 4, each once"),
        ({**KEY, "errors_xs": True}, r"transfers\.errors_xs: stands at true, allowed"),
        ([1], "'key' is no object or 'rows' no list"),
    ],
)
def test_a_key_that_does_not_say_where_columns_stand(write, outcome, key, words):
    with pytest.raises(SchemaError, match=f"(?s){words}"):
        outcome(write(matrix([["A", "B", 1, 1, 1]], key)))


def test_the_flat_table_and_the_matrix_agree(tmp_path, write, outcome):
    first = outcome(write(matrix([["A", "B", 5000, 2, 1]])))
    rows = first.table("transfers")
    path = tmp_path / "transfers.parquet"
    text = [pl.col(name).dt.to_string("%Y-%m-%dT%H:%M:%S") for name in ("from_date", "to_date")]
    rows.with_columns(text).write_parquet(path)
    assert outcome(path).counts == {"transfers": (1, 0, 0, 1)}


def test_a_named_table_that_is_not_in_the_document(write, outcome):
    path = write(matrix([]))
    with pytest.raises(
        DataError, match="holds a transfer matrix, which fills transfers, not 'jobs'; leave"
    ):
        outcome(path, table="jobs")
    assert outcome(path, table="transfers").counts == {"transfers": (0, 0, 0, 0)}
