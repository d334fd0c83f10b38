"""Usage of global shares against their targets.

Source: docs/rules/classes.md 7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum  # the same in any order of the shares
from typing import Any

import dataframely as dy
import polars as pl

from brokerlab.errors import DataError, nearest
from brokerlab.frames import prepared
from brokerlab.results import Result, Shows

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


CONTRACTS: dict[str, type[dy.Schema]] = {"shares": Shares, "share_job_stats": ShareJobStats}
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
        next=("lifecycle.class_history.shares_over_time(period)",),
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
    tables = prepared({"shares": shares, "share_job_stats": share_job_stats}, CONTRACTS)
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
