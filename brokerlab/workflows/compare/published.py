"""The shapes of the published results, asked of a comparison: whichever way they come out.

Source: workflows.md 12.3; P = Zhang, Koelbel, Cooper, Cluster 2009.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.workflows.compare.comparison import Comparison
from brokerlab.workflows.compare.paired import PLACE, differences

HYBRID, SERIAL = "pilot_levels:paper", "pilot_levels:paper_serial"
INDIVIDUAL, GIANT = "one_job_per_task", "one_job"
_THREE = (HYBRID, INDIVIDUAL, GIANT)
CLOSE = 0.05  # within a few percent
LARGELY = 0.5  # A gain that loses more than this share has largely disappeared
LEAST_WAIT_S = 1.0  # shorter waits count as this long where waits are divided


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a check found: ``holds``, ``fails`` or ``not tested``, and in words why."""

    outcome: str
    found: str


UNTESTED = "not tested"
BACKFILLING = ("easy", "conservative")
"""Policies like those of the publication: all of them let small jobs pass where they delay nobody."""


def shape_checks(comparison: Comparison, *, n_boot: int = 1000, seed: int = 1) -> pl.DataFrame:
    """Ask whether a comparison has the shapes of the published results.

    The hybrid method of the publication is ``pilot_levels:paper``, its giant ``one_job``, its individual
    ``one_job_per_task``. A place is a workflow on a machine, instants are those at which all three came to an end. Machines without
    backfilling are left out where there are others: the publication has none.

    One row per check: ``check`` (S1 to S7), ``claim``, ``outcome`` (holds, fails, not tested), ``found`` in words.
    """
    absent = [name for name in _THREE if name not in comparison.plan.strategies]
    if absent:
        raise InsufficientDataError(
            f"published shapes: no run of {', '.join(absent)}; compare these strategies too"
        )
    sight = _Sight(comparison, n_boot, seed)
    if not sight.places:
        raise InsufficientDataError(
            f"published shapes: no workflow came to its end under each of {', '.join(_THREE)}"
        )
    rows = []
    for name, claim, ask in _CHECKS:
        answer = ask(sight)
        rows.append({"check": name, "claim": claim, "outcome": answer.outcome, "found": answer.found})  # fmt: skip
    return pl.DataFrame(rows, schema=dict.fromkeys(("check", "claim", "outcome", "found"), pl.String))  # fmt: skip


class _Sight:
    """What the checks look at."""

    def __init__(self, comparison: Comparison, n_boot: int, seed: int) -> None:
        self.plan = comparison.plan
        systems = comparison.plan.systems
        self.systems = [n for n, s in systems.items() if s.policy in BACKFILLING] or list(systems)
        runs = comparison.done.filter(pl.col("system").is_in(self.systems))
        three = pl.col("strategy").filter(pl.col("strategy").is_in(_THREE)).n_unique()
        key = [*PLACE, "instant"]
        whole = runs.group_by(key).agg(three).filter(strategy=len(_THREE))
        self.runs = runs.join(whole, on=key, how="semi", maintain_order="left")
        self.dice: dict[str, Any] = {"n_boot": n_boot, "seed": seed}
        self.places = self.runs.select(PLACE).unique(maintain_order=True).rows()
        grouped = self.runs.group_by(*PLACE, "strategy").agg(pl.col("wait_seen", "occupied").mean())
        self.mean = {row[:3]: row[3] for row in grouped.rows()}
        self.occupied = {row[:3]: row[4] for row in grouped.rows()}

    def wait(self, place: tuple[str, ...], strategy: str) -> float:
        """Return the mean wait seen [s]; NaN where it was not run."""
        return float(self.mean.get((*place, strategy), np.nan))

    def has(self, *strategies: str) -> bool:
        """Tell whether all of these were run."""
        return set(strategies) <= set(self.runs["strategy"].unique())

    def wide(self) -> list[tuple[str, ...]]:
        """Places whose workflow is wider than half the machine."""
        return [p for p in self.places if 2 * max(self.plan.workflows[p[1]].widths) > self.plan.systems[p[0]].hosts]  # fmt: skip

    def narrow(self) -> list[tuple[str, ...]]:
        """Places whose workflow has more levels than it is wide."""
        flows = self.plan.workflows
        return [p for p in self.places if len(flows[p[1]].levels) > max(flows[p[1]].widths)]


def _least(sight: _Sight) -> Answer:
    counts = {"least": 0, "equal": 0, "larger": 0}
    for place in sight.places:
        best = min((INDIVIDUAL, GIANT), key=lambda name: sight.wait(place, name))
        rows = sight.runs.filter(
            pl.col("system") == place[0],
            pl.col("workflow") == place[1],
            pl.col("strategy").is_in([HYBRID, best]),
        )
        gap = differences(rows, "wait_seen", reference=best, **sight.dice).row(0, named=True)
        low, high = (
            gap["diff"] if gap[name] is None else gap[name] for name in ("diff_lo", "diff_hi")
        )
        counts["least" if high < 0 else "larger" if low > 0 else "equal"] += 1
    counted = ", ".join(f"{word} at {n}" for word, n in counts.items())
    return _answer(counts["larger"] == 0, f"{counted} of {len(sight.places)} places")


def _giant_worst(sight: _Sight) -> Answer:
    return _worst(sight, sight.wide(), GIANT, "wider than half the machine")


def _individual_worst(sight: _Sight) -> Answer:
    return _worst(sight, sight.narrow(), INDIVIDUAL, "with more levels than they are wide")


def _worst(sight: _Sight, places: list[tuple[str, ...]], name: str, kind: str) -> Answer:
    if not places:
        return Answer(outcome=UNTESTED, found=f"no workflow {kind}")
    hits = sum(sight.wait(p, name) == max(sight.wait(p, s) for s in (HYBRID, INDIVIDUAL, GIANT)) for p in places)  # fmt: skip
    return _answer(hits == len(places), f"at {hits} of {len(places)} places {kind}")


def _goes_individual(sight: _Sight) -> Answer:
    places = sight.wide()
    if not places:
        return Answer(outcome=UNTESTED, found="no workflow wider than half the machine")
    waits = [(sight.wait(p, HYBRID), sight.wait(p, INDIVIDUAL)) for p in places]
    off = [abs(hybrid / max(other, LEAST_WAIT_S) - 1) for hybrid, other in waits]
    keys = pl.DataFrame(places, schema=list(PLACE), orient="row")
    shapes = sight.runs.filter(pl.col("strategy") == HYBRID).join(keys, on=list(PLACE), how="semi")
    share = float(shapes["shape"].str.contains("task by task").mean())  # type: ignore[arg-type]
    return _answer(
        max(off) <= CLOSE and share > 0.5,
        f"median distance {100 * float(np.median(off)):.0f} %, largest {100 * max(off):.0f} %; "
        f"task by task in {100 * share:.0f} % of the runs",
    )


def _occupation(sight: _Sight) -> Answer:
    used = [sum(v for k, v in sight.occupied.items() if k[2] == s) for s in (INDIVIDUAL, HYBRID, GIANT)]  # fmt: skip
    factor = used[2] / used[0] if used[0] else float("nan")
    hybrid = used[1] / used[0] if used[0] else float("nan")
    return _answer(
        used[0] < used[1] < used[2] and 2.5 <= factor <= 3.0,
        f"hybrid {hybrid:.2f} and giant {factor:.2f} times individual",
    )


def _policy_less_than_cluster(sight: _Sight) -> Answer:
    systems = sight.plan.systems
    policies: list[float] = []
    clusters: list[float] = []
    for one, other in combinations(sight.systems, 2):
        same = systems[one].cluster == systems[other].cluster
        if same == (systems[one].policy == systems[other].policy):
            continue
        (policies if same else clusters).extend(
            abs(np.log(max(a, LEAST_WAIT_S) / max(b, LEAST_WAIT_S)))
            for workflow in sight.plan.workflows
            for name in (HYBRID, INDIVIDUAL, GIANT)
            for a, b in [(sight.wait((one, workflow), name), sight.wait((other, workflow), name))]
            if np.isfinite(a) and np.isfinite(b)
        )
    if not policies or not clusters:
        return Answer(outcome=UNTESTED, found="needs two machines, and one of them under two policies")  # fmt: skip
    inside, between = (float(np.exp(np.median(result))) for result in (policies, clusters))
    return _answer(
        inside < between,
        f"median factor {inside:.2f} between policies, {between:.2f} between machines",
    )


def _better_requests(sight: _Sight) -> Answer:
    known: dict[str, list[tuple[float, float]]] = {}
    for name in sight.systems:
        system = sight.plan.systems[name]
        ratios = [
            sight.wait((name, flow), HYBRID) / max(sight.wait((name, flow), INDIVIDUAL), LEAST_WAIT_S)
            for flow in sight.plan.workflows
        ]  # fmt: skip
        ratios = [ratio for ratio in ratios if np.isfinite(ratio)]
        if ratios and system.load:
            over = system.requested_load / system.load
            known.setdefault(system.cluster or name, []).append((over, float(np.median(ratios))))
    points = sorted(tuple(np.mean(result, axis=0).tolist()) for result in known.values())
    if len(points) < 2 or points[0][0] == points[-1][0]:
        return Answer(outcome=UNTESTED, found="needs two machines whose users ask for different multiples")  # fmt: skip
    sentence = "; ".join(f"{ratio:.2f} where {over:.1f} times the run time is asked for" for over, ratio in points)  # fmt: skip
    return _answer(points[0][1] < points[-1][1], f"hybrid / individual: {sentence}")


def _overlap(sight: _Sight) -> Answer:
    if not sight.has(SERIAL):
        return Answer(outcome=UNTESTED, found=f"needs the strategy {SERIAL}")
    sums = {s: float(np.nanmean([sight.wait(p, s) for p in sight.places])) for s in (INDIVIDUAL, GIANT, HYBRID, SERIAL)}  # fmt: skip
    best = min((INDIVIDUAL, GIANT), key=lambda name: sums[name])
    rows = sight.runs.filter(pl.col("strategy").is_in([HYBRID, best]))
    gap = differences(rows, "wait_seen", reference=best, by=(), **sight.dice).row(0, named=True)
    if not (gap["diff"] < 0 and (gap["diff_hi"] is None or gap["diff_hi"] < 0)):
        return Answer(outcome=UNTESTED, found="grouping gains nothing that can be told from 0 over the better of the two")  # fmt: skip
    left = (sums[best] - sums[SERIAL]) / (sums[best] - sums[HYBRID])
    return _answer(left < 1 - LARGELY, f"{100 * left:.0f} % of the gain is left without overlap")


def _answer(holds: bool, answer: str) -> Answer:  # noqa: FBT001
    return Answer(outcome="holds" if holds else "fails", found=answer)


_CHECKS: tuple[tuple[str, str, Callable[[_Sight], Answer]], ...] = (
    ("S1", "grouping has the least mean wait, or one that cannot be told from the least", _least),
    ("S2a", "one job waits most where the workflow is wider than half the machine", _giant_worst),
    ("S2b", "one job per task waits most for long, narrow workflows", _individual_worst),
    ("S3", "for wide workflows grouping is within a few percent of one job per task, and mostly goes task by task", _goes_individual),
    ("S4", "host time: one job per task < grouping < one job, the last 2.5 to 3 times the first", _occupation),
    ("S5", "the policy changes waits less than the machine does", _policy_less_than_cluster),
    ("S6", "where users ask for less than elsewhere, grouping gains more over one job per task", _better_requests),
    ("S7", "without overlap of waiting and running most of the gain is gone", _overlap),
)  # fmt: skip
