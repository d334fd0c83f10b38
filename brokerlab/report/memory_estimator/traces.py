"""Part one: traces of workflow runs, sized by our estimator and by the methods that others deploy or published."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.estimators.sizing import (
    CheapestAttempts,
    Comparison,
    Method,
    Store,
    Trace,
    compare,
    size,
    size_knowing_others,
)
from brokerlab.estimators.sizing.online import Truth
from brokerlab.estimators.sizing.trace import Order

LADDER = "cheapest attempts"
"""What pages call our sizer."""
DRAWN, SUBMITTED, PUBLISHED = "drawn", "submitted", "published"
TARGET = 0.7
"""Geometric mean of the ratios to the best peer of each trace that is asked for, at most."""
Methods = Callable[[], Mapping[str, Method]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Protocol:
    """One way to run the comparison.

    Attributes:
        name: ``drawn`` (random orders, judged by the peak), ``submitted`` (order of submission, judged by the peak) or
            ``published`` (random orders, judged as each method was published).
        comparison: Every method on every trace.
        ratio: Geometric mean over the traces of our waste over that of the best peer of each.
        lo: Lower end of its interval; task types of every trace are drawn again.
        hi: Upper end.
        failures: Our failed attempts per order, summed over the traces.
        failures_peer: Those of the best peers.
    """

    name: str
    comparison: Comparison
    ratio: float
    lo: float
    hi: float
    failures: float
    failures_peer: float

    @property
    def ours(self) -> pl.DataFrame:
        """Our rows of the summary, one per trace."""
        return self.comparison.summary.filter(method=LADDER)

    def best(self, trace: str) -> pl.DataFrame:
        """The row of the best peer of a trace."""
        summary = self.comparison.summary
        return summary.filter(pl.col("trace") == trace, pl.col("method") == pl.col("best_peer"))


@dataclass(frozen=True, kw_only=True, eq=False)
class TraceStudy:
    """What the traces showed.

    Attributes:
        traces: What was sized.
        peers: Methods that ours is held against.
        seeds: Of the random orders.
        protocols: By name.
        limits: One row per trace: ``trace, runs, usage_gbh, best_gbh`` (best peer), ``ours_gbh``, ``knowing_gbh`` (ours,
            knowing nearly all other runs), in the order of submission, the same runs each time.
        types: One row per trace and task type of the drawn orders: ``trace, process, runs, ours_gbh, best_gbh``,
            ``difference_gbh`` per order; the worst for ours first.
    """

    traces: tuple[Trace, ...]
    peers: tuple[str, ...]
    seeds: tuple[int, ...]
    protocols: dict[str, Protocol]
    limits: pl.DataFrame
    types: pl.DataFrame

    @property
    def main(self) -> Protocol:
        """The comparison that the page speaks of first."""
        return self.protocols[DRAWN]


def study_traces(
    traces: Sequence[Trace],
    *,
    peers: Methods,
    seeds: Sequence[int],
    store: Store | None = None,
    n_boot: int = 2000,
    seed: int = 0,
) -> TraceStudy:
    """Size the runs of all traces by all methods.

    Args:
        traces: At least one; names differ.
        peers: Returns the methods that ours is held against; called anew for every trace and order.
        seeds: Of the random orders.
        store: Where results of slow methods are kept; None: all are run.
        n_boot: Replicates of the bootstrap over task types.
        seed: Of the bootstrap.

    Returns:
        What was found.

    Source: sizing-benchmark.md, sections 2, 3 and 5.
    """
    names = tuple(peers())  # of those that are kept only, some may be missing on a trace
    runs: tuple[tuple[str, Sequence[Order], Truth | None], ...] = (
        (DRAWN, tuple(seeds), "peak_rss"),
        (SUBMITTED, ("submit",), "peak_rss"),
        (PUBLISHED, tuple(seeds), None),
    )
    protocols = {}
    for name, orders, truth in runs:
        found = compare(
            traces, lambda: _all(peers), peers=names, orders=orders, truth=truth,
            store=store, n_boot=n_boot, seed=seed,
        )  # fmt: skip
        protocols[name] = _protocol(name, found, n_boot, seed)
    return TraceStudy(
        traces=tuple(traces),
        peers=names,
        seeds=tuple(seeds),
        protocols=protocols,
        limits=_limits(traces, protocols[SUBMITTED], seed),
        types=_types(protocols[DRAWN]),
    )


def _all(peers: Methods) -> dict[str, Method]:
    return {**peers(), LADDER: Method(CheapestAttempts)}


def _protocol(name: str, found: Comparison, n_boot: int, seed: int) -> Protocol:
    best = found.summary.filter(pl.col("method") == pl.col("best_peer"))
    drawn = _ratios_drawn(found, dict(best.select("trace", "method").rows()), n_boot, seed)
    lo, hi = np.nanquantile(drawn, [0.025, 0.975])
    return Protocol(
        name=name,
        comparison=found,
        ratio=found.ratio(LADDER),
        lo=float(lo),
        hi=float(hi),
        failures=float(found.summary.filter(method=LADDER)["failures"].sum()),
        failures_peer=float(best["failures"].sum()),
    )


def _ratios_drawn(
    found: Comparison, best: Mapping[str, str], n_boot: int, seed: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the geometric mean of the ratios with the task types of every trace drawn again."""
    rng = np.random.default_rng(seed)
    logs = np.zeros(n_boot)
    for trace, peer in best.items():
        types = found.types.filter(pl.col("trace") == trace, pl.col("method").is_in([LADDER, peer]))
        wide = types.group_by("process", "method").agg(pl.col("waste_gbh").sum())
        waste = wide.pivot("method", index="process", values="waste_gbh").sort("process")
        n = waste.height
        sums = rng.multinomial(n, np.full(n, 1 / n), size=n_boot) @ waste.select(LADDER, peer).to_numpy()  # fmt: skip
        with np.errstate(divide="ignore", invalid="ignore"):
            logs += np.log(sums[:, 0] / sums[:, 1])
    return np.exp(logs / len(best))


def _limits(traces: Sequence[Trace], submitted: Protocol, seed: int) -> pl.DataFrame:
    """Hold what ours wastes against what it would, had it known nearly all other runs."""
    ours = Method(CheapestAttempts)
    rows = []
    for trace in traces:
        learnt = size(trace, {LADDER: ours}, order="submit")
        knowing = size_knowing_others(trace, ours, seed=seed)
        same = knowing.join(learnt.select("process", "row"), on=["process", "row"], how="semi")
        rows.append(
            {
                "trace": trace.name,
                "runs": learnt.height,
                "usage_gbh": learnt["usage_gbh"].sum(),
                "best_gbh": submitted.best(trace.name)["waste_gbh"][0],
                "ours_gbh": learnt["waste_gbh"].sum(),
                "knowing_gbh": same["waste_gbh"].sum(),
            }
        )
    return pl.DataFrame(rows)


def _types(drawn: Protocol) -> pl.DataFrame:
    """Return where ours wastes more than the best peer of the trace, task type by task type."""
    best = drawn.comparison.summary.filter(method=LADDER).select("trace", "best_peer")
    types = drawn.comparison.types.join(best, on="trace")
    mean = {"runs": pl.col("runs").mean(), "waste_gbh": pl.col("waste_gbh").mean()}
    key = ["trace", "process"]
    ours = types.filter(method=LADDER).group_by(key).agg(**mean)
    peer = types.filter(pl.col("method") == pl.col("best_peer")).group_by(key).agg(**mean)
    return (
        ours.rename({"waste_gbh": "ours_gbh"})
        .join(peer.select(*key, best_gbh="waste_gbh"), on=key)
        .with_columns(difference_gbh=pl.col("ours_gbh") - pl.col("best_gbh"))
        .sort("difference_gbh", *key, descending=[True, False, False])
    )
