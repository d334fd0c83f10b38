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
    """One CPU that a task accepts.

    Attributes:
        arch: Architecture, maybe a regexp; ``*`` for any, None where a JSON item does not say.
        vendor: Vendor; ``*`` for any.
        instr: Instruction set; ``*`` for any.
        ignored: Other fields of a JSON item and their values as JSON.
    """

    arch: str | None
    vendor: str = ANY
    instr: str = ANY
    ignored: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ModelPattern:
    """A GPU model as an object: a regexp, and whether it is the models to avoid."""

    pattern: str
    excl: bool | None = None


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """The GPU that a task asks for.

    Attributes:
        vendor: Regexp; ``*`` for any.
        model: Regexp, or the object form; ``*`` for any.
        vram: Comparison with the memory [MB]; None for no request, as below.
        microarchitecture: Names of which one has to be there.
        version: Comparison with the version of the CUDA toolkit.
        driver_version: Comparison with the version of the kernel driver.
        ignored: Other fields of the JSON form and their values as JSON.
    """

    vendor: str = ANY
    model: str | ModelPattern = ANY
    vram: str | None = None
    microarchitecture: str | tuple[str, ...] | None = None
    version: str | None = None
    driver_version: str | None = None
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
