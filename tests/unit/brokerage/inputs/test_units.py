"""Unit formulas against the chapter's words; what the vectors do not reach."""

import polars as pl
import pytest

from brokerlab.brokerage.inputs.frames import read
from brokerlab.errors import SchemaError
from brokerlab.units import GB, KB, MB
from tests.one_value import cputime_seconds, disk_sizes, file_measures
from tests.oracle.prod_pairs import direct_io


@pytest.mark.parametrize(
    ("count", "unit", "expected"),
    [
        (3, "kBFixed", 3 * KB),
        (3, "MBPerEvent", 3 * MB),
        (3, "GB", 3 * GB),
        (3, "perMB", 3),
        (3, None, 3),
        (-3, "GB", 0),
        (None, "GB", 0),
        (2 * 10**10, "GB", (2**62 // GB) * GB),  # 20 GB told in bytes
    ],
)
def test_output(count, unit, expected):
    sizes = disk_sizes(outdiskcount=count, outdiskunit=unit)
    assert sizes["out_bytes"] == expected
    assert sizes["scales_with_events"] == (unit == "MBPerEvent")


# production-jobs.md, J8
@pytest.mark.parametrize(
    ("count", "unit", "document", "production"),
    [
        (100, "MB", 300 * MB, 400 * MB),
        (500, "MB", 500 * MB, 800 * MB),
        (0, "MB", 300 * MB, 300 * MB),
        (None, "MB", 300 * MB, 0),
        (1, "MBPerEvent", 300 * MB, 300 * MB + 1),
        (2 * 10**10, "GB", (2**62 // GB) * GB, (2**62 // GB) * GB + 300 * MB),
    ],
)
def test_working_directory(count, unit, document, production):
    task = {"workdiskcount": count, "workdiskunit": unit}
    assert disk_sizes(adds=False, **task)["work_bytes"] == document
    assert disk_sizes(adds=True, **task)["work_bytes"] == production


def test_a_divided_cputime_is_exact():
    for value in (3.0, 7.0, 1234567.0, 0.1):
        found = cputime_seconds(cputime=value, cputimeunit="mHS06sPerEvent")
        assert found["cputime_s"] == value / 1000


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"maxinputsize": -1}, True),
        ({"maxinputsize": -1, "is_merging": True}, False),
        ({"maxinputsize": -1, "uselocalio": True}, True),
        ({"allowinputlan": "only", "direct_access_lan": True}, True),
        ({"allowinputlan": "", "direct_access_lan": True}, False),
        ({"allowinputlan": "use", "direct_access_lan": True, "uselocalio": True}, False),
        ({"allowinputlan": "use"}, False),
        ({}, False),
    ],
)
def test_direct_io(values, expected):
    assert direct_io(**values) == expected


def test_file_of_unknown_everything():
    assert file_measures() == {"effective_mb": 1.0, "nevents": 1}
    assert file_measures(fsize=MB, nevents=0, startevent=0, endevent=4) == {
        "effective_mb": 1.0,
        "nevents": 5,
    }


def test_a_table_with_wrong_columns_is_refused_at_once():
    frame = pl.DataFrame({"a": ["x"], "c": [1]})
    with pytest.raises(SchemaError, match=r"t\.b is missing; found a, c; t\.a is String"):
        read("t", frame, {"a": pl.Int64, "b": pl.String})
