"""Which user tasks are held back in this period, where would the others go, and is it fair?"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import polars as pl
from pydantic import Field

from brokerlab.brokerage.studies.alternatives import (
    KeyEffects,
    RuleSetComparison,
    compare_rule_sets,
    which_keys_matter,
)
from brokerlab.brokerage.studies.period import ANALYSIS, Kind, Period
from brokerlab.brokerage.studies.removal import CANDIDATE
from brokerlab.brokerage.studies.tasks import UserTasks, study_user_tasks
from brokerlab.brokerage.studies.users import FAMILIES, HELD, PASSED, lorenz_curves
from brokerlab.brokerage.studies.weights import NOTICED, WeightComparison
from brokerlab.charts import analysis as charts
from brokerlab.errors import collect_warnings
from brokerlab.report import kit
from brokerlab.report import replay_blocks as shared
from brokerlab.report.kit import Block, Caveat, Chart, Number, Page, Table, Verdict, say
from brokerlab.report.needs import Needs
from brokerlab.words import days_of

SMALL = 0.005  # checks that remove a smaller share of the pairs in both loops are left to the files
OVER_USERS = "In brackets: 95 % intervals over users."


class Params(shared.Params):
    """What may be asked."""

    report: ClassVar[str] = "analysis-replay"
    question: ClassVar[str] = (
        "Which user tasks are held back in this period, where would the others go, and is it fair?"
    )
    needs: ClassVar[Needs] = shared.needs_of(ANALYSIS, "user tasks with jobs")
    kind: ClassVar[Kind] = ANALYSIS
    usual_keys: ClassVar[tuple[str, ...]] = ANALYSIS.usual_keys

    switch_sample: int = Field(30, ge=0, description=shared.SWITCH_SAMPLE)


class Study(NamedTuple):
    """What the replay says of the user tasks of a period."""

    tasks: UserTasks
    rule_sets: RuleSetComparison
    keys: KeyEffects
    odd: list[str]


@kit.answers
def load(p: Params) -> Period:
    """Rebuild what the brokerage of user tasks saw over the period."""
    return p.replayed()


@kit.answers
def study(period: Period, p: Params) -> Study:
    """Decide again: who is held back, what removes queues, whom the weights serve, which rules and keys matter."""
    dice: dict[str, Any] = {"n_boot": p.n_boot, "seed": p.seed}
    with collect_warnings() as odd:
        tasks = study_user_tasks(period, **dice)
        rule_sets = compare_rule_sets(
            period.replay, tasks.decisions, sample=p.switch_sample, **dice
        )
        keys = which_keys_matter(
            tasks.decisions, p.keys or p.usual_keys, replay=period.replay, points=p.points, **dice
        )
    return Study(tasks, rule_sets, keys, odd)


def page(period: Period, s: Study) -> Page:
    """Lay out the answer, then one section per question."""
    t = s.tasks
    current, other = s.rule_sets.current, s.rule_sets.other
    return Page(
        verdict=Verdict(kind="finding", sentence=_headline(t)),
        numbers=[
            Number.of(
                shared.row(t.held_by_rule, HELD), "share", label="Brokerages held back", unit="%"
            ),
            Number.of(
                shared.row(t.without_queue, "stuck"),
                "share",
                label="Left without a queue",
                unit="%",
                note="of the brokerages, those held back included",
            ),
            Number.of(
                shared.row(t.indices, "placed", "quantity"),
                "index",
                label="Jain's index of the jobs that find a queue",
                note="1: all users have the same",
            ),
        ],
        chart=_held_chart(period, t),
        sections={
            "Who is held back": _held_blocks(t),
            "What removes queues": _queue_blocks(t),
            "Against what really ran": shared.history_blocks(t.agreement, t.disagreement),
            "Original against new basic weight": _weight_blocks(t.weights, period),
            "Fairness between users": _fairness_blocks(t),
            f"{current.capitalize()} against {other} rules": shared.rule_set_blocks(s.rule_sets),
            "Which settings matter": shared.key_blocks(
                s.keys, note=" So do all jobs that a value holds back or lets through."
            ),
        },
        caveats=[*shared.caveats(period, s.keys, s.odd), *_own_caveats(t)],
        archive=period.archive,
        config=period.replay.config,
        rules=period.rules,
        window=f"brokerages {days_of(*period.window)} (UTC)",
        facts=shared.facts(period),
        also=_also(s),
        values=shared.values(period, t, s.rule_sets)
        | {
            "n_users": t.users.height,
            "n_weighed_both_ways": t.weights.n_brokerages,
            "wait_known": t.weights.known,
            "weight_lost_by": t.weights.lost_by,
        },
    )


# --- first screen -----------------------------------------------------------------------------------------------------


def _holding(t: UserTasks) -> pl.DataFrame:
    return t.held_by_rule.filter(~pl.col("part").is_in([HELD, PASSED]), pl.col("total") > 0)


def _headline(t: UserTasks) -> str:
    held = shared.row(t.held_by_rule, HELD)
    if held["total"]:
        top = _holding(t).sort("share", descending=True).row(0, named=True)
        return say(
            "{share:%} of the brokerages of user tasks are held back, most by {rule}.",
            held,
            rule=top["part"],
        )
    near = "no limit is known"
    if t.margins["largest"].count():
        near = say(
            "the number nearest its limit is {most:%} of it", most=t.margins["largest"].max()
        )
    return say("Of {whole:#brokerage} of user tasks none is held back; {near}.", held, near=near)


def _held_chart(period: Period, t: UserTasks) -> Chart | None:
    rules = _holding(t)
    if rules.is_empty():
        return None
    held, passed = shared.row(t.held_by_rule, HELD), shared.row(t.held_by_rule, PASSED)
    asked = held["jobs"] + passed["jobs"]
    return Chart(
        draw=charts.held_by_rule,
        frame=rules,
        finding=say(
            "{units} of {all} users and groups are held back, with {part:%} of the jobs asked for",
            held,
            all=t.held_by_unit.height,
            part=held["jobs"] / asked if asked else None,
        ),
        sample=say(
            "{n:#brokerage}, each for the next jobs of a task: {tasks:#task} of {users:#user}; 95 % intervals over users.",
            tasks=period.n_replayed,
            users=t.users.height,
            n=t.rows.height,
        ),
    )


# --- sections ---------------------------------------------------------------------------------------------------------


def _held_blocks(t: UserTasks) -> list[Block | None]:
    families = {name: f"By {name} [%]" for name in FAMILIES if t.held_by_level[name].sum() > 0}
    return [
        Table(
            name="held_rules",
            frame=t.held_by_rule.join(
                t.margins, left_on="part", right_on="rule", how="left", maintain_order="left"
            ).with_columns(rule=pl.col("part").replace({HELD: "any of them", PASSED: "none"})),
            caption="What holds user tasks back, in the order in which the rules are asked",
            columns={
                "rule": "Rule",
                "share": "Held back [% of brokerages]",
                "jobs": "Jobs",
                "units": "Users, groups",
                "median": "Median [% of limit]",
                "largest": "Largest [% of limit]",
            },
            note=(
                f"{OVER_USERS} A brokerage counts for the first rule that holds. Per cent of limit: what the rule "
                "compares, over its limit. gshare_class: User Analysis uses more of its target than tasks of this class "
                "may. input_incomplete: an input dataset is complete nowhere."
            ),
        ),
        Table(
            name="held_levels",
            frame=t.held_by_level,
            caption="Held back by class of the task and by gshare",
            columns={
                "level": "Class or gshare",
                "n_units": "Users",
                "brokerages": "Brokerages",
                "jobs": "Jobs asked for",
                **families,
                HELD: "In all [%]",
            },
            note=(
                "Classes: S is express or nearly done, A, B and C have users with few, more and many slots; of unrated "
                "tasks nothing is known."
            ),
        ),
        Table(
            name="held_units",
            frame=t.held_by_unit,
            caption="Users and working groups, those with most jobs held back first",
            columns={
                "unit": "User or group",
                "brokerages": "Brokerages",
                "share": "Held back [%]",
                "jobs": "Jobs asked for",
                "jobs_held": "Jobs held back",
                "most_by": "Most often by",
            },
            most=8,
            note="Jobs held back are asked for, and counted, again at the next brokerage.",
        ),
    ]


def _queue_blocks(t: UserTasks) -> list[Block | None]:
    large = pl.col("share").max().over("part") >= SMALL
    checks = t.removed.filter(~pl.col("part").is_in([CANDIDATE, ANALYSIS.brokerage.last]))
    return [
        Chart(
            draw=charts.removed_by_loop,
            frame=t.removed_by_loop.filter(large),
            finding=say(
                "{failed:%} of the pairs of task and queue fail a check, {share:%} fail {part}",
                checks.sort("share", descending=True).row(0, named=True),
                failed=checks["share"].sum(),
            ),
            sample="95 % intervals over tasks.",
            note=(
                "Of the pairs that each locality loop looks at, in order of removal: a pair counts for the first check it "
                "fails. Checks below 0.5 % in both loops are left out."
            ),
        ),
        _stabilizer(t),
    ]


def _stabilizer(t: UserTasks) -> str:
    if t.stabilizer.is_empty():
        return "No queue reaches the Analysis Stabilizer: checks before it remove all."
    return say(
        "The Analysis Stabilizer takes queues where more jobs of the user wait than the user's part of a sensible queue: "
        "it marks {share:%} of the pairs that reach it, at {marked} of {n:#queue}.",
        shared.row(t.stabilizer, "user_queue"),
        marked=t.stabilizer_queues.filter(pl.col("marked") > 0).height,
        n=t.stabilizer_queues.height,
    )


def _weight_blocks(weights: WeightComparison, period: Period) -> list[Block | None]:
    if weights.by_class.is_empty():
        return ["No brokerage has candidates under both basic weights."]
    every = weights.by_class.row(0, named=True)
    ends = weights.ends.row(0, named=True)
    own = period.rules.basic_weight
    lost = (
        "; {lost:%} of the brokerages lose all candidates, most by {check}"
        if ends["n_lost"]
        else ""
    )
    return [
        Chart(
            draw=charts.places_by_weight,
            frame=weights.places,
            options={"current": own},
            finding=say(
                "The new basic weight sends {moved:%} of the expected jobs to another queue" + lost,
                every | ends,
                check=weights.lost_by,
            ),
            sample=say(
                "{n:#brokerage} with candidates under both; 95 % intervals over users.",
                n=weights.n_brokerages,
            ),
            note=say(
                "current: the {own} weight. hi, mid, lo: by how soon queues start jobs. Left out: brokerages with "
                "candidates by the original weight only ({n_lost}) or the new one only ({n_won}).",
                ends,
                own=own,
            ),
        ),
        say(
            "Expected wait of a job, from waiting jobs and the to-running rate, goes from {original_h:h} to {new_h:h}; by "
            "{least} % or more it falls for {sooner:%} of the users and grows for {later:%}.",
            weights.wait.row(0, named=True) | weights.noticed.row(0, named=True),
            least=100 * NOTICED,
        )
        if weights.users.height
        else None,
    ]


def _fairness_blocks(t: UserTasks) -> list[Block | None]:
    return [
        Table(
            name="indices",
            frame=t.indices.with_columns(what=pl.col("quantity").replace_strict(charts.QUANTITIES)),
            caption=f"How evenly {t.users.height} users are served: Jain's index",
            columns={"what": "What is divided", "index": "Index [1]"},
            note=f"{OVER_USERS} Jain's index is 1 where all users have the same, and 1/n where one of n has all.",
        )
    ]


def _own_caveats(t: UserTasks) -> list[Caveat]:
    unknown = 0.0 if t.weights.known is None else 1 - t.weights.known
    return [
        Caveat.of(
            int(unknown > 0),
            "The wait of {part:%} of the expected jobs is unknown and left out: jobs wait there and none started.",
            part=unknown,
        ),
        Caveat.of(
            t.rows.height,
            "Queues and tasks are rated by one rule set in all {n:#brokerage}, also where another is tried.",
        ),
    ]


def _also(s: Study) -> dict[str, pl.DataFrame]:
    """Return the frames that are written and not shown."""
    t = s.tasks
    return {
        **kit.frames_of(t),
        **kit.frames_of(t.weights, "weight_"),
        **shared.frames(s.rule_sets, s.keys),
        "decided_queues": t.decisions.queues,
        "lorenz": lorenz_curves(t.users),
        "decided_first_loop": t.decisions.first_loop,
    }
