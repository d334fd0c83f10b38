"""The published and re-measured figures of the peers on the real traces, to the printed digits."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchmarks.sizing import Run, Trace, read_trace, size
from benchmarks.sizing.peers import peers
from benchmarks.sizing.peers.ensemble import WeightedEnsemble
from benchmarks.sizing.peers.wastage import LowWastageLine
from benchmarks.sizing.scoring import GBH, score

FOLDER = (
    Path(__file__).parents[2] / os.environ.get("BROKERLAB_DATA", "../shared/data") / "nfcore-traces"
)
TRACES = ("iwd", "rnaseq", "chipseq", "mag")

pytestmark = pytest.mark.real_data

# sizing.md, section 1: kept types, kept runs, arrivals
KEPT = {
    "rnaseq": (30, 1170, 840),
    "iwd": (5, 1660, 1165),
    "chipseq": (30, 2449, 1720),
    "mag": (8, 5761, 4034),
}

# section 5a, seed 1996, truth rss: waste [GB h] / failed attempts
AT_RANDOM = {
    "presets": ("15.863 / 0", "1238.618 / 0", "260.614 / 0", "1955.012 / 0"),
    "Witt LR std": ("42.497 / 39", "80.986 / 51", "105.700 / 232", "289.787 / 813"),
    "Witt LR under": ("2.944 / 319", "57.905 / 82", "136.328 / 337", "300.998 / 978"),
    "Witt percentile": ("1.439 / 62", "128.898 / 49", "94.700 / 114", "309.807 / 232"),
    "Tovar": ("16.699 / 196", "195.261 / 55", "211.018 / 102", "309.359 / 762"),
    "max seen": ("1.056 / 10", "63.075 / 23", "89.087 / 25", "359.688 / 11"),
    "p75 x 1.1": ("1.452 / 13", "80.758 / 14", "83.184 / 77", "257.433 / 371"),
    "p90 x 1.15": ("2.155 / 4", "122.378 / 2", "103.720 / 19", "300.060 / 103"),
    "p99 x 1.1": ("1.736 / 1", "103.104 / 0", "117.953 / 3", "362.883 / 12"),
    "conformal 95 %": ("1.443 / 55", "81.599 / 19", "92.696 / 67", "306.321 / 216"),
    "linear + std": ("5.050 / 103", "250.143 / 136", "133.586 / 299", "291.411 / 727"),
}

# section 5c, order of submission, truth peak_rss
AS_SUBMITTED = {
    "presets": ("13.39 / 0", "1225.4 / 0", "284.5 / 0", "2077.5 / 0"),
    "max seen": ("0.932 / 9", "46.7 / 30", "103.4 / 77", "371.7 / 19"),
    "p75 x 1.1": ("1.106 / 73", "80.4 / 10", "115.6 / 147", "300.7 / 706"),
    "p90 x 1.15": ("1.739 / 6", "118.7 / 1", "114.4 / 22", "312.4 / 115"),
    "Witt percentile": ("2.490 / 66", "60.1 / 52", "149.5 / 201", "315.5 / 363"),
    "p99 x 1.1": ("1.386 / 5", "102.0 / 3", "111.8 / 7", "396.1 / 23"),
    "conformal 95 %": ("2.503 / 61", "66.0 / 10", "131.4 / 126", "308.0 / 338"),
    "linear + std": ("2.958 / 145", "218.8 / 171", "240.0 / 354", "333.6 / 948"),
    "Tovar": ("16.68 / 257", "222.9 / 37", "1212.1 / 180", "344.6 / 868"),
}


@functools.cache
def trace_named(name: str) -> Trace:
    path = FOLDER / f"trace_{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"the trace '{name}' is not here; set BROKERLAB_DATA")
    return read_trace(path)


def printed_as(figure: str, waste: float, failures: int) -> str:
    digits = len(figure.split(" / ", maxsplit=1)[0].split(".")[1])
    return f"{waste:.{digits}f} / {failures}"


@pytest.mark.parametrize("name", TRACES)
def test_the_types_kept(name):
    trace = trace_named(name)
    arrivals = sum(each.split(1996)[1].size for each in trace.types)
    assert (len(trace.types), trace.n_runs, arrivals) == KEPT[name]


@pytest.mark.parametrize("name", TRACES)
@pytest.mark.parametrize(
    ("figures", "order", "truth"), [(AT_RANDOM, 1996, None), (AS_SUBMITTED, "submit", "peak_rss")]
)
def test_the_printed_figures(name, figures, order, truth):
    sized = size(trace_named(name), peers(), order=order, truth=truth)
    sums = sized.group_by("method").agg(pl.col("waste_gbh", "failures").sum())
    found = {method: (waste, failures) for method, waste, failures in sums.iter_rows()}
    printed = {method: figures[method][TRACES.index(name)] for method in figures}
    assert {m: printed_as(figure, *found[m]) for m, figure in printed.items()} == printed


def sized(sizer, task_type, past, arrivals, memory_b):
    """Waste [GB h] and failures of a method over the arrivals of a task type."""
    sizer.start(task_type.history(past, memory_b, 1.0))
    waste, failures = 0.0, 0
    for row in arrivals.tolist():
        run = Run(float(task_type.input_b[row]), float(task_type.request_b[row]))
        scored = score(sizer, run, float(memory_b[row]), float(task_type.runtime_ms[row]))
        sizer.reveal(run, float(memory_b[row]), float(task_type.runtime_ms[row]) / 1000)
        waste, failures = waste + scored.waste / GBH, failures + scored.failures
    return np.array([waste, failures])


@pytest.mark.long
def test_the_line_of_least_waste_wastes_what_is_printed():
    """Section 5a prints 0.492 / 120: another split, truth peak_rss; the search is sensitive to rounding."""
    total = np.zeros(2)
    for each in trace_named("iwd").types:
        rows = np.random.RandomState(1996).permutation(each.submit.size)
        past, arrivals = np.split(rows, [round(0.3 * rows.size)])
        total += sized(LowWastageLine(), each, past, arrivals, each.peak_rss_b)
    assert total == pytest.approx([0.492, 120], rel=0.05)


@pytest.mark.long
def test_the_weighted_ensemble_wastes_what_is_printed():
    """Section 5b prints 0.032 / 27 for the first 40 arrivals of each type."""
    total, errors = np.zeros(2), []
    for each in trace_named("iwd").types:
        past, arrivals = each.split(1996)
        total += sized(WeightedEnsemble(errors), each, past, arrivals[:40], each.rss_b)
    assert total == pytest.approx([0.032, 27], rel=0.12)
