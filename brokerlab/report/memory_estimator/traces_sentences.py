"""What the report says on traces of workflow runs, from what was found."""

from __future__ import annotations

import polars as pl

from brokerlab.estimators.sizing.protocols import LADDER, SUBMITTED, TraceStudy
from brokerlab.report.content import Verdict
from brokerlab.words import listed, measured, number, thin

TARGET = 0.7
"""Geometric mean of the ratios to the best peer of each trace that is asked for, at most."""


def verdict(study: TraceStudy) -> Verdict:
    """Say by how much ours beats the best peers, and with how many kills."""
    return Verdict(kind="finding", subject="workflow traces", sentence=thin(f"{headline(study)} {_targets(study)}"))  # fmt: skip


def headline(study: TraceStudy) -> str:
    """Say in one sentence what the ladder of least expected cost does on traces."""
    main = study.main
    return (
        f"On {len(study.traces)} workflow traces the ladder of least expected cost wastes {ratio(main.ratio, main.ratio_lo, main.ratio_hi)} "
        f"times what the best of {len(study.peers)} peers of each trace wastes, with {number(main.failures)} killed attempts per "
        f"order against {number(main.failures_peer)} (geometric mean over {_count(len(study.seeds), 'random order')}; 95 % "
        "interval over task types)."
    )


def _targets(study: TraceStudy) -> str:
    """Hold what was found to what was asked for."""
    main, late = study.main, study.protocols[SUBMITTED]
    more = main.ours.filter(pl.col("failures_over") > 0)["trace"].to_list()
    behind = main.ours.filter(pl.col("ratio") >= 1)["trace"].to_list()
    met = main.ratio <= TARGET and not more and not behind
    said = [f"The target (at most {TARGET:g}, no trace above 1, no more kills than the best peer) is {'met' if met else 'not met'}"]  # fmt: skip
    if behind:
        said.append(f"above 1: {listed(behind)}")
    if more:
        said.append(f"more kills: {listed(more)}")
    return f"{'; '.join(said)}. In the order of submission the ratio is {ratio(late.ratio, late.ratio_lo, late.ratio_hi)}."


def finding(study: TraceStudy) -> str:
    """Return the title of the picture."""
    rows = study.main.ours.sort("ratio")
    first, last = rows.row(0, named=True), rows.row(-1, named=True)
    return thin(
        f"Ours wastes {number(first['ratio'], 2)} ({first['trace']}) to {number(last['ratio'], 2)} ({last['trace']}) times "
        "what the best peer of the trace wastes"
    )


def sample(study: TraceStudy) -> str:
    """Say how much was sized."""
    runs = study.main.comparison.table.filter(method=LADDER).group_by("trace").agg(pl.col("runs").first())  # fmt: skip
    return thin(
        f"n = {int(runs['runs'].sum()):,} runs of {study.types.height} task types, {_count(len(study.seeds), 'random order')}. "
        "Blue: ours with 95 % interval over task types; grey: peers; open: ours, had it known all other "
        f"runs. Solid line: best peer; red: target {TARGET:g} of the geometric mean."
    )


def limit(study: TraceStudy) -> str:
    """Say what is left to gain."""
    said = [
        f"{row['trace']} {number(row['ours_gbh'] / row['knowing_gbh'], 2)}"
        for row in study.limits.iter_rows(named=True)
    ]
    return thin(
        f"Had ours known nearly all other runs of a task type when it sized a run, it would still waste; its waste over that is: "
        f"{listed(said)}. Near 1, watching longer gains nothing: only other features of a run could."
    )


def certainty(study: TraceStudy) -> str:
    """Say what the intervals are made of."""
    spread = study.main.ours.with_columns(part=pl.col("waste_max") / pl.col("waste_min")).sort("part").row(-1, named=True)  # fmt: skip
    orders = (
        f" Between orders our waste differs most on {spread['trace']}, by a factor of {number(spread['part'], 2)}."
        if len(study.seeds) > 1
        else " One order proves little: the spread between orders is large for some methods."
    )
    return thin(
        "Intervals draw task types again, all orders and methods of a type together; task types of one trace share samples and "
        "machines, so other workflows may differ by more. The best peer is chosen after the fact, which favours the peers."
        + orders
    )


def cannot_tell(study: TraceStudy) -> list[str]:
    """Collect what the traces cannot tell."""
    left = pl.concat([each.left_out for each in study.traces])
    told = []
    told.append(
        "The traces hold successful first attempts only, at generous requests: what a kill really costs (restart, waiting, lost "
        "output) is not in them; a killed attempt is taken to last as long as the run."
    )
    if left.height:
        told.append(
            f"{left.height} task types with {int(left['runs'].sum()):,} runs of the traces are too rare or too short to be sized."
        )
    odd = [
        each.name for each in study.traces
        if sum(int(kind.submit.size) for kind in each.types) and _heaviest(study, each.name) > 0.5
    ]  # fmt: skip
    if odd:
        told.append(
            f"One task type holds more than half of the waste of ours on {listed(odd)}: the ratio of such a trace says little of "
            "its other types."
        )
    return told


def _heaviest(study: TraceStudy, trace: str) -> float:
    """Return the largest share of a task type in our waste on a trace."""
    ours = study.types.filter(trace=trace)["ours_gbh"]
    total = float(ours.sum())
    return float(ours.max()) / total if total > 0 else 0.0  # type: ignore[arg-type]


def ratio(value: float, lo: float, hi: float) -> str:
    """Write a ratio with its interval.

    Example:
        >>> ratio(0.4693, 0.3214, 0.6488)
        '0.47 (0.32 to 0.65)'
    """
    return measured(value, lo, hi, 2)


def _count(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"
