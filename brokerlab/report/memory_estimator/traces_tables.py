"""The tables on traces of workflow runs."""

from __future__ import annotations

import polars as pl

from brokerlab.estimators.sizing.peers import slow as slow_methods
from brokerlab.estimators.sizing.protocols import DRAWN, LADDER, PUBLISHED, SUBMITTED, TraceStudy
from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.words import listed, number

INTERVALS = "In brackets: 95 % intervals, task types of each trace drawn again."
LABELS = {
    DRAWN: "random orders",
    SUBMITTED: "order of submission",
    PUBLISHED: "as published",
}
MOST_TYPES = 5


def by_trace(study: TraceStudy) -> Table:
    """Lay out ours against the best peer of every trace, over the random orders."""
    main = study.main
    rows = []
    for row in main.ours.iter_rows(named=True):
        best = {"waste_gbh": row["best_gbh"], "failures": row["best_failures"]}
        rows.append(
            Row(
                cells={
                    "trace": row["trace"],
                    "peer": row["best_peer"],
                    "best": Num(value=best["waste_gbh"]),
                    "ours": Num(value=row["waste_gbh"]),
                    "spread": f"{_short(row['waste_min'])} to {_short(row['waste_max'])}",
                    "ratio": Num(value=row["ratio"], lo=row["ratio_lo"], hi=row["ratio_hi"], decimals=2),
                    "won": f"{row['orders_won']} of {len(study.seeds)}",
                    "failures_best": Num(value=best["failures"], decimals=0),
                    "failures": Num(value=row["failures"], decimals=0),
                }
            )
        )  # fmt: skip
    overall = Row(
        cells={
            **dict.fromkeys(("peer", "best", "ours", "spread", "won")),
            "trace": "all (geometric mean)",
            "ratio": Num(value=main.ratio, lo=main.ratio_lo, hi=main.ratio_hi, decimals=2),
            "failures_best": Num(value=main.failures_peer, decimals=0),
            "failures": Num(value=main.failures, decimals=0),
        },
        note="overall",
    )
    return Table(
        name="traces",
        caption="Memory wasted and attempts killed, trace by trace",
        columns=(
            Column(key="trace", label="Trace"),
            Column(key="peer", label="Best peer"),
            Column(key="best", label="It wastes", unit="GB h"),
            Column(key="ours", label="Ours wastes", unit="GB h"),
            Column(key="spread", label="Ours, least to most", unit="GB h"),
            Column(key="ratio", label="Ours over best peer", unit="ratio"),
            Column(key="won", label="Orders with less"),
            Column(key="failures_best", label="Its kills", unit="per order"),
            Column(key="failures", label="Our kills", unit="per order"),
        ),
        rows=(*rows, overall),
        footnote=f"Means over {len(study.seeds)} random orders of arrival (seeds {_seeds(study)}); a run is killed at its peak "
        f"memory. The best peer is chosen with hindsight, trace by trace. {INTERVALS}",
    )


def by_method(study: TraceStudy) -> Table:
    """Lay out every method: waste and kills on each trace, and the ratio to the best peers."""
    summary = study.main.comparison.summary
    traces = summary["trace"].unique(maintain_order=True).to_list()
    whole = summary.group_by("method").agg(
        pl.col("ratio").log().mean().exp(),
        pl.col("failures").sum(),
        pl.col("coverage", "width", "maq").mean(),
        traces=pl.len(),
    )
    cells = {(r["trace"], r["method"]): r for r in summary.iter_rows(named=True)}
    rows = [
        Row(
            cells={
                "method": each["method"],
                **{t: _pair(cells.get((t, each["method"]))) for t in traces},
                "ratio": Num(
                    value=each["ratio"] if each["traces"] == len(traces) else None, decimals=2
                ),
                "coverage": Num(value=100 * each["coverage"], decimals=1),
                "width": Num(value=each["width"], decimals=2),
                "maq": Num(value=each["maq"], decimals=2),
            },
            note="ours" if each["method"] == LADDER else "",
        )
        for each in whole.sort("ratio", "method").iter_rows(named=True)
    ]
    return Table(
        name="methods",
        caption="Every method by the same harness: waste [GB h] / killed attempts",
        columns=(
            Column(key="method", label="Method"),
            *(Column(key=trace, label=trace, unit="GB h / kills") for trace in traces),
            Column(key="ratio", label="Over the best peer", unit="geometric mean"),
            Column(key="coverage", label="First attempt enough", unit="%"),
            Column(key="width", label="First allocation over use", unit="ratio"),
            Column(key="maq", label="Used of what was held", unit="share"),
        ),
        rows=tuple(rows),
        footnote="Means over the random orders; the last three columns are means over the traces. Width and share weigh a run "
        "by its use; coverage counts runs." + _missing(study),
    )


def by_protocol(study: TraceStudy) -> Table:
    """Lay out the ratio to the best peer under each way to run the comparison."""
    protocols = study.protocols
    rows = []
    for trace in study.main.ours["trace"]:
        cells: dict[str, Num | str | None] = {"trace": trace}
        for name, found in protocols.items():
            row = found.ours.filter(trace=trace).row(0, named=True)
            kills = f"{number(row['failures'])} / {number(row['failures'] - row['failures_over'])}"
            cells[name] = Num(value=row["ratio"], lo=row["ratio_lo"], hi=row["ratio_hi"], decimals=2)  # fmt: skip
            cells[f"{name}_kills"] = kills
        rows.append(Row(cells=cells))
    overall: dict[str, Num | str | None] = {"trace": "all (geometric mean)"}
    for name, found in protocols.items():
        overall[name] = Num(value=found.ratio, lo=found.ratio_lo, hi=found.ratio_hi, decimals=2)
        overall[f"{name}_kills"] = f"{number(found.failures)} / {number(found.failures_peer)}"
    return Table(
        name="protocols",
        caption="Our waste over that of the best peer, and kills ours / its, by the way of comparing",
        columns=(
            Column(key="trace", label="Trace"),
            *(
                column
                for name in protocols
                for column in (
                    Column(key=name, label=f"{LABELS[name].capitalize()}", unit="ratio"),
                    Column(key=f"{name}_kills", label="Kills"),
                )
            ),
        ),
        rows=(*rows, Row(cells=overall, note="overall")),
        footnote="Order of submission: the earliest 30 % of each task type are known, the rest arrive as submitted, once. As "
        f"published: random orders, judged by the average resident memory where the method was. {INTERVALS}",
    )


def limits(study: TraceStudy) -> Table:
    """Lay out what is left to gain: ours, had it known nearly all other runs."""
    rows = [
        Row(
            cells={
                "trace": row["trace"],
                "runs": Num(value=row["runs"], decimals=0),
                **{
                    name: Num(value=100 * row[f"{name}_gbh"] / row["usage_gbh"])
                    for name in ("best", "ours", "knowing")
                },
                "over": Num(value=row["ours_gbh"] / row["knowing_gbh"], decimals=2),
            }
        )
        for row in study.limits.iter_rows(named=True)
    ]
    return Table(
        name="limits",
        caption="Waste in the order of submission, per cent of what the runs use",
        columns=(
            Column(key="trace", label="Trace"),
            Column(key="runs", label="Runs"),
            Column(key="best", label="Best peer", unit="%"),
            Column(key="ours", label="Ours", unit="%"),
            Column(key="knowing", label="Ours, knowing all others", unit="%"),
            Column(key="over", label="Ours over knowing", unit="ratio"),
        ),
        rows=tuple(rows),
        footnote="Knowing all others: each run is sized from nine tenths of all other runs of its task type, later ones too. "
        "What is left there is spread that the size of the input and the tag do not explain, however long one watches.",
    )


def types(study: TraceStudy) -> Table:
    """Lay out the task types where ours wastes most beyond the best peer, and where it saves most."""
    frame = study.types
    worst = frame.filter(pl.col("difference_gbh") > 0).head(MOST_TYPES)
    best = frame.filter(pl.col("difference_gbh") < 0).tail(MOST_TYPES).reverse()
    rows = [
        Row(
            cells={
                "type": f"{row['process'].rsplit(':', 1)[-1]} ({row['trace']})",
                "runs": Num(value=row["runs"], decimals=0),
                "best": Num(value=row["best_gbh"]),
                "ours": Num(value=row["ours_gbh"]),
                "difference": Num(value=row["difference_gbh"]),
            },
            note="worst" if place == 0 and worst.height else "",
        )
        for place, row in enumerate(pl.concat([worst, best]).iter_rows(named=True))
    ]
    return Table(
        name="types",
        caption="Task types that lose most, and those that gain most",
        columns=(
            Column(key="type", label="Task type (trace)"),
            Column(key="runs", label="Arrivals"),
            Column(key="best", label="Best peer of the trace", unit="GB h"),
            Column(key="ours", label="Ours", unit="GB h"),
            Column(key="difference", label="Difference", unit="GB h"),
        ),
        rows=tuple(rows),
        footnote=f"{frame.filter(pl.col('difference_gbh') > 0).height} of {frame.height} task types waste more with ours than "
        "with the best peer of their trace. Per order of arrival, means over the random orders.",
    )


def _pair(row: dict[str, float] | None) -> str | None:
    if row is None:
        return None
    return f"{_short(row['waste_gbh'])} / {number(row['failures'])}"


def _short(value: float) -> str:
    """Write a waste with three digits.

    Example:
        >>> _short(0.36281), _short(187.3)
        ('0.363', '187')
    """
    places = 3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0
    return number(value, places)


def _missing(study: TraceStudy) -> str:
    """Say which published methods are not in the table."""
    left = study.main.comparison.left_out["method"].unique().to_list()
    slow = sorted({*slow_methods()} - {*study.main.comparison.summary["method"]} | {*left})
    if not slow:
        return ""
    return f" Not run on every trace, as they take their time (see the parameter slow): {listed(slow)}."


def _seeds(study: TraceStudy) -> str:
    return ", ".join(str(seed) for seed in study.seeds)
