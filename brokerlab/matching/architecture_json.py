"""The JSON format of a task's architecture (docs/rules/matching.md 2.2)."""

from __future__ import annotations

import json
from typing import Any

from brokerlab.errors import nearest
from brokerlab.matching.hardware import CpuSpec, GpuSpec, ModelPattern, known_fields
from brokerlab.matching.notes import Note

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
    found = {
        "sw_platform": reader.text_of(document, "sw_platform", "") or "",
        "base_platform": reader.text_of(document, "base_platform", None) or None,
        "cpu_specs": reader.cpus(document.get("cpu_specs")),
        "gpu_spec": reader.gpu(document.get("gpu_spec")),
        "preferred_level": reader.preferred_level(document.get("cpu_pref")),
    }
    return {**found, "notes": tuple(reader.notes), "invalid": reader.invalid}


def _short(value: Any) -> str:
    """Return a value as JSON, cut to a readable length."""
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
