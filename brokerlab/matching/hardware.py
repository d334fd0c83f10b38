"""Hardware as a task asks for it, one CPU, one GPU, against the CPUs of a queue and the GPUs that pilots saw there.

Source: docs/rules/matching.md 2.3, 4 and 5.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from packaging.version import InvalidVersion, Version

from brokerlab.errors import DataError
from brokerlab.matching.description import ANY as ANY_PUBLISHED
from brokerlab.matching.description import EXCLUSIVE, DescriptionError, Hardware
from brokerlab.matching.patterns import compile_pattern, matches_anchored
from brokerlab.matching.rules import MatchingRules

MAX_LENGTH = 100  # longest version read [characters]

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
COMPARISON = re.compile(r"(==|>=|<=|!=|>|<|=)(.*)", re.DOTALL)


@lru_cache(maxsize=4096)
def _version(text: str) -> Version | None:
    """Return a version in the order of PEP 440; None for what is none."""
    try:
        return Version(text) if len(text) <= MAX_LENGTH else None
    except InvalidVersion:
        return None


@lru_cache(maxsize=4096)
def compare_version(version: str, comparison: str) -> bool | None:
    """Compare a version with a comparison string (docs/rules/matching.md 2.3)."""
    result = COMPARISON.match(comparison)
    left = _version(version)
    right = None if result is None else _version(result[2].strip())
    if result is None or left is None or right is None:
        return None
    return _OPERATORS[result[1]](left, right)


ANY = "*"


class RequestError(DataError):
    """Raised when what a task asks for cannot be compared with any queue."""


@dataclass(frozen=True, slots=True)
class CpuSpec:
    """One CPU that a task accepts."""

    # architecture, maybe a regexp; ``*`` for any, None where a JSON item does not say
    arch: str | None
    vendor: str = ANY  # Vendor; ``*`` for any
    instr: str = ANY  # instruction set; ``*`` for any
    # other fields of a JSON item and their values as JSON
    ignored: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ModelPattern:
    """A GPU model as an object: a regexp, and whether it is the models to avoid."""

    pattern: str
    excl: bool | None = None


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """The GPU that a task asks for."""

    vendor: str = ANY  # Regexp; ``*`` for any
    model: str | ModelPattern = ANY  # regexp, or the object form; ``*`` for any
    vram: str | None = None  # comparison with the memory [MB]; None for no request, as below
    microarchitecture: str | tuple[str, ...] | None = None  # names of which one has to be there
    version: str | None = None  # comparison with the version of the CUDA toolkit
    driver_version: str | None = None  # comparison with the version of the kernel driver
    # other fields of the JSON form and their values as JSON
    ignored: tuple[tuple[str, str], ...] = ()

    @property
    def is_any(self) -> bool:
        """Whether every GPU will do."""
        limits = (self.vram, self.microarchitecture, self.version, self.driver_version)
        return (
            self.vendor == ANY
            and self.model == ANY
            and not any(limit is not None for limit in limits)
        )


def known_fields(kind: type[Any]) -> list[str]:
    """Return the names of the fields that a text may set."""
    return [one.name for one in fields(kind) if one.name != "ignored"]


def match_cpu(
    cpu_specs: tuple[CpuSpec, ...], cpu: Hardware | None, *, rules: MatchingRules
) -> bool:
    """Tell whether a queue has one of the CPUs that a task accepts (docs/rules/matching.md 4, 7).

    Of the queue None stands for hardware without a CPU, which fits nothing. A queue that names no ``arch`` is a
    DescriptionError, an item that names none where it has to a RequestError, a regexp that cannot be read a PatternError.
    """
    if cpu is None:
        return False
    return any(
        _fits_arch(spec, cpu, rules)
        and _fits(spec.vendor, cpu.attributes.get("vendor"))
        and _fits(spec.instr, cpu.attributes.get("instr"))
        for spec in cpu_specs
    )


def _fits_arch(spec: CpuSpec, cpu: Hardware, rules: MatchingRules) -> bool:
    """Tell whether the architecture of an item fits."""
    listed = cpu.attributes.get("arch")
    arch = ANY if spec.arch is None and rules.item_without_arch_is_any else spec.arch
    if arch is None:
        raise RequestError("an item of cpu_specs has no arch")
    if listed is None:
        raise DescriptionError("the queue's CPU has no arch")
    if arch == ANY:
        return EXCLUSIVE not in listed
    if ANY_PUBLISHED in listed or arch in listed or (rules.empty_arch_accepts and "" in listed):
        return True
    return any(matches_anchored(arch, one) for one in listed)


def _fits(asked: str, listed: tuple[str, ...] | None) -> bool:
    """Tell whether a vendor or instruction set fits: exact, ``any`` of the queue accepts all."""
    if asked == ANY:
        return listed is None or EXCLUSIVE not in listed
    return listed is not None and (ANY_PUBLISHED in listed or asked in listed)


@dataclass(frozen=True, slots=True)
class GpuNode:
    """GPUs of one kind seen on worker nodes of a queue."""

    vendor: str | None = None  # such as ``NVIDIA``; null satisfies no request, as below
    model: str | None = None  # such as ``NVIDIA A100-SXM4-80GB``
    vram: int | None = None  # memory [MB]; 0 satisfies no request either
    architecture: str | None = None  # microarchitecture, such as ``Ampere``
    framework_version: str | None = None  # version of the CUDA toolkit
    driver_version: str | None = None  # version of the kernel driver


Nodes = Sequence[GpuNode]


def _any_matches(pattern: str, nodes: Nodes, attribute: str) -> bool:
    """Tell whether an attribute of any node starts with what the pattern matches, without regard to case."""
    compiled = compile_pattern(pattern, ignore_case=True)
    texts = (getattr(node, attribute) for node in nodes)
    return any(text is not None and compiled.match(text) for text in texts)


def _all_satisfy(comparison: str, values: Sequence[str | int | None]) -> bool:
    """Tell whether there are values and every one is set and satisfies a comparison."""
    return bool(values) and all(
        bool(value) and compare_version(str(value), comparison) is True for value in values
    )


def _model(model: str | ModelPattern, nodes: Nodes) -> bool:
    """Tell whether a model is there, or whether none of those to avoid is."""
    if not isinstance(model, ModelPattern):
        return _any_matches(model, nodes, "model")
    if model.excl:
        return bool(nodes) and not _any_matches(model.pattern, nodes, "model")
    return model.pattern == ANY or _any_matches(model.pattern, nodes, "model")


def _microarchitecture(names: str | tuple[str, ...], nodes: Nodes) -> bool:
    """Tell whether any node has one of the microarchitectures, to the letter."""
    listed = (names,) if isinstance(names, str) else names
    return any(node.architecture in listed for node in nodes if node.architecture is not None)


_TESTS: tuple[tuple[str, Callable[[GpuSpec], bool], Callable[[GpuSpec, Nodes], bool]], ...] = (
    (
        "gpu_vendor",
        lambda spec: spec.vendor != ANY,
        lambda spec, nodes: _any_matches(spec.vendor, nodes, "vendor"),
    ),
    ("gpu_model", lambda spec: spec.model != ANY, lambda spec, nodes: _model(spec.model, nodes)),
    (
        "gpu_vram",
        lambda spec: spec.vram is not None,
        lambda spec, nodes: _all_satisfy(spec.vram or "", [node.vram for node in nodes]),
    ),
    (
        "gpu_microarchitecture",
        lambda spec: spec.microarchitecture is not None,
        lambda spec, nodes: _microarchitecture(spec.microarchitecture or (), nodes),
    ),
    (
        "gpu_version",
        lambda spec: spec.version is not None,
        lambda spec, nodes: _all_satisfy(
            spec.version or "", [node.framework_version for node in nodes]
        ),
    ),
    (
        "gpu_driver",
        lambda spec: spec.driver_version is not None,
        lambda spec, nodes: _all_satisfy(
            spec.driver_version or "", [node.driver_version for node in nodes]
        ),
    ),
)
"""Name, when it is requested, and when it is satisfied, in the order of the tests."""


def match_gpu(spec: GpuSpec, nodes: Nodes) -> str | None:
    """Return the first attribute of a GPU request that a queue's worker nodes do not satisfy, such as ``gpu_vendor``; None: satisfied.

    Each attribute is tested on its own. Vendor, model and microarchitecture have to be there on any node; memory,
    toolkit and driver have to comply on every node.

    Without nodes only a request without any attribute is satisfied. A vendor or model that is malformed, or outside of the
    linear-time engine, is a PatternError.

    Source: docs/rules/matching.md 5.
    """
    for name, is_requested, is_satisfied in _TESTS:
        if is_requested(spec) and not is_satisfied(spec, nodes):
            return name
    return None
