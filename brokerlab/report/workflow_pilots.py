"""How should a workflow be submitted to a batch queue, and what do the two rule sets of grouping do?

Recorded workflows run in every way from the same states of queues with the load of real logs; load and workflows are
generated where none are at hand, and the page says so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import polars as pl
from pydantic import Field, field_validator

from brokerlab.archive.store import Archive, open_archive
from brokerlab.charts import workflows as charts
from brokerlab.errors import DataError, InsufficientDataError, nearest
from brokerlab.report import kit
from brokerlab.report.kit import Caveat, Chart, Number, Page, Table, Verdict, say
from brokerlab.words import listed
from brokerlab.workflows import compare as runs
from brokerlab.workflows import machines, shapes
from brokerlab.workflows.batch import POLICIES
from brokerlab.workflows.compare.summaries import NOTES, ONE_JOB, PAPER, PER_TASK
from brokerlab.workflows.dag import Dag
from brokerlab.workflows.readers import describe_workflows, read_workflows
from brokerlab.workflows.readers.collection import USUAL
from brokerlab.workflows.rules import PilotRules
from brokerlab.workflows.strategies import NAMES as STRATEGIES

VARIABLE = "BROKERLAB_DATA"
"""Environment variable with the folder of logs and workflows."""
NAMES: Mapping[str, str] = {
    NOTES: "grouping (notes)",
    PAPER: "grouping (paper)",
    "pilot_levels:paper_serial": "grouping (paper) without overlap",
    "pilot_levels:paper_idle": "grouping (paper), idle cancelled",
    "pilot_levels:peer": "grouping (peer)",
    ONE_JOB: "one job",
    "one_job_best": "one job, best width",
    PER_TASK: "one job per task",
    "level": "one job per level",
    "level_overlap": "job per level, overlapping",
    "best_partition": "best partition (hindsight)",
}
NEEDED = (NOTES, PAPER, ONE_JOB, PER_TASK)
"""Strategies that the page speaks of."""
COMPARED = (*NEEDED, "pilot_levels:paper_serial", "one_job_best", "level", "level_overlap")
"""Strategies that are compared where nothing else is said."""
METHODS = {
    "carried forward": "queue carried forward",
    "bound_95": "bound of the 95 % quantile",
    "bound_50": "bound of the median",
    "nearest": "median of the 50 nearest",
}
HEADLINES = {
    "both": "Which rule groups better depends on the queue: the notes' takes {ratio} times as long at {system}.",
    "longer": "Group by the paper's rule: the notes' takes {ratio} times as long at {system}.",
    "shorter": "Keep the notes' rule: it takes {ratio} times as long as the paper's at {system}.",
    "same": "The two rules of grouping cannot be told apart: {ratio} times as long at {system}.",
}
"""Whether the notes' rules take longer, shorter or both at some queue, to the headline."""
INSTANTS = "In brackets: 95 % intervals from resampling instants; below 1: ends sooner."
HOUR, DAY = 3600.0, 86400.0
LONG_H, MUCH = 24.0, 3.0
"""Median wait of an hour on one host above which a queue is saturated [h]; ratio of waits that is called growth."""


class Params(kit.Common):
    """What may be asked."""

    report: ClassVar[str] = "workflow-pilots"
    question: ClassVar[str] = (
        "How should a workflow be submitted to a batch queue, and what do the two rule sets of grouping do?"
    )

    archive: str = Field(
        "", description="archive whose busiest queue is one more machine, empty for none [path]"
    )
    n_boot: int = Field(1000, ge=100, description="bootstrap replicates over instants [1]")
    data: str = Field(
        "", description="folder with swf-logs and wfinstances, empty for $BROKERLAB_DATA [path]"
    )
    workflows: list[str] = Field(
        [], description="files of workflows below data, empty for the usual five [path]"
    )
    policies: list[str] = Field(
        ["easy", "conservative", "fcfs"],
        min_length=1,
        description="of one log, others the first [name]",
    )
    strategies: list[str] = Field(
        [], description="compared besides the four needed, empty for the usual [name]"
    )
    times: int = Field(
        30, ge=2, description="random instants at which workflows are submitted, per machine [1]"
    )
    stretch: float = Field(1.0, gt=0, lt=1e6, description="factor on the run times of tasks [1]")
    load: float = Field(
        0.7, gt=0, lt=1, description="load of machines whose number of hosts is not known [1]"
    )
    workers: int = Field(2, ge=1, le=64, description="processes [1]")
    store: str = Field(
        "",
        description="folder where finished parts are kept and found again, empty for none [path]",
    )

    @field_validator("policies")
    @classmethod
    def _policies(cls, names: list[str]) -> list[str]:
        return _known(names, list(POLICIES))

    @field_validator("strategies")
    @classmethod
    def _strategies(cls, names: list[str]) -> list[str]:
        return _known(names, list(STRATEGIES))


def _known(names: list[str], known: list[str]) -> list[str]:
    wrong = [f"{name!r}, {nearest(name, known)}" for name in names if name not in known]
    if len(set(names)) < len(names):
        wrong.append("each once")
    if wrong:
        raise ValueError("; ".join(wrong))
    return names


class Data(NamedTuple):
    """What is compared, and the archive that could not be used, with the reason."""

    machines: machines.Machines
    workflows: dict[str, Dag]
    recorded: bool
    archive: Archive | None
    refused: str


class Study(NamedTuple):
    """What was found; frames as the functions of `brokerlab.workflows.compare` return them."""

    comparison: runs.Comparison
    by_queue: pl.DataFrame
    by_place: pl.DataFrame
    against: pl.DataFrame
    places: pl.DataFrame
    waits: pl.DataFrame
    example: runs.Example | None
    also: dict[str, pl.DataFrame]


@kit.answers
def load(p: Params) -> Data:
    """Read machines and workflows; generate them where there are none."""
    named = p.data or os.environ.get(VARIABLE, "")
    folder = Path(named) if named and Path(named).is_dir() else None
    if p.data and folder is None:
        raise DataError(f"data={p.data!r}: no such folder; leave it empty to generate a load")
    if folder and (folder / "swf-logs").is_dir():
        result = machines.recorded_machines(folder / "swf-logs", p.policies, load=p.load)
    else:
        result = machines.generated_machines(p.policies, seed=p.seed)
    opened, refused = open_archive(p.archive) if p.archive else None, ""
    if opened:
        try:
            result = result.join(machines.archived_machine(opened, p.policies[0], load=p.load))
        except InsufficientDataError as error:
            refused = str(error)
    home = folder / "wfinstances" if folder and (folder / "wfinstances").is_dir() else None
    recorded = bool(p.workflows or home)
    flows = (
        read_workflows(home, p.workflows or USUAL, stretch=p.stretch)
        if recorded
        else shapes.usual(p.stretch)
    )
    return Data(result, flows, recorded, opened, refused)


@kit.answers
def study(data: Data, p: Params) -> Study:
    """Run every strategy from the same states of the queues, and sum up."""
    systems = data.machines.systems
    result = runs.compare(
        data.workflows,
        systems,
        strategies=list(dict.fromkeys((*(p.strategies or COMPARED), *NEEDED))),
        times=p.times,
        seed=p.seed,
        workers=p.workers,
        store=p.store or None,
    )
    done = result.done
    draws: dict[str, Any] = {"n_boot": p.n_boot, "seed": p.seed}
    if done.is_empty():
        reasons = result.runs["problem"].drop_nulls().unique().sort().to_list()[:3]
        raise InsufficientDataError(
            f"no run came to its end; {'; '.join([*reasons, *result.missing.values()])}"
        )
    both = done.filter(pl.col("strategy").is_in([NOTES, PAPER]))
    waits = runs.estimated_waits(systems, result.plan.times)
    return Study(
        comparison=result,
        by_queue=runs.ratios(done, reference=PAPER, by=("system",), **draws),
        by_place=runs.ratios(both, reference=PAPER, **draws),
        against=runs.against_each(done, **draws),
        places=runs.against_better(done, **draws),
        waits=waits,
        example=runs.example(result),
        also={
            "means": runs.means(done, "turnaround", **draws),
            "costs_by_strategy": runs.costs(done),
            "rules_difference": result.rules_difference(**draws),
            "shapes": runs.shapes_by_place(done),
            "published": runs.shape_checks(result, **draws),
            "predictions": runs.score_predictions(systems),
        },
    )


def page(data: Data, s: Study, p: Params) -> Page:
    """Put the page together."""
    notes = s.by_queue.filter(strategy=NOTES).sort("ratio", "system", descending=[True, False])
    systems, flows = data.machines.systems, data.workflows
    digests = {f"queue {name}": system.digest for name, system in systems.items()}
    digests |= {f"workflow {name}": dag.digest for name, dag in flows.items()}
    return Page(
        verdict=Verdict(kind="finding", sentence=headline(notes)),
        numbers=[
            *(
                Number.of(
                    row, "ratio", label=f"Turnaround, notes' over paper's rule, {row['system']}"
                )
                for row in rounded(decisive(notes)).to_dicts()
            ),
            *(
                Number.of(row, "ratio", label=f"Paper's rule over {NAMES[row['reference']]}")
                for row in rounded(s.against).to_dicts()
            ),
        ],
        chart=Chart(
            draw=charts.turnaround_ratios,
            name="rules_by_queue",
            frame=notes.with_columns(label="system"),
            options={"of": "notes' rule over paper's"},
            finding=say(
                "The notes' rule takes longer at {longer} and shorter at {shorter} of {n} queues",
                longer_and_shorter(notes),
            ),
            sample=sample(data, p),
            note="Both group levels of tasks into pilot jobs. Notes: the rule as noted (rules=notes, the default); paper: as "
            "published (rules=paper). Turnaround: from submission to the end. Bars: 95 % intervals; dashed: the same.",
        )
        if notes.height
        else None,
        sections={
            "Grouping against simpler ways": [against_simple(s)],
            "Workflow by workflow, queue by queue": [places(s)],
            "Strategy by strategy": strategies(data, s),
            "The two rule sets": rule_sets(s),
            "Waits": waits(data, s),
            "One instant, every strategy": example(data, s),
            "The published results": [published(s)],
        },
        caveats=caveats(data, s, p),
        facts=facts(data),
        archive=data.archive,
        window=say("{n} instants per queue", n=p.times),
        digests=digests | {f"rules {n}": PilotRules(n).digest for n in ("notes", "paper")},
        also=also(s),
        values={"comparison": s.comparison.to_dict()},
        synthetic=data.machines.synthetic or not data.recorded,
    )


def rounded(frame: pl.DataFrame) -> pl.DataFrame:
    """Return ratios and hours with two decimals, as a page shows them; the frames of `also` have them all."""
    return frame.with_columns(pl.col(pl.Float64).round(2))


def longer_and_shorter(ratios: pl.DataFrame) -> dict[str, int]:
    """Count rows whose interval lies above 1, and below."""
    longer, shorter = ratios.filter(pl.col("ratio_lo") > 1), ratios.filter(pl.col("ratio_hi") < 1)
    return {"longer": longer.height, "shorter": shorter.height, "n": ratios.height}


def decisive(notes: pl.DataFrame) -> pl.DataFrame:
    """Return the queue that the headline names: where the interval excludes 1, the longest first."""
    longer, shorter = notes.filter(pl.col("ratio_lo") > 1), notes.filter(pl.col("ratio_hi") < 1)
    return longer.head(1) if longer.height else shorter.tail(1) if shorter.height else notes.head(1)


def headline(notes: pl.DataFrame) -> str:
    """Say which rule set groups better, with the queue where it matters most."""
    if notes.is_empty():
        return "The two rules of grouping could not be compared."
    apart = [name for name in ("longer", "shorter") if longer_and_shorter(notes)[name]]
    key = "both" if len(apart) == 2 else (apart or ["same"])[0]
    return say(HEADLINES[key], decisive(notes).row(0, named=True))


def sample(data: Data, p: Params) -> str:
    """Say how much was run."""
    counts = {"queues": len(data.machines.systems), "flows": len(data.workflows), "n": p.times}
    return say("{queues} queues, {flows} workflows, {n} instants each.", counts)


def against_simple(s: Study) -> Chart:
    """Hold grouping against the better of one job and one job per task."""
    counts = {
        f"{rules}_{outcome}": s.places.filter(rules=rules, outcome=outcome).height
        for rules in ("paper", "notes")
        for outcome in ("sooner", "later")
    }
    return Chart(
        draw=charts.turnaround_ratios,
        name="grouping_by_place",
        frame=s.places.with_columns(label="workflow"),
        options={"of": "grouping over the better simple way", "panels": "system"},
        finding=say(
            "Ends sooner by the paper's rule at {paper_sooner} places, later at {paper_later}; by the notes' at "
            "{notes_sooner} and {notes_later}",
            counts,
        ),
        sample="Against one job or one job per task, whichever is shorter; bars: 95 % intervals; dashed: the same.",
    )


def places(s: Study) -> Table:
    """Lay out both rule sets against the better simple way, place by place."""
    key = ["system", "workflow", "against"]
    paper, notes = (
        rounded(s.places.filter(rules=rules)).select(
            *key,
            **{f"{rules}{end}": f"ratio{end}" for end in ("", "_lo", "_hi")},
            **{f"{rules}_became": "became"},
        )
        for rules in ("paper", "notes")
    )
    worst = (pl.col("paper") == pl.col("paper").max()) & (pl.col("paper") > 1)
    frame = paper.join(notes, on=key, maintain_order="left").with_columns(
        place=pl.format("{}, {}", "workflow", "system"),
        against=pl.col("against").replace(dict(NAMES)),
        mark=pl.when(worst).then(pl.lit("worst")),
    )
    became = dict(frame["paper_became"].value_counts().rows())
    return Table(
        name="places",
        frame=frame,
        caption=say(
            "By the paper's rule most runs become one job at {one}, go task by task at {alone} of {n} places",
            one=became.get("one job", 0),
            alone=became.get("task by task", 0),
            n=frame.height,
        ),
        columns={
            "place": "Workflow, queue",
            "against": "Better simple way",
            "paper": "Paper [ratio]",
            "paper_became": "Most runs",
            "notes": "Notes [ratio]",
            "notes_became": "Most runs",
        },
        mark="mark",
        most=30,
        note=f"Turnaround over that of the better simple way. {INSTANTS}",
    )


def strategies(data: Data, s: Study) -> list[kit.Block | None]:
    """Lay out every strategy's turnaround against grouping by the paper's rules, and what it costs."""
    reference = pl.when(pl.col("strategy") == PAPER).then(pl.lit("reference"))
    frame = rounded(runs.costs(s.comparison.done)).with_columns(
        name=pl.col("strategy").replace(dict(NAMES)), mark=reference
    )
    columns = {"name": "Strategy"}
    for place, system in enumerate(data.machines.systems):
        ends = {f"ratio_{place}{end}": f"ratio{end}" for end in ("", "_lo", "_hi")}
        ratios = rounded(s.by_queue.filter(system=system)).select("strategy", **ends)
        frame = frame.join(ratios, on="strategy", how="left", maintain_order="left")
        columns[f"ratio_{place}"] = f"{system} [ratio]"
    return [
        Table(
            name="strategies",
            frame=frame,
            caption=f"Shortest over all queues: {frame['name'][0]}",
            columns=columns,
            mark="mark",
            note="Turnaround over that of grouping by the paper's rule: geometric means over the workflows at the same "
            f"instants. {INSTANTS}",
        ),
        Table(
            name="costs",
            frame=frame,
            caption="What the strategies cost, over all queues",
            columns={
                "name": "Strategy",
                "jobs": "Jobs [per run]",
                "expirations": "Expired [per run]",
                "waste": "Host time idle or lost [% of useful]",
            },
            mark="mark",
        ),
    ]


def rule_sets(s: Study) -> list[kit.Block | None]:
    """Show what the two rule sets do."""
    shapes_of = runs.shapes_by_rules(s.comparison.done)
    by_place = s.by_place.sort("ratio", "workflow", "system", descending=[True, False, False])
    rows = {row["strategy"]: row for row in shapes_of.to_dicts()}
    terms = {"one": rows[NOTES]["one_job"], "alone": rows[PAPER]["task_by_task"]} if rows else {}
    return [
        Table(
            name="rules",
            frame=shapes_of.with_columns(name=pl.col("strategy").replace(dict(NAMES))),
            caption=say(
                "Notes: {one:%} of the runs become one job; paper: {alone:%} go task by task", terms
            ),
            columns={
                "name": "Rules",
                "one_job": "One job [% of runs]",
                "pilots": "Pilots [% of runs]",
                "pilots_then_tasks": "Pilots, then task by task [% of runs]",
                "task_by_task": "Task by task [% of runs]",
                "expirations": "Expired pilots [per run]",
            },
            note="Where all levels are taken and the wait is more than twice the run time, the notes send one wide job and the "
            "paper goes task by task, which waits again at every level.",
        ),
        Chart(
            draw=charts.turnaround_ratios,
            name="rules_by_place",
            frame=by_place.with_columns(label=pl.format("{}, {}", "workflow", "system")),
            options={"of": "notes' rule over paper's"},
            finding=say(
                "The notes' rule takes longer at {longer} and shorter at {shorter} of {n} places",
                longer_and_shorter(by_place),
            ),
            sample="Geometric means at the same instants; bars: 95 % intervals; dashed: the same.",
        ),
    ]


def waits(data: Data, s: Study) -> list[kit.Block | None]:
    """Show how long requests wait, and how well that is known."""
    hours = runs.hour_waits(s.waits)
    grows = pl.col("all_hosts_h") > MUCH * pl.col("one_host_h").clip(0.1)
    predictions = s.also["predictions"]
    return [
        Chart(
            draw=charts.waits_by_run_time,
            frame=s.waits.select(
                "system", "size", run_h=pl.col("run_s") / HOUR, wait=pl.col("p50") / HOUR
            ),
            finding=say(
                "Waits grow with the number of hosts at {n} of {all} queues",
                n=hours.filter(grows).height,
                all=hours.height,
            ),
            sample="Median of the estimates at the instants.",
        ),
        Table(
            name="machines",
            frame=data.machines.describe().join(hours, on="system", maintain_order="left"),
            caption="The queues",
            columns={
                "system": "Queue",
                "hosts": "Hosts",
                "jobs": "Background jobs",
                "days": "Length [d]",
                "load": "Load [1]",
                "asked": "Asked over used host time [ratio]",
                "one_host_h": "Wait of an hour, one host [h]",
                "all_hosts_h": "all hosts [h]",
            },
        ),
        Table(
            name="workflows",
            frame=describe_workflows(data.workflows).with_columns(
                pl.col("work", "longest_path") / HOUR
            ),
            caption="The workflows",
            columns={
                "workflow": "Workflow",
                "tasks": "Tasks",
                "levels": "Levels",
                "width": "Widest level [hosts]",
                "work": "Work [host h]",
                "longest_path": "Longest path [h]",
            },
        ),
        Table(
            name="predictions",
            frame=predictions.with_columns(name=pl.col("method").replace(METHODS)),
            caption="Waits predicted at submission, scored on the later half of each load",
            columns={
                "system": "Queue",
                "name": "Predicted by",
                "n_predicted": "Jobs",
                "coverage_pct": "Waited no longer [%]",
                "waited_n_predicted": "Jobs that waited",
                "waited_coverage_pct": "of them no longer [%]",
                "waited_tightness": "Predicted over waited [median ratio]",
                "waited_within_two_pct": "Within a factor of two [%]",
            },
            note="The load's own jobs, simulated alone. Fitted ways learn a wait when the job starts, never before; bounds "
            "have 95 % confidence. No intervals: jobs in a row wait alike.",
        ),
    ]


def example(data: Data, s: Study) -> list[kit.Block | None]:
    """Show one instant closely."""
    result = s.example
    if result is None:
        return []
    frame = rounded(
        result.summary().with_columns(
            pl.col("turnaround", "wasted") / HOUR, name=pl.col("strategy").replace(dict(NAMES))
        )
    )
    first, last = frame.row(0, named=True), frame.row(-1, named=True)
    terms = {
        "first": first["name"],
        "last": last["name"],
        "x": first["turnaround"],
        "y": last["turnaround"],
    }
    return [
        Chart(
            draw=charts.job_phases,
            frame=result.bars().select(
                "phase",
                line=lines(),
                strategy=pl.col("strategy").replace(dict(NAMES)),
                begin_h=pl.col("begin_s") / HOUR,
                end_h=pl.col("end_s") / HOUR,
            ),
            finding=say("First: {first} ({x:h}); last: {last} ({y:h})", terms),
            sample=say(
                "{flow} at {system}, day {day:.1f} of the load. A line per pilot, or per level of single tasks.",
                flow=result.workflow,
                system=result.system,
                day=result.submit_time / DAY,
            ),
            note="One instant proves nothing; it shows what the strategies do. Expires: runs into its walltime with tasks left.",
        ),
        Table(
            name="example",
            frame=frame,
            caption=say(
                "Useful in every case: {work:.1f} host h",
                work=data.workflows[result.workflow].work / HOUR,
            ),
            columns={
                "name": "Strategy",
                "turnaround": "Turnaround [h]",
                "jobs_submitted": "Jobs",
                "shape": "How it went",
                "expirations": "Expired pilots",
                "wasted": "Idle or lost [host h]",
            },
        ),
    ]


def lines() -> pl.Expr:
    """Name a pilot, or the single tasks of a level."""
    first, last = pl.col("first_level"), pl.col("last_level")
    several = pl.format("levels {} to {}", first, last)
    levels = pl.when(first == last).then(pl.format("level {}", first)).otherwise(several)
    pilot = pl.format("{}: {}, hosts: {}", "job", levels, "hosts")
    single = pl.format("level {}, single tasks: {}", first, "n_jobs")
    return pl.when(pl.col("job").is_null()).then(single).otherwise(pilot)


def published(s: Study) -> Table:
    """Lay out the shapes of the published results."""
    checks = s.also["published"]
    counts = {name: (checks["outcome"] == name).sum() for name in ("holds", "fails")}
    return Table(
        name="published",
        frame=checks.with_columns(
            mark=pl.when(pl.col("outcome") == "fails").then(pl.lit("does not hold"))
        ),
        caption=say(
            "{holds} of {n} shapes of the published results are seen here, {fails} are not",
            counts,
            n=checks.height,
        ),
        columns={
            "check": "Check",
            "claim": "Published, or expected",
            "found": "Found here",
            "outcome": "Outcome",
        },
        mark="mark",
        note="Zhang, Koelbel, Cooper, Cluster 2009. Its logs and workflows are not public: only shapes can be compared. Grouping "
        "by the paper's rule; queues without backfilling are left out, as the publication has none.",
    )


def caveats(data: Data, s: Study, p: Params) -> list[Caveat]:
    """Collect what the data leave open."""
    loads = data.machines.describe().unique("cluster", keep="first", maintain_order=True)
    origins = loads["origin"].to_list()
    assumed = "{system}: its {hosts} hosts are assumed, for a load of {load:.2f}; {jobs} jobs over {days:.0f} days."
    unknown = [
        Caveat(
            n=origins.count("generated"),
            text="The background load is generated: it shows nothing about real queues.",
        ),
        Caveat(n=not data.recorded, text="The workflows are generated, of published shapes."),
        *(Caveat(n=not row["hosts_known"], text=say(assumed, row)) for row in loads.to_dicts()),
        Caveat(n=bool(data.refused), text=f"The archive adds no machine: {data.refused}."),
        Caveat(
            n=origins.count("log"),
            text="Jobs of the logs are scheduled anew: waits are those of the simulated machine.",
        ),
        Caveat(n=p.stretch != 1, text=say("Run times of tasks are stretched by {x}.", x=p.stretch)),
    ]
    unknown += [
        Caveat(n=1, text=f"Runs are missing: {name}, {why}.")
        for name, why in s.comparison.missing.items()
    ]
    problems = (
        s.comparison.runs.drop_nulls("problem").group_by("problem", maintain_order=True).len()
    )
    unknown += [
        Caveat(n=n, text=say("{n} runs were not possible: {why}.", n=n, why=why))
        for why, n in problems.rows()
    ]
    full = runs.hour_waits(s.waits).filter(pl.col("one_host_h") > LONG_H)
    saturated = (
        "{system}: an hour on one host waits {one_host_h:h} in the median; no site would run so."
    )
    unknown += [Caveat(n=1, text=say(saturated, row)) for row in full.to_dicts()]
    easy = [name for name, system in data.machines.systems.items() if system.policy == "easy"]
    bound = (
        f"Estimated starts under EASY are no bounds, later jobs may pass: {listed(easy)}."
        if easy
        else ""
    )
    known = "Run times are known to the scheduler, transfers cost nothing, and other users do not react ({n} runs)."
    n = s.comparison.done.height
    return [*unknown, Caveat(n=len(easy), text=bound), Caveat(n=n, text=say(known, n=n))]


def facts(data: Data) -> dict[str, str]:
    """Say what was read, and what rule R did to it."""
    result = {}
    changes = data.machines.changes
    for row in data.machines.sources.to_dicts():
        mine = changes.filter(cluster=row["cluster"]).to_dicts()
        touched = [say("{rule} {n_rows} ({effect})", one) for one in mine]
        text = say("{source}: {jobs} of {rows} rows", row)
        result[f"Load, {row['cluster']}"] = "; ".join([text, *touched])
    odd = [f"{name}: {text}" for name, dag in data.workflows.items() for text in dag.findings]
    return result | {"Workflows": ", ".join(data.workflows), "Odd in the files": "; ".join(odd)}


def also(s: Study) -> dict[str, pl.DataFrame]:
    """Return the frames that are written and not shown."""
    timelines = s.example.timelines() if s.example else {}
    result = {
        name: frame for name, frame in s.also.items() if name not in ("published", "predictions")
    }
    frames = {"by_queue": s.by_queue, "against": s.against, "ratios": s.places, "waits": s.waits}
    written = result | frames | {"runs": s.comparison.runs}
    if s.example:
        written["example_metrics"] = s.example.summary()
    return written | {f"example_{name}": frame for name, frame in timelines.items()}


def run(p: Params) -> dict[str, Any]:
    """Load, study and publish; the notebook does the same step by step."""
    data = load(p)
    return kit.publish(page(data, study(data, p), p), p)
