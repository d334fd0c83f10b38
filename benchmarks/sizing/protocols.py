"""Traces of workflow runs, sized by our sizer and by its peers under three protocols, and what is left to gain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from benchmarks.sizing.allocation import CheapestAttempts
from benchmarks.sizing.comparison import Comparison, compare
from benchmarks.sizing.online import Method, Truth, size, size_knowing_others
from benchmarks.sizing.peers import slow
from benchmarks.sizing.store import Store
from benchmarks.sizing.trace import Order, Trace
from brokerlab.numerics import FloatArray

LADDER = "cheapest attempts"
"""Name of our sizer among the methods."""
TARGET = 0.7
"""Waste over that of the best peer of each trace that is asked for, geometric mean, at most."""
DRAWN, SUBMITTED, PUBLISHED = "drawn", "submitted", "published"
ALL = "all (geometric mean)"
"""Name of the row over all traces."""
Methods = Callable[[], Mapping[str, Method]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Protocol:
    """One way to run the comparison.

    Attributes:
        name: ``drawn`` (random orders, judged by the peak), ``submitted`` (order of submission, judged by the peak) or
            ``published`` (random orders, judged as each method was published).
        comparison: Every method on every trace.
        ratio: Geometric mean over the traces of our waste over that of the best peer of each.
        ratio_lo: Lower end of its interval; task types of every trace are drawn again.
        ratio_hi: Upper end.
        failures: Our failed attempts per order, summed over the traces.
        failures_peer: Those of the best peers.
    """

    name: str
    comparison: Comparison
    ratio: float
    ratio_lo: float
    ratio_hi: float
    failures: float
    failures_peer: float

    @property
    def ours(self) -> pl.DataFrame:
        """Our rows of the summary, one per trace, with ``best_gbh, best_failures`` of the best peer of the trace."""
        summary = self.comparison.summary
        best = summary.filter(pl.col("method") == pl.col("best_peer")).select(
            "trace", best_gbh="waste_gbh", best_failures="failures"
        )
        ours = summary.filter(method=LADDER)
        return ours.join(best, on="trace", how="left", maintain_order="left")

    @property
    def by_trace(self) -> pl.DataFrame:
        """``ours``, and a last row over all traces: ratio and failures only."""
        overall = pl.DataFrame(
            {
                "trace": [ALL],
                "ratio": [self.ratio],
                "ratio_lo": [self.ratio_lo],
                "ratio_hi": [self.ratio_hi],
                "failures": [self.failures],
                "best_failures": [self.failures_peer],
                "failures_over": [self.failures - self.failures_peer],
            }
        )
        return pl.concat([self.ours, overall], how="diagonal")

    @property
    def by_method(self) -> pl.DataFrame:
        """One row per method, the least waste first.

        ``method, ratio`` (geometric mean over the traces; null where it was not run on all of them), ``failures`` (per order,
        all traces), ``coverage, width, maq`` (means over the traces), and mean waste per order [GB h] in a column per trace.
        """
        summary = self.comparison.summary
        n_traces = summary["trace"].n_unique()
        whole = summary.group_by("method").agg(
            ratio=pl.when(pl.len() == n_traces).then(pl.col("ratio").log().mean().exp()),
            failures=pl.col("failures").sum(),
            **{name: pl.col(name).mean() for name in ("coverage", "width", "maq")},
        )
        waste = summary.pivot("trace", index="method", values="waste_gbh")
        return whole.join(waste, on="method").sort("ratio", "method", nulls_last=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class TraceStudy:
    """What traces showed.

    Attributes:
        traces: What was sized.
        peers: Methods that ours is held against.
        seeds: Of the random orders.
        protocols: By name.
        limits: One row per trace, in the order of submission, the same runs each time: ``trace, runs, usage_gbh``; waste of
            the best peer, of ours, and of ours knowing nearly all other runs: ``best_gbh, ours_gbh, knowing_gbh`` and, per use,
            ``best, ours, knowing``; ``over_knowing`` (ours / knowing; null where knowing wastes nothing).
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
        """The comparison over random orders."""
        return self.protocols[DRAWN]

    @property
    def n_runs(self) -> int:
        """Runs that arrive in one order, of all traces."""
        runs = (
            self.main.comparison.table.filter(method=LADDER)
            .group_by("trace")
            .agg(pl.col("runs").first())
        )
        return int(runs["runs"].sum())

    def meets(self, target: float = TARGET) -> bool:
        """Tell whether the ratio is at most the target, on no trace 1 or more, and without more kills than the best peer."""
        ours = self.main.ours
        behind = ours.filter((pl.col("failures_over") > 0) | (pl.col("ratio") >= 1))
        return self.main.ratio <= target and behind.is_empty()

    @property
    def by_protocol(self) -> pl.DataFrame:
        """One row per trace, and one over all.

        ``trace``; of each protocol ``NAME, NAME_lo, NAME_hi`` (ratio to the best peer), ``NAME_failures`` (ours less its).
        """
        frames = [
            each.by_trace.select(
                "trace",
                **{f"{name}{end}": f"ratio{end}" for end in ("", "_lo", "_hi")},
                **{f"{name}_failures": "failures_over"},
            )
            for name, each in self.protocols.items()
        ]
        wide = frames[0]
        for frame in frames[1:]:
            wide = wide.join(frame, on="trace", how="left", maintain_order="left")
        return wide

    @property
    def ratios(self) -> pl.DataFrame:
        """What every method wastes over the best peer of the trace, the random orders.

        One row per trace and method, ``trace, role`` (``proposed``: ours, ``peer``, ``knowing``: ours, had it known nearly all other
        runs), ``method, ratio, ratio_lo, ratio_hi`` (of ours only).
        """
        ours = pl.col("method") == LADDER
        every = self.main.comparison.summary.select(
            "trace",
            pl.when(ours).then(pl.lit("proposed")).otherwise(pl.lit("peer")).alias("role"),
            "method",
            "ratio",
            *(pl.when(ours).then(f"ratio_{end}").alias(f"ratio_{end}") for end in ("lo", "hi")),
        )
        knowing = every.filter(role="proposed").join(self.limits, on="trace", maintain_order="left")
        nothing = pl.lit(None, dtype=pl.Float64)
        knowing = knowing.select(
            "trace",
            pl.lit("knowing").alias("role"),
            "method",
            pl.col("ratio") / pl.col("over_knowing"),
            nothing.alias("ratio_lo"),
            nothing.alias("ratio_hi"),
        )
        return pl.concat([every, knowing])

    def to_dict(self) -> dict[str, Any]:
        """Return ``kills`` per order by protocol, ours and the best peers', and ``target_met``."""
        kills = {name: (each.failures, each.failures_peer) for name, each in self.protocols.items()}
        return {"kills": kills, "target_met": self.meets()}

    @property
    def left_out(self) -> pl.DataFrame:
        """Task types of all traces that are too rare or too short to be sized: see `Trace.left_out`."""
        return pl.concat([each.left_out for each in self.traces])

    @property
    def not_everywhere(self) -> list[str]:
        """Slow methods that were not run on every trace, by name."""
        comparison = self.main.comparison
        never = {*slow()} - {*comparison.summary["method"]}
        return sorted(never | {*comparison.left_out["method"]})

    @property
    def n_lost(self) -> int:
        """Task types that waste more than with the best peer of their trace."""
        return self.types.filter(pl.col("difference_gbh") > 0).height

    @property
    def heaviest(self) -> pl.DataFrame:
        """``trace, process, share``: the task type with the largest share of our waste on each trace."""
        share = (pl.col("ours_gbh") / pl.col("ours_gbh").sum().over("trace")).alias("share")
        rows = self.types.select("trace", "process", share).sort("trace", "share", "process")
        return rows.group_by("trace", maintain_order=True).last()

    def extreme_types(self, most: int = 5) -> pl.DataFrame:
        """Return the task types where ours wastes most beyond the best peer, then those where it saves most.

        Args:
            most: Of each.

        Returns:
            Rows of ``types`` with ``short`` (the process without the workflow) and ``mark``: ``worst`` for the one that loses most.
        """
        gap = pl.col("difference_gbh")
        worst, best = self.types.filter(gap > 0).head(most), self.types.filter(gap < 0).tail(most)
        first = (pl.int_range(pl.len()) == 0) & (gap > 0)
        rows = pl.concat([worst, best.reverse()])
        return rows.with_columns(
            short=pl.col("process").str.split(":").list.last(),
            mark=pl.when(first).then(pl.lit("worst")),
        )


def frames(study: TraceStudy) -> dict[str, pl.DataFrame]:
    """Return the frames behind a study by name: ``limits, all_types, traces``, and of each protocol two.

    These are ``NAME`` (the summary of `Comparison`) and ``NAME_orders`` (its table).
    """
    result = {"limits": study.limits, "all_types": study.types, "traces": study.main.by_trace}
    for name, protocol in study.protocols.items():
        result[name] = protocol.comparison.summary
        result[f"{name}_orders"] = protocol.comparison.table
    return result


def study_traces(
    traces: Sequence[Trace],
    *,
    peers: Methods,
    seeds: Sequence[int],
    store: Store | None = None,
    n_boot: int = 2000,
    seed: int = 0,
) -> TraceStudy:
    """Size the runs of all traces by all methods, under the three protocols.

    Args:
        traces: At least one; names differ.
        peers: Returns the methods that ours is held against; called anew for every trace and order.
        seeds: Of the random orders.
        store: Where results of slow methods are kept; None: all are run.
        n_boot: Replicates of the bootstrap over task types.
        seed: Of the bootstrap.

    Source: sizing.md, sections 2, 3 and 5.
    """
    names = tuple(peers())  # of those that are kept only, some may be missing on a trace
    runs: tuple[tuple[str, Sequence[Order], Truth | None], ...] = (
        (DRAWN, tuple(seeds), "peak_rss"),
        (SUBMITTED, ("submit",), "peak_rss"),
        (PUBLISHED, tuple(seeds), None),
    )

    def methods() -> dict[str, Method]:
        return {**peers(), LADDER: Method(CheapestAttempts)}

    protocols = {}
    for name, orders, truth in runs:
        comparison = compare(
            traces,
            methods,
            peers=names,
            orders=orders,
            truth=truth,
            store=store,
            n_boot=n_boot,
            seed=seed,
        )
        protocols[name] = _protocol(name, comparison, n_boot, seed)
    return TraceStudy(
        traces=tuple(traces),
        peers=names,
        seeds=tuple(seeds),
        protocols=protocols,
        limits=_limits(traces, protocols[SUBMITTED], seed),
        types=_types(protocols[DRAWN]),
    )


def _protocol(name: str, comparison: Comparison, n_boot: int, seed: int) -> Protocol:
    best = comparison.summary.filter(pl.col("method") == pl.col("best_peer"))
    peers = dict(best.select("trace", "method").rows())
    lo, hi = np.nanquantile(_draw_ratios(comparison, peers, n_boot, seed), [0.025, 0.975])
    return Protocol(
        name=name,
        comparison=comparison,
        ratio=comparison.ratio(LADDER),
        ratio_lo=float(lo),
        ratio_hi=float(hi),
        failures=float(comparison.summary.filter(method=LADDER)["failures"].sum()),
        failures_peer=float(best["failures"].sum()),
    )


def _draw_ratios(
    comparison: Comparison, best: Mapping[str, str], n_boot: int, seed: int
) -> FloatArray:
    """Return the geometric mean of the ratios with the task types of every trace drawn again."""
    rng = np.random.default_rng(seed)
    logs = np.zeros(n_boot)
    for trace, peer in best.items():
        mine = pl.col("method").is_in([LADDER, peer])
        types = comparison.types.filter(pl.col("trace") == trace, mine)
        sums = types.group_by("process", "method").agg(pl.col("waste_gbh").sum())
        wide = sums.pivot("method", index="process", values="waste_gbh").sort("process")
        n = wide.height
        waste = wide.select(LADDER, peer).to_numpy()
        drawn = rng.multinomial(n, np.full(n, 1 / n), size=n_boot) @ waste
        with np.errstate(divide="ignore", invalid="ignore"):
            logs += np.log(drawn[:, 0] / drawn[:, 1])
    ratios: FloatArray = np.exp(logs / len(best))
    return ratios


def _limits(traces: Sequence[Trace], submitted: Protocol, seed: int) -> pl.DataFrame:
    """Hold what ours wastes against what it would, had it known nearly all other runs."""
    ours = Method(CheapestAttempts)
    best = dict(submitted.ours.select("trace", "best_gbh").rows())
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
                "best_gbh": best[trace.name],
                "ours_gbh": learnt["waste_gbh"].sum(),
                "knowing_gbh": same["waste_gbh"].sum(),
            }
        )
    per_use = (
        (pl.col(f"{name}_gbh") / pl.col("usage_gbh")).alias(name)
        for name in ("best", "ours", "knowing")
    )
    over = pl.when(pl.col("knowing_gbh") > 0).then(pl.col("ours_gbh") / pl.col("knowing_gbh"))
    return pl.DataFrame(rows).with_columns(*per_use, over_knowing=over)


def _types(drawn: Protocol) -> pl.DataFrame:
    """Return where ours wastes more than the best peer of the trace, task type by task type."""
    best = drawn.comparison.summary.filter(method=LADDER).select("trace", "best_peer")
    types = drawn.comparison.types.join(best, on="trace")
    key = ["trace", "process"]
    mean = {"runs": pl.col("runs").mean(), "waste_gbh": pl.col("waste_gbh").mean()}
    ours = types.filter(method=LADDER).group_by(key).agg(**mean)
    peer = types.filter(pl.col("method") == pl.col("best_peer")).group_by(key).agg(**mean)
    return (
        ours.rename({"waste_gbh": "ours_gbh"})
        .join(peer.select(*key, best_gbh="waste_gbh"), on=key)
        .with_columns(difference_gbh=pl.col("ours_gbh") - pl.col("best_gbh"))
        .sort("difference_gbh", *key, descending=[True, False, False])
    )
