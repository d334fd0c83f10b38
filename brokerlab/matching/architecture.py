"""The grammar of a task's ``architecture``: platform, base platform, CPU and GPU requests (docs/rules/matching.md 2)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from brokerlab.errors import nearest
from brokerlab.matching.hardware import ANY, CpuSpec, GpuSpec, ModelPattern, known_fields
from brokerlab.matching.notes import Note


@dataclass(frozen=True, slots=True)
class Request:
    """What a task asks of a queue's software and hardware."""

    # platform of the software, maybe a regexp; '' for none, None where there is no architecture
    sw_platform: str | None = ""
    # platform below it, the image of its container included; None for none
    base_platform: str | None = None
    cpu_specs: tuple[CpuSpec, ...] = ()  # CPUs of which one has to fit; none for no CPU request
    # the CPU is the first part of the platform, not one that is asked for
    cpu_implied: bool = False
    gpu_spec: GpuSpec | None = None  # GPU request; None for none
    preferred_level: str | None = None  # preferred level of the CPU architecture; None for none
    is_json: bool = False  # whether the text is in the JSON format
    # what was dropped or could not be read, with its position in the text
    notes: tuple[Note, ...] = field(default=(), compare=False)
    invalid: str | None = None  # what makes the request impossible to evaluate; None for nothing

    @property
    def asks_for_hardware(self) -> bool:
        """Whether there is a CPU or a GPU request."""
        return bool(self.cpu_specs) or self.gpu_spec is not None


@lru_cache(maxsize=16384)
def parse_architecture(architecture: str | None) -> Request:
    """Read a task's architecture, in the JSON or in the old format; never raises, whatever the text.

    What could not be read is in the request's notes, and in ``invalid`` if nothing can be decided with it.

    Source: docs/rules/matching.md 2.
    """
    if architecture is None:
        return Request(sw_platform=None)
    if not architecture:
        return Request()
    document = _json_object(architecture)
    if document is not None:
        return Request(is_json=True, **read_object(document, architecture))
    return Request(**read_text(architecture))


def _json_object(text: str) -> dict[str, Any] | None:
    """Return the object that a text is in JSON; None for anything else."""
    if "{" not in text:
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


KEYS = ("sw_platform", "base_platform", "cpu_specs", "gpu_spec", "cpu_pref")
LEVEL = "preferred_architecture_level"


class _Reader:
    """Reads one document, collecting notes on the way."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.notes: list[Note] = []
        self.invalid: str | None = None

    def note(self, key: str, message: str) -> None:
        """Add a note at the first place of a key in the text."""
        self.notes.append(Note(max(self.text.find(json.dumps(key)), 0), key, message))

    def wrong(self, key: str, value: Any, allowed: str) -> None:
        """Note a value that no queue can be compared with."""
        message = f"{key} is {_short(value)}, allowed is {allowed}"
        self.note(key, message)
        self.invalid = self.invalid or message

    def text_of(self, source: dict[str, Any], key: str, default: str | None) -> str | None:
        """Return a text, or the default where it is missing or null."""
        value = source.get(key)
        if value is None:
            return default
        if isinstance(value, str):
            return value
        self.wrong(key, value, "a text")
        return default

    def ignored(self, source: dict[str, Any], kind: type[Any]) -> tuple[tuple[str, str], ...]:
        """Return the fields that mean nothing, noting all but ``type``."""
        known = known_fields(kind)
        strange = [key for key in source if key not in known]
        for key in strange:
            if key != "type":
                self.note(key, f"no such field, {nearest(key, known)}: ignored")
        return tuple((key, json.dumps(source[key])) for key in strange)

    def cpus(self, items: Any) -> tuple[CpuSpec, ...]:
        if not items:
            return ()
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            self.wrong("cpu_specs", items, "a list of objects")
            return ()
        return tuple(self.cpu(item) for item in items)

    def cpu(self, item: dict[str, Any]) -> CpuSpec:
        vendor, instr = (self.text_of(item, key, "*") or "" for key in ("vendor", "instr"))
        ignored = self.ignored(item, CpuSpec)
        return CpuSpec(self.text_of(item, "arch", None), vendor, instr, ignored)

    def gpu(self, spec: Any) -> GpuSpec | None:
        if spec is None:
            return None
        if not isinstance(spec, dict):
            self.wrong("gpu_spec", spec, "an object")
            return None
        limits = {
            key: self.text_of(spec, key, None) for key in ("vram", "version", "driver_version")
        }
        return GpuSpec(
            vendor=self.text_of(spec, "vendor", "*") or "",
            model=self.model(spec),
            microarchitecture=self.microarchitecture(spec),
            ignored=self.ignored(spec, GpuSpec),
            **limits,
        )

    def model(self, spec: dict[str, Any]) -> str | ModelPattern:
        model = spec.get("model")
        if not isinstance(model, dict):
            return self.text_of(spec, "model", "*") or ""
        excl = model.get("excl")
        return ModelPattern(
            self.text_of(model, "pattern", "*") or "", None if excl is None else bool(excl)
        )

    def microarchitecture(self, spec: dict[str, Any]) -> str | tuple[str, ...] | None:
        value = spec.get("microarchitecture")
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return tuple(value)
        return self.text_of(spec, "microarchitecture", None)

    def preferred_level(self, preference: Any) -> str | None:
        if preference is None:
            return None
        if not isinstance(preference, dict):
            self.note(
                "cpu_pref", f"cpu_pref is {_short(preference)}, allowed is an object: ignored"
            )
            return None
        level = preference.get(LEVEL)
        if level is None or isinstance(level, str):
            return level or None
        self.note(LEVEL, f"{LEVEL} is {_short(level)}, allowed is a text: ignored")
        return None


def read_object(document: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the fields of a request in the JSON format."""
    reader = _Reader(text)
    for key in document:
        if key not in KEYS:
            reader.note(key, f"no such field, {nearest(key, KEYS)}: ignored")
    result = {
        "sw_platform": reader.text_of(document, "sw_platform", "") or "",
        "base_platform": reader.text_of(document, "base_platform", None) or None,
        "cpu_specs": reader.cpus(document.get("cpu_specs")),
        "gpu_spec": reader.gpu(document.get("gpu_spec")),
        "preferred_level": reader.preferred_level(document.get("cpu_pref")),
    }
    return {**result, "notes": tuple(reader.notes), "invalid": reader.invalid}


def _short(value: Any) -> str:
    """Return a value as JSON, cut to a readable length."""
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


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
    result = _CPU.search(text)
    if result is None:
        arch = "" if text[0] in "^@&" else text.split("-", 1)[0]
        return (CpuSpec(arch),) if arch else ()
    if not result[1]:
        return ()
    listed = result[1].removeprefix("(").removesuffix(")")
    position = result.start(1) + result[1].startswith("(")
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
    result = _GPU.search(text)
    if result is None or not result[1]:
        return None
    first, *attributes = result[1].split(":")
    vendor, dash, model = first.partition("-")
    model, dropped, rest = model.partition("-")
    position = result.start(1) + len(first) + 1
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
    result = _ATTRIBUTE.fullmatch(text)
    if result is None:
        notes.append(Note(position, text, "not key, operator, value: dropped"))
        return {}
    key, operator, value = result.groups()
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
