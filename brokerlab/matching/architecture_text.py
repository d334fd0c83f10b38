"""The old format: ``sw_platform@base#cpu&gpu`` with a shorthand for GPU attributes (docs/rules/matching.md 2.1)."""

from __future__ import annotations

import re
from typing import Any

from brokerlab.errors import nearest
from brokerlab.matching.hardware import ANY, CpuSpec, GpuSpec, ModelPattern
from brokerlab.matching.notes import Note

GPU_KEYS = {
    "model": "model",
    "vram": "vram",
    "cuda": "version",
    "uarch": "microarchitecture",
    "driver": "driver_version",
}
"""Key of the shorthand -> field of the request."""

_PLATFORM = re.compile(r"[^@#&]*")
_BASE = re.compile(r"@([^#&]*)")
_CPU = re.compile(r"#([^\^@&]*)")
_GPU = re.compile(r"&([^\^@#]*)")
_ATTRIBUTE = re.compile(r"([a-z_]+)(==|>=|<=|!=|>|<|=)(.+)", re.DOTALL)


def read_text(text: str) -> dict[str, Any]:
    """Return the fields of a request in the old format."""
    notes: list[Note] = []
    base = _BASE.search(text)
    sw_platform = _PLATFORM.match(text)
    return {
        "sw_platform": sw_platform[0] if sw_platform else "",
        "base_platform": (base[1] or None) if base else None,
        "cpu_specs": _cpus(text, notes),
        "cpu_implied": _CPU.search(text) is None,
        "gpu_spec": _gpu(text, notes),
        "notes": tuple(notes),
    }


def _cpus(text: str, notes: list[Note]) -> tuple[CpuSpec, ...]:
    """Read the CPUs after ``#``; without ``#`` the platform's first part is the architecture (rule 4)."""
    found = _CPU.search(text)
    if found is None:
        arch = "" if text[0] in "^@&" else text.split("-", 1)[0]
        return (CpuSpec(arch),) if arch else ()
    if not found[1]:
        return ()
    listed = found[1].removeprefix("(").removesuffix(")")
    position = found.start(1) + found[1].startswith("(")
    specs = []
    for item in listed.split("|"):
        parts = item.split("-")
        specs.append(CpuSpec(*parts[:3]))
        if len(parts) > 3:
            dropped = "-".join(parts[3:])
            place = position + len(item) - len(dropped)
            notes.append(Note(place, dropped, "more than arch-vendor-instr: ignored"))
        position += len(item) + 1
    return tuple(specs)


def _gpu(text: str, notes: list[Note]) -> GpuSpec | None:
    """Read the GPU after ``&``: ``vendor[-model]``, then attributes (rule 5)."""
    found = _GPU.search(text)
    if found is None or not found[1]:
        return None
    first, *attributes = found[1].split(":")
    vendor, dash, model = first.partition("-")
    model, dropped, rest = model.partition("-")
    position = found.start(1) + len(first) + 1
    if dropped:
        notes.append(
            Note(position - len(rest) - 2, "-" + rest, "the model ends at the next -: ignored")
        )
    limits: dict[str, Any] = {"vendor": vendor, "model": model if dash else ANY}
    for attribute in attributes:
        limits |= _attribute(attribute, position, notes)
        position += len(attribute) + 1
    return GpuSpec(**limits)


def _attribute(text: str, position: int, notes: list[Note]) -> dict[str, Any]:
    """Read one attribute of the shorthand; what does not fit is dropped."""
    found = _ATTRIBUTE.fullmatch(text)
    if found is None:
        notes.append(Note(position, text, "not key, operator, value: dropped"))
        return {}
    key, operator, value = found.groups()
    if key not in GPU_KEYS:
        notes.append(Note(position, key, f"no such key, {nearest(key, GPU_KEYS)}: dropped"))
        return {}
    if key == "model":
        return {"model": ModelPattern(value, excl=True) if operator == "!=" else value}
    if key == "uarch":
        if operator not in ("=", "=="):
            message = f"{operator} of uarch is read as =="
            notes.append(Note(position + len(key), operator, message))
        return {"microarchitecture": value}
    return {GPU_KEYS[key]: f"{'==' if operator == '=' else operator}{value}"}
