"""The grammar of a task's ``architecture``: platform, base platform, CPU and GPU requests (docs/rules/matching.md 2)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from brokerlab.matching.architecture_json import read_object
from brokerlab.matching.architecture_text import read_text
from brokerlab.matching.hardware import CpuSpec, GpuSpec
from brokerlab.matching.notes import Note


@dataclass(frozen=True, slots=True)
class Request:
    """What a task asks of a queue's software and hardware.

    Attributes:
        sw_platform: Platform of the software, maybe a regexp; '' for none, None where there is no architecture.
        base_platform: Platform below it, the image of its container included; None for none.
        cpu_specs: CPUs of which one has to fit; none for no CPU request.
        cpu_implied: The CPU is the first part of the platform, not one that is asked for.
        gpu_spec: GPU request; None for none.
        preferred_level: Preferred level of the CPU architecture; None for none.
        is_json: Whether the text is in the JSON format.
        notes: What was dropped or could not be read, with its position in the text.
        invalid: What makes the request impossible to evaluate; None for nothing.
    """

    sw_platform: str | None = ""
    base_platform: str | None = None
    cpu_specs: tuple[CpuSpec, ...] = ()
    cpu_implied: bool = False
    gpu_spec: GpuSpec | None = None
    preferred_level: str | None = None
    is_json: bool = False
    notes: tuple[Note, ...] = field(default=(), compare=False)
    invalid: str | None = None

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
