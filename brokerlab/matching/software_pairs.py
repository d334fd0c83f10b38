"""Software and hardware matching for many tasks and queues: every distinct pair is decided once."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from brokerlab.frames import chosen
from brokerlab.matching.architecture import Request, parse_architecture
from brokerlab.matching.description import ANY, Description, DescriptionError, read_description
from brokerlab.matching.hardware import GpuNode
from brokerlab.matching.notes import warn
from brokerlab.matching.patterns import PatternError, compile_pattern
from brokerlab.matching.rules import MatchingRules
from brokerlab.matching.software import (
    ANY_QUEUE,
    ATLAS,
    CVMFS_ROOT,
    NIGHTLIES,
    OF_QUEUE,
    Examined,
    Match,
    Release,
    SoftwareQueue,
    SoftwareTask,
    examine,
    is_regexp,
    match_software,
    preference,
)
from brokerlab.numerics import FloatArray

REQUEST_COLUMNS = ("architecture", "transhome", "container_name", "onlytagsforfc")
ANALYSIS_COLUMNS = ("architecture", "transhome", "container_name", "transuses")
ALL_TAGS = "ALL"
DOCUMENT = MatchingRules()

_GPU_COLUMNS = ("vendor", "model", "vram", "architecture", "framework_version", "driver_version")


@dataclass(frozen=True)
class _Queues:
    """Queues by name, what the distinct ones of them offer, and their levels of the CPU architecture, which few ask for."""

    names: list[str]
    codes: np.ndarray[Any, np.dtype[np.int64]]
    offers: list[SoftwareQueue]
    levels: dict[str, dict[str, float]]
    all_tags: Description | None
    problems: list[str]


def software_pairs(
    requests: pl.DataFrame,
    queues: pl.DataFrame,
    sw_tags: pl.DataFrame,
    worker_node_gpu: pl.DataFrame | None = None,
    worker_node_cpu_level: pl.DataFrame | None = None,
    *,
    rules: MatchingRules = DOCUMENT,
    analysis: bool = False,
) -> pl.DataFrame:
    """Decide for every distinct request and every queue whether the queue can provide its software and hardware.

    The four request columns, ``panda_queue``, ``accept`` (bool), ``reason`` (why rejected, one of
    :data:`brokerlab.matching.software.REASONS`; null where accepted), ``platform`` (what a regexp platform stands
    for there, or null), ``preference_weight`` (f64, 1 to 2); one row per distinct request and distinct queue,
    in the order of their first appearance. Join with ``nulls_equal=True``. Warns of what cannot be read.
    Columns that are missing are a SchemaError.

    ``requests``: ``architecture, transhome, container_name, onlytagsforfc`` of tasks, repeated or not; of users' tasks
    (``analysis``, read as docs/rules/matching.md 9 says) ``transuses`` in the place of the last. ``queues``: ``panda_queue`` (parents for
    pseudo-queues), ``releases`` (list of texts, or such a list as JSON). ``sw_tags``: ``panda_queue, data`` (JSON object as text);
    the queue ``ALL`` holds every tag of the grid. ``worker_node_gpu``: ``panda_queue, vendor, model, vram`` [MB], ``architecture,
    framework_version, driver_version``; None: unknown, attributes of GPUs are not asked for. ``worker_node_cpu_level``:
    ``panda_queue, cpu_architecture_level, pct_within_queue`` [%]; None: no monitoring.

    Source: docs/rules/matching.md.
    """
    columns, task_of = (ANALYSIS_COLUMNS, analysis_task) if analysis else (REQUEST_COLUMNS, _task)
    kinds = chosen("requests", requests, columns).unique(maintain_order=True)
    offered = _offers(queues, sw_tags, worker_node_gpu, worker_node_cpu_level)
    asked: dict[SoftwareTask, int] = {}
    task_codes = [asked.setdefault(task_of(*row), len(asked)) for row in kinds.iter_rows()]
    matches = [_at_offer(list(asked), offer, offered.all_tags, rules) for offer in offered.offers]
    first_names = dict(zip(reversed(offered.codes.tolist()), reversed(offered.names), strict=True))
    result = [
        _problem(match.problem, first_names[number])
        for number, row in enumerate(matches)
        for match in row
        if match.problem is not None
    ]
    problems = [
        *offered.problems,
        *_transhomes(kinds, analysis),
        *_platforms(asked, rules),
        *result,
    ]
    warn("software matching", problems)
    n, m = kinds.height, len(offered.names)
    pairs = kinds[np.repeat(np.arange(n), m)].with_columns(
        panda_queue=pl.Series(offered.names * n, dtype=pl.String)
    )
    codes = np.add.outer(np.array(task_codes, np.int64), offered.codes * len(asked))
    decisions = _decisions(matches)[codes.ravel()]
    preferred = _preferred(list(asked), offered)[task_codes].ravel()
    weight = pl.when("accept").then(pl.Series(preferred)).otherwise(1.0)
    return pairs.hstack(decisions).with_columns(preference_weight=weight)


def platform_pairs(
    requests: pl.DataFrame, queues: pl.DataFrame, sw_tags: pl.DataFrame, *, rules: MatchingRules
) -> pl.DataFrame:
    """Decide for every distinct architecture and every queue whether the queue publishes its platform.

    ``architecture, panda_queue, accept``: an AUTO queue with the platform among its ``cmtconfigs``, or
    with images for any. An architecture without platform is nowhere.

    Source: docs/rules/matching.md 6.
    """
    offered = _offers(queues, sw_tags, None, None)
    schema = {"architecture": pl.String, "panda_queue": pl.String, "accept": pl.Boolean}
    rows = [
        (architecture, name, _publishes(architecture, offered.offers[code], rules))
        for architecture in requests["architecture"].unique(maintain_order=True)
        for name, code in zip(offered.names, offered.codes, strict=True)
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _publishes(architecture: str | None, offer: SoftwareQueue, rules: MatchingRules) -> bool:
    """Tell whether a queue has the platform of an architecture."""
    platform = parse_architecture(architecture).sw_platform
    if not platform:
        return False
    if offer.releases == ANY_QUEUE:
        return False
    request = Request(sw_platform=platform)
    examined = examine(request, offer, rules=rules)
    if examined.reason is not None or offer.description is None:
        return False
    containers = offer.description.containers or ()
    if ANY in containers or CVMFS_ROOT in containers:
        return True
    return examined.compared in offer.description.cmtconfigs


def _at_offer(
    tasks: Sequence[SoftwareTask],
    offer: SoftwareQueue,
    all_tags: Description | None,
    rules: MatchingRules,
) -> list[Match]:
    """Decide all tasks for queues that offer the same, looking at each architecture once."""
    known: dict[int, Examined] = {}
    matches = []
    for task in tasks:
        examined = known.get(id(task.request))
        if examined is None:
            examined = known[id(task.request)] = examine(task.request, offer, rules=rules)
        matches.append(match_software(task, offer, all_tags, rules=rules, examined=examined))
    return matches


def _task(
    architecture: str | None,
    transhome: str | None,
    container_name: str | None,
    onlytagsforfc: bool | None,  # noqa: FBT001 - a row of the table
) -> SoftwareTask:
    """Return what a row of the requests asks for."""
    request = parse_architecture(architecture)
    return SoftwareTask.of(request, transhome, container_name, only_tags=onlytagsforfc)


def _decisions(matches: list[list[Match]]) -> pl.DataFrame:
    """Return the matches as a frame, one row each: ``accept, reason, platform``."""
    flat = [match for row in matches for match in row]
    return pl.DataFrame(
        {
            "accept": [match.accept for match in flat],
            "reason": [match.reason for match in flat],
            "platform": [match.platform for match in flat],
        },
        schema={"accept": pl.Boolean, "reason": pl.String, "platform": pl.String},
    )


def _preferred(tasks: Sequence[SoftwareTask], offered: _Queues) -> FloatArray:
    """Return the factor of the brokerage weight of each task at each queue, if it is accepted there (6.4)."""
    any_level = [offered.offers[code].releases == ANY_QUEUE for code in offered.codes]
    result: dict[str | None, list[float]] = {}
    for level in {task.request.preferred_level for task in tasks}:
        result[level] = [
            1.0 if is_any else preference(level, offered.levels.get(name, {}))
            for name, is_any in zip(offered.names, any_level, strict=True)
        ]
    rows = [result[task.request.preferred_level] for task in tasks]
    return np.array(rows, dtype=np.float64).reshape(len(tasks), len(offered.names))


def _problem(problem: str, queue: str) -> str:
    """Return what could not be read, with the queue where it is the queue's."""
    return problem.replace(OF_QUEUE, f"{OF_QUEUE} of {queue}", 1)


def _platforms(tasks: Iterable[SoftwareTask], rules: MatchingRules) -> list[str]:
    """Return the regexp platforms that cannot be read, and so stand for nothing at any queue."""
    result = []
    for platform in dict.fromkeys(task.request.sw_platform for task in tasks):
        if platform is not None and is_regexp(platform, by_characters=rules.regexp_by_characters):
            try:
                compile_pattern(platform)
            except PatternError as error:
                result.append(f"architecture: {error}")
    return result


def _transhomes(requests: pl.DataFrame, analysis: bool) -> list[str]:  # noqa: FBT001 - see software_pairs
    """Return the releases that the real system would stop at: no ``-`` to part project and release."""
    if analysis:
        unnamed = (row for row in requests.iter_rows() if analysis_task(*row).unnamed)
        return [f"transhome {row[1]!r}: names no project and release" for row in unnamed]
    texts = requests["transhome"].drop_nulls().unique(maintain_order=True).to_list()
    return [
        f"transhome {text!r}: no - between project and release, no tag can match"
        for text in texts
        if "-" not in text
    ]


def _offers(
    queues: pl.DataFrame,
    sw_tags: pl.DataFrame,
    worker_node_gpu: pl.DataFrame | None,
    worker_node_cpu_level: pl.DataFrame | None,
) -> _Queues:
    """Return what each queue offers; queues that offer the same share one offer."""
    rows = chosen("queues", queues, ("panda_queue", "releases")).unique(
        "panda_queue", keep="first", maintain_order=True
    )
    described = chosen("sw_tags", sw_tags, ("panda_queue", "data")).unique(
        "panda_queue", keep="first", maintain_order=True
    )
    data = dict(described.iter_rows())
    gpus = _gpus(worker_node_gpu)
    problems: list[str] = []
    numbers: dict[Hashable, int] = {}
    offers: list[SoftwareQueue] = []
    codes = []
    for name, releases in rows.iter_rows():
        described_as = data.get(name, "") if name in data else None
        listed = _releases(name, releases, problems)
        nodes = None if gpus is None else gpus.get(name, ())
        key = (listed, name in data, described_as, nodes)
        if key not in numbers:
            numbers[key] = len(offers)
            description, invalid = _description(described_as, present=name in data)
            offers.append(SoftwareQueue(listed, description, invalid, nodes))
        if offers[numbers[key]].invalid is not None:
            problems.append(f"{OF_QUEUE} of {name}: {offers[numbers[key]].invalid}")
        codes.append(numbers[key])
    all_tags, invalid = _description(data.get(ALL_TAGS), present=ALL_TAGS in data)
    if invalid is not None:
        problems.append(f"{OF_QUEUE} of {ALL_TAGS}: {invalid}")
    names = rows["panda_queue"].to_list()
    levels = _levels(worker_node_cpu_level)
    return _Queues(names, np.array(codes, np.int64), offers, levels, all_tags, problems)


def _description(data: str | None, *, present: bool) -> tuple[Description | None, str | None]:
    """Return a published description, or why it cannot be read; neither where nothing is published."""
    if not present:
        return None, None
    try:
        return read_description(data), None
    except DescriptionError as error:
        return None, str(error)


def _releases(name: str, releases: Any, problems: list[str]) -> tuple[str | None, ...]:
    """Return a queue's releases, from a list or from a list as JSON."""
    listed = releases
    if isinstance(releases, str):
        try:
            listed = json.loads(releases)
        except (ValueError, RecursionError):
            listed = releases
    if listed is None:
        return ()
    if not isinstance(listed, Sequence | pl.Series) or isinstance(listed, str):
        problems.append(f"queues.releases of {name}: {str(releases)[:40]!r} is no list of texts")
        return ()
    return tuple(one if isinstance(one, str) else None for one in listed)


def _gpus(frame: pl.DataFrame | None) -> dict[str, tuple[GpuNode, ...]] | None:
    """Return the GPUs seen at each queue; null where nobody looked."""
    if frame is None:
        return None
    seen: dict[str, tuple[GpuNode, ...]] = {}
    columns = ("panda_queue", *_GPU_COLUMNS)
    for name, *values in (
        chosen("worker_node_gpu", frame, columns).unique().sort(columns).iter_rows()
    ):
        seen[name] = (*seen.get(name, ()), GpuNode(*values))
    return seen


def _levels(frame: pl.DataFrame | None) -> dict[str, dict[str, float]]:
    """Return the levels of the CPU architecture at each queue, with their share."""
    seen: dict[str, dict[str, float]] = {}
    if frame is not None:
        columns = ("panda_queue", "cpu_architecture_level", "pct_within_queue")
        for name, level, share in (
            chosen("worker_node_cpu_level", frame, columns).sort(columns).iter_rows()
        ):
            seen.setdefault(name, {})[level] = share or 0.0
    return seen


Mode = Literal["cache", "release", "nightly", "standalone"]

TRANSFORMS = "AnalysisTransforms"
BASE_PROJECT = "AtlasOffline"

_PREFIX = re.compile(r"^[^-]+-*")
_NIGHTLY = re.compile(r"\d{4}-\d{2}-\d{2}T\d{4}$")
_THREE_NUMBERS = re.compile(r"-\d+\.\d+\.\d+$")
_TWO_NUMBERS = re.compile(r"-\d+\.\d+$")


def release_mode(transhome: str | None, transuses: str | None) -> tuple[Mode, Release | None]:
    """Return how the release of a user task is looked for, and the release; none in mode ``standalone``, and where transhome names none.

    Source: docs/rules/matching.md 9.
    """
    home = _PREFIX.sub("", transhome or "").replace("_", "-")
    parts = home.split("-")
    numbered = _THREE_NUMBERS.search(home) is not None
    plain = transhome is not None and transhome != TRANSFORMS
    if plain and not _NIGHTLY.search(home) and not numbered:
        return "cache", _release(parts)
    based = bool(transuses) and home == ""
    if based or (numbered and (not transuses or not _TWO_NUMBERS.search(transuses))):
        if transuses:
            return "release", Release(ATLAS, BASE_PROJECT, transuses.rsplit("-", 1)[-1])
        return "release", _release(parts) if len(parts) == 2 else None
    if transhome is not None:
        return "nightly", Release(NIGHTLIES, None, None)
    return "standalone", None


def _release(parts: list[str]) -> Release | None:
    """Return project and release; none where there is no second part."""
    return Release(ATLAS, parts[0], parts[1]) if len(parts) > 1 else None


def analysis_task(
    architecture: str | None,
    transhome: str | None,
    container_name: str | None,
    transuses: str | None,
) -> SoftwareTask:
    """Return what a user task asks for."""
    mode, release = release_mode(transhome, transuses)
    return SoftwareTask(
        parse_architecture(architecture),
        release,
        container_name or "",
        analysis=True,
        unnamed=release is None and mode != "standalone",
    )
