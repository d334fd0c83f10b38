"""Which percentile ranks and margins should the scouts use?

Chosen again and again on the tasks so far, scored on those that follow; one part per parameter.
"""

from __future__ import annotations

import contextlib
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import polars as pl
from pydantic import Field, field_validator

from brokerlab.archive.store import open_archive, session
from brokerlab.calibrate.judge import MIN_UNITS
from brokerlab.calibrate.percentiles import PARAMETERS, Inputs, LossWeights, Study, frames, kills
from brokerlab.calibrate.percentiles import load as load_inputs
from brokerlab.calibrate.percentiles import study as study_one
from brokerlab.calibrate.percentiles.backtest import merge_sentences
from brokerlab.calibrate.percentiles.retries import Retries, ask_retries, judge_retries
from brokerlab.calibrate.stops import (
    ANY,
    backtest_stops,
    read_scout_history,
)
from brokerlab.charts import scouts as charts
from brokerlab.errors import InsufficientDataError
from brokerlab.gdpconfig.proposal.document import tasks_in_words
from brokerlab.intervals import MEASURED_POOLED
from brokerlab.report import kit
from brokerlab.report.kit import Caveat, Chart, Number, Page, Part, Table, Verdict, say
from brokerlab.report.needs import Needs, Rows
from brokerlab.report.runs import earlier_looks
from brokerlab.words import days_of, short_percent, thin

NAMES = {"ramcount": "ramCount", "cputime": "cpuTime", "outdiskcount": "outDiskCount"}
"""The parameters as the documents write them."""
CHOSEN = "Chosen on earlier tasks"
"""What the second setting of a table is: it may differ from block to block."""

CHECKS = {
    "X1": "X1 cpuTime far from the request",
    "X2": "X2 ramCount far from the request",
    "X3": "X3 memory leak",
    "X4": "X4 short jobs",
    "X5": "X5 CPU efficiency",
    "X6": "X6 CPU time above time x cores",
    "X7": "X7 success rate of scouts",
    ANY: "Any of them",
}
"""The checks as a page names them."""
QUESTIONS = ("alpha", "relevant", "gshare", "processingtype", "start", "end")
"""Parameters that make another question of the same one."""

Named = Literal["all", "ramcount", "cputime", "outdiskcount"]
Rank = Annotated[int, Field(ge=0, le=100)]
Margin = Annotated[int, Field(ge=0, le=1000)]


class Params(kit.Params):
    """What may be asked."""

    report: ClassVar[str] = "scout-percentiles"
    question: ClassVar[str] = "Which percentile ranks and margins should the scouts use?"

    needs: ClassVar[Needs] = Needs(
        tables=("tasks", "jobs", "datasets", "files", "queues"),
        derived=("tasks", "datasets", "files", "queues"),
        rows=[Rows.tasks("tasks with finished jobs", pl.col("jobstatus") == "finished")],
        memory_gb=(1.75, 0.25),
        without={
            "gdpconfig": "No settings are recorded: the catalogue's defaults count as current."
        },
    )

    gshare: str = Field("", description="only this global share, empty for all [name]")
    processingtype: str = Field("", description="only this processing type, empty for all [name]")
    parameter: Named = Field("all", description="ramcount, cputime, outdiskcount or all [name]")
    ranks: tuple[Rank, Rank] = Field((50, 99), description="first and last rank tried [%]")
    margins: tuple[Margin, Margin] = Field((0, 30), description="margins tried for ramcount [%]")
    loss: dict[str, float] = Field({}, description="weights of the loss that are not the defaults")
    alpha: kit.Share = Field(
        0.02, description="largest accepted share of first attempts killed [1]"
    )
    relevant: float = Field(0.05, gt=0, le=1, description="smallest change that matters [1]")
    blocks: int = Field(4, ge=2, le=20, description="blocks of time to choose and score on")
    spark: str = Field(
        "",
        description="master of a Spark session that carries jobs and files, empty for this machine",
    )

    @field_validator("ranks", "margins")
    @classmethod
    def _first_before_last(cls, ends: tuple[int, int]) -> tuple[int, int]:
        if ends[0] > ends[1]:
            raise ValueError("must be the first and the last, such as 50,99")
        return ends

    @field_validator("loss")
    @classmethod
    def _known(cls, loss: dict[str, float]) -> dict[str, float]:
        kit.allowed(lambda: LossWeights.default("ramcount", **loss))
        return loss


class Studies(NamedTuple):
    """One study per parameter, the most consequential first; why the archive has too little data for the others.

    ``stops`` is what became of the tasks that the checks stop; null where no task has scouts that were read, or they are not
    asked. ``retries`` is by how much retries after kills for memory should
    ask for more; null where memory is not asked about, or the archive shows no such retry.
    """

    answered: list[Study]
    unanswered: dict[str, str]
    stops: pl.DataFrame | None
    retries: Retries | None


@kit.answers
def load(p: Params) -> Inputs:
    """Read the tasks of the window and what their finished jobs say."""
    chosen: dict[str, Any] = {"gshare": p.gshare, "processingtype": p.processingtype}
    archive = open_archive(p.archive, spark=session(p.spark) if p.spark else None)
    return load_inputs(p.needs.opened(archive), start=p.start, end=p.end, rules=p.rules, **chosen)


@kit.answers
def study(data: Inputs, p: Params) -> Studies:
    """Back-test every parameter, choose on the tasks so far and score on those that follow."""
    question = kills(p.alpha, relevant=p.relevant, blocks=p.blocks, n_boot=p.n_boot, seed=p.seed)
    answered, unanswered = [], {}
    for name in PARAMETERS if p.parameter == "all" else [p.parameter]:
        try:
            one = study_one(
                data,
                name,
                question,
                created_at=kit.now(),
                ranks=range(p.ranks[0], p.ranks[1] + 1),
                margins=range(p.margins[0], p.margins[1] + 1),
                loss=LossWeights.default(name, **p.loss),
            )
            answered.append(one)
        except InsufficientDataError as error:
            unanswered[name] = str(error)
    answered.sort(key=lambda s: (not s.acts, -abs(s.comparison.quantity("loss")["diff"])))
    stops = retries = None
    if p.parameter in ("all", "ramcount"):
        with contextlib.suppress(InsufficientDataError):
            retries = judge_retries(
                data,
                question=ask_retries(
                    relevant=p.relevant, blocks=p.blocks, n_boot=p.n_boot, seed=p.seed
                ),
                loss=LossWeights.default("ramcount", **p.loss),
            )
    if not p.spark:
        with contextlib.suppress(InsufficientDataError):
            read = read_scout_history(data.archive, rules=data.rules, config=data.config)
            history = read.among(data.tasks)
            stops = backtest_stops(history, n_boot=p.n_boot, seed=p.seed).checks
    return Studies(answered, unanswered, stops, retries)


def page(data: Inputs, studies: Studies, p: Params) -> Page:
    """Put the parameters together."""
    filters = tasks_in_words(data.filters) if data.filters else ""
    parts = [_part(one, p, filters) for one in studies.answered]
    parts += [kit.unanswered(n, NAMES[n], why) for n, why in studies.unanswered.items()]
    parts += [] if studies.retries is None else [_retries_part(studies.retries)]
    parts += [] if studies.stops is None else [_stops_part(studies.stops)]
    first = parts[0]
    return Page(
        verdict=first.verdict,
        numbers=first.numbers,
        chart=first.chart,
        parts=[Part(**{**vars(first), "chart": None, "numbers": ()}), *parts[1:]],
        caveats=_caveats(data, studies, p),
        facts=_facts(studies),
        archive=data.archive,
        config=data.config,
        rules=data.rules,
        window=f"tasks created {days_of(*data.window)} (UTC)",
        filters=filters,
        proposals={
            one.parameter.name: one.verdict.proposal
            for one in studies.answered
            if one.verdict.proposal
        },
        also={
            f"{one.parameter.name}_{name}": frame
            for one in studies.answered
            for name, frame in frames.written(one).items()
        },
        values={
            **{name: {"reason": reason} for name, reason in studies.unanswered.items()},
            **{one.parameter.name: one.to_dict() for one in studies.answered},
            **({"retries": studies.retries.judgement.to_dict()} if studies.retries else {}),
        },
    )


def _facts(studies: Studies) -> dict[str, str]:
    assumed = [one.tried.assumptions.to_dict() for one in studies.answered[:1]]
    stated = (f"{k} {v}" for each in assumed for k, v in each.items() if k != "rules")
    return {"Assumptions": ", ".join(stated)}


# --- one parameter ----------------------------------------------------------------------------------------------------


def _part(s: Study, p: Params, filters: str) -> Part:
    parameter, note = s.parameter, f"mean over tasks; limit {100 * p.alpha:g} %"
    table = frames.before_after(s)
    rows = {row["quantity"]: row for row in table.iter_rows(named=True)}
    kills, reserved = rows["exceed_rate"], rows.get(f"reserved_{parameter.amount}")
    numbers = [Number.of(kills, "before", label="Killed, current", unit="%", note=note)]
    if s.acts and reserved:
        numbers.append(Number.of(kills, "after", label=f"Killed, {CHOSEN.lower()}", unit="%"))
        label = f"{parameter.thing.capitalize()} reserved, change"
        numbers.append(Number.of(reserved, "diff_pct", label=label, unit="%"))
    # a part of the tasks says what is, and proposes nothing for all of them
    kind = "finding" if filters and s.acts else s.verdict.kind
    return Part(
        name=parameter.name,
        title=f"{NAMES[parameter.name]}: {parameter.thing}",
        verdict=Verdict(
            kind=kind, subject=NAMES[parameter.name], sentence=_headline(s, p, filters)
        ),
        numbers=numbers,
        chart=_frontier(s, p),
        sections={
            kit.BEFORE_AFTER: [_before_after(s, table)],
            kit.GAINS: [_gains(s)],
            kit.CERTAINTY: _certainty(s, p),
        },
    )


HEADLINES = {
    "lower_loss": "Set {best}: {now:%} of jobs killed before, {then:%} after, stated loss {loss} (limit {limit}).",
    "fewer_breaches": "Set {best}: {then:%} of jobs killed instead of {now:%} (limit {limit}).",
    "better_not_within": "Set {best}, which is better: {then:%} killed instead of {now:%}; the limit of {limit} is not kept.",
    "nothing_better": "Keep {current}: nothing tried is better; a gain of more than {seen} would have been seen.",
    "few": "Too few tasks to judge: {n}; now {now:%} of jobs are killed.",
    "imprecise": "Nothing is shown to be better, and a gain of up to {seen} is not excluded.",
    "breach": "{now:%} of jobs are killed (limit {limit}), and no other setting is shown to be better.",
    "unconfirmed": "Settings chosen on earlier tasks were better, the last choice is not; {now:%} of jobs are killed.",
    "no_other": "No other setting tried keeps the limit of {limit} and has a gain that can be told; now {now:%} of jobs are killed.",
}


def _headline(s: Study, p: Params, filters: str) -> str:
    exceed, loss = s.comparison.quantity("exceed_rate"), s.comparison.quantity("loss")
    seen = s.judgement.smallest_seen
    sentence = HEADLINES[s.judgement.case]
    if filters and s.acts:
        sentence = "{filters}, no proposal: {best} kills {then:%} of jobs instead of {now:%}."
    return say(
        sentence,
        {"now": exceed["before"], "then": exceed["after"]},
        n=s.judgement.n_units,
        limit=f"{100 * p.alpha:g} %",
        current=s.current.words(s.parameter),
        best=s.best.words(s.parameter),
        loss=thin(f"{loss['diff_pct'] or 0:+.0f} %"),
        seen="" if seen is None else short_percent(seen),
        filters=filters.capitalize(),
    )


def _frontier(s: Study, p: Params) -> Chart:
    rows = {row["place"]: row for row in s.judgement.candidates.iter_rows(named=True)}
    places = {pair: place for place, pair in enumerate(s.judgement.settings)}
    finding = "No setting is shown to be better than {current}"
    if s.acts:
        finding = "{best} kills {then:%} of jobs instead of {now:%}"
    elif s.judgement.cheapest_within is None:
        finding = "No setting keeps kills within {limit} with certainty"
    return Chart(
        draw=charts.frontier_chart,
        frame=frames.frontier(s),
        options={"limit": 100 * p.alpha, "thing": s.parameter.thing},
        finding=say(
            finding,
            now=rows[places[s.current]]["exceed_rate"],
            then=rows[places[s.best]]["exceed_rate"],
            limit=f"{100 * p.alpha:g} %",
            current=s.current.words(s.parameter),
            best=s.best.words(s.parameter).capitalize(),
        ),
        sample=say(
            "{n:#task}, {jobs:#job}, all of the window; bars: two standard errors; line: nothing is better in both.",
            n=s.judgement.n_units,
            jobs=s.tried.counts["n_scored"],
        ),
    )


def _before_after(s: Study, table: pl.DataFrame) -> Table:
    j = s.judgement
    scored = "scored on tasks that came after the choice" if j.case != "few" else "all tasks"
    return Table(
        name="before_after",
        frame=table,
        caption=say(
            "{n:#task}, {jobs:#job}, {scored}",
            n=s.comparison.n_tasks,
            jobs=s.comparison.n_scored,
            scored=scored,
        ),
        columns={
            "label": "Quantity",
            "before": f"Current, {s.current.words(s.parameter)}",
            "after": CHOSEN if j.case != "few" else s.best.words(s.parameter),
            "diff": "Difference",
            "diff_pct": "Relative [%]",
            "coverage": "Measured coverage [%]",
        },
        unit="unit",
        mark="mark",
        note="The verdict rests on the judged rows: means over tasks, of which none counts more than the median one. "
        "Measured coverage: how often such 95 % intervals held the truth on synthetic tasks.",
    )


def _gains(s: Study) -> Table:
    levels = frames.by_level(s)
    finding = "No level has enough tasks to be called the worst"
    for worst in levels.filter(mark="worst").iter_rows(named=True):
        side = "after" if s.acts else "before"
        finding = say(f"Worst: {{name}}, {{{side}:%}} of its jobs are killed", worst)
    return Table(
        name="strata",
        frame=levels,
        caption=finding,
        columns={
            "name": "Stratum",
            "n_tasks": "Tasks",
            "before": "Kills, current [% of jobs]",
            "after": "Kills, chosen on earlier tasks [% of jobs]",
            "loss_diff": "Loss, difference [core h per core h]",
            "verdict": "Verdict",
        },
        mark="mark",
        most=25,
        note=f"Open: the loss's interval includes 0, or fewer than {MIN_UNITS} tasks.",
    )


def _certainty(s: Study, p: Params) -> list[kit.Block]:
    kept = frames.coverage(s)
    stable = "leaves the choice as it is" if s.stable else "can change the choice"
    return [
        Table(
            name="blocks",
            frame=frames.by_block(s),
            caption=say(
                "Each choice, made within an inner limit of {inner:%}, on the tasks after it",
                inner=s.judgement.inner * p.alpha,
            ),
            columns={
                "start": "From (UTC)",
                "n_tasks": "Tasks",
                "chosen": "Chosen before",
                "before": "Kills, current [% of jobs]",
                "after": "Kills, chosen before [% of jobs]",
                "loss_before": "Loss, current [core h per core h]",
                "loss_after": "Loss, chosen before [core h per core h]",
            },
        ),
        Chart(
            draw=charts.coverage_chart,
            frame=kept,
            options={"limit": 100 * p.alpha},
            finding=say(
                "{kept:%} of a task's jobs stay within their current request",
                kept=1 - s.judgement.candidates.filter("is_current")["exceed_rate"][0],
            ),
            sample=f"Promised: rank {s.current.rank} without margin, where scouts are like the rest. "
            f"No interval below {MIN_UNITS} tasks.",
        ),
        Table(
            name="weights",
            frame=frames.weights_moved(s),
            caption=f"Halving or doubling a weight of the stated loss {stable}",
            columns={
                "weight": "Weight",
                "value": "Value [core h]",
                "halved": "Halved",
                "doubled": "Doubled",
                "why": "Why",
            },
        ),
    ]


def _retries_part(retries: Retries) -> Part:
    table = Table(
        name="retries",
        frame=retries.frame().with_columns(mark=pl.when("is_current").then(pl.lit("current"))),
        caption=say(
            "Retries ask for so many times what was killed, and for its square; current: the median of {n} retries of the archive",
            n=retries.observed.height,
        ),
        columns={
            "factor": "Factor [ratio]",
            "loss": "What retries cost [core h per core h]",
            "over": "Over-allocated by them [GB h per core h]",
            "killed_coreh": "Killed again [core h per core h]",
            "n_lost": "Given up [jobs per core h]",
        },
        mark="mark",
        note="Of tasks with jobs above their first request under the current rank and margin, by the loss of ramCount without what first attempts cost. What a job needed is told by the "
        "retry that finished. The factor is one of retry rules, not a key: nothing is proposed. Jobs that were divided are left out.",
    )
    kind = "finding" if retries.judgement.acts else retries.judgement.kind
    return Part(
        name="retries",
        title="Memory of retries",
        verdict=Verdict(kind=kind, sentence=retries.headline()),
        sections={"Factor by factor": [table]},
        folded=True,
    )


def _stops_part(stops: pl.DataFrame) -> Part:
    every = stops.row(by_predicate=pl.col("check") == ANY, named=True)
    sentence = (
        "{n_stopped:#task} would be stopped, of which {n_stopped_well} would have gone well; "
    )
    sentence += "of {n_passed:#task} let through {n_passed_badly} went badly."
    shown = stops.with_columns(pl.col("check").replace(CHECKS))
    table = Table(
        name="stops",
        frame=shown,
        caption=say("{n_tasks:#task} as scouts saw them at their first trigger", every),
        columns={
            "check": "Check",
            "n_stopped": "Stopped [tasks]",
            "false_share": "Would have gone well [% of stopped tasks]",
            "lost_core_h": "Their finished work [core h]",
            "n_passed": "Let through [tasks]",
            "missed_share": "Went badly [% of tasks let through]",
            "missed_core_h": "Their work [core h]",
            "n_unknown": "No later job [tasks]",
        },
        most=len(CHECKS),
        note="Each check is asked alone. A task goes well if its later jobs do not fire the check and half of them finish. "
        "Tasks that really were stopped have no later jobs: stricter settings can be judged by this, laxer ones cannot. "
        f"Hours: 95 % intervals, which held the truth in {100 * min(MEASURED_POOLED.values()):g} to {100 * max(MEASURED_POOLED.values()):g} % on synthetic tasks.",
    )
    return Part(
        name="stops",
        title="Checks that stop a task",
        verdict=Verdict(kind="finding", sentence=say(sentence, every)),
        sections={"Check by check": [table]},
        folded=True,
    )


# --- what it cannot tell ----------------------------------------------------------------------------------------------


def _caveats(data: Inputs, studies: Studies, p: Params) -> list[Caveat]:
    """Collect what the studies cannot tell; what is true of one parameter only says which."""
    shared = merge_sentences({NAMES[one.parameter.name]: one.caveats for one in studies.answered})
    n = max((one.n_overlapping for one in studies.answered), default=0)
    overlap = "{n:#job} ended after the next choice had been made on their tasks: not known then."
    levels = "Which level gains or loses by chance: about one in 20 does."
    only = f"Measured on {tasks_in_words(data.filters)}: no key is proposed that acts beyond them."
    looks = len(earlier_looks(p.report, p.out_dir, p.model_dump(), data.archive.digest, QUESTIONS))
    looked = "Asked before of this archive with other limits or filters: {n} times; of many such runs some act by chance."
    return [
        Caveat(len(data.filters), only),
        Caveat.of(looks, looked),
        *(Caveat(1, thin(text)) for text in shared),
        Caveat.of(n, overlap),
        Caveat(len(studies.answered), levels),
    ]
