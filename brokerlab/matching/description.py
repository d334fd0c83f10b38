"""What a queue publishes about its software and hardware: the JSON of ``sw_tags`` (docs/rules/matching.md 1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from brokerlab.errors import DataError

ANY = "any"
EXCLUSIVE = "excl"

Texts = tuple[str, ...]


class DescriptionError(DataError):
    """Raised when a published description lacks or garbles what a decision needs."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """The CPUs or GPUs of a queue."""

    attributes: Mapping[str, Texts]  # attribute -> accepted values and marks
    # whether a task has to ask for this hardware: some attribute holds the mark ``excl``
    is_exclusive: bool


@dataclass(frozen=True, slots=True)
class Tags:
    """The installed software, arranged for looking it up."""

    # (cmtconfig, project, release) of every tag
    releases: frozenset[tuple[str | None, str | None, str | None]]
    containers: frozenset[str]  # names and sources of every container
    sources: Mapping[str, Texts]  # name of a container -> its sources


@dataclass(frozen=True, slots=True)
class Description:
    """A published description as read."""

    cmtconfigs: Texts  # platforms available without a container; empty where nothing is published
    containers: Texts | None  # ``any``, ``/cvmfs`` or prefixes; None where nothing is published
    cvmfs: Texts | None  # ``any``, ``atlas``, ``nightlies``; None where nothing is published
    tags: Tags | None  # installed software; None where nothing is published
    cpu: Hardware | None  # CPUs; None without an entry of type cpu
    gpu: Hardware | None  # GPUs; None without an entry of type gpu
    invalid: Mapping[str, str]  # part -> what is wrong with it; asking for such a part is an error

    def need(self, part: str) -> Any:
        """Return a part that the decision needs."""
        if part in self.invalid:
            raise DescriptionError(self.invalid[part])
        value = getattr(self, part)
        if value is None:
            raise DescriptionError(f"{part} is missing")
        return value

    def hardware(self, kind: str) -> Hardware | None:
        """Return the CPUs or GPUs."""
        if "architectures" in self.invalid:
            raise DescriptionError(self.invalid["architectures"])
        return self.cpu if kind == "cpu" else self.gpu


@lru_cache(maxsize=4096)
def read_description(data: str | None) -> Description:
    """Read the JSON that a queue publishes.

    The description; parts of another form than the chapter's are named in ``invalid``.

    Source: docs/rules/matching.md 1, ``sw_tags``.
    """
    try:
        document = json.loads(data or "")
    except (ValueError, RecursionError) as error:
        raise DescriptionError(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise DescriptionError(f"not a JSON object but a {type(document).__name__}")
    return from_object(document)


def from_object(document: Mapping[str, Any]) -> Description:
    """Return the description in a parsed JSON object."""
    invalid: dict[str, str] = {}
    lists = {
        part: _texts(document, part, invalid) for part in ("cmtconfigs", "containers", "cvmfs")
    }
    hardware = _architectures(document.get("architectures"), invalid)
    return Description(
        cmtconfigs=lists["cmtconfigs"] or (),
        containers=lists["containers"],
        cvmfs=lists["cvmfs"],
        tags=_tags(document.get("tags"), invalid),
        cpu=hardware.get("cpu"),
        gpu=hardware.get("gpu"),
        invalid=invalid,
    )


def _texts(source: Mapping[str, Any], key: str, invalid: dict[str, str]) -> Texts | None:
    """Return a list of texts; None where it is missing or null."""
    value = source.get(key)
    if value is None:
        return None
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    invalid[key] = f"{key} is not a list of texts"
    return None


def _architectures(entries: Any, invalid: dict[str, str]) -> dict[str, Hardware]:
    """Return the CPUs and GPUs; the last entry of a type counts, entries without a type do not."""
    if entries is None:
        return {}
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        invalid["architectures"] = "architectures is not a list of objects"
        return {}
    hardware = {}
    for entry in entries:
        kind = entry.get("type")
        if not isinstance(kind, str):
            continue
        problems: dict[str, str] = {}
        attributes = {}
        for key in ("arch", "vendor", "instr", "model"):
            values = _texts(entry, key, problems)
            if values is not None:
                attributes[key] = values
        for problem in problems.values():
            invalid["architectures"] = f"architectures, type {kind}: {problem}"
        marked = any(EXCLUSIVE in values for values in attributes.values())
        hardware[kind] = Hardware(attributes, marked)
    return hardware


def _tags(entries: Any, invalid: dict[str, str]) -> Tags | None:
    """Return the installed software; None where nothing is published."""
    if entries is None:
        return None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        invalid["tags"] = "tags is not a list of objects"
        return None
    problems: dict[str, str] = {}
    releases, sources = set(), dict[str, Texts]()
    containers: set[str] = set()
    for entry in entries:
        texts = [_text(entry.get(key)) for key in ("cmtconfig", "project", "release")]
        releases.add((texts[0], texts[1], texts[2]))
        name, listed = _text(entry.get("container_name")), _texts(entry, "sources", problems) or ()
        containers.update(listed)
        if name:
            containers.add(name)
            sources[name] = sources.get(name, ()) + listed
    if problems:
        invalid["tags"] = f"tags: {problems['sources']}"
    return Tags(frozenset(releases), frozenset(containers), sources)


def _text(value: Any) -> str | None:
    """Return a text; None for anything else."""
    return value if isinstance(value, str) else None
