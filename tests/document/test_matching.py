"""Cases of the sections on software and hardware (002); queues publish what an example of the page publishes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brokerlab.matching import GpuNode, MatchingRules, zero_share
from brokerlab.matching.architecture import parse_architecture
from brokerlab.matching.description import Description, read_description
from brokerlab.matching.software import SoftwareQueue, SoftwareTask, match_software

PLATFORM = "x86_64-centos7-gcc8-opt"
A100 = GpuNode("NVIDIA", "NVIDIA A100-PCIE-40GB", 40960, "Ampere", "12.4", "575.57.08")
P100 = GpuNode("NVIDIA", "Tesla P100-PCIE-16GB", 16384, "Pascal", "11.8", "535.104.05")
V100S = GpuNode("NVIDIA", "Tesla V100S-PCIE-32GB", 32768, "Volta", "12.2", "535.104.05")
SMALL = GpuNode("NVIDIA", "NVIDIA T4", 15360, "Turing", "12.2", "535.104.05")
GPU = {"type": "gpu", "vendor": ["nvidia"]}
TAG = {
    "cmtconfig": PLATFORM,
    "container_name": "athena:24",
    "project": "Athena",
    "release": "24.0.40",
    "sources": ["/cvmfs/images/athena"],
}


def queue(
    *gpus: GpuNode, releases: str = "AUTO", architectures: list[Any] | None = None, **data: Any
) -> SoftwareQueue:
    """A queue with every release on CVMFS, unless said otherwise."""
    published = {
        "cmtconfigs": [PLATFORM],
        "containers": ["any"],
        "cvmfs": ["any"],
        "architectures": [{"type": "cpu", "arch": ["x86_64"]}]
        if architectures is None
        else architectures,
        "tags": [],
    }
    return SoftwareQueue((releases,), read_description(json.dumps(published | data)), None, gpus)


def reason(
    architecture: str | None,
    at: SoftwareQueue,
    *,
    transhome: str | None = "Athena-24.0.40",
    container: str | None = None,
    only_tags: bool = False,
    every_tag: Description | None = None,
    rules: MatchingRules | None = None,
) -> str | None:
    """Return why the queue is refused; null where it is accepted."""
    task = SoftwareTask.of(
        parse_architecture(architecture), transhome, container, only_tags=only_tags
    )
    return match_software(task, at, every_tag, rules=rules or MatchingRules()).reason


def gpu_reason(architecture: str, *gpus: GpuNode) -> str | None:
    return reason(architecture, queue(*gpus, architectures=[GPU]))


def spec(**gpu_spec: Any) -> str:
    return json.dumps({"gpu_spec": gpu_spec})


# ---- the check among those of the brokerage


@pytest.mark.parametrize(("kind", "zero"), [("evgen", False), ("simul", False), ("pile", True)])
def test_zero_share(kind, zero):
    """002, ATLAS Production Job Brokerage: in this case, only evgen or simul jobs can be assigned as others
    have zero shares.
    """
    assert zero_share("type=evgen:100%,type=simul:100%,type=any:0%", kind).zero_share == zero


def test_any_skips_the_check():
    """002, ATLAS Production Job Brokerage: This check is skipped when queues have ANY in the releases filed
    in CRIC.
    """
    anything = queue(releases="ANY", cmtconfigs=[], containers=[], cvmfs=[])
    assert reason(f"{PLATFORM}#aarch64&nvidia", anything) is None
    deployed = MatchingRules(any_needs_no_request=True)
    assert reason(f"{PLATFORM}#aarch64&nvidia", anything, rules=deployed) == "release_any"


def test_auto_uses_what_is_published():
    """002, ATLAS Production Job Brokerage: If queues have AUTO in the releases filed, the brokerage uses the
    information published in a json by CRIC
    """
    assert reason(PLATFORM, queue()) is None
    assert reason(PLATFORM, queue(cvmfs=[])) == "release_unavailable"
    assert reason(PLATFORM, queue(releases="24.0.40")) == "release_not_auto"


# ---- the old format


def test_the_old_format():
    """002, Checks for CPU and/or GPU Hardware: The old format of task architecture is
    sw_platform<@base_platform><#host_cpu_spec><&host_gpu_spec>
    """
    request = parse_architecture(f"{PLATFORM}@el9#x86_64&nvidia")
    assert (request.sw_platform, request.base_platform) == (PLATFORM, "el9")
    assert (request.cpu_specs[0].arch, request.gpu_spec.vendor) == ("x86_64", "nvidia")


def test_the_cpu_of_the_old_format():
    """002, Checks for CPU and/or GPU Hardware: host_cpu_spec is architecture<-vendor<-instruction_set>>"""
    (cpu,) = parse_architecture("#x86_64-intel-avx2").cpu_specs
    assert (cpu.arch, cpu.vendor, cpu.instr) == ("x86_64", "intel", "avx2")
    (cpu,) = parse_architecture("#x86_64").cpu_specs
    assert (cpu.arch, cpu.vendor, cpu.instr) == ("x86_64", "*", "*")


def test_the_gpu_of_the_old_format():
    """002, Checks for CPU and/or GPU Hardware: host_gpu_spec is vendor<-model>."""
    assert parse_architecture("#&nvidia-kt100").gpu_spec.model == "kt100"
    assert parse_architecture("#&nvidia").gpu_spec.model == "*"


@pytest.mark.parametrize(
    ("arch", "refused"), [("x86_64", None), ("aarch64", None), ("ppc64", "cpu_mismatch")]
)
def test_a_regexp_of_architectures(arch, refused):
    """002, Checks for CPU and/or GPU Hardware: It is possible to use regexp in the architecture field of
    host_cpu_spec like “(x86_64|aarch64)” to be matched with x86_64 or aarch64 queues.
    """
    at = queue(architectures=[{"type": "cpu", "arch": [arch]}])
    assert reason(f"{PLATFORM}#(x86_64|aarch64)", at) == refused


def test_the_platform_implies_an_architecture():
    """002, Checks for CPU and/or GPU Hardware: If #host_cpu_spec is not specified in task’s architecture, the
    first part of sw_platform is used as CPU architecture.
    """
    assert reason(PLATFORM, queue(architectures=[{"type": "cpu", "arch": ["x86_64"]}])) is None
    arm = queue(architectures=[{"type": "cpu", "arch": ["aarch64"]}])
    assert reason(PLATFORM, arm) == "cpu_mismatch"


def test_a_regexp_platform_is_resolved():
    """002, Checks for CPU and/or GPU Hardware: The regexp in sw_platform is resolved to a relevant string in
    the cmtconfigs list of the queue.
    """
    at = queue(containers=[])
    assert reason("x86_64-.*-gcc8-opt#x86_64", at) is None
    assert reason("x86_64-.*-gcc9-opt#x86_64", at) == "release_unavailable"
    deployed = MatchingRules(resolve_before_compare=False)
    assert reason("x86_64-.*-gcc8-opt#x86_64", at, rules=deployed) == "release_unavailable"


# ---- the new format


def test_the_new_format():
    """002, Checks for CPU and/or GPU Hardware: The new format of task architecture is a JSON-serialized
    dictionary with the following keys: sw_platform, base_platform, cpu_specs, and gpu_spec.
    """
    text = {"sw_platform": PLATFORM, "base_platform": "el9", "cpu_specs": [], "gpu_spec": {}}
    request = parse_architecture(json.dumps(text))
    assert (request.sw_platform, request.base_platform) == (PLATFORM, "el9")
    assert request.gpu_spec.is_any
    assert parse_architecture(json.dumps({"platform": PLATFORM})).notes


def test_the_cpus_of_the_new_format():
    """002, Checks for CPU and/or GPU Hardware: The cpu_specs is a list of dictionaries with the following
    keys: arch, instr, type, and vendor.
    """
    listed = {"type": "cpu", "arch": ["x86_64"], "instr": ["avx2"], "vendor": ["intel"]}
    at = queue(architectures=[listed])
    item = {"arch": "x86_64", "instr": "avx2", "type": "cpu", "vendor": "intel"}
    assert reason(json.dumps({"cpu_specs": [item]}), at) is None
    other = {"arch": "aarch64"}
    assert reason(json.dumps({"cpu_specs": [other, item]}), at) is None
    for key in ("arch", "instr", "vendor"):
        assert reason(json.dumps({"cpu_specs": [item | {key: "z"}]}), at) == "cpu_mismatch"
    anything = json.dumps({"cpu_specs": [{"vendor": "intel"}]})
    assert reason(anything, at) is None
    deployed = MatchingRules(item_without_arch_is_any=False)
    assert reason(anything, at, rules=deployed) == "sw_description_invalid"


# ---- attributes of GPUs


def test_gpu_vendor():
    """002, Checks for CPU and/or GPU Hardware: vendor: GPU vendor regexp (e.g.NVIDIA). Use*for any vendor."""
    assert gpu_reason(spec(vendor="NV.*"), A100) is None
    assert gpu_reason(spec(vendor="AMD"), A100) == "gpu_vendor"
    assert gpu_reason(spec(vendor="*"), A100) is None


def test_gpu_model():
    """002, Checks for CPU and/or GPU Hardware: model: either a plain regular expression string for
    inclusion, or a dictionary withpatternandexclkeys for exclusion.
    """
    assert gpu_reason(spec(model=".*A100.*"), A100) is None
    assert gpu_reason(spec(model={"pattern": ".*A100.*", "excl": True}), A100) == "gpu_model"
    assert gpu_reason(spec(model={"pattern": ".*A100.*"}), A100) is None


def test_gpu_models_in_any_case():
    """002, Checks for CPU and/or GPU Hardware: Matching is case-insensitive, so.*A100.*and.*a100.*are
    equivalent.
    """
    assert gpu_reason(spec(model=".*a100.*"), A100) is None


def test_gpu_models_of_the_example():
    """002, Checks for CPU and/or GPU Hardware: requires an A100 GPU, while{"model": {"pattern": ".*P100.*",
    "excl": true}}excludes any queue with a P100 GPU.
    """
    assert gpu_reason(spec(model=".*A100.*"), P100) == "gpu_model"
    without = spec(model={"pattern": ".*P100.*", "excl": True})
    assert gpu_reason(without, A100, P100) == "gpu_model"
    assert gpu_reason(without, A100) is None


OPERATORS = {
    "==": (False, True, False),
    "=": (False, True, False),
    ">=": (False, True, True),
    "<=": (True, True, False),
    ">": (False, False, True),
    "<": (True, False, False),
    "!=": (True, False, True),
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_gpu_cuda(operator):
    """002, Checks for CPU and/or GPU Hardware: version: optional CUDA toolkit version constraint as an
    operator-prefixed string
    """
    nodes = [GpuNode("NVIDIA", "X", 1, "Y", version, "1") for version in ("11.9", "12.0", "12.10")]
    found = [gpu_reason(spec(version=f"{operator}12.0"), node) is None for node in nodes]
    assert tuple(found) == OPERATORS[operator]


@pytest.mark.parametrize("operator", OPERATORS)
def test_gpu_memory(operator):
    """002, Checks for CPU and/or GPU Hardware: vram: optional GPU memory constraint in MB, as an
    operator-prefixed string
    """
    nodes = [GpuNode("NVIDIA", "X", vram, "Y", "1", "1") for vram in (9999, 15360, 40960)]
    found = [gpu_reason(spec(vram=f"{operator}15360"), node) is None for node in nodes]
    assert tuple(found) == OPERATORS[operator]


def test_gpu_generation():
    """002, Checks for CPU and/or GPU Hardware: microarchitecture: optional GPU microarchitecture generation
    or list of generations
    """
    assert gpu_reason(spec(microarchitecture="Ampere"), A100) is None
    assert gpu_reason(spec(microarchitecture=["Hopper", "Ampere"]), A100) is None
    assert gpu_reason(spec(microarchitecture=["Hopper"]), A100) == "gpu_microarchitecture"


def test_gpu_driver():
    """002, Checks for CPU and/or GPU Hardware: driver_version: optional GPU kernel driver version constraint
    as an operator-prefixed string (e.g.">=575.0").
    """
    assert gpu_reason(spec(driver_version=">=575.0"), A100) is None
    assert gpu_reason(spec(driver_version=">=575.0"), V100S) == "gpu_driver"


# ---- the two stages


def test_without_gpu_entry_nothing_helps():
    """002, Checks for CPU and/or GPU Hardware: Queues without a GPU entry in CRIC are skipped immediately,
    regardless of what worker node monitoring reports.
    """
    assert reason("#&nvidia", queue(A100)) == "gpu_not_capable"


def test_attributes_are_those_of_the_nodes():
    """002, Checks for CPU and/or GPU Hardware: all attribute checks
    (vendor,model,vram,microarchitecture,version,driver_version) are performed against the worker node GPU
    monitoring data
    """
    other = {"type": "gpu", "vendor": ["amd"], "model": ["kt100"]}
    assert reason("#&nvidia-.*A100", queue(A100, architectures=[other])) is None


def test_gpus_that_nobody_reports():
    """002, Checks for CPU and/or GPU Hardware: If a queue is GPU-capable per CRIC but has no entry in the
    monitoring data, it is accepted for wildcard requests (no specific attribute required) and rejected when
    specific attributes are requested.
    """
    assert gpu_reason("#&*") is None
    assert gpu_reason("#&nvidia") == "gpu_vendor"
    assert gpu_reason("#&*:vram>1") == "gpu_vram"


# ---- the shorthand


@pytest.mark.parametrize("operator", ["==", ">=", "<=", ">", "<", "!="])
def test_shorthand(operator):
    """002, Checks for CPU and/or GPU Hardware: Additional attributes are appended as colon-separated
    key<op>value pairs, where <op> is one of ==, >=, <=, >, <, !=.
    """
    found = parse_architecture(
        f"#&nvidia:vram{operator}1:cuda{operator}2:driver{operator}3"
    ).gpu_spec
    values = (found.vram, found.version, found.driver_version)
    assert values == (f"{operator}1", f"{operator}2", f"{operator}3")


def test_shorthand_with_a_single_sign():
    """002, Checks for CPU and/or GPU Hardware: Single = is also accepted and treated as == (exact match)."""
    assert parse_architecture("#&nvidia:vram=1").gpu_spec.vram == "==1"


def test_shorthand_of_an_exclusion():
    """002, Checks for CPU and/or GPU Hardware: For the model key, != expresses exclusion"""
    assert gpu_reason("#&nvidia:model!=.*P100.*", P100) == "gpu_model"
    assert gpu_reason("#&nvidia:model!=.*P100.*", A100) is None


def refusals(architecture: str) -> list[str | None]:
    """Ask queues with one kind of node each: A100, P100, V100S, a small one."""
    return [gpu_reason(architecture, node) for node in (A100, P100, V100S, SMALL)]


def test_example_of_any_nvidia():
    """002, Checks for CPU and/or GPU Hardware: prun --architecture '#&nvidia' ..."""
    assert refusals("#&nvidia") == [None] * 4
    amd = GpuNode("AMD", "MI250", 65536, "CDNA2", None, None)
    assert gpu_reason("#&nvidia", amd) == "gpu_vendor"


def test_example_of_40_gb():
    """002, Checks for CPU and/or GPU Hardware: prun --architecture '#&nvidia:vram>=40960' ..."""
    assert refusals("#&nvidia:vram>=40960") == [None, *["gpu_vram"] * 3]


def test_example_of_15_gb():
    """002, Checks for CPU and/or GPU Hardware: prun --architecture '#&nvidia:vram==15360' ..."""
    assert refusals("#&nvidia:vram==15360") == [*["gpu_vram"] * 3, None]


def test_example_of_ampere():
    """002, Checks for CPU and/or GPU Hardware: prun --architecture '#&nvidia:uarch=Ampere:cuda>=12.0' ..."""
    assert refusals("#&nvidia:uarch=Ampere:cuda>=12.0") == [None, *["gpu_microarchitecture"] * 3]


def test_example_of_a100():
    """002, Checks for CPU and/or GPU Hardware: prun --architecture
    '#&nvidia:model=.*A100.*:vram>=40960:driver>=575.0' ...
    """
    text = "#&nvidia:model=.*A100.*:vram>=40960:driver>=575.0"
    assert refusals(text) == [None, *["gpu_model"] * 3]


def test_example_of_two_exclusions():
    """002, Checks for CPU and/or GPU Hardware: prun --architecture '#&nvidia:model!=.*(P100|V100).*' ..."""
    text = "#&nvidia:model!=.*(P100|V100).*"
    assert refusals(text) == [None, "gpu_model", "gpu_model", None]


def test_example_in_json():
    """002, Checks for CPU and/or GPU Hardware: prun --architecture '{"gpu_spec": {"vendor": "nvidia",
    "vram": ">=40960", "version": ">=12.0"}}'
    """
    text = '{"gpu_spec": {"vendor": "nvidia", "vram": ">=40960", "version": ">=12.0"}}'
    assert refusals(text) == [None, *["gpu_vram"] * 3]


def test_exclusions_are_nested():
    """002, Checks for CPU and/or GPU Hardware: Placing them at the top level of gpu_spec will silently have
    no effect.
    """
    assert gpu_reason(spec(vendor="nvidia", pattern=".*P100.*", excl=True), P100) is None


def test_expressions_are_those_of_python():
    """002, Checks for CPU and/or GPU Hardware: .*(P100|V100).* correctly matches both Tesla V100S-PCIE-32GB
    and Tesla P100-PCIE-16GB.
    """
    for node, refused in ((V100S, None), (P100, None), (A100, "gpu_model")):
        assert gpu_reason(spec(model=".*(P100|V100).*"), node) == refused
    assert gpu_reason(spec(model="P100"), P100) == "gpu_model"  # from the start of the text


# ---- what the queue describes


def test_hardware_that_is_asked_for_is_looked_up():
    """002, Checks for CPU and/or GPU Hardware: If host_cpu_spec or host_gpu_spec is specified, the brokerage
    checks the architectures of the queue
    """
    bare = queue(architectures=[])
    assert reason(f"{PLATFORM}#x86_64", bare) == "hardware_undescribed"
    assert reason(f"{PLATFORM}#&nvidia", bare) == "hardware_undescribed"
    # an architecture that is only the first part of the platform is not specified
    assert reason(PLATFORM, bare) is None
    assert reason(PLATFORM, bare, rules=MatchingRules("production")) == "hardware_undescribed"
    alone = MatchingRules(implied_cpu_needs_description=True)
    assert reason(PLATFORM, bare, rules=alone) == "hardware_undescribed"
    assert reason(f"{PLATFORM}&nvidia", queue(A100, architectures=[GPU])) is None


def test_hardware_is_looked_up_without_a_release_too():
    """002, Checks for CPU and/or GPU Hardware: If host_cpu_spec or host_gpu_spec is specified, the brokerage
    checks the architectures of the queue

    Production accepts every production task that names no release.
    """
    arm = queue(architectures=[{"type": "cpu", "arch": ["aarch64"]}])
    assert reason("#x86_64", arm, transhome=None) == "cpu_mismatch"
    assert reason("#aarch64", arm, transhome=None) is None
    assert reason("#x86_64", arm, transhome=None, rules=MatchingRules("production")) is None
    none = queue(containers=["docker://other"])
    assert reason(None, none, transhome=None, container="docker://mine") == "container_unavailable"


def test_two_dictionaries():
    """002, Checks for CPU and/or GPU Hardware: The architectures can contain two dictionaries to describe
    CPU and GPU hardware specifications at the queue.
    """
    both = queue(A100, architectures=[{"type": "cpu", "arch": ["x86_64"]}, GPU])
    assert reason(f"{PLATFORM}#x86_64&nvidia", both) is None


VENDOR = {"type": "cpu", "arch": ["x86_64"], "vendor": ["intel"]}


@pytest.mark.parametrize(
    ("asked", "refused"),
    [("#x86_64-intel", None), ("#x86_64", None), ("#x86_64-amd", "cpu_mismatch")],
)
def test_a_listed_attribute(asked, refused):
    """002, Checks for CPU and/or GPU Hardware: If ‘attribute’: [‘blah’], the queue accepts tasks with
    attribute=’blah’ or without specifying the attribute.
    """
    assert reason(PLATFORM + asked, queue(architectures=[VENDOR])) == refused


@pytest.mark.parametrize(
    ("asked", "refused"),
    [("#x86_64-intel", None), ("#x86_64", "cpu_mismatch"), ("#x86_64-amd", "cpu_mismatch")],
)
def test_an_exclusive_attribute(asked, refused):
    """002, Checks for CPU and/or GPU Hardware: If ‘excl’ is included in the list, the queue accepts only
    tasks with attribute=’blah’.
    """
    exclusive = VENDOR | {"vendor": ["intel", "excl"]}
    assert reason(PLATFORM + asked, queue(architectures=[exclusive])) == refused


@pytest.mark.parametrize(
    ("arch", "refused"),
    [(["x86_64"], None), ([""], None), (["x86_64", "excl"], None), (["arm64"], "cpu_mismatch")],
)
def test_example_of_architectures(arch, refused):
    """002, Checks for CPU and/or GPU Hardware: tasks with #x86_64 are accepted by queues with “arch”:
    [“x86_64”], “arch”: [“”], or “arch”: [“x86_64”, “excl”], but not by “arch”: [“arm64”].
    """
    at = queue(architectures=[{"type": "cpu", "arch": arch}])
    assert reason(f"{PLATFORM}#x86_64", at) == refused
    deployed = MatchingRules(empty_arch_accepts=False)
    assert (reason(f"{PLATFORM}#x86_64", at, rules=deployed) is None) == ("x86_64" in arch)


# ---- fat containers


def container_reason(name: str, *, only_tags: bool = False, **data: Any) -> str | None:
    every = read_description(json.dumps({"tags": [TAG | {"container_name": "known:1"}]}))
    at = queue(**({"tags": [TAG], "containers": []} | data))
    return reason(PLATFORM, at, container=name, only_tags=only_tags, every_tag=every)


def test_containers_among_tags():
    """002, Checks for Fat Containers: the container_name must be equal to the container_name of a tag in the
    tagslist or must be included in the sources of a tag in the tagslist.
    """
    assert container_reason("athena:24", only_tags=True) is None
    assert container_reason("/cvmfs/images/athena", only_tags=True) is None
    other = container_reason("athena:25", only_tags=True, containers=["any"])
    assert other == "container_unavailable"


@pytest.mark.parametrize(
    ("containers", "refused"),
    [(["any"], None), (["/cvmfs"], None), ([], "container_unavailable")],
)
def test_containers_of_all_kinds(containers, refused):
    """002, Checks for Fat Containers: If the task doesn’t set onlyTagsForFC, ‘any’ or ‘/cvmfs’ must be
    included in the containerslist
    """
    assert container_reason("athena:24", containers=containers) == refused
    deployed = MatchingRules(container_tags_always=True)
    at = queue(tags=[TAG], containers=containers)
    assert reason(PLATFORM, at, container="athena:24", rules=deployed) is None


def test_containers_by_their_beginning():
    """002, Checks for Fat Containers: container_name must be forward-matched with one of the strings in the
    containerslist
    """
    listed = {"containers": ["docker://atlas", "/local"]}
    assert container_reason("docker://atlas/athena:1", **listed) is None
    assert container_reason("docker://other", **listed) == "container_unavailable"


def test_containers_by_their_source():
    """002, Checks for Fat Containers: container_name is resolved to the source path using the dictionary of
    the “ALL” queue, and the resolved source path must be forward-matched with one of the strings in the
    containerslist.
    """
    assert container_reason("known:1", containers=["/cvmfs/images"]) is None
    assert container_reason("known:2", containers=["/cvmfs/images"]) == "container_unavailable"
    assert container_reason("known:1", containers=["/other"]) == "container_unavailable"


def test_the_image_of_a_base_platform():
    """002, Checks for Fat Containers: @base_platform may include the container image name of the base
    platform, formatted as @base_platform_name+base_container_image.
    """
    for base in ("@el9", "@el9+docker://x/y"):
        assert reason(PLATFORM + base, queue(containers=[])) is None


# ---- releases, caches, nightlies

NIGHTLY = "Athena-main-2024-01-01T2101"


@pytest.mark.parametrize(
    ("cvmfs", "atlas", "nightlies"),
    [
        (["any"], True, True),
        (["atlas"], True, False),
        (["nightlies"], False, True),
        ([], False, False),
    ],
)
def test_the_repository(cvmfs, atlas, nightlies):
    """002, Checks for Releases, Caches, or Nightlies: ‘any’ or cvmfs_tag must be included in the cvmfslist,
    where cvmfs_tag is atlas for standard releases and caches or nightlies for nightlies.
    """
    at = queue(cvmfs=cvmfs)
    assert (reason(PLATFORM, at) is None) == atlas
    assert (reason(PLATFORM, at, transhome=NIGHTLY) is None) == nightlies


@pytest.mark.parametrize(
    ("containers", "accepted"), [(["any"], True), (["/cvmfs"], True), (["docker://"], False)]
)
def test_images_for_the_platform(containers, accepted):
    """002, Checks for Releases, Caches, or Nightlies: ‘any’ or ‘/cvmfs’ must be included in the
    containerslist
    """
    at = queue(containers=containers, cmtconfigs=[])
    assert (reason(PLATFORM, at) is None) == accepted


def test_the_platform_is_there():
    """002, Checks for Releases, Caches, or Nightlies: the task sw_platform is extracted from the task
    architecture and must be included in the cmtconfigs list.
    """
    at = queue(containers=[])
    assert reason(PLATFORM, at) is None
    assert reason("x86_64-el9-gcc13-opt", at) == "release_unavailable"
    assert reason(f"{PLATFORM}@el9", at) is None
    deployed = MatchingRules(base_platform_forbids_cmtconfigs=True)
    assert reason(f"{PLATFORM}@el9", at, rules=deployed) == "release_unavailable"
    assert reason(None, queue(containers=[], cmtconfigs=[""])) == "release_unavailable"


@pytest.mark.parametrize("cvmfs", [[], ["atlas"]])
def test_tags_are_the_other_way(cvmfs):
    """002, Checks for Releases, Caches, or Nightlies: If the above is not the case,"""
    at = queue(cvmfs=cvmfs, containers=[], cmtconfigs=[], tags=[TAG])
    assert reason(PLATFORM, at) is None
    deployed = MatchingRules(tags_after_cvmfs=False)
    assert (reason(PLATFORM, at, rules=deployed) is None) == (cvmfs == [])


def test_tags_without_an_image():
    """002, Checks for Releases, Caches, or Nightlies: ‘any’ must be in the containerslist or base_platform in
    the task architecture must be empty
    """
    away = {"cvmfs": [], "tags": [TAG]}
    assert reason(f"{PLATFORM}@el9", queue(containers=["any"], **away)) is None
    assert reason(f"{PLATFORM}@el9", queue(containers=["/cvmfs"], **away)) == "release_unavailable"
    assert reason(PLATFORM, queue(containers=["/cvmfs"], **away)) is None


@pytest.mark.parametrize("key", ["cmtconfig", "project", "release"])
def test_tags_are_equal_in_three_things(key):
    """002, Checks for Releases, Caches, or Nightlies: the task sw_platform, sw_project, and sw_version must
    be equal to cmtconfig, project, and release of a tag in the tagslist.
    """
    away = {"cvmfs": [], "containers": []}
    assert reason(PLATFORM, queue(tags=[TAG], **away)) is None
    assert reason(PLATFORM, queue(tags=[TAG | {key: "z"}], **away)) == "release_unavailable"
