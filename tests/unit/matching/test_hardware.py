"""Comparison strings, CPU and GPU matching, platforms and releases, piece by piece."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brokerlab.matching import (
    GpuNode,
    MatchingRules,
    PatternError,
    compare_version,
    match_cpu,
    match_gpu,
    resolve_platform,
)
from brokerlab.matching.description import DescriptionError, Hardware, read_description
from brokerlab.matching.hardware import CpuSpec, GpuSpec, ModelPattern, RequestError
from brokerlab.matching.software import (
    Release,
    has_container,
    has_release,
    is_regexp,
    parse_transhome,
    with_base,
)

DOCUMENT, PRODUCTION = MatchingRules(), MatchingRules("production")
V100 = GpuNode("NVIDIA", "Tesla V100-PCIE-16GB", 16384, "Volta", "12.2", "535.104.05")
A100 = GpuNode("NVIDIA", "NVIDIA A100-PCIE-40GB", 40960, "Ampere", "12.9", "575.57.08")


@pytest.mark.parametrize(
    ("version", "comparison", "result"),
    [
        ("12.10", ">12.9", True),
        ("12", "==12.0", True),
        ("12", "=12.0", True),
        ("12.0rc1", "<12", True),
        ("1!2", ">2026", True),
        ("12.2", "!=12.2.0", False),
        ("12.2", ">=  12.2  ", True),
        ("12.2", "12.2", None),
        ("12.2", " >=12.2", None),
        ("12.2", "<>12", None),
        ("12.2", "=>12", None),
        ("12.2", ">=", None),
        ("12.2", ">=x", None),
        ("x", ">=12", None),
        ("1" * 101, ">=12", None),
    ],
)
def test_comparison_strings(version: str, comparison: str, result: bool | None) -> None:
    assert compare_version(version, comparison) is result


def cpu(**attributes: list[str]) -> Hardware:
    values = {key: tuple(listed) for key, listed in attributes.items()}
    return Hardware(values, is_exclusive=any("excl" in listed for listed in values.values()))


@pytest.mark.parametrize(
    ("spec", "hardware", "fits"),
    [
        (CpuSpec("x86_64"), cpu(arch=["x86_64"]), True),
        (CpuSpec("x86_64"), cpu(arch=["any"]), True),
        (CpuSpec("x86_64"), cpu(arch=["aarch64"]), False),
        (CpuSpec("(x86_64|aarch64)"), cpu(arch=["aarch64"]), True),
        (CpuSpec("x86"), cpu(arch=["x86_64"]), False),
        (CpuSpec("*"), cpu(arch=["x86_64"]), True),
        (CpuSpec("*"), cpu(arch=["x86_64", "excl"]), False),
        (CpuSpec("x", "intel"), cpu(arch=["x"]), False),
        (CpuSpec("x", "intel"), cpu(arch=["x"], vendor=["any"]), True),
        (CpuSpec("x", "Intel"), cpu(arch=["x"], vendor=["intel"]), False),
        (CpuSpec("x", "inte."), cpu(arch=["x"], vendor=["intel"]), False),
        (CpuSpec("x", "*"), cpu(arch=["x"], vendor=["intel", "excl"]), False),
        (CpuSpec("x", "*", "avx2"), cpu(arch=["x"], instr=["avx2", "avx512"]), True),
        (CpuSpec("x"), None, False),
    ],
)
@pytest.mark.parametrize("rules", [DOCUMENT, PRODUCTION])
def test_cpu(spec: CpuSpec, hardware: Hardware | None, fits: bool, rules: MatchingRules) -> None:
    assert match_cpu((spec,), hardware, rules=rules) is fits


def test_cpu_switches() -> None:
    empty, unnamed = cpu(arch=[""]), CpuSpec(None, "intel")
    assert match_cpu((CpuSpec("x"),), empty, rules=DOCUMENT)
    assert not match_cpu((CpuSpec("x"),), empty, rules=PRODUCTION)
    intel = cpu(arch=["x"], vendor=["intel"])
    assert match_cpu((unnamed,), intel, rules=DOCUMENT)
    with pytest.raises(RequestError, match="no arch"):
        match_cpu((unnamed,), intel, rules=PRODUCTION)
    assert match_cpu((CpuSpec("x"), unnamed), intel, rules=PRODUCTION), (
        "the first that fits ends it"
    )
    with pytest.raises(DescriptionError, match="queue's CPU has no arch"):
        match_cpu((CpuSpec("x"),), cpu(vendor=["intel"]), rules=DOCUMENT)


@pytest.mark.parametrize(
    ("spec", "nodes", "reason"),
    [
        (GpuSpec(), [], None),
        (GpuSpec("nvidia"), [], "gpu_vendor"),
        (GpuSpec("nvidia"), [GpuNode()], "gpu_vendor"),
        (GpuSpec(vram=">=1"), [], "gpu_vram"),
        (GpuSpec(vram=">=0"), [GpuNode(vram=0)], "gpu_vram"),
        (GpuSpec(vram=">=20000"), [V100, A100], "gpu_vram"),
        (GpuSpec(model=".*a100.*"), [V100, A100], None),
        (GpuSpec(model=ModelPattern(".*A100.*")), [V100], "gpu_model"),
        (GpuSpec(model=ModelPattern("*")), [], None),
        (GpuSpec(model=ModelPattern(".*A100.*", excl=True)), [V100, A100], "gpu_model"),
        (GpuSpec(model=ModelPattern(".*K80.*", excl=True)), [], "gpu_model"),
        (GpuSpec(model=ModelPattern(".*K80.*", excl=True)), [GpuNode(vendor="NVIDIA")], None),
        (GpuSpec(microarchitecture=("Hopper", "Volta")), [V100, A100], None),
        (GpuSpec(microarchitecture=()), [V100], "gpu_microarchitecture"),
        (GpuSpec(version=">=12.5"), [V100, A100], "gpu_version"),
        (GpuSpec(driver_version=">=535"), [V100, A100], None),
        (GpuSpec(driver_version=">=535"), [V100, GpuNode("NVIDIA")], "gpu_driver"),
        # two rows may satisfy two attributes
        (GpuSpec(model=".*V100.*", microarchitecture="Ampere"), [V100, A100], None),
    ],
)
def test_gpu(spec: GpuSpec, nodes: list[GpuNode], reason: str | None) -> None:
    assert match_gpu(spec, nodes) == reason


def test_gpu_patterns_that_cannot_be_read() -> None:
    with pytest.raises(PatternError):
        match_gpu(GpuSpec("(nvidia"), [A100])
    with pytest.raises(PatternError):
        match_gpu(GpuSpec(model=ModelPattern("*", excl=True)), [A100])


def description(**parts: Any) -> Any:
    return read_description(json.dumps(parts))


@pytest.mark.parametrize(
    ("platform", "document", "production"),
    [
        ("x86_64-el9-gcc13-opt", False, False),
        ("x86_64-.*-opt", True, False),
        ("x86_64+v3-el9", True, True),
        ("(x86_64|aarch64)-el9", True, True),
        ("[x86", True, True),
        ("x86_64.el9", False, False),
        ("", False, False),
        ("(?!x)", True, True),
    ],
)
def test_what_counts_as_a_regexp(platform: str, document: bool, production: bool) -> None:
    assert is_regexp(platform, by_characters=True) is document
    assert is_regexp(platform, by_characters=False) is production


def test_resolution_prefers_published_platforms_in_their_order() -> None:
    both = description(
        cmtconfigs=["aarch64-el9", "x86_64-el9"],
        architectures=[{"type": "cpu", "arch": ["x86_64"]}],
    )
    assert resolve_platform("(x86_64|aarch64)-el9", both) == "aarch64-el9"
    assert resolve_platform("(x86_64|aarch64)-el8", both) == "x86_64-el8"
    assert resolve_platform("(x86_64|)-el8", both) is None
    assert resolve_platform("(x86_64|aarch64)-(el8|el7)", both) is None
    assert resolve_platform("aarch64-el9", both) is None, "the literal wins"
    assert resolve_platform("(x86_64", both) is None
    assert resolve_platform("(x86_64|aarch64)-el9", None) is None
    assert with_base("p", "el9") == "p@el9"
    assert with_base(None, "el9") is None


@pytest.mark.parametrize(
    ("transhome", "release"),
    [
        ("Athena-24.0.40", Release("atlas", "Athena", "24.0.40")),
        ("AtlasProduction-rel_3", Release("nightlies", None, None)),
        ("AtlasProduction-rel_3\nx", Release("nightlies", None, None)),
        ("Athena-rel_3-24.0.40", Release("atlas", "Athena", "rel_3")),
        ("Athena-main-2024-01-01T2101", Release("nightlies", None, None)),
        ("Athena", Release("atlas", "Athena", None)),
        ("", Release("atlas", "", None)),
    ],
)
def test_transhome(transhome: str, release: Release) -> None:
    assert parse_transhome(transhome) == release


TAG = {
    "cmtconfig": "p",
    "project": "Athena",
    "release": "1",
    "container_name": "c",
    "sources": ["/s/c"],
}
ATHENA = Release("atlas", "Athena", "1")


@pytest.mark.parametrize(
    ("parts", "in_container", "document", "production"),
    [
        ({"cvmfs": ["atlas"], "containers": ["/cvmfs"]}, True, True, True),
        ({"cvmfs": ["any"], "containers": [], "cmtconfigs": ["p"]}, False, True, True),
        ({"cvmfs": ["any"], "containers": [], "cmtconfigs": ["p"]}, True, True, False),
        ({"cvmfs": ["atlas"], "containers": [], "tags": [TAG]}, False, True, False),
        ({"cvmfs": [], "containers": [], "tags": [TAG]}, False, True, True),
        ({"cvmfs": [], "containers": [], "tags": [TAG]}, True, False, False),
        ({"cvmfs": [], "containers": ["any"], "tags": [TAG]}, True, True, True),
        ({"cvmfs": ["nightlies"], "containers": ["any"], "tags": []}, False, False, False),
    ],
)
def test_release(
    parts: dict[str, Any], in_container: bool, document: bool, production: bool
) -> None:
    for rules, expected in ((DOCUMENT, document), (PRODUCTION, production)):
        found = has_release(
            ATHENA, "p", description(**parts), in_container=in_container, rules=rules
        )
        assert found is expected


def test_container_names_and_sources() -> None:
    everything = description(tags=[TAG])
    prefix = description(containers=["/s"], tags=[])
    none = description(containers=[], tags=[TAG])

    def found(name: str, queue: Any, *, only_tags: bool = False, rules: Any = DOCUMENT) -> bool:
        return has_container(name, queue, everything, only_tags=only_tags, rules=rules)

    assert found("/s/other", prefix)
    assert found("c", prefix), "a source of the container of this name starts with the prefix"
    assert not found("d", prefix)
    assert found("c", none, only_tags=True)
    assert found("/s/c", none, only_tags=True)
    assert not found("c", none)
    assert found("/s/c", none, rules=PRODUCTION)


@pytest.mark.parametrize("missing", ["cvmfs", "containers", "tags"])
def test_a_part_that_is_needed_and_missing_is_an_error(missing: str) -> None:
    parts = {"cvmfs": [], "containers": ["x"], "tags": []}
    del parts[missing]
    with pytest.raises(DescriptionError, match=f"{missing} is missing"):
        has_release(ATHENA, "p", description(**parts), in_container=False, rules=DOCUMENT)


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"cvmfs": "atlas"}, "cvmfs is not a list of texts"),
        ({"cvmfs": [1]}, "cvmfs is not a list of texts"),
        ({"cvmfs": [], "containers": [], "tags": [1]}, "tags is not a list of objects"),
        ({"cvmfs": [], "containers": [], "tags": [{"sources": 1}]}, "sources is not a list"),
    ],
)
def test_parts_of_another_form_are_errors_when_needed(parts: dict[str, Any], problem: str) -> None:
    with pytest.raises(DescriptionError, match=problem):
        has_release(ATHENA, "p", description(**parts), in_container=False, rules=DOCUMENT)


def test_architectures_of_another_form() -> None:
    for wrong in ({"type": "cpu"}, ["cpu"], [{"type": "cpu", "arch": "x"}]):
        with pytest.raises(DescriptionError, match="architectures"):
            description(architectures=wrong).hardware("cpu")
    entries = [{"type": "cpu", "arch": ["a"]}, {"arch": ["b"]}, {"type": "cpu", "arch": ["c"]}]
    assert description(architectures=entries).hardware("cpu").attributes == {"arch": ("c",)}


@pytest.mark.parametrize("text", [None, "", "{", "[]", "5", "[" * 100_000])
def test_descriptions_that_are_no_json_object(text: str | None) -> None:
    with pytest.raises(DescriptionError):
        read_description(text)
