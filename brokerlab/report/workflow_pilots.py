"""How should a workflow be submitted to a batch queue, and what do the two rule sets of grouping do?

Recorded workflows run in every way from the same states of queues with the load of real logs; load and workflows are
generated where none are at hand, and the page says so.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import polars as pl
from pydantic import Field, ValidationInfo, field_validator

from brokerlab.archive.store import Archive, open_archive
from brokerlab.charts import workflows as charts
from brokerlab.errors import InsufficientDataError, nearest
from brokerlab.report import kit
from brokerlab.report.kit import Caveat, Chart, Number, Page, Table, Verdict, say
from brokerlab.workflows import compare as runs
from brokerlab.workflows import machines, shapes
from brokerlab.workflows.batch import POLICIES
from brokerlab.workflows.compare.summaries import NOTES, ONE_JOB, PAPER, PER_TASK
from brokerlab.workflows.dag import Dag
from brokerlab.workflows.readers import USUAL, describe_workflows, read_workflows
from brokerlab.workflows.rules import PilotRules
from brokerlab.workflows.strategies import NAMES, WORDS

NEEDED = (NOTES, PAPER, ONE_JOB, PER_TASK)  # strategies that the page speaks of
COMPARED = (*NEEDED, "pilot_levels:paper_serial", "one_job_best", "level", "level_overlap")
"""Strategies that are compared where nothing else is said."""
HEADLINES = {
    "both": "Which rule groups better depends on the queue: the notes' takes {ratio} times as long at {system}.",
    "longer": "Group by the paper's rule: the notes' takes {ratio} times as long at {system}.",
    "shorter": "Keep the notes' rule: it takes {ratio} times as long as the paper's at {system}.",
    "same": "The two rules of grouping cannot be told apart: {ratio} times as long at {system}.",
}
"""Whether the notes' rules take longer, shorter or both at some queue, to the headline."""
NOTES_OVER = "Turnaround, notes' over paper's rule, {system}"
LONG_H = 24.0  # median wait of an hour on one host above which a queue is saturated [h]


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
        "",
        description="folder with swf-logs and wfinstances, empty for $BROKERLAB_DATA or ../shared/data [path]",
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

    @field_validator("policies", "strategies")
    @classmethod
    def _known(cls, names: list[str], info: ValidationInfo) -> list[str]:
        known = list(POLICIES if info.field_name == "policies" else NAMES)
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
    against: pl.DataFrame
    places: pl.DataFrame
    waits: pl.DataFrame
    example: runs.Example | None
    also: dict[str, pl.DataFrame]


@kit.answers
def load(p: Params) -> Data:
    """Read machines and workflows; generate them where there are none."""
    folder = kit.data_folder(p.data)
    logs = folder / "swf-logs" if folder and (folder / "swf-logs").is_dir() else None
    result = machines.usual_machines(logs, p.policies, load=p.load, seed=p.seed)
    opened, refused = open_archive(p.archive) if p.archive else None, ""
    if opened:
        try:
            result = result.join(machines.archived_machine(opened, p.policies[0], load=p.load))
        except InsufficientDataError as error:
            refused = str(error)
    home = folder / "wfinstances" if folder and (folder / "wfinstances").is_dir() else None
    recorded = bool(p.workflows or home)
    files = p.workflows or USUAL
    flows = read_workflows(home, files, stretch=p.stretch) if recorded else shapes.usual(p.stretch)
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
        reasons = [*list(result.problems)[:3], *result.missing.values()]
        raise InsufficientDataError(f"no run came to its end; {'; '.join(reasons)}")
    both = done.filter(pl.col("strategy").is_in([NOTES, PAPER]))
    return Study(
        comparison=result,
        by_queue=runs.ratios(done, reference=PAPER, by=("system",), **draws),
        against=runs.against_each(done, **draws),
        places=runs.against_better(done, **draws),
        waits=runs.estimated_waits(systems, result.plan.times),
        example=runs.example(result),
        also={
            "means": runs.means(done, "turnaround", **draws),
            "costs_by_strategy": runs.costs(done),
            "rules_difference": result.rules_difference(**draws),
            "shapes": runs.shapes_by_place(done),
            "rules_by_place": runs.ratios(both, reference=PAPER, **draws),
            "published": runs.shape_checks(result, **draws),
            "predictions": runs.score_predictions(systems),
        },
    )


def page(data: Data, s: Study, p: Params) -> Page:
    """Put the page together."""
    notes = s.by_queue.filter(strategy=NOTES).sort("ratio", "system", descending=[True, False])
    systems, flows = data.machines.systems, data.workflows
    counts = {"queues": len(systems), "flows": len(flows), "n": p.times}
    digests = {f"queue {name}": system.digest for name, system in systems.items()}
    digests |= {f"workflow {name}": dag.digest for name, dag in flows.items()}
    rows = [(NOTES_OVER, row) for row in runs.decisive(notes).to_dicts()]
    rows += [(f"Paper's rule over {WORDS[row['reference']]}", row) for row in s.against.to_dicts()]
    return Page(
        verdict=Verdict(kind="finding", sentence=_headline(notes)),
        numbers=[Number.of(row, "ratio", label=label.format(**row)) for label, row in rows],
        chart=Chart(
            draw=charts.turnaround_ratios,
            name="rules_by_queue",
            frame=notes.with_columns(label="system"),
            options={"of": "notes' rule over paper's"},
            finding=say(
                "The notes' rule takes longer at {longer} and shorter at {shorter} of {n:#queue}",
                runs.longer_and_shorter(notes),
            ),
            sample=say("{queues:#queue}, {flows:#workflow}, {n:#instant} each.", counts),
            note="Both group levels of tasks into pilot jobs. Notes: the rule as noted (rules=notes, the default); paper: as "
            "published (rules=paper). Turnaround: from submission to the end. Bars: 95 % intervals (one that reaches the edge goes on); dashed: the same.",
        )
        if notes.height
        else None,
        sections={
            "Grouping against simpler ways": [_against_simple(s)],
            "Strategy by strategy": [_strategies(s)],
            "The two rule sets": [_rule_sets(s)],
            "The published results": [_published(s)],
        },
        caveats=_caveats(data, s, p),
        facts=_facts(data),
        archive=data.archive,
        window=say("{n:#instant} per queue", n=p.times),
        digests=digests | {f"rules {n}": PilotRules(n).digest for n in ("notes", "paper")},
        also=_also(data, s),
        values={"comparison": s.comparison.to_dict()},
        synthetic=data.machines.synthetic or not data.recorded,
    )


def _headline(notes: pl.DataFrame) -> str:
    if notes.is_empty():
        return "The two rules of grouping could not be compared."
    apart = [name for name in ("longer", "shorter") if runs.longer_and_shorter(notes)[name]]
    key = "both" if len(apart) == 2 else (apart or ["same"])[0]
    return say(HEADLINES[key], runs.decisive(notes).row(0, named=True))


def _against_simple(s: Study) -> Chart:
    counts = {
        f"{rules}_{outcome}": s.places.filter(rules=rules, outcome=outcome).height
        for rules in ("paper", "notes")
        for outcome in ("sooner", "later")
    }
    worst = s.places.filter(rules="paper").sort("ratio").tail(1)
    return Chart(
        draw=charts.turnaround_ratios,
        name="grouping_by_place",
        frame=s.places.with_columns(label="workflow"),
        options={"of": "grouping over the better simple way", "panels": "system"},
        finding=say(
            "Ends sooner by the paper's rule at {paper_sooner:#place}, later at {paper_later}; by the notes' at "
            "{notes_sooner} and {notes_later}",
            counts,
        ),
        sample="Against one job or one job per task, whichever is shorter; bars: 95 % intervals (one that reaches the edge goes on); dashed: the same.",
        note="".join(
            say("Worst by the paper's rule: {workflow} at {system}, {ratio} times as long.", row)
            for row in worst.to_dicts()
        ),
    )


def _strategies(s: Study) -> Table:
    table = runs.costs_by_queue(s.comparison.done, s.by_queue)
    frame = table.frame.with_columns(
        pl.col(pl.Float64).round(3),  # ratios next to 1 have intervals of a millionth
        name=pl.col("strategy").replace(WORDS),
        mark=pl.when(strategy=PAPER).then(pl.lit("reference")),
    )
    return Table(
        name="strategies",
        frame=frame,
        caption=f"Shortest over all queues: {frame['name'][0]}",
        columns={
            "name": "Strategy",
            **{column: f"{system} [ratio]" for system, column in table.columns.items()},
            "jobs": "Jobs [per run]",
            "expirations": "Expired [per run]",
            "waste": "Host time idle or lost [% of useful]",
        },
        mark="mark",
        note="Turnaround over that of grouping by the paper's rule: geometric means over the workflows at the same "
        "instants. In brackets: 95 % intervals from resampling instants; below 1: ends sooner.",
    )


def _rule_sets(s: Study) -> Table:
    frame = runs.shapes_by_rules(s.comparison.done)
    rows = {row["strategy"]: row for row in frame.to_dicts()}
    caption = "What runs of grouping became"
    if NOTES in rows and PAPER in rows:
        terms = {"one": rows[NOTES]["one_job"], "alone": rows[PAPER]["task_by_task"]}
        caption = say("Notes: {one:%} become one job; paper: {alone:%} go task by task", terms)
    return Table(
        name="rules",
        frame=frame.with_columns(name=pl.col("strategy").replace(WORDS)),
        caption=caption,
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
    )


def _published(s: Study) -> Table:
    checks = s.also["published"]
    counts = {name: (checks["outcome"] == name).sum() for name in ("holds", "fails")}
    caption = "{holds} of {n} published shapes are seen here, {fails} are not"
    return Table(
        name="published",
        frame=checks,
        caption=say(caption, counts, n=checks.height),
        columns={
            "check": "Check",
            "claim": "Published, or expected",
            "found": "Found here",
            "outcome": "Outcome",
        },
        note="Zhang, Koelbel, Cooper, Cluster 2009. Its logs and workflows are not public: only shapes can be compared. Grouping "
        "by the paper's rule; queues without backfilling are left out, as the publication has none.",
    )


def _caveats(data: Data, s: Study, p: Params) -> list[Caveat]:
    loads = data.machines.describe().unique("cluster", keep="first", maintain_order=True)
    origins = loads["origin"].to_list()
    assumed = "{system}: its {hosts:#host} are assumed, for a load of {load:.2f}; {jobs:#job} over {days:.0f} days."
    missing = "; ".join(f"{name}, {why}" for name, why in s.comparison.missing.items())
    full = runs.hour_waits(s.waits).filter(pl.col("one_host_h") > LONG_H)["system"].to_list()
    saturated = f"An hour on one host waits more than a day in the median, as no site would run: {'; '.join(full)}."
    easy = [name for name, system in data.machines.systems.items() if system.policy == "easy"]
    bound = f"Estimated starts under EASY are no bounds, later jobs may pass: {'; '.join(easy)}."
    known = "Run times are known to the scheduler, transfers cost nothing, and other users do not react ({n:#run})."
    return [
        Caveat(origins.count("generated"), "The background load is generated, not real."),
        Caveat(not data.recorded, "The workflows are generated, of published shapes."),
        *(Caveat.of(not row["hosts_known"], assumed, row) for row in loads.to_dicts()),
        Caveat(bool(data.refused), f"The archive adds no machine: {data.refused}."),
        Caveat(origins.count("log"), "Waits are simulated: the logs' jobs run anew."),
        Caveat.of(p.stretch != 1, "Run times of tasks are stretched by {x}.", x=p.stretch),
        Caveat(len(s.comparison.missing), f"Runs are missing: {missing}."),
        *(
            Caveat.of(n, "Not possible: {n:#run}, {why}.", why=why)
            for why, n in s.comparison.problems.items()
        ),
        Caveat(len(full), saturated),
        Caveat(len(easy), bound),
        Caveat.of(s.comparison.done.height, known),
    ]


def _facts(data: Data) -> dict[str, str]:
    result = {}
    for row in data.machines.sources.to_dicts():
        mine = data.machines.changes.filter(cluster=row["cluster"]).to_dicts()
        touched = [say("{rule} {n_rows} ({effect})", one) for one in mine]
        text = say("{source}: {jobs} of {rows} rows", row)
        result[f"Load, {row['cluster']}"] = "; ".join([text, *touched])
    odd = [f"{name}: {text}" for name, dag in data.workflows.items() for text in dag.findings]
    return result | {"Workflows": ", ".join(data.workflows), "Odd in the files": "; ".join(odd)}


def _also(data: Data, s: Study) -> dict[str, pl.DataFrame]:
    written = {name: frame for name, frame in s.also.items() if name != "published"}
    hours = runs.hour_waits(s.waits)
    written |= {
        "by_queue": s.by_queue,
        "against": s.against,
        "ratios": s.places,
        "waits": s.waits,
        "machines": data.machines.describe().join(hours, on="system", how="left"),
        "workflows": describe_workflows(data.workflows),
        "runs": s.comparison.runs,
    }
    if s.example is None:
        return written
    timelines = {f"example_{name}": frame for name, frame in s.example.timelines().items()}
    bars, summary = s.example.bars(), s.example.summary()
    return written | timelines | {"example_bars": bars, "example_metrics": summary}
