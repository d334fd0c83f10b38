"""Queue records: every name finds its column or stays in params; bad ones are refused one by one."""

import json

import polars as pl
import pytest

from brokerlab import archive
from brokerlab.archive.ingestion import ingest
from brokerlab.archive.readers import detect, read
from brokerlab.errors import DataError, SchemaError


def record(**changes):
    base = {
        "nickname": "HOUSE_ONE",
        "siteid": "HOUSE_ONE",
        "panda_resource": "HOUSE_ONE",
        "name": "HOUSE_ONE",
        "site": "HOUSE",
        "atlas_site": "HOUSE",
        "site_state": "ACTIVE",
        "tier": "T2",
        "cloud": "XX,YY",
        "region": "XX",
        "type": "unified",
        "resource_type": "GRID",
        "status": "online",
        "corecount": 4,
        "corepower": "11.5",
        "maxrss": "8000",
        "minrss": 0,
        "maxtime": 172800.0,
        "maxwdir": 56000,
        "maxinputsize": 15000,
        "direct_access_lan": True,
        "direct_access_wan": "False",
        "maxdiskio": None,
        "catchall": "useJumboJobs,secondaryNucleus=HOUSE",
        "releases": ["AUTO"],
        "is_cvmfs": True,
        "fairsharepolicy": "",
        "wnconnectivity": "full#IPv6",
        "params": {"max_io_intensity": 500, "use_only_local_data": True},
        "timefloor": 60,
        "queues": [{"ce": "x"}],
        "last_modified": "2026-01-02T03:04:05.5",
    }
    return {**base, **changes}


def test_a_single_record(write, outcome):
    found = outcome(write(record()))
    (row,) = found.table("queues").to_dicts()
    expected = {
        "panda_queue": "HOUSE_ONE", "unified_name": None, "atlas_site": "HOUSE", "role": None,
        "pandasite_state": "ACTIVE", "tier": "T2", "cloud": "XX", "type": "unified",
        "resource_type_q": "GRID", "status": "online", "corecount": 4, "corepower": 11.5,
        "maxrss": 8000, "minrss": 0, "maxtime": 172800, "maxwdir": 56000, "maxinputsize": 15000,
        "direct_access_lan": True, "direct_access_wan": False, "maxdiskio": None,
        "max_io_intensity": 500, "catchall": "useJumboJobs,secondaryNucleus=HOUSE",
        "releases": '["AUTO"]', "is_cvmfs": True, "fairsharepolicy": None,
        "wnconnectivity": "full#IPv6", "ts": None,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    assert str(row["last_update"]) == "2026-01-02 03:04:05.500000"
    params = json.loads(row["params"])
    rest = params.pop("schedconfig")
    assert params == {"use_only_local_data": True}
    assert (rest["timefloor"], rest["queues"], rest["site"]) == (60, [{"ce": "x"}], "HOUSE")
    assert "fairsharepolicy" not in rest
    assert "maxdiskio" not in rest


def test_many_records_by_name(write, outcome):
    bare = record(corecount=1)
    for name in ("nickname", "siteid", "panda_resource"):
        del bare[name]
    other = record(nickname="OTHER")
    found = outcome(
        write({"HOUSE_ONE": record(), "BARE": bare, "LONG_OTHER": other}, "dump.json.gz")
    )
    assert found.table("queues")["panda_queue"].to_list() == ["BARE", "HOUSE_ONE", "OTHER"]
    assert any("1 record(s) stand under another name" in note for note in found.notes)
    assert found.counts["queues"] == (3, 3, 0, 0)


def test_a_list_of_records_whatever_the_file_is_called(write, outcome):
    data = [record(), record(nickname="TWO")]
    assert len(outcome(write(data, "metrics.json")).table("queues")) == 2


def test_one_bad_record_does_not_hinder_the_others(write, outcome):
    bad = {
        "list": record(nickname="A", status=["online"], maxrss=[1]),
        "null": None,
        "text": "offline",
        "no status": record(nickname="B", status=None),
        "truth": record(nickname="C", maxrss=True),
        "words": record(nickname="D", maxtime="two days", corecount=2.5),
        "nan": record(nickname="E", corepower=float("nan")),
        "deep nan": record(nickname="F", timefloor=float("nan")),
        "releases": record(nickname="G", releases=5),
        "params": record(nickname="H", params=[1]),
        "reserved": record(nickname="I", params={"schedconfig": 1}),
        "huge": record(nickname="J", maxrss=10**30),
        "cases": record(nickname="K", STATUS="offline"),
        "good": record(),
    }
    unread = " cannot be read as a whole number"
    found = outcome(write(bad, "dump.json"))
    assert found.table("queues")["panda_queue"].to_list() == ["HOUSE_ONE"]
    assert found.counts["queues"] == (14, 1, 13, 0)
    assert [(row, key, reason) for _, row, key, reason in found.refused] == [
        (1, "panda_queue=A", 'status is ["online"], allowed: text; maxrss is [1], allowed: one value'),
        (2, "panda_queue=null", "is no record of names and values: null"),
        (3, "panda_queue=text", 'is no record of names and values: "offline"'),
        (4, "panda_queue=B", "status is null, it is required"),
        (5, "panda_queue=C", f"maxrss 'true'{unread}"),
        (6, "panda_queue=D", f"corecount '2.5'{unread} of 32 bits; maxtime 'two days'{unread}"),
        (7, "panda_queue=E", "corepower NaN is not a number (NaN), allowed: a finite number or null"),
        (8, "panda_queue=F", "NaN or Infinity among the names kept in params, allowed: numbers"),
        (9, "panda_queue=G", "releases is 5, allowed: a list of names"),
        (10, "panda_queue=H", "params is [1], allowed: names and values"),
        (11, "panda_queue=I", "params has the name 'schedconfig', which is reserved; rename it"),
        (12, "panda_queue=J", f"maxrss '1000000000000000000000000000000'{unread}"),
        (13, "panda_queue=K", "names occur twice: status"),
    ]  # fmt: skip


def test_names_that_occur_twice(write, outcome):
    text = '{"A": %s, "B": {"nickname": "B", "status": "online", "status": "offline"}}'
    found = outcome(write(text % json.dumps(record())))
    assert found.refused == [("queues", 2, "panda_queue=B", "names occur twice: status")]
    text = '{"HOUSE_ONE": %s, "HOUSE_ONE": %s}'
    path = write(text % (json.dumps(record()), json.dumps(record(status="test"))), "two.json")
    batch = next(read(path, detect(path)))
    assert batch.frame["status"].to_list() == ["online", "test"]
    path = write(
        '{"nickname": "A", "status": "online", "status": "online", "type": "x"}', "one.json"
    )
    with pytest.raises(DataError, match=r"one\.json: names occur twice: status; keep one of each"):
        next(read(path, detect(path)))


def test_a_name_twice_deep_inside_a_record_refuses_the_record(write, outcome):
    text = json.dumps(record()).replace('"timefloor": 60', '"timefloor": {"a": 1, "a": 2}')
    found = outcome(write(text))
    assert found.refused == [("queues", 1, None, "names occur twice: a")]


@pytest.mark.parametrize(
    ("maxwdir", "maxinputsize", "expected"),
    [
        (None, 100, None),
        ("", 100, None),
        ("lots", 100, 2100),
        ("lots", None, 0),
        ([1], 5, 2005),
        ("7", 5, 7),
    ],
)
def test_a_work_space_that_is_no_number(write, outcome, maxwdir, maxinputsize, expected):
    path = write(record(maxwdir=maxwdir, maxinputsize=maxinputsize))
    assert outcome(path).table("queues")["maxwdir"].to_list() == [expected]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"catchall": "x,per_core_attr"}, (32000, 40, 224000)),
        ({"catchall": "per_core_attribute=1"}, (32000, 40, 224000)),
        ({"catchall": "x, per_core_attr"}, (8000, 10, 56000)),
        ({"params": {"per_core_attr": True}}, (32000, 40, 224000)),
        ({"catchall": "per_core_attr", "params": {"per_core_attr": False}}, (8000, 10, 56000)),
        ({"catchall": "per_core_attr", "corecount": None}, (8000, 10, 56000)),
        ({"catchall": "per_core_attr", "corecount": 0}, (8000, 10, 56000)),
    ],
)
def test_limits_per_core_become_limits_of_the_slot(write, outcome, changes, expected):
    found = outcome(write(record(minrss=10, **changes)))
    assert found.table("queues").select("maxrss", "minrss", "maxwdir").row(0) == expected
    assert any("per_core_attr" in note for note in found.notes) == (expected[0] == 32000)


@pytest.mark.parametrize(
    ("releases", "expected"),
    [
        (["AUTO"], '["AUTO"]'),
        ("AUTO", '["AUTO"]'),
        ('["ANY"]', '["ANY"]'),
        ("21.0|22.0, 23.0", '["21.0", "22.0", "23.0"]'),
        ([], None),
        (None, None),
    ],
)
def test_releases_are_a_list(write, outcome, releases, expected):
    assert outcome(write(record(releases=releases))).table("queues")["releases"].item() == expected


def test_catchall_as_a_list_and_params_as_text(write, outcome):
    path = write(record(catchall=["a=1", "b"], params='{"max_io_intensity": 3, "x": 1}'))
    row = outcome(path).table("queues").to_dicts()[0]
    assert (row["catchall"], row["max_io_intensity"], json.loads(row["params"])["x"]) == (
        "a=1,b",
        3,
        1,
    )


def test_storages_become_endpoints(write, outcome):
    storages = {
        "read_lan": ["HOUSE_DATADISK", "HOUSE_DATATAPE"],
        "write_lan": ["HOUSE_SCRATCHDISK"],
        "write_lan_analysis": ["HOUSE_DATADISK"],
        "pr": ["HOUSE_DATADISK"],
    }
    found = outcome(write(record(astorages=storages)))
    columns = ["direction", "scope", "ddm_endpoint_name", "order_read", "order_write", "is_default"]
    rows = found.table("queue_endpoints").select("panda_queue", *columns, "is_local").sort(columns)
    assert rows.rows() == [
        ("HOUSE_ONE", "input", "default", "HOUSE_DATADISK", 1, None, True, None),
        ("HOUSE_ONE", "input", "default", "HOUSE_DATATAPE", 2, None, False, None),
        ("HOUSE_ONE", "output", "analysis", "HOUSE_DATADISK", None, 1, True, None),
        ("HOUSE_ONE", "output", "default", "HOUSE_SCRATCHDISK", None, 1, True, None),
    ]
    rest = json.loads(found.table("queues")["params"].item())["schedconfig"]
    assert rest["astorages"] == {"pr": ["HOUSE_DATADISK"]}


def test_the_older_form_of_storages(write, outcome):
    found = outcome(write(record(ddm="HOUSE_A, HOUSE_B")))
    rows = (
        found.table("queue_endpoints").select("direction", "ddm_endpoint_name", "is_default").rows()
    )
    assert sorted(rows) == [
        ("input", "HOUSE_A", True),
        ("input", "HOUSE_B", False),
        ("output", "HOUSE_A", True),
        ("output", "HOUSE_B", False),
    ]


def test_storages_that_are_no_lists(write, outcome):
    one = record(astorages={"read_lan": "HOUSE_DATADISK", "write_lan": ["X", "X"]})
    other = record(nickname="TWO", astorages=["X"])
    found = outcome(write([one, other]))
    reasons = {table: reason for table, _, _, reason in found.refused}
    assert reasons["queues"] == 'astorages is ["X"], allowed: a list of endpoints per role'
    assert [reason for table, *_, reason in found.refused if table == "queue_endpoints"] == [
        'astorages.read_lan is "HOUSE_DATADISK", allowed: a list of endpoints',
        "order_write 2 contradicts 1; is_default false contradicts true (kept, of document.json)",
    ]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_export_of_the_database(tmp_path, outcome, suffix):
    rows = pl.DataFrame(
        {
            "PANDA_QUEUE": ["HOUSE_ONE", "BROKEN", "EMPTY", "LIST"],
            "DATA": [json.dumps(record(astorages={"read_lan": ["X"]})), '{"status": ', None, "[1]"],
            "LAST_UPDATE": ["2026-05-06 07:08:09"] * 4,
        }
    )
    path = tmp_path / f"ATLAS_PANDA.SCHEDCONFIG_JSON.{suffix}"
    rows.write_csv(path) if suffix == "csv" else rows.write_parquet(path)
    found = outcome(path)
    assert found.counts == {"queues": (4, 1, 3, 0), "queue_endpoints": (1, 1, 0, 0)}
    assert str(found.table("queues")["last_update"].item()) == "2026-05-06 07:08:09"
    assert [(row, key) for _, row, key, _ in found.refused] == [
        (2, "panda_queue=BROKEN"), (3, "panda_queue=EMPTY"), (4, "panda_queue=LIST"),
    ]  # fmt: skip
    assert "data is no JSON" in found.refused[0][3]


def test_an_export_keeps_what_is_said_of_its_columns(tmp_path, outcome):
    path = tmp_path / "SCHEDCONFIG_JSON.csv"
    pl.DataFrame({"Panda-Queue": ["HOUSE_ONE"], "DATA": [json.dumps(record())]}).write_csv(path)
    assert "column 'Panda-Queue' taken as panda_queue" in outcome(path).notes


def test_a_default_beside_whole_records_is_refused(tmp_path):
    path = tmp_path / "SCHEDCONFIG_JSON.csv"
    pl.DataFrame({"panda_queue": ["HOUSE_ONE"], "data": [json.dumps(record())]}).write_csv(path)
    for column in ("maxwdir", "status"):
        with pytest.raises(SchemaError, match=f"--default {column}=5: .*holds whole queue records"):
            ingest([path], tmp_path / "a", mapping={"defaults": {column: 5}})
    at = "2026-01-02 03:04:05"
    ingest([path], tmp_path / "a", mapping={"defaults": {"last_update": at}})
    found = archive.open(tmp_path / "a").scan("queues").collect()
    assert str(found["last_update"][0]) == at


def test_a_work_space_that_is_no_number_follows_the_unit_of_the_input(write, tmp_path):
    """``maxwdir`` is then ``maxinputsize`` and 2,000 MB, whatever unit the source has them in."""
    path = write(record(maxwdir="any", maxinputsize=15))
    ingest([path], tmp_path / "a", mapping={"units": {"maxwdir": "GB", "maxinputsize": "GB"}})
    (row,) = archive.open(tmp_path / "a").scan("queues").collect().to_dicts()
    assert (row["maxinputsize"], row["maxwdir"]) == (15 * 1024, 15 * 1024 + 2000)


def test_canonical_rows_in_json_keep_columns_of_their_own(write, outcome):
    rows = [
        {"panda_queue": "Q", "type": "unified", "status": "online", "mine": 5, "releases": ["ANY"]}
    ]
    (row,) = outcome(write(rows, "queues.json")).table("queues").to_dicts()
    assert (row["mine"], row["releases"], row["params"]) == (5, '["ANY"]', None)
