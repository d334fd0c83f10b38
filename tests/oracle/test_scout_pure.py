"""The small functions of the scouts against the recorded vectors, every one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from brokerlab.errors import BrokerlabWarning
from brokerlab.gdpconfig import Config
from brokerlab.numerics import percentile
from brokerlab.scouts import benchmarks, settings
from tests.oracle import vectors
from tests.twins import scout_formulas as formulas

SPLIT_RULE_FIELDS = [
    "usescout",
    "ispostscout",
    "nfilesperjob",
    "neventsperjob",
    "maxsizeperjob",
    "nmaxfilesperjob",
    "tgtmaxoutputforng",
    "scoutsuccessrate",
    "mincpuefficiency",
    "uselocalio",
    "allowinputlan",
    "mergeoutput",
    "useexhausted",
    "disableautofinish",
    "t1weight",
]

EDITS: dict[str, Callable[[str | None, int], str]] = {
    "remove_nfilesperjob": lambda rule, _: settings.remove_tag(rule, "NF"),
    "remove_ngbperjob": lambda rule, _: settings.remove_tag(rule, "NG"),
    "set_ngbperjob": lambda rule, value: settings.set_tag(rule, "NG", value),
    "set_nmaxfilesperjob": lambda rule, value: settings.set_tag(rule, "MF", value),
    "set_postscout": lambda rule, _: settings.set_tag(rule, "US", 3),
}


def percentile_case(values: list[float], rank: float) -> dict[str, Any]:
    value, origins = percentile(values, rank)
    return {"value": value, "origins": origins}


def split_rule_case(splitrule: str | None) -> dict[str, Any]:
    rule = formulas.parse(splitrule)
    return {name: getattr(rule, name) for name in SPLIT_RULE_FIELDS}


def hs06sec_case(starttime: str | None, endtime: str | None, **others: float) -> float | None:
    begin, end = (text and datetime.fromisoformat(text) for text in (starttime, endtime))
    return formulas.hs06sec(begin, end, **others)


def config_value_case(
    gdpconfig: list[dict[str, Any]], component: str, key: str, app: str, vo: str | None
) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokerlabWarning)  # entries that cannot be converted
        return Config.from_rows(gdpconfig).look_up(app, component, key, vo)[0]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "clean_host_name": benchmarks.clean_host_name,
    "config_value": config_value_case,
    "core_count": formulas.core_count,
    "direct_io": formulas.direct_io,
    "disk_sizes_bytes": lambda **inputs: asdict(formulas.disk_sizes_bytes(**inputs)),
    "effective_file_size_mb": formulas.effective_file_size_mb,
    "effective_num_events": formulas.effective_num_events,
    "host_benchmarks": benchmarks.host_benchmarks,
    "hs06sec": hs06sec_case,
    "is_job_cloning": formulas.is_job_cloning,
    "job_max_walltime": lambda **inputs: asdict(formulas.job_max_walltime(**inputs)),
    "percentile": percentile_case,
    "split_rule": split_rule_case,
    "split_rule_edit": lambda splitrule, operation, value: EDITS[operation](splitrule, value),
    "task_failure_metrics": lambda **inputs: asdict(formulas.task_failure_metrics(**inputs)),
}


def test_every_pure_vector_agrees() -> None:
    vectors.check("scout_pure", FUNCTIONS, unordered={"host_benchmarks"})


def test_every_scout_file_has_a_test() -> None:
    known = ("scout_pure", "scout_data", "scout_set", "scout_raises")
    strangers = [
        path.name
        for path in vectors.files("scout_")
        if not any(vectors.belongs(path, name) for name in known)
    ]
    assert not strangers, f"no test reads {strangers} in {vectors.folder()}"
