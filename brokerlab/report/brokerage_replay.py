"""What decides where work goes in a period, and which settings matter?

The brokerages of production are replayed: what checks remove, what orders the queues that are left, which keys and which
differences of the rule sets the outcome hangs on, and the choice of the nucleus. It proposes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar, NamedTuple

import polars as pl
from pydantic import Field

from brokerlab.archive.store import Archive, open_archive, session
from brokerlab.brokerage.engine.decisions import TEMPORARY
from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.studies import removal
from brokerlab.brokerage.studies.alternatives import KeyEffects, RuleSetComparison
from brokerlab.brokerage.studies.period import PRODUCTION, Kind, Period, replay_nuclei
from brokerlab.brokerage.studies.removal import CANDIDATE
from brokerlab.brokerage.studies.tasks import NucleusChoice, ProductionTasks, study_production_tasks
from brokerlab.charts import primitives
from brokerlab.errors import collect_warnings
from brokerlab.report import kit
from brokerlab.report import replay_blocks as shared
from brokerlab.report.kit import Block, Chart, Number, Page, Table, Verdict, say
from brokerlab.report.needs import Needs
from brokerlab.report.switches import switch_table
from brokerlab.words import days_of, thin

CHECKS_DRAWN = 12  # checks in the first chart, those that remove most
SMALL = 0.005  # checks that remove a smaller share of the pairs are left to the files [1]
FACTORS = {
    "work": "running against waiting work",
    "data": "input already there",
    "network": "the link to the nucleus",
    "t1": "being a T1",
    "preference": "the preference of the task",
}
SPREAD = (
    "Share: covariance of the factor's log with the log weight within each brokerage, over its variance; the shares add "
    "up to 100 %, below 0 a factor works against the others."
)
OF_NUCLEI = (
    " Of DISK_THRESHOLD and other keys of the task brokerage: a task's chance of another nucleus."
)


class Params(shared.Params):
    """What may be asked."""

    report: ClassVar[str] = "brokerage-replay"
    question: ClassVar[str] = (
        "What decides where work goes in this period, and which settings matter?"
    )
    needs: ClassVar[Needs] = replace(
        shared.needs_of(PRODUCTION, "production tasks with jobs"), memory_gb=(1.5, 0.5)
    )
    kind: ClassVar[Kind] = PRODUCTION
    usual_keys: ClassVar[tuple[str, ...]] = PRODUCTION.usual_keys

    spark: str = Field(
        "",
        description="master of a Spark session that carries jobs and files, empty for this machine",
    )

    def opened(self) -> Archive:
        """Return the archive, its large tables carried by Spark where it is asked for."""
        return open_archive(self.archive, spark=session(self.spark) if self.spark else None)


class Data(NamedTuple):
    """What the brokerages saw; ``nuclei`` is null where the archive cannot tell, ``no_nuclei`` says why."""

    period: Period
    nuclei: Replay | None
    no_nuclei: str


class Study(NamedTuple):
    """What the replay says of the production tasks of a period."""

    tasks: ProductionTasks
    rule_sets: RuleSetComparison
    keys: KeyEffects
    odd: list[str]


@kit.answers
def load(p: Params) -> Data:
    """Rebuild what both brokerages saw over the period."""
    period = p.replayed()
    return Data(period, *replay_nuclei(period, start=p.start, end=p.end))


@kit.answers
def study(data: Data, p: Params) -> Study:
    """Decide again: what removes queues, what orders the others, which rules and keys matter."""
    with collect_warnings() as odd:
        tasks = study_production_tasks(
            data.period,
            data.nuclei,
            keys=p.keys or p.usual_keys,
            points=p.points,
            switch_sample=p.switch_sample,
            n_boot=p.n_boot,
            seed=p.seed,
        )
    return Study(tasks, tasks.rule_sets, tasks.keys, odd)


def page(data: Data, s: Study) -> Page:
    """Lay out the answer, then one section per question."""
    t, period = s.tasks, data.period
    current, other = s.rule_sets.current, s.rule_sets.other
    candidates, stuck = shared.row(t.removed, CANDIDATE), shared.row(t.without_queue, "stuck")
    numbers = [
        Number.of(candidates, "share", label="Pairs that become candidates", unit="%"),
        Number.of(stuck, "share", label="Brokerages without a queue", unit="%"),
    ]
    for row in t.factors.sort("share", descending=True).head(1).iter_rows(named=True):
        label = f"Spread of weights by {FACTORS[row['part']]}"
        numbers.append(Number.of(row, "share", label=label, unit="%"))
    return Page(
        verdict=Verdict(kind="finding", sentence=_headline(s)),
        numbers=numbers,
        chart=_funnel(period, t),
        sections={
            "What removes queues": _check_blocks(t, period.rules),
            "By gshare and by queue": _level_blocks(t),
            "Against what really ran": _history_blocks(t),
            "What orders the queues that are left": _weight_blocks(t),
            "Which settings matter": shared.key_blocks(s.keys, note=OF_NUCLEI),
            f"{current.capitalize()} against {other} rules": shared.rule_set_blocks(s.rule_sets),
            "The choice of the nucleus": _nucleus_blocks(t.nuclei, period.rules, data.no_nuclei),
        },
        caveats=shared.caveats(period, s.keys, s.odd),
        archive=period.archive,
        config=period.replay.config,
        rules=period.rules,
        window=f"brokerages {days_of(*period.window)} (UTC)",
        facts=_facts(data),
        also=_also(s),
        values=shared.values(period, t, s.rule_sets) | {"n_weighed": t.n_weighed},
        beside=lambda folder: _write_pairs(t, folder),
    )


def _facts(data: Data) -> dict[str, str]:
    notes = [] if data.nuclei is None else data.nuclei.notes
    own = [note for note in notes if note not in data.period.replay.notes]
    return shared.facts(data.period) | {"Approximated, nuclei": "; ".join(own) or "nothing"}


# --- first screen -----------------------------------------------------------------------------------------------------


def _headline(s: Study) -> str:
    checks = removal.rank_checks(s.tasks.removed)
    if checks.is_empty():
        return "No check removes a queue."
    keys = s.keys.keys
    return say(
        "Checks remove {failed:%} of pairs, most {part} ({share:%}); worth calibrating: {worth} of {tried:#setting}.",
        checks.row(0, named=True) | {"share_lo": None, "share_hi": None},
        failed=checks["share"].sum(),
        worth=keys["worth"].sum(),
        tried=keys.height,
    )


def _funnel(period: Period, t: ProductionTasks) -> Chart:
    largest = removal.rank_checks(t.removed)["part"].head(CHECKS_DRAWN).to_list()
    drawn = [*largest, PRODUCTION.brokerage.last, CANDIDATE]
    return Chart(
        draw=primitives.bars,
        frame=t.removed.filter(pl.col("part").is_in(drawn), pl.col("total") > 0),
        name="removed",
        options={"value": "share", "label": "part", "title": "removed [% of pairs]"},
        finding=say(
            "{failed:%} of the pairs fail a check, {beyond:%} are not among the best ten, {candidates:%} become candidates",
            failed=removal.rank_checks(t.removed)["share"].sum(),
            beyond=shared.row(t.removed, str(PRODUCTION.brokerage.last))["share"],
            candidates=shared.row(t.removed, CANDIDATE)["share"],
        ),
        sample=say(
            "{tasks:#task}, {n:#brokerage}, {pairs:#pair} of task and queue; 95 % intervals over tasks.",
            tasks=period.n_replayed,
            n=t.decided_tasks.height,
            pairs=t.n_pairs,
        ),
        note="The checks that remove most, in the order of removal. rank: not among the best ten.",
    )


# --- sections ---------------------------------------------------------------------------------------------------------


def _check_blocks(t: ProductionTasks, rules: ProductionRules) -> list[Block | None]:
    large = t.removed.filter(pl.col("share") >= SMALL, pl.col("part") != CANDIDATE)
    n_small = removal.rank_checks(t.removed).filter(pl.col("share") < SMALL).height
    last = t.last_stages["stage"].head(1).replace(TEMPORARY, "temporary problems").to_list()
    return [
        Table(
            name="checks",
            frame=removal.describe_checks(large, rules, "jobs"),
            caption=say(
                "{share:%} of the brokerages leave their task without a queue{often}",
                shared.row(t.without_queue, "stuck"),
                often=f", most often because of {last[0]}" if last else "",
            ),
            columns={
                "part": "Check",
                "share": "Removed [% of pairs]",
                "left": "Left after it [% of pairs]",
                "kind": "Kind",
                "keys": "Keys it reads",
            },
            note=(
                "In brackets, here and below: 95 % intervals over tasks. A pair counts for the first check that it fails, "
                f"of temporary problems for the last. {n_small} checks that remove less than 0.5 % are in the files."
            ),
        )
    ]


def _level_blocks(t: ProductionTasks) -> list[Block | None]:
    queues = removal.sum_up_levels(t.removed_by_queue, "queue")
    return [
        Table(
            name="gshares",
            frame=removal.sum_up_levels(
                t.removed_by_gshare, "gshare", without_queue=t.without_queue_by_gshare
            ),
            caption="By gshare, those most often without a queue first",
            columns={
                "gshare": "gshare",
                "n_tasks": "Tasks",
                "n_brokerages": "Brokerages",
                "stuck": "Without a queue [% of brokerages]",
                "candidates": "Candidates [% of pairs]",
                "reasons": "Most removed by",
            },
        ),
        Table(
            name="queues",
            frame=queues,
            caption="The queues where most jobs ran, those least often a candidate first",
            columns={
                "queue": "Queue",
                "whole": "Brokerages",
                "candidates": "Candidate [% of brokerages]",
                "reasons": "Most removed by",
            },
            note="A unified queue counts once per brokerage, by that of its pseudo-queues which came furthest.",
        ),
    ]


def _history_blocks(t: ProductionTasks) -> list[Block | None]:
    texts = pl.col("why", "help").map_elements(thin, return_dtype=pl.String)
    stranded = Table(
        name="stranded",
        frame=t.stranded.with_columns(pl.col("jeditaskid").cast(pl.String), texts),
        caption="Tasks without a queue in the replay whose jobs ran all the same",
        columns={
            "jeditaskid": "Task",
            "at": "At (UTC)",
            "n_jobs": "Jobs that ran",
            "queue": "Most of them at",
            "why": "Why not there",
            "help": "What would give it a queue",
        },
    )
    blocks = shared.history_blocks(t.agreement, t.disagreement)
    return [*blocks, stranded]


def _weight_blocks(t: ProductionTasks) -> list[Block | None]:
    if t.factors.is_empty():
        return ["Nowhere two queues compete by weight."]
    return [
        Table(
            name="factors",
            frame=t.factors.with_columns(meaning=pl.col("part").replace_strict(FACTORS)),
            caption=say(
                "What the weights are made of where queues compete, {n:#brokerage}", n=t.n_weighed
            ),
            columns={
                "part": "Factor",
                "meaning": "It stands for",
                "share": "Share [% of the variance]",
            },
            note=SPREAD,
        )
    ]


def _nucleus_blocks(
    nuclei: NucleusChoice | None, rules: ProductionRules, why: str
) -> list[Block | None]:
    if nuclei is None:
        return [f"No answer: {why}."]
    checks = nuclei.checks.filter((pl.col("total") > 0) | (pl.col("part") == CANDIDATE))
    real = nuclei.history.filter(part="passed").to_dicts()
    history = (
        say(
            " That of history is a candidate for {share:%} of {whole:#task}, one drawn at random for {chance:%}.",
            real[0],
            chance=shared.row(nuclei.history, "by_chance")["share"],
        )
        if real
        else ""
    )
    return [
        Table(
            name="nucleus_checks",
            frame=removal.describe_checks(checks, rules, "tasks"),
            caption=say(
                "{share:%} of {whole:#task} get a nucleus; why nuclei were skipped",
                shared.row(nuclei.outcomes, "nucleus"),
            ),
            columns={"part": "Check", "share": "Removed [% of pairs]", "keys": "Keys it reads"},
            note=f"Pairs of task and nucleus.{history}",
        ),
        switch_table(
            nuclei.switches,
            {"n_changed": "Decides otherwise [pairs]", "shift": "Another nucleus [% of draws]"},
            name="nucleus_switches",
            caption="What each switch of the rules does to the choice, on tasks drawn at random",
        )
        if nuclei.switches.height
        else None,
    ]


def _also(s: Study) -> dict[str, pl.DataFrame]:
    """Return the frames behind the page that no block shows whole."""
    nuclei = s.tasks.nuclei
    frames = kit.frames_of(s.tasks) | shared.frames(s.rule_sets, s.keys)
    if nuclei is not None:
        frames |= kit.frames_of(nuclei, "nucleus_") | {"decided_nuclei": nuclei.decisions.nuclei}
    return frames


def _write_pairs(t: ProductionTasks, folder: Path) -> None:
    """Write what was decided on every pair of task and queue."""
    (folder / "tables").mkdir(exist_ok=True)
    t.write_pairs(folder / "tables" / "decided_queues.parquet")
