"""What users and shares occupy: slots by class of queue and what quotas leave, usage of shares against their targets.

Source: docs/rules/classes.md 1.3, 4 and 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import dataframely as dy
import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.engines import INT, collect, lazy_of
from brokerlab.errors import DataError, SchemaError, nearest
from brokerlab.frames import prepared
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle import states
from brokerlab.lifecycle.classification.instants import (
    At,
    Instants,
    levels,
    placed,
    quotient,
    with_places,
)
from brokerlab.lifecycle.classification.rules import ClassRules, class_settings
from brokerlab.lifecycle.classification.site_classes import GRID, HI, LO, MID
from brokerlab.lifecycle.classification.wait_stats import MERGE, PROBE_USER, USER
from brokerlab.results import Result, Shows

SHARES = ("User Analysis", "Express Analysis")  # shares whose slots are held against a user
TOTAL = "_total"  # stands for all users
COUNTS = ("nqueue", "nrunning", "slotsqueue", "slotsrunning")
CLASSES = {"hi": HI, "mid": MID, "lo": LO}


class UserSlots(dy.Schema):
    """Jobs and slots of users by queue: what :func:`brokerlab.lifecycle.classification.user_slots` returns."""

    snapshot = dy.Int64(nullable=True)
    at = dy.Datetime(nullable=True, time_unit="us")
    computingsite = dy.String(nullable=False)
    gshare = dy.String(nullable=True)
    produsername = dy.String(nullable=True)
    nqueue = dy.Int64(nullable=True)
    nrunning = dy.Int64(nullable=True)
    slotsqueue = dy.Int64(nullable=True)
    slotsrunning = dy.Int64(nullable=True)


class Classes(dy.Schema):
    """Classes of queues: what :func:`brokerlab.lifecycle.classification.site_classes` returns."""

    snapshot = dy.Int64(nullable=True)
    computingsite = dy.String(nullable=False)
    resource_type = dy.String(nullable=True)
    class_ = dy.Int64(nullable=True, alias="class")


@dataclass(frozen=True, repr=False)
class UserUsage(Result):
    """What users occupy.

    Attributes:
        users: One row per snapshot and user (``_total`` is all of them), sorted: ``snapshot, produsername``, for each
            of hi, mid, lo ``nqueue_hi, nrunning_hi`` (jobs), ``slotsqueue_hi, slots_hi`` (slots, ``slots_`` are the
            running ones); ``threshold_a, threshold_b, rem_slots_a, rem_slots_b`` (slots), ``rem_slot_ratio_a,
            rem_slot_ratio_b`` (null where the threshold is 0).
        rules: Name and digest of the rule set.
        config_digest: Digest of the configuration.
    """

    shows = Shows(
        about="slots of users by class of queue, one row per snapshot and user",
        columns="snapshot, produsername, slots_hi, slots_mid, slots_lo, rem_slots_a, rem_slots_b",
        keys=("snapshot", "produsername"),
        next=("lifecycle.classification.task_classes(states, progress, result.users)",),
    )

    users: pl.DataFrame
    rules: str
    config_digest: str


def user_usage(
    user_slots: Any,
    classes: Any,
    *,
    config: Config | None = None,
    rules: ClassRules | str | None = None,
) -> UserUsage:
    """Sum the slots of every user by class of queue, and say what the thresholds leave.

    Only queues of type GRID that have a class count, in the shares User Analysis and Express Analysis.

    ``user_slots``: ``computingsite, gshare, produsername, nqueue, nrunning, slotsqueue, slotsrunning``, perhaps ``snapshot, at``; null
    counts as 0, a user that is null as a user. ``classes``: ``computingsite, resource_type, class``, perhaps ``snapshot``:
    `SiteClasses.classes`. Columns of another type are a SchemaError, a threshold with a history for slots without ``at`` a ConfigError.

    Source: docs/rules/classes.md 4; keys USER_USAGE_THRESHOLD_A, USER_USAGE_THRESHOLD_B; switch default_threshold_b.
    """
    rules = ClassRules.of(rules)
    config = Config.empty() if config is None else config
    present = lazy_of(classes, "classes").collect_schema()
    if lacking := [name for name in ("resource_type", "class") if name not in present]:
        raise SchemaError(
            f"classes: column missing: {', '.join(lacking)}; give those of site_classes"
        )
    tables = prepared(
        {"user_slots": user_slots, "classes": classes},
        {"user_slots": UserSlots, "classes": Classes},
    )
    slots, rated = tables["user_slots"], tables["classes"]
    slots = slots.with_columns(pl.col("snapshot").fill_null(0), pl.col(COUNTS).fill_null(0))
    keys = ["computingsite"] if rated["snapshot"].null_count() else ["snapshot", "computingsite"]
    rated = rated.filter((pl.col("resource_type") == GRID) & pl.col("class").is_not_null())
    counted = slots.filter(pl.col("gshare").is_in(SHARES)).join(
        rated.select(*keys, "class"), on=keys
    )
    everyone = counted.with_columns(produsername=pl.lit(TOTAL))
    sums = _by_class(pl.concat([counted, everyone]))
    times = slots.group_by("snapshot").agg(pl.col("at").max())
    known = times.select(pl.all() if times["at"].null_count() == 0 else "snapshot")
    settings = class_settings(config, rules, known)
    users = _remaining(sums.join(settings, on="snapshot", how="left", maintain_order="left"))
    return UserUsage(users, rules.digest, config.digest)


def _by_class(rows: pl.DataFrame) -> pl.DataFrame:
    """Sum every count by user and class, the classes side by side."""
    sums = [
        pl.when(pl.col("class") == number).then(count).otherwise(0).sum().alias(f"{short}_{name}")
        for name, number in CLASSES.items()
        for count, short in zip(COUNTS, (*COUNTS[:3], "slots"), strict=True)
    ]
    return rows.group_by("snapshot", "produsername").agg(sums).sort("snapshot", "produsername")


def _remaining(users: pl.DataFrame) -> pl.DataFrame:
    """Return what the thresholds leave, and as a part of them."""
    used = {"a": pl.col("slots_hi"), "b": pl.col("slots_hi") + pl.col("slots_mid")}
    left = {
        f"rem_slots_{name}": pl.max_horizontal(pl.col(f"threshold_{name}") - slots, pl.lit(0.0))
        for name, slots in used.items()
    }
    rows = users.with_columns(**left)
    ratio = {
        f"rem_slot_ratio_{name}": quotient(rows[f"rem_slots_{name}"], rows[f"threshold_{name}"])
        for name in used
    }
    read = ["progress_a", "progress_b", "max_rem_jobs_a", "max_rem_jobs_b"]
    return rows.with_columns(**ratio).drop(read)


KEYS = ("computingsite", "gshare", "produsername")
QUEUED = ("defined", "assigned", "activated", "starting")
"""Statuses that count as queued; a job in ``sent`` or ``holding`` counts as neither queued nor running."""
STATUSES = (*QUEUED, "running")


def user_slots(
    jobs: Any, *, status_log: Any | None = None, at: At, totals: bool = False
) -> pl.DataFrame:
    """Count the active jobs of users, without merge jobs and probes.

    One row per instant, queue, share and user with an active job, sorted: ``snapshot, at, computingsite, gshare,
    produsername``, ``n`` (jobs) and ``slots`` of ``defined, assigned, activated, starting, running``, ``nqueue``
    and ``slotsqueue`` (sum of the first four).

    ``jobs`` of any engine: ``computingsite, prodsourcelabel, gshare, processingtype, produsername, jobstatus, corecount`` (null
    counts as 0), perhaps times: without any, the statuses hold at every instant. ``status_log``: ``pandaid, jobstatus,
    modificationtime`` of the same engine; None: the jobs' own times. ``totals`` adds the sum over users as user ``_total``.

    Source: docs/rules/classes.md 1.3.
    """
    instants = Instants.of(at)
    table, log = states.read(jobs, status_log)
    chosen = table.filter(
        (nw.col("prodsourcelabel") == USER)
        & (nw.coalesce("processingtype", nw.lit("")) != MERGE)
        & (nw.coalesce("produsername", nw.lit("")) != PROBE_USER)
        & ~nw.col("computingsite").is_null()
    )
    rows = _sum_jobs(chosen, log, instants, KEYS, "corecount", "slots")
    split = [
        pl.when(pl.col("status") == status).then(kind).otherwise(0).alias(f"{kind}{status}")
        for status in STATUSES
        for kind in ("n", "slots")
    ]
    changes = rows.select(*KEYS, *split, "enter", "leave")
    if totals:
        everyone = changes.with_columns(produsername=pl.lit(TOTAL))
        changes = pl.concat([changes, everyone])
    measures = [f"{kind}{status}" for status in STATUSES for kind in ("n", "slots")]
    result = levels(changes, KEYS, measures, instants)
    return result.with_columns(
        nqueue=pl.sum_horizontal(f"n{status}" for status in QUEUED),
        slotsqueue=pl.sum_horizontal(f"slots{status}" for status in QUEUED),
    )


def share_job_stats(jobs: Any, *, status_log: Any | None = None, at: At) -> pl.DataFrame:
    """Sum the HS06 of the active jobs of each share.

    One row per instant, share and status with an active job, sorted: ``snapshot, at, gshare, jobstatus, njobs``
    (jobs), ``hs`` [HS06].

    ``jobs`` of any engine: ``gshare, jobstatus, hs06`` [HS06] (null counts as 0), times; ``status_log`` as for `user_slots`.

    Source: docs/rules/classes.md 7.
    """
    instants = Instants.of(at)
    table, log = states.read(jobs, status_log)
    rows = _sum_jobs(table, log, instants, ("gshare",), "hs06", "hs")
    result = levels(rows, ("gshare", "status"), ("n", "hs"), instants)
    return result.rename({"status": "jobstatus", "n": "njobs"}).with_columns(
        pl.col("hs").cast(pl.Float64)
    )


def _sum_jobs(
    jobs: nw.LazyFrame[Any],
    log: nw.LazyFrame[Any] | None,
    instants: Instants,
    keys: Sequence[str],
    column: str,
    name: str,
) -> pl.DataFrame:
    """Sum jobs and a column in the engine by key, status, and the instants of entering and leaving it."""
    numbers: dict[str, Any] = dict.fromkeys(["enter", "leave", "n", name], pl.Int64)
    if not len(instants):
        return pl.DataFrame(schema={**dict.fromkeys([*keys, "status"], pl.String), **numbers})
    during = states.status_spans(jobs, log, [*keys, column])
    summed = (
        placed(during, instants)
        .with_columns(size=nw.coalesce(nw.col(column).cast(INT), nw.lit(0)))
        .group_by(*keys, "status", "enter", "leave")
        .agg(nw.len().alias("n"), nw.col("size").sum().alias(name))
    )
    whole = [pl.col(column).cast(dtype) for column, dtype in numbers.items()]
    return with_places(collect(summed).with_columns(whole), instants)


RUNNING = ("sent", "running")
QUEUING = ("activated",)
LARGEST = 999_999.0  # usage against a target that is not there
UNKNOWN_RATIO = 1e6  # siblings without target come last
IDLE_USAGE = 0.85  # A share below this part of its target may be idle
TOP = "L1 "  # prefix of the rows that sum up the leaves of a top-level share


class Shares(dy.Schema):
    """Nodes of the tree of shares, in the order of their definition."""

    name = dy.String(nullable=False)
    value = dy.Float64(nullable=False)
    parent = dy.String(nullable=True)


class ShareJobStats(dy.Schema):
    """HS06 of the jobs of each leaf by status."""

    snapshot = dy.Int64(nullable=True)
    gshare = dy.String(nullable=True)
    jobstatus = dy.String(nullable=True)
    hs = dy.Float64(nullable=True)


_NUMBERS = (
    "queuing_hs",
    "running_hs",
    "target_hs",
    "usage_perc",
    "queue_perc",
    "norm_usage_perc",
    "norm_queue_perc",
    "norm_target_perc",
    "proj_target_hs",
    "eqiv_target_hs",
    "eqiv_usage_perc",
)


@dataclass(frozen=True, repr=False)
class ShareUsage(Result):
    """Usage of shares.

    Attributes:
        usage: One row per snapshot and leaf, and one ``L1 NAME`` per top-level share, sorted: ``snapshot, gshare,
            rank`` (from 1; -1 for L1 rows), ``queuing_hs, running_hs, target_hs`` [HS06], ``usage_perc, queue_perc``
            (parts of the target), ``norm_usage_perc, norm_queue_perc, norm_target_perc`` (parts of all targets),
            ``proj_target_hs, eqiv_target_hs`` [HS06], ``eqiv_usage_perc`` (0 for leaves; null for an L1 row whose
            equivalent target is 0).
    """

    shows = Shows(
        about="usage of shares against their targets, one row per snapshot and share",
        next=("lifecycle.class_history.tasks.shares_over_time(period)",),
    )

    usage: pl.DataFrame

    def ranked_leaves(self) -> pl.DataFrame:
        """Return the leaves by snapshot and rank, the one to be served next first."""
        return self.usage.filter(pl.col("rank") > 0).sort("snapshot", "rank")


def share_usage(shares: Any, share_job_stats: Any) -> ShareUsage:
    """Hold what runs in every leaf share against its part of all that runs.

    ``shares``: ``name, value`` (relative to the siblings), ``parent`` (null: top level), in the order of definition.
    ``share_job_stats``: ``gshare, jobstatus, hs`` [HS06], perhaps ``snapshot`` (absent: one instant); what runs in a share that is no
    leaf raises the targets of all leaves. Shares that are no tree (a name twice, an unknown parent, their own ancestors) are a
    DataError, columns that are missing or of another type a SchemaError.

    Source: docs/rules/classes.md 7.
    """
    tables = prepared(
        {"shares": shares, "share_job_stats": share_job_stats},
        {"shares": Shares, "share_job_stats": ShareJobStats},
    )
    tree = Tree.of(tables["shares"])
    stats = tables["share_job_stats"].with_columns(pl.col("snapshot").fill_null(0))
    running, queuing = _sums(stats, RUNNING), _sums(stats, QUEUING)
    rows: list[dict[str, Any]] = []
    for snapshot in stats["snapshot"].unique().sort().to_list() or [0]:
        now, later = running.get(snapshot, {}), queuing.get(snapshot, {})
        rows += [{"snapshot": snapshot, **row} for row in _usage(tree, now, later)]
    schema = {"snapshot": pl.Int64, "gshare": pl.String, "rank": pl.Int64}
    frame = pl.DataFrame(rows, schema=schema | dict.fromkeys(_NUMBERS, pl.Float64))
    return ShareUsage(frame.sort("snapshot", "gshare"))


def _sums(stats: pl.DataFrame, statuses: tuple[str, ...]) -> dict[int, dict[str | None, float]]:
    """Add up HS06 by snapshot and share, in an order that does not depend on that of the rows."""
    rows = stats.filter(pl.col("jobstatus").is_in(statuses)).sort("snapshot", "gshare", "hs")
    sums: dict[int, dict[str | None, float]] = {}
    for snapshot, share, hs in rows.select("snapshot", "gshare", "hs").iter_rows():
        now = sums.setdefault(snapshot, {})
        now[share] = now.get(share, 0.0) + (hs or 0.0)
    return sums


@dataclass(frozen=True)
class Tree:
    """The tree of shares."""

    # children of each share in order of definition; those of null are the top level
    children: dict[str | None, list[str]]
    value: dict[str, float]  # part of each share of everything [%]
    leaves: list[str]  # shares without children, depth first

    @classmethod
    def of(cls, shares: pl.DataFrame) -> Tree:
        """Normalise the values: children add up to their parent, the top level to 100."""
        parents = dict(shares.select("name", "parent").iter_rows())
        names = shares["name"]
        problems = [
            f"{name!r} comes twice" for name in sorted(names.filter(names.is_duplicated()).unique())
        ]
        problems += [
            f"parent {parent!r} of {name!r} is unknown: {nearest(parent, parents)}"
            for name, parent in parents.items()
            if parent is not None and parent not in parents
        ]
        children: dict[str | None, list[str]] = {}
        for name, parent in parents.items():
            children.setdefault(parent, []).append(name)
        given = dict(shares.select("name", "value").iter_rows())
        value: dict[str, float] = {}
        tree = cls(children, value, [])
        for parent, part in tree._walk(None, 100.0):
            siblings = children.get(parent, [])
            total = fsum(given[name] for name in siblings)
            value |= {name: given[name] * (part / total) if total else 0.0 for name in siblings}
            if parent is not None and not siblings:
                tree.leaves.append(parent)
        lost = sorted(parents.keys() - value.keys())
        if lost and not problems:
            problems.append(f"shares are their own ancestors: {', '.join(lost)}")
        if problems:
            raise DataError(f"shares: {'; '.join(problems)}")
        return tree

    def _walk(self, name: str | None, part: float) -> Iterator[tuple[str | None, float]]:
        """Go through the tree depth first, each share after its value is known."""
        yield name, part
        for child in self.children.get(name, []):
            yield from self._walk(child, self.value[child])

    def below(self, name: str) -> list[str]:
        """Return the leaves under a share; a leaf is its own."""
        children = self.children.get(name, [])
        return [leaf for child in children for leaf in self.below(child)] if children else [name]

    def ranked(self, ratio: dict[str, float], name: str | None = None) -> list[str]:
        """Return the leaves under a share, siblings by ratio at every level, ties in order of definition."""
        result: list[str] = []
        for child in sorted(self.children.get(name, []), key=ratio.__getitem__):
            result += self.ranked(ratio, child) if child in self.children else [child]
        return result


def _usage(
    tree: Tree, all_running: dict[str | None, float], all_queuing: dict[str | None, float]
) -> list[dict[str, Any]]:
    """Return the rows of one snapshot."""
    # what runs under a name that is no leaf has no target, but everything that runs is shared out
    total = fsum(all_running.values())
    running, queuing = (
        {leaf: hs.get(leaf, 0.0) for leaf in tree.leaves} for hs in (all_running, all_queuing)
    )
    target = {leaf: total * tree.value[leaf] / 100.0 for leaf in tree.leaves}
    ratio = {}
    for name in tree.value:
        leaves = tree.below(name)
        now, wanted = (fsum(hs[leaf] for leaf in leaves) for hs in (running, target))
        ratio[name] = now / wanted if wanted else UNKNOWN_RATIO
    rank = {leaf: place for place, leaf in enumerate(tree.ranked(ratio), start=1)}
    targets = fsum(target[leaf] for leaf in tree.leaves)
    rows = [
        {"gshare": leaf, "rank": rank[leaf]}
        | _parts(queuing[leaf], running[leaf], target[leaf], targets)
        | {"proj_target_hs": 0.0, "eqiv_target_hs": 0.0, "eqiv_usage_perc": 0.0}
        for leaf in tree.leaves
    ]
    tops = []
    for name in tree.children.get(None, []):
        leaves = tree.below(name)
        waits, runs, wanted = (
            fsum(hs[leaf] for leaf in leaves) for hs in (queuing, running, target)
        )
        row = {"gshare": f"{TOP}{name}", "rank": -1}
        tops.append(row | _parts(waits, runs, wanted, targets))
    return rows + _equivalent(tops, targets)


def _parts(queuing: float, running: float, target: float, targets: float) -> dict[str, Any]:
    """Hold what queues and runs against the target, and all three against all targets."""
    numbers = {"usage": running, "queue": queuing}
    row = {"queuing_hs": queuing, "running_hs": running, "target_hs": target}
    row |= {f"{name}_perc": hs / target if target > 0 else LARGEST for name, hs in numbers.items()}
    numbers["target"] = target
    return row | {
        f"norm_{name}_perc": hs / targets if targets else LARGEST for name, hs in numbers.items()
    }


def _equivalent(tops: list[dict[str, Any]], targets: float) -> list[dict[str, Any]]:
    """Give what idle top-level shares leave to the others."""
    for row in tops:
        wanted = max(row["running_hs"], row["queuing_hs"] / 2)
        row["proj_target_hs"] = min(row["target_hs"], wanted)
    idle = targets - fsum(row["proj_target_hs"] for row in tops)
    rests = [
        row["usage_perc"] < IDLE_USAGE and row["proj_target_hs"] < row["target_hs"] for row in tops
    ]
    busy = fsum(row["target_hs"] for row, rest in zip(tops, rests, strict=True) if not rest)
    for row, rest in zip(tops, rests, strict=True):
        target = row["target_hs"]
        if rest:
            row |= {"eqiv_target_hs": target, "eqiv_usage_perc": row["usage_perc"]}
            continue
        target += idle * target / (1 + busy)
        part = row["running_hs"] / target if target else None
        row |= {"eqiv_target_hs": target, "eqiv_usage_perc": part}
    return tops
