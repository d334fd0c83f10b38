"""Which JSON document is what; files that cannot be read at all."""

import gzip
import json

import pytest

from brokerlab.archive.readers import detect, read, records
from brokerlab.errors import DataError

QUEUE = {"nickname": "A", "status": "online", "type": "unified"}
LINK = {"closeness": {"latest": 1, "timestamp": "2026-01-01T00:00:00"}}
SITE = {"RSE": {"X": "1.00"}, "GFLOPS": 1}
SOFTWARE = {"cmtconfigs": ["x86_64-el9-gcc13-opt"], "tags": []}


def tables(path, **options):
    return [batch.table for batch in read(path, detect(path, **options))]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (QUEUE, ["queues"]),
        ([QUEUE], ["queues"]),
        ({"A": QUEUE, "B": 5}, ["queues"]),
        ({"A:B": LINK}, ["network_matrix"]),
        ({"A": SITE}, ["queues", "ddm_endpoints", "queue_endpoints"]),
        ({"A": SOFTWARE, "ALL": {}}, ["software_tags"]),
        ({"jobs": [{"pandaid": 1, "jobstatus": "running"}]}, ["jobs"]),
        (
            [{"jeditaskid": 1, "taskname": "x", "status": "done", "type": "x", "cloud": "X"}],
            ["tasks"],
        ),
    ],
)
@pytest.mark.parametrize("name", ["x.json", "metrics_config.json.gz", "queues.json"])
def test_the_content_tells(write, data, expected, name):
    if isinstance(data, list) and data[0] is not QUEUE:
        name = "x.json"  # a list of plain records is what its file is called
    assert tables(write(data, name)) == expected


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"a": 1},
        {"jobs": 5},
        {"A": []},
        {"A": {"status": 1}},
        {"A:B": 5},
        [5],
        {"transfers": {"rows": []}},
    ],
)
def test_what_is_nothing_of_all_that(write, data):
    with pytest.raises(
        DataError, match="nor queue records, links 'SRC:DST', software by queue, a site list"
    ):
        tables(write(data))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{'A': 1}", "truncated or damaged JSON"),
        ('{"A": 1,}', "truncated or damaged JSON"),
        ('{"A": {"status": "online"', "truncated or damaged JSON"),
        ('{"A": 1} {"B": 2}', "truncated or damaged JSON"),
        ('{"A": __import__("os")}', "truncated or damaged JSON"),
        ('{"A": 1' + "0" * 5000 + "}", "truncated or damaged JSON"),
        ("[" * 100_000, "truncated or damaged JSON"),
        ('{"nickname": "\\ud800", "status": "online", "type": "x"}', "holds half a character"),
    ],
)
def test_almost_json(write, text, words):
    with pytest.raises(DataError, match=rf"document\.json: {words}"):
        tables(write(text))


def test_whole_characters_above_the_plane_are_no_halves(write):
    path = write('{"nickname": "\\ud83d\\ude00", "status": "online", "type": "x"}')
    assert next(read(path, detect(path))).frame["panda_queue"].to_list() == ["\U0001f600"]


def test_damaged_gzip(tmp_path):
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"A": QUEUE, "x": "y" * 9999}).encode())[:-9])
    with pytest.raises(DataError, match="truncated or damaged gzip"):
        tables(path)


def test_a_file_that_unpacks_beyond_the_limit(write, monkeypatch):
    monkeypatch.setattr(records, "MAX_FILE_BYTES", 1 << 20)
    path = write([QUEUE] * 50_000, "bomb.json.gz")
    with pytest.raises(DataError, match=r"bomb\.json\.gz: more than 1 MB of JSON; split it"):
        tables(path)


def test_software_by_queue(write, outcome):
    data = {"A": SOFTWARE, "ALL": {"tags": [], "cvmfs": []}, "B": 5, "C": {"x": float("inf")}}
    found = outcome(write(data))
    rows = found.table("software_tags").rows()
    assert rows == [
        ("A", json.dumps(SOFTWARE, sort_keys=True)),
        ("ALL", '{"cvmfs": [], "tags": []}'),
    ]
    assert [(row, reason) for _, row, _, reason in found.refused] == [
        (3, "is no record of names and values: 5"),
        (4, "NaN or Infinity in it, allowed: numbers"),
    ]


def test_the_software_of_the_whole_grid_is_long(write, outcome):
    tags = [{"tag": f"v{n}", "sources": ["/cvmfs/x" * 20]} for n in range(10_000)]
    found = outcome(write({"ALL": {"tags": tags, "cmtconfigs": []}}))
    assert len(found.table("software_tags")["data"].item()) > 1 << 20


def test_named_tables_that_do_not_fit(write):
    with pytest.raises(
        DataError, match="holds links 'SRC:DST', which fills network_matrix, not 'queues'"
    ):
        tables(write({"A:B": LINK}), table="queues")
    assert tables(write({"A": {"status": "online"}}), table="queues") == ["queues"]
