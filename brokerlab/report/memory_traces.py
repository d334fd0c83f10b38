"""The part of the memory-estimator page on traces of workflow runs: our sizer and its peers, run by run."""

from __future__ import annotations

import polars as pl

from brokerlab.charts import estimators as charts
from brokerlab.estimators.sizing.peers import slow
from brokerlab.estimators.sizing.protocols import LADDER, TraceStudy
from brokerlab.report.kit import CERTAINTY, GAINS, Caveat, Chart, Part, Table, Verdict, say
from brokerlab.words import listed

TARGET = 0.7
"""Waste over that of the best peer of each trace that is asked for, geometric mean, at most."""


def traces_part(study: TraceStudy) -> Part:
    """Lay out ours against the best peers of every trace."""
    return Part(
        name="traces",
        title="Workflow traces",
        verdict=Verdict(kind="finding", sentence=trace_sentence(study)),
        chart=_ratios(study),
        sections={
            "Method by method": [_by_method(study)],
            GAINS: [_types(study)],
            CERTAINTY: [_by_protocol(study)],
        },
    )


def trace_sentence(study: TraceStudy) -> str:
    """Hold the ratio to the best peers to the target."""
    template = (
        "{ours} waste {ratio} times what the best peers do; the target {target:.1f} is {met}."
    )
    met = "met" if study.meets(TARGET) else "not met"
    return say(template, vars(study.main), ours=LADDER.capitalize(), target=TARGET, met=met)


def _ratios(study: TraceStudy) -> Chart:
    rows = study.main.ours.sort("ratio")
    finding = "{ours} waste {ratio} ({trace}) to {most} ({other}) times what the best peer wastes"
    last = {"most": rows["ratio"][-1], "other": rows["trace"][-1]}
    sample = "n = {runs:#run} of {types} task types, {orders} random orders of arrival. Bars: 95 % intervals over task types."
    return Chart(
        draw=charts.waste_ratios,
        name="ratios",
        frame=study.ratios,
        options={"target": TARGET},
        finding=say(
            finding,
            ours=LADDER.capitalize(),
            ratio=rows["ratio"][0],
            trace=rows["trace"][0],
            **last,
        ),
        sample=say(
            sample,
            runs=study.n_runs,
            types=study.types.height,
            orders=len(study.seeds),
        ),
        note="Knowing: ours, sized from nine tenths of all other runs of the type. The best peer of each trace, chosen with "
        "hindsight, is at 1. A run is killed at its peak memory.",
    )


def _by_method(study: TraceStudy) -> Table:
    frame, traces = study.main.by_method, study.main.ours["trace"].to_list()
    absent = sorted({*slow()} - {*frame["method"]} | {*study.main.comparison.left_out["method"]})
    left_out = (
        f" Not run on every trace: {listed(absent)}, which take their time." if absent else ""
    )
    marks = pl.when(pl.col("method") == LADDER).then(pl.lit("proposed"))
    return Table(
        name="methods",
        frame=frame.with_columns(marks.alias("mark")),
        caption="Every method by the same harness",
        columns={
            "method": "Method",
            "ratio": "Over the best peer [ratio]",
            **{trace: f"{trace} [GB h]" for trace in traces},
            "failures": "Kills [per order]",
            "coverage": "First attempt enough [% of runs]",
            "width": "First allocation over use [ratio]",
            "maq": "Used of what was held [%]",
        },
        mark="mark",
        note=f"Ratio: geometric mean over the traces; the last three: means over the traces.{left_out}",
    )


def _types(study: TraceStudy) -> Table:
    lost, n = study.types.filter(pl.col("difference_gbh") > 0).height, study.types.height
    return Table(
        name="types",
        frame=study.extreme_types(),
        caption=f"{lost} of {n} task types waste more than with the best peer of their trace",
        columns={
            "short": "Task type",
            "trace": "Trace",
            "runs": "Runs",
            "best_gbh": "Best peer [GB h]",
            "ours_gbh": "Ours [GB h]",
            "difference_gbh": "Difference [GB h]",
        },
        mark="mark",
        note="Those that lose most, then those that gain most; per order of arrival.",
    )


def _by_protocol(study: TraceStudy) -> Table:
    return Table(
        name="protocols",
        frame=study.by_protocol,
        caption="Our waste over that of the best peer, by the way of comparing",
        columns={
            "trace": "Trace",
            "drawn": "Random orders [ratio]",
            "submitted": "As submitted [ratio]",
            "published": "As published [ratio]",
            "drawn_failures": "Random orders: kills more",
            "submitted_failures": "As submitted: kills more",
            "published_failures": "As published: kills more",
        },
        note="As submitted: the earliest 30 % of each task type are known, the rest arrive once. As published: judged by the "
        "average resident memory where the method was. Kills more: ours less those of the best peer, per order.",
    )


def trace_caveats(study: TraceStudy) -> list[Caveat]:
    """Say what the traces cannot tell."""
    left = pl.concat([each.left_out for each in study.traces])
    odd = study.heaviest.filter(pl.col("share") > 0.5)["trace"].to_list()
    few = "{n} task types with {runs:#run} of the traces are too rare or too short to be sized."
    first = (
        "The traces hold successful first attempts only: what a kill really costs is not in them; a killed attempt is taken to "
        "last as long as the run."
    )
    heavy = f"One task type holds more than half of our waste on {listed(odd or [''])}: such a ratio says little of others."
    return [
        Caveat(len(study.traces), first),
        Caveat.of(left.height, few, runs=left["runs"].sum()),
        Caveat(len(odd), heavy),
    ]


def trace_frames(study: TraceStudy) -> dict[str, pl.DataFrame]:
    """Return the frames behind the part, to be written beside it."""
    frames = {
        "traces_limits": study.limits,
        "traces_all_types": study.types,
        "traces_traces": study.main.by_trace,
    }
    for name, protocol in study.protocols.items():
        frames[f"traces_{name}"] = protocol.comparison.summary
        frames[f"traces_{name}_orders"] = protocol.comparison.table
    return frames
