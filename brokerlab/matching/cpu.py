"""CPU matching: a task's CPU items against the CPUs of a queue (docs/rules/matching.md 4)."""

from __future__ import annotations

from brokerlab.matching.description import ANY, EXCLUSIVE, DescriptionError, Hardware
from brokerlab.matching.hardware import ANY as ANY_ASKED
from brokerlab.matching.hardware import CpuSpec, RequestError
from brokerlab.matching.patterns import matches_anchored
from brokerlab.matching.rules import MatchingRules


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
    arch = ANY_ASKED if spec.arch is None and rules.item_without_arch_is_any else spec.arch
    if arch is None:
        raise RequestError("an item of cpu_specs has no arch")
    if listed is None:
        raise DescriptionError("the queue's CPU has no arch")
    if arch == ANY_ASKED:
        return EXCLUSIVE not in listed
    if ANY in listed or arch in listed or (rules.empty_arch_accepts and "" in listed):
        return True
    return any(matches_anchored(arch, one) for one in listed)


def _fits(asked: str, listed: tuple[str, ...] | None) -> bool:
    """Tell whether a vendor or instruction set fits: exact, ``any`` of the queue accepts all."""
    if asked == ANY_ASKED:
        return listed is None or EXCLUSIVE not in listed
    return listed is not None and (ANY in listed or asked in listed)
