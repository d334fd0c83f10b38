"""Read DAX, the XML of abstract workflows (Pegasus)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from brokerlab.errors import DataError
from brokerlab.workflows.readers.parts import Parts, parts

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

NAMESPACE = "http://pegasus.isi.edu/schema/DAX"


def read_dax(content: bytes, source: str) -> Parts:
    """Read a DAX document; entities and document types are refused.

    Tasks and edges; a job without ``runtime`` has no run time. `findings` tell where ``jobCount`` or ``childCount`` of
    the root say another number.

    Source: workflows.md 1.2.
    """
    root = _root(content, source)
    jobs = list(_children(root, "job"))
    below = list(_children(root, "child"))
    problems: list[str] = []
    rows = [_row(job, place, problems) for place, job in enumerate(jobs)]
    edges = []
    for child in below:
        if "ref" not in child.attrib:
            problems.append("a child has no ref")
        for parent in _children(child, "parent"):
            if "ref" in parent.attrib:
                edges.append((parent.attrib["ref"], child.attrib.get("ref", "")))
            else:
                problems.append(f"a parent of child {child.attrib.get('ref')!r} has no ref")
    if problems:
        raise DataError(f"{source}: {'; '.join(problems)}")
    counts = (("jobCount", len(jobs)), ("childCount", len(below)))
    findings = [
        f"{name} says {root.attrib[name]}, the file has {n}"
        for name, n in counts
        if root.attrib.get(name, str(n)) != str(n)
    ]
    return parts(rows, edges, findings)


def _root(content: bytes, source: str) -> Element:
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    try:
        root: Element = fromstring(content, forbid_dtd=True)
    except DefusedXmlException as problem:
        raise DataError(
            f"{source}: document types and entities are not read: {type(problem).__name__}"
        ) from None
    except (ParseError, ValueError, LookupError) as problem:
        raise DataError(f"{source}: no XML: {problem}") from None
    namespace, _, tag = root.tag.rpartition("}")
    if tag != "adag" or (namespace and not namespace.startswith("{" + NAMESPACE)):
        raise DataError(f"{source}: the root is {root.tag!r}, a DAX has 'adag'")
    return root


def _children(element: Element, tag: str) -> Iterator[Element]:
    return (child for child in element if child.tag.rpartition("}")[2] == tag)


def _row(job: Element, place: int, problems: list[str]) -> dict[str, Any]:
    text = job.attrib.get("runtime")
    try:
        runtime = None if text is None else float(text)
    except ValueError:
        problems.append(f"job {job.attrib.get('id')!r}: runtime {text!r} is no number [s]")
        runtime = None
    if not job.attrib.get("id"):
        problems.append(f"job {place + 1} has no id")
    return {
        "task_id": job.attrib.get("id", ""),
        "runtime": runtime,
        "estimate": None,
        "hosts": 1,
        "name": job.attrib.get("name"),
        "type": job.attrib.get("namespace"),
    }
