"""Hardware as a task asks for it: one CPU, one GPU."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from brokerlab.errors import DataError

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
