"""The readers on the queue, link and transfer files that nobody here wrote (calibration.md 1)."""

import gzip
import json

import polars as pl
import pytest

pytestmark = pytest.mark.real_data

WINDOWS = {
    "12hours": (4868, 792.9, 908_869, 73_378, "2019-02-23 07:00:00"),
    "1day": (5448, 1487.5, 1_874_627, 144_955, "2019-02-22 19:00:00"),
    "2days": (6183, 2779.5, 3_588_097, 281_756, "2019-02-21 19:00:00"),
    "week": (7609, 10_117.6, 13_030_569, 1_137_451, "2019-02-16 00:00:00"),
    "14days": (8290, 20_061.7, 26_144_003, 3_288_749, "2019-02-09 00:00:00"),
    "28days": (8829, 40_633.2, 53_324_441, 7_084_744, "2019-01-26 00:00:00"),
}
"""Links, TB, files, failed attempts, start."""


def test_the_queue_record_of_cern(real_data, outcome):
    found = outcome(real_data("atlas-panda-queues/queuedata_CERN_2023.json.gz"))
    (row,) = found.table("queues").to_dicts()
    expected = {
        "panda_queue": "CERN", "atlas_site": "CERN-PROD", "pandasite_state": "ACTIVE", "role": None,
        "tier": "T0", "cloud": "CERN", "type": "unified", "resource_type_q": "GRID", "status": "online",
        "corecount": 8, "corepower": 10.0, "maxrss": 32000, "minrss": 0, "maxtime": 288000,
        "maxwdir": 160000, "maxinputsize": 100000, "direct_access_lan": True, "direct_access_wan": True,
        "capability": "ucore", "workflow": "pull_ups", "jobseed": "eshigh", "releases": '["AUTO"]',
        "catchall": "jobseed=all,es_to_zip,zip_time_gap=7200", "wnconnectivity": "full#IPv4",
        "is_cvmfs": True, "fairsharepolicy": None, "transferringlimit": None, "pledgedcpu": None,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    params = json.loads(row["params"])
    rest = params.pop("schedconfig")
    assert params["ups_core_target"] == 15000
    assert (rest["timefloor"], len(rest["queues"])) == (60, 13)
    assert set(rest["astorages"]) == {"es_events", "pr", "pw"}


def test_every_name_of_the_record_has_a_place(real_data, outcome):
    path = real_data("atlas-panda-queues/queuedata_CERN_2023.json.gz")
    record = json.loads(gzip.decompress(path.read_bytes()))
    assert len(record) == 114
    (row,) = outcome(path).table("queues").to_dicts()
    params = json.loads(row["params"])
    moved = {"resource_type", "site_state", "last_modified", "nickname", "params", "astorages"}
    for name, value in record.items():
        if value in (None, "", [], {}) or name in moved:
            continue
        kept = row[name] is not None if name in row else params["schedconfig"][name] == value
        assert kept, name


def test_the_storages_of_cern(real_data, outcome):
    rows = outcome(real_data("atlas-panda-queues/queuedata_CERN_2023.json.gz")).table(
        "queue_endpoints"
    )
    sizes = rows.group_by("direction", "scope").len().sort("direction", "scope").rows()
    assert sizes == [
        ("input", "default", 34),
        ("output", "analysis", 30),
        ("output", "default", 30),
    ]
    default = rows.filter("is_default").select("direction", "scope", "ddm_endpoint_name")
    assert sorted(default.rows()) == [
        ("input", "default", "CERN-PROD_DATADISK"),
        ("output", "analysis", "CERN-PROD_SCRATCHDISK"),
        ("output", "default", "CERN-PROD_DATADISK"),
    ]


def test_the_site_list(real_data, outcome):
    found = outcome(real_data("atlas-panda-queues/site_info_2024.json.gz"))
    assert found.counts == {
        "queues": (150, 150, 0, 0),
        "ddm_endpoints": (739, 268, 0, 471),
        "queue_endpoints": (739, 739, 0, 0),
    }
    spaces = found.table("ddm_endpoints")
    largest = spaces.filter(pl.col("ddm_endpoint_name") == "BNL-OSG2_DATADISK")
    assert largest.select("type", "is_tape", "space_total").row(0) == (
        "DATADISK",
        False,
        30_209_950.0,
    )
    assert spaces["space_total"].null_count() == 73
    assert spaces.filter("is_tape")["space_total"].null_count() == spaces["is_tape"].sum()
    assert json.loads(found.table("queues")["params"][0]) == {"GFLOPS": 28_407_840}


def test_the_nested_links(real_data, outcome):
    found = outcome(real_data("atlas-network-metrics-2024/network_metrics.json.gz"))
    rows = found.table("network_matrix")
    assert found.counts["network_matrix"] == (31_645, 31_645, 0, 0)
    counts = dict(rows.group_by("key").len().iter_rows())
    expected = {
        "AGIS_closeness": 10_102 - 479,
        "dashb_mbps_1h": 10_102 - 8930,
        "dashb_mbps_1d": 10_102 - 7881,
        "dashb_mbps_1w": 10_102 - 7579,
        "Production Output_queued": 1006,
        "Express_queued": 10,
        "Production Output_done_6h": 1103,
        "Production Output_queued_bytes": 987,
    }
    assert {key: counts[key] for key in expected} == expected
    assert rows["value"].null_count() == 0
    closeness = rows.filter(pl.col("key") == "AGIS_closeness")
    assert (closeness["value"] == 11).sum() == 5524
    assert closeness["ts"].dt.to_string("%F %T").unique().to_list() == ["2024-08-08 12:00:03"]
    week = rows.filter(pl.col("key") == "dashb_mbps_1w")["value"]
    assert (week.min(), round(week.median(), 1), round(week.max())) == (0.01, 1.7, 5961)
    assert round(week.quantile(0.99, "linear")) == 253
    assert "26 link(s) hold no value: no row" in found.notes
    assert any("wuppertalprod:wuppertalprod 2024-08-16T21:35:16" in note for note in found.notes)
    assert rows.select("src", "dst").n_unique() + 26 == 10_102


def test_both_forms_of_the_links_agree(real_data, outcome):
    flat = outcome(real_data("atlas-network-metrics-2024/links.parquet"))
    nulls = {
        "AGIS_closeness": 479, "dashb_mbps_1h": 8930, "dashb_mbps_1d": 7881, "dashb_mbps_1w": 7579,
        "total_done_1h": 7887, "total_done_6h": 7887, "total_queued": 8256, "total_queued_bytes": 8290,
    }  # fmt: skip
    rows = flat.table("network_matrix")
    assert dict(rows.group_by("key").len().iter_rows()) == {k: 10_102 - n for k, n in nulls.items()}
    nested = outcome(real_data("atlas-network-metrics-2024/network_metrics.json.gz"))
    # throughputs have the same times in both; the other values of the flat table have none
    assert nested.counts["network_matrix"] == (31_645, 31_645 - 5916, 0, 5916)
    both = nested.table("network_matrix")
    queued = both.filter(
        pl.col("key").str.ends_with("_queued"), ~pl.col("key").str.starts_with("total")
    )
    sums = queued.group_by("src", "dst").agg(pl.col("value").sum())
    total = both.filter(pl.col("key") == "total_queued").select("src", "dst", "value")
    assert sums.join(total, on=["src", "dst", "value"], how="anti").is_empty()


@pytest.mark.parametrize("window", WINDOWS)
def test_a_window_of_transfers(real_data, outcome, window):
    found = outcome(real_data(f"atlas-ddm-transfers-2019/{window}_sites.json.gz"))
    rows = found.table("transfers")
    links, terabytes, files, errors, start = WINDOWS[window]
    assert found.counts == {"transfers": (links, links, 0, 0)}
    assert round(rows["bytes_xs"].sum() / 1e12, 1) == terabytes
    assert (rows["files_xs"].sum(), rows["errors_xs"].sum()) == (files, errors)
    assert rows["window"].unique().to_list() == [window]
    assert rows["from_date"].dt.to_string("%F %T").unique().to_list() == [start]
    minutes = (rows["to_date"] - rows["from_date"]).dt.total_minutes()
    assert (minutes == rows["interval_min"]).all()


def test_the_tidy_table_repeats_the_matrices(real_data, outcome):
    first = outcome(real_data("atlas-ddm-transfers-2019/transfers.parquet"))
    assert first.counts == {"transfers": (41_227, 41_227, 0, 0)}
    again = outcome(real_data("atlas-ddm-transfers-2019/week_sites.json.gz"))
    assert again.counts == {"transfers": (7609, 0, 0, 7609)}
