"""The batch form of software matching: distinct pairs, unreadable descriptions, weights, order of rows."""

from __future__ import annotations

import json
import warnings
from typing import Any

import polars as pl
import pytest

from brokerlab.errors import BrokerlabWarning, SchemaError
from brokerlab.matching import MatchingRules, decide_pairs, software_pairs
from brokerlab.matching import software_pairs as batch
from brokerlab.matching.software import REASONS

GOOD = json.dumps(
    {
        "architectures": [{"type": "cpu", "arch": ["x86_64"]}],
        "cmtconfigs": ["x86_64-el9-gcc13-opt"],
        "containers": [],
        "cvmfs": ["atlas"],
        "tags": [],
    }
)
LEVEL = '{"sw_platform": "x86_64-el9-gcc13-opt", "cpu_pref": {"preferred_architecture_level": "x86-64-v3"}}'
KEYS = ["architecture", "transhome", "container_name", "onlytagsforfc", "panda_queue"]


def requests(*rows: tuple[Any, ...]) -> pl.DataFrame:
    schema = dict(zip(KEYS[:4], (pl.String, pl.String, pl.String, pl.Boolean), strict=True))
    return pl.DataFrame(rows, schema=schema, orient="row")


def queues(**releases: Any) -> pl.DataFrame:
    return pl.DataFrame({"panda_queue": list(releases), "releases": list(releases.values())})


def sw_tags(**data: str | None) -> pl.DataFrame:
    schema = {"panda_queue": pl.String, "data": pl.String}
    return pl.DataFrame({"panda_queue": list(data), "data": list(data.values())}, schema=schema)


EL9 = requests(("x86_64-el9-gcc13-opt", "Athena-24.0.40", None, None))


def test_one_row_per_distinct_request_and_queue() -> None:
    asked = pl.concat([EL9, EL9, requests((None, None, None, None)), EL9])
    frame = software_pairs(asked, queues(A=["AUTO"], B=["ANY"]), sw_tags(A=GOOD))
    assert frame.columns == [*KEYS, "accept", "reason", "platform", "preference_weight"]
    assert frame.height == 4
    assert frame["accept"].all()
    assert frame["panda_queue"].to_list() == ["A", "B", "A", "B"]


def test_each_request_keeps_its_own_decision_at_each_queue() -> None:
    asked = pl.concat([requests((None, None, None, None)), EL9])
    frame = software_pairs(asked, queues(A=["AUTO"], B=["ANY"], C=["AUTO"]), sw_tags(A=GOOD))
    reasons = dict(
        zip(frame.select("transhome", "panda_queue").rows(), frame["reason"], strict=True)
    )
    assert reasons == {
        (None, "A"): None,
        (None, "B"): None,
        (None, "C"): None,
        ("Athena-24.0.40", "A"): None,
        ("Athena-24.0.40", "B"): None,
        ("Athena-24.0.40", "C"): "release_not_auto",
    }


def test_columns_that_are_missing_are_named() -> None:
    little = pl.DataFrame(
        [("x",) * 4], ["architecture", "transhome", "container_name", "panda_queue"], orient="row"
    )
    with pytest.raises(
        SchemaError, match="requests has no column onlytagsforfc; found architecture"
    ):
        software_pairs(little, little, little)
    asked = little.with_columns(onlytagsforfc=pl.lit(value=False))
    with pytest.raises(SchemaError, match="queues has no column releases; found"):
        software_pairs(asked, little, little)
    with pytest.raises(
        SchemaError, match="tasks has no column processingtype, workinggroup, gshare, "
    ):
        decide_pairs(["type=any:0%"], little)


def test_nothing_in_nothing_out() -> None:
    none = EL9.clear()
    assert software_pairs(none, queues(A=["AUTO"]), sw_tags(A=GOOD)).height == 0
    empty = software_pairs(EL9, queues(A=["AUTO"]).clear(), sw_tags())
    assert empty.height == 0
    assert empty.schema["preference_weight"] == pl.Float64


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("{", "not JSON"),
        ("", "not JSON"),
        (None, "not JSON"),
        ("[]", "not a JSON object but a list"),
        ('{"architectures": 5}', "architectures is not a list of objects"),
        ('{"architectures": [{"type": "cpu", "arch": ["x86_64"]}]}', "cvmfs is missing"),
        ('{"architectures": [{"type": "cpu"}]}', "the queue's CPU has no arch"),
    ],
)
def test_unreadable_descriptions_reject_with_a_warning(data: str | None, problem: str) -> None:
    with pytest.warns(BrokerlabWarning, match=f"software matching, 1 findings: .*{problem}"):
        frame = software_pairs(EL9, queues(A=["AUTO"], B=["AUTO"]), sw_tags(A=data, B=GOOD))
    assert frame.filter(panda_queue="A")["reason"].to_list() == ["sw_description_invalid"]
    assert frame.filter(panda_queue="B")["accept"].all()


def test_an_unreadable_description_is_no_matter_where_none_is_needed() -> None:
    asked = requests(("x86_64-el9-gcc13-opt", None, None, None))
    with pytest.warns(BrokerlabWarning, match="sw_tags.data of A"):
        frame = software_pairs(asked, queues(A=["AUTO"]), sw_tags(A="{"))
    assert frame["accept"].all()


def test_unreadable_requests_and_releases() -> None:
    asked = requests(
        ("x86_64-el9-gcc13-opt", "Athena", None, None),
        ('{"cpu_specs": 5}', "Athena-24.0.40", None, None),
    )
    with pytest.warns(BrokerlabWarning, match="2 findings: transhome 'Athena': .*cpu_specs is 5"):
        frame = software_pairs(asked, queues(A=["AUTO"]), sw_tags(A=GOOD))
    assert frame["reason"].to_list() == [None, "sw_description_invalid"]


@pytest.mark.parametrize("rules", ["document", "production"])
@pytest.mark.parametrize("platform", ["(x86_64|aarch64)-el9(?!-opt)", "(x86_64"])
def test_platforms_that_cannot_be_read_stand_for_nothing(platform: str, rules: str) -> None:
    mounted = json.dumps(json.loads(GOOD) | {"containers": ["any"]})
    asked = requests((f"{platform}#x86_64", "Athena-24.0.40", None, None))
    with pytest.warns(BrokerlabWarning, match=r"1 findings: architecture: .* at position"):
        frame = software_pairs(
            asked, queues(A=["AUTO"]), sw_tags(A=mounted), rules=MatchingRules(rules)
        )
    assert frame["reason"].to_list() == ["platform_unresolved"]


@pytest.mark.parametrize(
    ("releases", "reason"),
    [
        ('["AUTO"]', None),
        ('["ANY"]', None),
        ('["AUTO", "ANY"]', "release_not_auto"),
        ("[]", "release_not_auto"),
        ("null", "release_not_auto"),
        (None, "release_not_auto"),
    ],
)
def test_releases_as_json(releases: str | None, reason: str | None) -> None:
    table = pl.DataFrame(
        {"panda_queue": ["A"], "releases": [releases]}, schema_overrides={"releases": pl.String}
    )
    assert software_pairs(EL9, table, sw_tags(A=GOOD))["reason"].to_list() == [reason]


def test_releases_that_are_no_list() -> None:
    table = pl.DataFrame({"panda_queue": ["A"], "releases": ["AUTO"]})
    with pytest.warns(BrokerlabWarning, match="queues.releases of A: 'AUTO' is no list"):
        frame = software_pairs(EL9, table, sw_tags(A=GOOD))
    assert frame["reason"].to_list() == ["release_not_auto"]


@pytest.mark.parametrize(
    ("architecture", "releases", "levels", "weight"),
    [
        (LEVEL, ["AUTO"], [("A", "x86-64-v3", 80.0)], 1.8),
        (LEVEL, ["AUTO"], [("A", "x86-64-v3", None)], 1.0),
        (LEVEL, ["AUTO"], [("A", "x86-64-v2", 80.0), ("B", "x86-64-v3", 80.0)], 1.0),
        (LEVEL, ["AUTO"], [], 1.0),
        (LEVEL, ["ANY"], [("A", "x86-64-v3", 80.0)], 1.0),
        ("x86_64-el9-gcc13-opt", ["AUTO"], [("A", "x86-64-v3", 80.0)], 1.0),
    ],
)
@pytest.mark.parametrize("rules", ["document", "production"])
def test_preference_weight(
    architecture: str, releases: list[str], levels: list[Any], weight: float, rules: str
) -> None:
    schema = {
        "panda_queue": pl.String,
        "cpu_architecture_level": pl.String,
        "pct_within_queue": pl.Float64,
    }
    frame = batch(
        requests((architecture, "Athena-24.0.40", None, None)),
        queues(A=releases),
        sw_tags(A=GOOD),
        None,
        pl.DataFrame(levels, schema=schema, orient="row"),
        rules=MatchingRules(rules),
    )
    assert frame["preference_weight"].to_list() == [weight]


def test_production_looks_for_the_platform_at_any_queues_too() -> None:
    asked = requests(
        ('{"sw_platform": "(x86_64|aarch64)-el9-gcc13-opt"}', "Athena-24.0.40", None, None)
    )
    table, tags = queues(A=["ANY"], B=["ANY"]), sw_tags(A=GOOD)
    production = software_pairs(asked, table, tags, rules=MatchingRules("production"))
    assert production["reason"].to_list() == [None, "platform_unresolved"]
    assert production["platform"].to_list() == ["x86_64-el9-gcc13-opt", None]
    assert software_pairs(asked, table, tags)["accept"].all()


def test_a_regexp_platform_that_is_published_literally() -> None:
    literal = GOOD.replace("x86_64-el9-gcc13-opt", "x86_64+v3-el9")
    asked = requests(("x86_64+v3-el9#x86_64", "Athena-24.0.40", None, None))
    table, tags = queues(A=["AUTO"]), sw_tags(A=literal)
    assert software_pairs(asked, table, tags)["platform"].to_list() == ["x86_64+v3-el9"]
    production = software_pairs(asked, table, tags, rules=MatchingRules("production"))
    assert production["reason"].to_list() == ["platform_unresolved"]


def test_rows_of_monitoring_in_any_order() -> None:
    gpus = pl.DataFrame(
        {
            "panda_queue": ["A", "A"],
            "vendor": ["NVIDIA", None],
            "model": ["A100", None],
            "vram": [40960, None],
            "architecture": ["Ampere", None],
            "framework_version": ["12.4", None],
            "driver_version": ["550", None],
        }
    )
    described = json.dumps(json.loads(GOOD) | {"architectures": [{"type": "gpu"}]})
    asked = requests(
        ("#&nvidia", "Athena-24.0.40", "/x", None), ("#&*:vram>=1", "Athena-24.0.40", "/x", None)
    )
    results = [
        software_pairs(asked, queues(A=["AUTO"]), sw_tags(A=described), frame)
        for frame in (gpus, gpus.reverse())
    ]
    assert results[0].equals(results[1])
    assert results[0]["reason"].to_list() == ["container_unavailable", "gpu_vram"]


def test_good_input_gives_no_warning_and_known_reasons() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = software_pairs(EL9, queues(A=["AUTO"], B=None, C=["AUTO"]), sw_tags(A=GOOD))
    assert set(frame["reason"].drop_nulls()) <= set(REASONS)
