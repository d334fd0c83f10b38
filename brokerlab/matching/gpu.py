"""GPU matching: a task's GPU request against what pilots saw on the worker nodes (docs/rules/matching.md 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from brokerlab.matching.hardware import ANY, GpuSpec, ModelPattern
from brokerlab.matching.patterns import compile_pattern
from brokerlab.matching.versions import compare_version


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
