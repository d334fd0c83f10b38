"""Exports of the database, as CSV and Parquet, of tables that the production brokerage reads."""

import json
from datetime import datetime

import polars as pl
import pytest

from brokerlab import archive

NOON = datetime(2026, 3, 1, 12)

EXPORTS = {
    "ATLAS_PANDA.SW_TAGS": (
        "software_tags",
        {"PANDA_QUEUE": ["Q"], "DATA": [json.dumps({"tags": [{"tag": "a, b"}]})], "LAST_UPDATE": [NOON]},
        {"panda_queue": "Q", "data": '{"tags": [{"tag": "a, b"}]}'},
    ),
    "HARVESTER_SLOTS": (
        "slots",
        {"PANDAQUEUENAME": ["Q"], "GSHARE": [None], "RESOURCETYPE": [None], "NUMSLOTS": [-1.0],
         "MODIFICATIONTIME": [NOON], "EXPIRATIONTIME": [None]},
        {"pandaqueuename": "Q", "gshare": None, "numslots": -1, "modificationtime": NOON},
    ),
    "SITEDATA": (
        "site_data",
        {"SITE": ["Q"], "FLAG": ["production"], "HOURS": [3], "GETJOB": [105], "UPDATEJOB": [121],
         "LASTSTART": [NOON], "LASTMOD": [NOON]},
        {"site": "Q", "flag": "production", "hours": 3, "getjob": 105, "updatejob": 121, "laststart": NOON},
    ),
    "NETWORK_MATRIX_KV": (
        "network_matrix",
        {"SRC": ["A"], "DST": ["B"], "KEY": ["Express_queued"], "VALUE": [5], "TS": [NOON]},
        {"src": "A", "dst": "B", "key": "Express_queued", "value": 5.0, "ts": NOON},
    ),
    "DDM_ENDPOINT": (
        "ddm_endpoints",
        {"DDM_ENDPOINT_NAME": ["X"], "SITE_NAME": ["A"], "TYPE": ["DATADISK"], "IS_TAPE": ["N"],
         "SPACE_FREE": [1.5], "SPACE_EXPIRED": [None], "BLACKLISTED_WRITE": ["Y"], "SPACE_TIMESTAMP": [NOON]},
        {"ddm_endpoint_name": "X", "site_name": "A", "is_tape": False, "space_free": 1.5,
         "space_expired": None, "blacklisted_write": True, "space_timestamp": NOON},
    ),
    "MV_WORKER_NODE_GPU_SUMMARY": (
        "worker_node_gpu",
        {"SITE": ["A"], "PANDA_QUEUE": ["Q"], "VENDOR": ["NVIDIA"], "MODEL": ["A100"], "VRAM": [40960],
         "FRAMEWORK_VERSION": ["12.4"]},
        {"panda_queue": "Q", "vendor": "NVIDIA", "vram": 40960, "architecture": None, "site": "A"},
    ),
    "MV_WORKER_NODE_SUMMARY": (
        "worker_node_cpu_level",
        {"SITE": ["A"], "PANDA_QUEUE": ["Q"], "CPU_ARCHITECTURE_LEVEL": ["x86-64-v3"], "PCT_WITHIN_PQ": [62.5]},
        {"panda_queue": "Q", "cpu_architecture_level": "x86-64-v3", "pct_within_queue": 62.5},
    ),
}  # fmt: skip


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_of_the_database(tmp_path, outcome, name, suffix):
    table, columns, expected = EXPORTS[name]
    path = tmp_path / f"{name}.{suffix}"
    frame = pl.DataFrame(columns)
    if suffix == "csv":
        frame.write_csv(path, datetime_format="%Y-%m-%d %H:%M:%S")
    else:
        frame.write_parquet(path)
    found = outcome(path)
    assert found.counts == {table: (1, 1, 0, 0)}
    (row,) = found.table(table).to_dicts()
    assert {key: row[key] for key in expected} == expected


def test_the_tables_say_their_units():
    units = dict(archive.contracts.describe("transfers").select("column", "unit").rows())
    assert units["bytes_xs"] == "B"
    assert units["interval_min"] == "min"
    assert units["errors_xs"] == "attempts"
    units = dict(archive.contracts.describe("worker_node_gpu").select("column", "unit").rows())
    assert units["vram"] == "MB"
    units = dict(
        archive.contracts.describe("worker_node_cpu_level").select("column", "unit").rows()
    )
    assert units["pct_within_queue"] == "%"
