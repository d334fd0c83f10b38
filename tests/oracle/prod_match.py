"""The functions of ``brokerlab.matching`` under the names of the recorded production vectors."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from brokerlab.matching.architecture import LEVEL, parse_architecture
from brokerlab.matching.catchall import parse_connectivity, read_catchall
from brokerlab.matching.description import from_object
from brokerlab.matching.hardware import (
    CpuSpec,
    GpuNode,
    GpuSpec,
    ModelPattern,
    compare_version,
    match_gpu,
)
from brokerlab.matching.patterns import PatternError
from brokerlab.matching.rules import MatchingRules
from brokerlab.matching.software import (
    SoftwareQueue,
    SoftwareTask,
    match_software,
    resolve_platform,
    with_base,
)
from brokerlab.matching.zero_share import zero_share

PRODUCTION = MatchingRules("production")


def cpu_fields(spec: CpuSpec) -> dict[str, Any]:
    arch = {} if spec.arch is None else {"arch": spec.arch}
    return arch | {"vendor": spec.vendor, "instr": spec.instr} | unread(spec)


def gpu_fields(spec: GpuSpec) -> dict[str, Any]:
    fields: dict[str, Any] = {"vendor": spec.vendor, "model": spec.model}
    if isinstance(spec.model, ModelPattern):
        excl = {} if spec.model.excl is None else {"excl": spec.model.excl}
        fields["model"] = {"pattern": spec.model.pattern, **excl}
    for name in ("vram", "microarchitecture", "version", "driver_version"):
        if getattr(spec, name) is not None:
            fields[name] = getattr(spec, name)
    return fields | unread(spec)


def unread(spec: CpuSpec | GpuSpec) -> dict[str, Any]:
    return {key: json.loads(value) for key, value in spec.ignored}


def parse_architecture_case(architecture: str | None) -> dict[str, Any]:
    request = parse_architecture(architecture)
    return {
        "sw_platform": request.sw_platform,
        "base_platform": request.base_platform,
        "cpu_specs": [cpu_fields(spec) for spec in request.cpu_specs] or None,
        "gpu_spec": None if request.gpu_spec is None else gpu_fields(request.gpu_spec),
        "cpu_pref": None if request.preferred_level is None else {LEVEL: request.preferred_level},
    }


def compare_version_case(version: str, comparison: str) -> dict[str, Any]:
    return {"result": compare_version(version, comparison)}


def zero_share_case(
    fairsharepolicy: str | None, *, ignore_priority: bool, **task: Any
) -> dict[str, Any]:
    decision = zero_share(fairsharepolicy, **task, merging=ignore_priority, rules=PRODUCTION)
    return {"zero_share": decision.zero_share}


def match_gpu_case(
    gpu_spec: dict[str, Any], worker_node_gpu: list[dict[str, Any]]
) -> dict[str, Any]:
    spec = parse_architecture(json.dumps({"gpu_spec": gpu_spec})).gpu_spec
    assert spec is not None
    try:
        return {"accept": match_gpu(spec, [GpuNode(**row) for row in worker_node_gpu]) is None}
    except PatternError:
        return {"accept": False}


def software_hardware_case(
    task: dict[str, Any],
    queue: dict[str, Any],
    sw_tags: list[dict[str, Any]],
    worker_node_gpu: list[dict[str, Any]],
    worker_node_cpu_level: list[dict[str, Any]],
) -> dict[str, Any]:
    descriptions = {row["panda_queue"]: from_object(row["data"]) for row in sw_tags}
    levels = {
        row["cpu_architecture_level"]: row["pct_within_queue"] for row in worker_node_cpu_level
    }
    match = match_software(
        SoftwareTask.of(
            parse_architecture(task["architecture"]),
            task["transhome"],
            task["container_name"],
            only_tags=task["onlytagsforfc"],
        ),
        SoftwareQueue(
            releases=tuple(queue["releases"]),
            description=descriptions.get(queue["panda_queue"]),
            gpu_nodes=tuple(GpuNode(**row) for row in worker_node_gpu),
            cpu_levels=levels,
        ),
        descriptions.get("ALL"),
        rules=PRODUCTION,
    )
    weight = match.preference_weight if match.accept else None
    return {"accept": match.accept, "platform": match.platform, "preference_weight": weight}


def resolve_platform_case(
    sw_platform: str, base_platform: str | None, sw_tags: dict[str, Any] | None
) -> dict[str, Any]:
    description = None if sw_tags is None else from_object(sw_tags)
    return {"platform": with_base(resolve_platform(sw_platform, description), base_platform)}


def catchall_nucleus_case(catchall: str | None, params: dict[str, Any] | None) -> dict[str, Any]:
    found = read_catchall(catchall, params)
    return {"bare_mode": found.bare_mode, "secondary_nucleus": found.secondary_nucleus}


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "parse_architecture": parse_architecture_case,
    "compare_version": compare_version_case,
    "match_gpu": match_gpu_case,
    "software_hardware": software_hardware_case,
    "resolve_platform": resolve_platform_case,
    "queue_connectivity": lambda wnconnectivity: asdict(parse_connectivity(wnconnectivity)),
    "catchall_nucleus": catchall_nucleus_case,
    "zero_share": zero_share_case,
}
