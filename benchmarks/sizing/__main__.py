"""Every method that sizes memory, over the real workflow traces in several random orders.

One table per truth: ``published`` judges each method by the memory that it was published with, ``peak`` all of them by the
peak that a limit kills at. Waste [GB h] is the mean over the orders, with the least and the most; a ratio is ours over a
method, paired in the orders; ``best`` marks the peer of least mean waste, that ours is held against.

Without ``--slow`` the peers that take minutes (the low-wastage line, and Sizey, which fits four models after every run)
are read from ``--store`` where they were kept, and left out where they were not. With it, what is missing is computed in
``--jobs`` processes and kept: a run that was interrupted goes on.
"""

from __future__ import annotations

import argparse
import functools
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import polars as pl

from benchmarks.sizing import (
    SEEDS,
    CheapestAttempts,
    Method,
    Store,
    Trace,
    compare,
    read_trace,
    sized_types,
)
from benchmarks.sizing.online import Truth
from benchmarks.sizing.peers import all_peers, peers, slow
from benchmarks.sizing.trace import Order

FOLDER = Path(os.environ.get("BROKERLAB_DATA", "../shared/data")) / "nfcore-traces"
OURS = "cheapest attempts"
TRUTHS: Mapping[str, Truth | None] = {"published": None, "peak": "peak_rss"}

Piece = tuple[Path, Order, str, Truth | None]


@functools.cache
def trace_at(path: Path) -> Trace:
    """Read a trace once per process."""
    return read_trace(path)


def one(piece: Piece, store: Store) -> str:
    """Compute and keep one result of a slow method; tell what it took."""
    path, order, name, truth = piece
    begin = time.process_time()
    sized_types(trace_at(path), {name: slow()[name]}, order=order, truth=truth, store=store)
    return f"{trace_at(path).name}, order {order}, {name}: {time.process_time() - begin:.1f} s"


def fill(pieces: Sequence[Piece], store: Store, jobs: int) -> None:
    """Compute what is missing, and print what was done."""
    # spawned: a fork of a process in which polars has threads hangs
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(one, piece, store) for piece in pieces]
        for done, future in enumerate(as_completed(waiting), 1):
            print(f"{done} of {len(pieces)}: {future.result()}", flush=True)


def missing(paths: Sequence[Path], orders: Sequence[Order], truths: Sequence[str], store: Store) -> list[Piece]:  # fmt: skip
    """Return what is not kept yet, each result once, all traces of one order before the next order."""
    pieces: dict[str, Piece] = {}
    for order in orders:
        for path in paths:
            for name, method in slow().items():
                for truth in truths:
                    judged = method.judged_by(TRUTHS[truth])
                    result = trace_at(path), order, name, judged
                    if store.get(*result) is None:
                        pieces.setdefault(store.key(*result), (path, order, name, judged))
    return list(pieces.values())


def methods() -> dict[str, Method]:
    """Return all methods, ours last."""
    return {**all_peers(), OURS: Method(CheapestAttempts)}


def quick_methods() -> dict[str, Method]:
    """Return the methods that are quick, ours last."""
    return {**peers(), OURS: Method(CheapestAttempts)}


def table(traces: Sequence[Trace], orders: Sequence[Order], truth: str, store: Store | None) -> None:  # fmt: skip
    """Print one table."""
    make = quick_methods if store is None else methods
    held_against = [name for name in make() if name != OURS]
    found = compare(
        traces, make, peers=held_against, orders=orders, truth=TRUTHS[truth], store=store
    )
    orders_told = ", ".join(str(order) for order in orders)
    print(f"\ntruth: {truth}; orders: {orders_told}")
    for (name,), rows in found.summary.group_by("trace", maintain_order=True):
        ours = rows.row(by_predicate=pl.col("method") == OURS, named=True)
        print(
            f"\n{name:18}{'waste':>10}{'least':>10}{'most':>10}{'failures':>10}{'ours/it':>9}{'won':>5}"
        )
        for row in rows.sort("waste_gbh").iter_rows(named=True):
            best = " best" if row["method"] == row["best_peer"] else ""
            won = wins(found.table, str(name), row["method"])
            print(
                f"{row['method']:18}{row['waste_gbh']:10.3f}{row['waste_min']:10.3f}{row['waste_max']:10.3f}"
                f"{row['failures']:10.1f}{ours['waste_gbh'] / row['waste_gbh']:9.3f}{won:5d}{best}"
            )
        print(
            f"ratio to the best peer {ours['ratio']:.3f} ({ours['ratio_lo']:.3f} to {ours['ratio_hi']:.3f} over task types),"
            f" failures {ours['failures_over']:+.1f}"
        )
    for trace, method, lacking in found.left_out.iter_rows():
        print(f"left out: {method} on {trace}, {lacking} orders are not in the store")
    print(f"geometric mean of the ratios to the best peer of each trace: {found.ratio(OURS):.3f}")


def wins(by_order: pl.DataFrame, trace: str, method: str) -> int:
    """Return in how many orders ours wastes less than a method."""
    wide = by_order.filter(trace=trace).pivot("method", index="order", values="waste_gbh")
    return int((wide[OURS] < wide[method]).sum())


def main() -> None:
    """Compute what is asked for, and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--slow", action="store_true", help="compute slow peers where not kept")
    parser.add_argument("--store", type=Path, help="folder of their results")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--traces", nargs="*", help="names; by default all that are there")
    parser.add_argument("--orders", nargs="*", default=[str(seed) for seed in SEEDS])
    parser.add_argument("--truths", nargs="*", choices=list(TRUTHS), default=list(TRUTHS))
    options = parser.parse_args()
    if options.slow and options.store is None:
        parser.error("--slow: name a folder with --store, where its results are kept")
    found = {trace_at(path).name: path for path in sorted(FOLDER.glob("trace_*.csv.gz"))}
    wanted = options.traces or list(found)
    if unknown := set(wanted) - set(found):
        parser.error(f"traces {', '.join(sorted(unknown))}: in {FOLDER} are {', '.join(found)}")
    paths = [found[name] for name in wanted]
    orders: list[Order] = [
        "submit" if order == "submit" else int(order) for order in options.orders
    ]
    store = None if options.store is None else Store(options.store, fills=False)
    if options.slow:
        filling = Store(options.store)
        fill(missing(paths, orders, options.truths, filling), filling, options.jobs)
    for truth in options.truths:
        table([trace_at(path) for path in paths], orders, truth, store)


if __name__ == "__main__":
    main()
