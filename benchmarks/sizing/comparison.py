"""One table of all methods: waste, failures and coverage per trace, and the ratio to the best peer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from benchmarks.sizing.online import Method, Truth, size
from benchmarks.sizing.store import Store
from benchmarks.sizing.trace import Order, Trace
from brokerlab.errors import ConfigError, InsufficientDataError, nearest
from brokerlab.numerics import FloatArray

SEEDS = (1, 2, 3, 4, 5, 1996)


@dataclass(frozen=True)
class Comparison:
    """What every method wasted.

    Attributes:
        types: One row per (trace, order, process, method), sorted: ``runs, waste_gbh, usage_gbh,
            allocated_gbh`` (first allocations x time), ``occupied_h, failures, failed_runs``.
        table: The same summed over task types: one row per (trace, order, method), with ``coverage``
            (share of runs whose first allocation was enough), ``width`` (first allocations / usage) and
            ``maq`` (usage / (usage + waste)).
        left_out: One row per slow method without kept results: ``trace, method, orders`` (how many are
            missing); it is in none of the other frames of that trace.
        summary: One row per (trace, method), means over the orders: ``waste_gbh, waste_min, waste_max,
            failures, coverage, width, maq``, ``best_peer``, ``ratio`` (waste / that of the best peer),
            ``ratio_lo, ratio_hi`` (interval over task types, paired), ``orders_won`` (orders with less
            waste than the best peer) and ``failures_over`` (failures - those of the best peer).
    """

    types: pl.DataFrame
    table: pl.DataFrame
    summary: pl.DataFrame
    left_out: pl.DataFrame

    def ratio(self, method: str) -> float:
        """Return the geometric mean over the traces of a method's ratio to the best peer."""
        ratios = self.summary.filter(pl.col("method") == method)["ratio"].to_numpy()
        if ratios.size == 0:
            raise ConfigError(f"method '{method}': {nearest(method, self.summary['method'])}")
        return float(np.exp(np.log(ratios).mean()))


def compare(
    traces: Sequence[Trace],
    methods: Callable[[], Mapping[str, Method]],
    *,
    peers: Collection[str],
    orders: Sequence[Order] = SEEDS,
    truth: Truth | None = None,
    store: Store | None = None,
    confidence: float = 0.95,
    n_boot: int = 2000,
    seed: int = 0,
) -> Comparison:
    """Run all methods over all traces in several orders of arrival.

    Args:
        traces: The traces; names differ.
        methods: Returns name to method; called for every trace and order, so that what methods share
            between task types starts empty.
        peers: Names of the methods that a ratio compares with: of these, the one of least mean waste
            in a trace.
        orders: Seeds of the published protocol and ``"submit"``.
        truth: As in :func:`online.size`.
        store: Where results of slow methods are kept, and read when they are there; without one all
            methods run.
        confidence: Of the intervals: task types are drawn with replacement, all methods and orders of
            a type together.
        n_boot: Draws.
        seed: Of the draws.

    Raises:
        ConfigError: A peer is none of the methods, or there is no order.
        InsufficientDataError: All peers are slow, and no results of theirs are kept.

    Source: sizing.md, sections 2, 3 and 5b (one seed is not enough).
    """
    known = methods()
    unknown = [f"peer '{name}': {nearest(name, known)}" for name in peers if name not in known]
    if unknown or not peers or not orders:
        raise ConfigError(
            "; ".join(unknown) or "compare: at least one peer and one order are needed"
        )
    types, left_out = _complete(
        pl.concat(
            sized_types(trace, methods(), order=order, truth=truth, store=store)
            for trace in traces
            for order in orders
        ),
        [trace.name for trace in traces],
        list(known),
        len(orders),
    )
    table = _table(types)
    rng = np.random.default_rng(seed)
    summary = pl.concat(
        _summary(part, table.filter(trace=name), list(peers), rng, n_boot, confidence)
        for (name,), part in types.group_by("trace", maintain_order=True)
    )
    return Comparison(types, table, summary, left_out)


def sized_types(
    trace: Trace,
    methods: Mapping[str, Method],
    *,
    order: Order,
    truth: Truth | None = None,
    store: Store | None = None,
) -> pl.DataFrame:
    """Size a trace in one order and sum over the runs of each task type.

    Args:
        trace: The runs.
        methods: Name to method.
        order: A seed of the published protocol, or ``"submit"``.
        truth: As in :func:`online.size`.
        store: See :func:`compare`.

    Returns:
        Rows as in :attr:`Comparison.types`.

    Raises:
        InsufficientDataError: All methods are slow, and no results of theirs are kept.
    """
    kept = {name for name, each in methods.items() if each.slow and store is not None}
    parts = []
    quick = {name: each for name, each in methods.items() if name not in kept}
    if quick:
        parts.append(_by_type(size(trace, quick, order=order, truth=truth)))
    for name in methods:
        if name in kept and store is not None:
            judged = methods[name].judged_by(truth)
            found = store.get(trace, order, name, judged)
            if found is None and store.fills:
                found = _by_type(size(trace, {name: methods[name]}, order=order, truth=truth))
                store.put(trace, order, name, judged, found)
            parts.extend([] if found is None else [found])
    if not parts:
        raise InsufficientDataError(
            f"trace '{trace.name}', order {order}: no results of {', '.join(methods)} are kept in"
            " the store; let it fill, or add a quick method"
        )
    processes = pl.Enum([each.process for each in trace.types])
    names = pl.Enum(list(methods))
    return (
        pl.concat(parts)
        .sort(pl.col("process").cast(processes), pl.col("method").cast(names))
        .select(pl.lit(trace.name).alias("trace"), pl.lit(str(order)).alias("order"), pl.all())
    )


def _complete(
    types: pl.DataFrame, traces: list[str], methods: list[str], n_orders: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Leave methods out of a trace that were not run in all orders; tell which."""
    every = pl.DataFrame({"trace": traces}).join(pl.DataFrame({"method": methods}), how="cross")
    found = types.group_by("trace", "method").agg(pl.col("order").n_unique())
    missing = (
        every.join(found, on=["trace", "method"], how="left", maintain_order="left")
        .select(
            *("trace", "method"),
            orders=(n_orders - pl.col("order").fill_null(0)).cast(pl.Int64),
        )
        .filter(pl.col("orders") > 0)
    )
    return types.join(missing, on=["trace", "method"], how="anti", maintain_order="left"), missing


def _by_type(sized: pl.DataFrame) -> pl.DataFrame:
    """Sum the runs of each task type."""
    return sized.group_by("process", "method", maintain_order=True).agg(
        runs=pl.len().cast(pl.Int64),
        waste_gbh=pl.col("waste_gbh").sum(),
        usage_gbh=pl.col("usage_gbh").sum(),
        allocated_gbh=(pl.col("first_b") * pl.col("runtime_h")).sum() / 1e9,
        occupied_h=pl.col("occupied_h").sum(),
        failures=pl.col("failures").sum(),
        failed_runs=(pl.col("failures") > 0).sum().cast(pl.Int64),
    )


def _table(types: pl.DataFrame) -> pl.DataFrame:
    sums = types.group_by("trace", "order", "method", maintain_order=True).agg(
        pl.exclude("process").sum()
    )
    used, waste = pl.col("usage_gbh"), pl.col("waste_gbh")
    return sums.with_columns(
        coverage=1 - pl.col("failed_runs") / pl.col("runs"),
        width=pl.col("allocated_gbh") / used,
        maq=used / (used + waste),
    )


def _summary(
    types: pl.DataFrame,
    table: pl.DataFrame,
    peers: list[str],
    rng: np.random.Generator,
    n_boot: int,
    confidence: float,
) -> pl.DataFrame:
    """Average one trace over the orders and compare with its best peer."""
    means = table.group_by("trace", "method", maintain_order=True).agg(
        pl.col("waste_gbh", "failures", "coverage", "width", "maq").mean(),
        waste_min=pl.col("waste_gbh").min(),
        waste_max=pl.col("waste_gbh").max(),
    )
    held_against = means.filter(pl.col("method").is_in(peers)).sort("waste_gbh")
    if held_against.is_empty():
        raise InsufficientDataError(
            f"trace '{types['trace'][0]}': no results of {', '.join(peers)} are kept in the store;"
            " let it fill, or name a quick peer"
        )
    best = held_against.row(0, named=True)
    beaten = table.filter(method=best["method"]).select("order", best="waste_gbh")
    won = table.join(beaten, on="order").group_by("method", maintain_order=True)
    interval = _intervals(types, means["method"].to_list(), best["method"], rng, n_boot, confidence)
    return (
        means.with_columns(
            best_peer=pl.lit(best["method"]),
            ratio=pl.col("waste_gbh") / best["waste_gbh"],
            failures_over=pl.col("failures") - best["failures"],
            ratio_lo=interval[0],
            ratio_hi=interval[1],
        )
        .join(
            won.agg(orders_won=(pl.col("waste_gbh") < pl.col("best")).sum().cast(pl.Int64)),
            on="method",
            maintain_order="left",
        )
        .select(
            *["trace", "method", "waste_gbh", "waste_min", "waste_max", "failures", "coverage"],
            *["width", "maq", "best_peer", "ratio", "ratio_lo", "ratio_hi", "orders_won"],
            "failures_over",
        )
    )


def _intervals(
    types: pl.DataFrame,
    methods: list[str],
    best: str,
    rng: np.random.Generator,
    n_boot: int,
    confidence: float,
) -> tuple[FloatArray, FloatArray]:
    """Bootstrap the ratio of sums over task types; all methods see the same draws."""
    wide = types.group_by("process", "method").agg(pl.col("waste_gbh").sum())
    wide = wide.pivot("method", index="process", values="waste_gbh").sort("process")
    waste = wide.select(methods).to_numpy()
    n = waste.shape[0]
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=n_boot) @ waste
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = drawn / drawn[:, [methods.index(best)]]
    tail = (1 - confidence) / 2
    low, high = np.nanquantile(ratios, [tail, 1 - tail], axis=0)
    return low, high
