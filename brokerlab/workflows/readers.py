"""Workflows from files: WfFormat JSON, DAX, also packed with gzip."""

from __future__ import annotations

import codecs
import gzip
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from brokerlab.errors import DataError, reading
from brokerlab.schemas import jsonschema
from brokerlab.workflows.dag import Dag, Edges, Tasks, named, workflow

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

LARGEST = 512 * 1024**2  # bytes of a file, unpacked, that are read at most


def read_workflow(
    path: str | Path,
    *,
    default_runtime: float | None = None,
    cores_per_host: int = 1,
    stretch: float = 1.0,
) -> Dag:
    """Read a workflow: WfFormat JSON or DAX, also packed with gzip.

    Args:
        path: File; its beginning tells the form.
        default_runtime: For tasks without a run time [s].
        cores_per_host: Cores of a host; a task takes as many hosts as its cores need.
        stretch: Factor on all run times.

    Returns:
        The workflow, named after the file; `findings` tell what was odd.

    Raises:
        DataError: The file cannot be read, or is neither; what is wrong with it, all at once.
        WorkflowError: Its tasks are no workflow.

    Source: workflows.md 1.2, 1.3.
    """
    place = Path(path)
    with reading(place):
        content = _content(place)
        begins = content.removeprefix(codecs.BOM_UTF8).lstrip()[:1]
        if begins == b"<":
            parts = read_dax(content, place.name)
        elif begins == b"{":
            parts = read_wfformat(content, place.name, cores_per_host=cores_per_host)
        else:
            raise DataError(
                f"{place}: neither WfFormat (JSON) nor DAX (XML): it begins {content[:20]!r}"
            )
        return _workflow(parts, place, default_runtime, stretch)


def _workflow(parts: Parts, place: Path, default_runtime: float | None, stretch: float) -> Dag:
    name = place.name.removesuffix(".gz").rpartition(".")[0] or place.name
    if not parts.tasks.height:
        raise DataError(f"{place}: no tasks")
    return workflow(
        parts.tasks,
        parts.edges,
        name=name,
        default_runtime=default_runtime,
        stretch=stretch,
        findings=parts.findings,
    )


def _content(place: Path) -> bytes:
    try:
        with place.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(place) if packed else place.open("rb") as file:
            content = file.read(LARGEST + 1)
    except (OSError, EOFError, zlib.error) as problem:
        raise DataError(f"{place}: cannot be read: {problem}") from None
    if len(content) > LARGEST:
        raise DataError(f"{place}: more than {LARGEST // 1024**2} MB unpacked; is it a workflow?")
    return content


USUAL = (
    "pegasus/soykb/soykb-chameleon-10fastq-20ch-001.json.gz",
    "pegasus/srasearch/srasearch-chameleon-50a-002.json.gz",
    "makeflow/blast/blast-chameleon-large-001.json.gz",
    "pegasus/montage/montage-chameleon-dss-075d-001.json.gz",
    "nextflow/airrflow-dirt02-001.json.gz",
)
"""Recorded workflows: wide and long, short, as wide as a machine, many short tasks, long and narrow."""
RECORDED_AT = frozenset({"chameleon", "dirt02", "001"})
"""Parts of file names that say where a workflow was recorded, and which execution it was."""


def read_workflows(
    folder: str | Path | None, files: Sequence[str] = USUAL, *, stretch: float = 1.0
) -> dict[str, Dag]:
    """Read several recorded workflows.

    Args:
        folder: With the recorded workflows; null: none, files are paths.
        files: Below the folder, or anywhere.
        stretch: Factor on the run times of tasks.

    Returns:
        Workflows by short name.

    Raises:
        DataError: A file is not there or cannot be read, or two have one short name.
    """
    workflows: dict[str, Dag] = {}
    for name in files:
        path = Path(name) if folder is None or Path(name).is_file() else Path(folder) / name
        dag = read_workflow(path, stretch=stretch)
        short = " ".join(word for word in dag.name.split("-") if word not in RECORDED_AT)
        if (short or dag.name) in workflows:
            raise DataError(f"workflows: two have the short name {short!r}; give each once")
        workflows[short or dag.name] = dag
    return workflows


def describe_workflows(workflows: Mapping[str, Dag]) -> pl.DataFrame:
    """Return what workflows are like: ``workflow, tasks, levels, width`` (of the widest level [hosts]), ``work`` [host s], ``longest_path`` [s]."""
    rows = [
        {
            "workflow": name,
            "tasks": len(dag),
            "levels": len(dag.levels),
            "width": max(dag.widths, default=0),
            "work": dag.work,
            "longest_path": dag.longest_path,
        }
        for name, dag in workflows.items()
    ]
    return pl.DataFrame(rows)


VERSIONS = ("1.4", "1.5")
PROBLEMS_SHOWN = 10


def read_wfformat(content: bytes, source: str, *, cores_per_host: int = 1) -> Parts:
    """Read a WfFormat document (workflows.md 1.3)."""
    if cores_per_host < 1:
        raise DataError(f"cores_per_host={cores_per_host}: must be at least 1")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise DataError(f"{source}: no JSON: {problem}") from None
    version = document.get("schemaVersion")
    if version not in VERSIONS:
        raise DataError(
            f"{source}: schemaVersion is {version!r}; read are {', '.join(VERSIONS)}; "
            "the format's own tools turn older files into newer ones"
        )
    _check_shape(document, version, source)
    if version == "1.4":
        return _old(document["workflow"]["tasks"], cores_per_host)
    return _new(document["workflow"], source, cores_per_host)


@cache
def _schema(version: str) -> dict[str, Any]:
    folder = resources.files("brokerlab.workflows")
    text = folder.joinpath(f"wfformat-{version}.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _check_shape(document: Mapping[str, Any], version: str, source: str) -> None:
    validator = jsonschema().Draft202012Validator(_schema(version))
    result = [
        f"{'.'.join(map(str, problem.absolute_path)) or 'document'}: {problem.message[:200]}"
        for problem in validator.iter_errors(document)
    ]
    if result:
        more = "" if len(result) <= PROBLEMS_SHOWN else f"; {len(result) - PROBLEMS_SHOWN} more"
        raise DataError(
            f"{source}: no WfFormat {version}: {'; '.join(sorted(result)[:PROBLEMS_SHOWN])}{more}"
        )


def _new(flow: Mapping[str, Any], source: str, cores_per_host: int) -> Parts:
    """Read version 1.5: what is to be done and what was done stand apart."""
    tasks = flow["specification"]["tasks"]
    execution = flow.get("execution", {}).get("tasks", [])
    done = {record["id"]: record for record in execution}
    ids = {task["id"] for task in tasks}
    stray = [name for name in done if name not in ids]
    if stray or len(done) < len(execution):
        raise DataError(
            f"{source}: workflow.execution.tasks: {len(execution) - len(done)} ids stand more than once, "
            f"{len(stray)} are no tasks of the workflow: {named(stray)}"
        )
    rows = [_row(task, done.get(task["id"], {}), "coreCount", cores_per_host) for task in tasks]
    above = {(parent, task["id"]) for task in tasks for parent in task["parents"]}
    below = {(task["id"], child) for task in tasks for child in task["children"]}
    return parts(rows, sorted(above | below), _one_sided(above, below))


def _old(tasks: list[Mapping[str, Any]], cores_per_host: int) -> Parts:
    """Read version 1.4: tasks refer to each other by name, and edges stand on either side."""
    by_name = {task["name"]: task.get("id", task["name"]) for task in tasks}
    ids = {task.get("id", task["name"]) for task in tasks}

    def known(reference: str) -> str:
        return reference if reference in ids else by_name.get(reference, reference)

    rows = [
        _row({"id": task.get("id", task["name"]), **task}, task, "cores", cores_per_host)
        for task in tasks
    ]
    pairs = {(known(p), row["task_id"]) for row, task in zip(rows, tasks, strict=True) for p in task.get("parents", [])}  # fmt: skip
    pairs |= {(row["task_id"], known(c)) for row, task in zip(rows, tasks, strict=True) for c in task.get("children", [])}  # fmt: skip
    return parts(rows, sorted(pairs))


def _row(
    task: Mapping[str, Any], record: Mapping[str, Any], cores: str, cores_per_host: int
) -> dict[str, Any]:
    runtime = record.get("runtimeInSeconds")
    return {
        "task_id": task["id"],
        "runtime": None if runtime is None else float(runtime),
        "estimate": None,
        "hosts": math.ceil(record.get(cores, 1) / cores_per_host),
        "name": task["name"],
        "type": task.get("category"),
    }


def _one_sided(above: set[tuple[str, str]], below: set[tuple[str, str]]) -> list[str]:
    """Say which edges only one of the two tasks tells."""
    result = []
    for pairs, side in ((above - below, "child"), (below - above, "parent")):
        if pairs:
            shown = named(f"{parent} -> {child}" for parent, child in sorted(pairs))
            result.append(f"{len(pairs)} edges are told by the {side} alone, and taken: {shown}")
    return result


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
    rows = [_row_of_job(job, place, problems) for place, job in enumerate(jobs)]
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


def _row_of_job(job: Element, place: int, problems: list[str]) -> dict[str, Any]:
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


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Tasks and edges of a file as tables, and what was odd."""

    tasks: pl.DataFrame
    edges: pl.DataFrame
    findings: tuple[str, ...] = ()


def parts(
    tasks: Sequence[Mapping[str, Any]],
    edges: Iterable[tuple[str, str]],
    findings: Iterable[str] = (),
) -> Parts:
    """Lay tasks and edges out as tables."""
    return Parts(
        tasks=pl.DataFrame(list(tasks), schema=Tasks.create_empty().schema),
        edges=pl.DataFrame(list(edges), schema=Edges.create_empty().schema, orient="row"),
        findings=tuple(findings),
    )
