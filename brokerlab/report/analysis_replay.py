"""Which user tasks are held back in this period, where would the others go, and is it fair?"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import polars as pl
from pydantic import Field

from brokerlab.brokerage.studies.key_effects import KeyEffects, which_keys_matter
from brokerlab.brokerage.studies.kinds import ANALYSIS, Kind
from brokerlab.brokerage.studies.period import Period
from brokerlab.brokerage.studies.removal import CANDIDATE
from brokerlab.brokerage.studies.rule_sets import RuleSetComparison, compare_rule_sets
from brokerlab.brokerage.studies.user_tasks import (
    UserTasks,
    WeightComparison,
    lorenz_curves,
    study_user_tasks,
)
from brokerlab.brokerage.studies.user_tasks.outcomes import FAMILIES, HELD, PASSED
from brokerlab.brokerage.studies.user_tasks.weights import NOTICED
from brokerlab.charts import analysis as charts
from brokerlab.errors import collect_warnings
from brokerlab.report import kit
from brokerlab.report import replay_blocks as shared
from brokerlab.report.kit import Block, Caveat, Chart, Number, Page, Table, Verdict, say
from brokerlab.words import days_of

SMALL = 0.005
"""Checks that remove a smaller share of the pairs in both loops are left to the files."""
OVER_USERS = "In brackets: 95 % intervals over users."


class Params(shared.Params):
    """What may be asked."""

    report: ClassVar[str] = "analysis-replay"
    question: ClassVar[str] = (
        "Which user tasks are held back in this period, where would the others go, and is it fair?"
    )
    kind: ClassVar[Kind] = ANALYSIS
    usual_keys: ClassVar[tuple[str, ...]] = (
        *("CAP_RUNNING_USER_JOBS", "CAP_RUNNING_USER_CORES"),
        *("BASE_QUEUE_LENGTH_PER_PQ", "BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER"),
        *("STATIC_MAX_QUEUE_RUNNING_RATIO", "MAX_EXPECTED_WAIT_HOUR"),
        *("BASE_EXPECTED_WAIT_HOUR_ON_PQ", "MIN_BAD_JOBS_TO_SKIP_PQ"),
        *("IO_INTENSITY_CUTOFF_USER", "OVERLOAD_RATIO_OFFSET"),
    )

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
            Number.of(_row(t.held_by_rule, HELD), "share", label="Brokerages held back", unit="%"),
            Number.of(
                _row(t.without_queue, "stuck"),
                "share",
                label="Left without a queue",
                unit="%",
                note="of the brokerages, those held back included",
            ),
            Number.of(
                _row(t.indices, "placed", "quantity"),
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
            "The Analysis Stabilizer": _stabilizer_blocks(t),
            "Original against new basic weight": _weight_blocks(t.weights, period),
            "Fairness between users": _fairness_blocks(t),
            f"{current.capitalize()} against {other} rules": shared.rule_set_blocks(s.rule_sets),
            "Which settings matter": shared.key_blocks(
                s.keys,
                note=" All jobs of a brokerage that a value holds back, or lets through, count too.",
            ),
        },
        caveats=[*shared.caveats(period, s.keys, s.odd), *_own_caveats(t)],
        archive=period.archive,
        config=period.replay.config,
        rules=period.rules,
        window=f"brokerages {days_of(*period.window)} (UTC)",
        facts=shared.facts(period),
        also=_also(s),
        values={
            "n_tasks": period.n_replayed,
            "n_tasks_in_period": period.n_tasks,
            "n_users": t.users.height,
            "n_brokerages": t.rows.height,
            "n_pairs": t.decisions.queues.height,
            "n_weighed_both_ways": t.weights.n_brokerages,
            "wait_known": t.weights.known,
            "weight_lost_by": t.weights.lost_by,
            "n_pairs_other_rules": s.rule_sets.comparison.n_changed(),
            "n_sample_pairs": s.rule_sets.n_sample_pairs,
        },
    )


def run(p: Params) -> dict[str, Any]:
    """Load, study, publish."""
    period = load(p)
    return kit.publish(page(period, study(period, p)), p)


# --- first screen -----------------------------------------------------------------------------------------------------


def _row(frame: pl.DataFrame, name: str, column: str = "part") -> dict[str, Any]:
    return frame.row(by_predicate=pl.col(column) == name, named=True)


def _holding(t: UserTasks) -> pl.DataFrame:
    return t.held_by_rule.filter(~pl.col("part").is_in([HELD, PASSED]), pl.col("total") > 0)


def _headline(t: UserTasks) -> str:
    held = _row(t.held_by_rule, HELD)
    if held["total"]:
        top = _holding(t).sort("share", descending=True).row(0, named=True)
        return say(
            "{share:%} of the brokerages of user tasks are held back, most by {rule}.",
            held,
            rule=top["part"],
        )
    nearest = t.margins.drop_nulls("largest").sort("largest", descending=True).head(1).to_dicts()
    near = (
        say("the nearest reaches {largest:%} of its limit", *nearest)
        if nearest
        else "no limit is known"
    )
    return say("None of {whole} brokerages of user tasks is held back; {near}.", held, near=near)


def _held_chart(period: Period, t: UserTasks) -> Chart | None:
    rules = _holding(t)
    if rules.is_empty():
        return None
    held, passed = _row(t.held_by_rule, HELD), _row(t.held_by_rule, PASSED)
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
            "{n} brokerages, each for the next jobs of a task: {tasks} tasks of {users} users; 95 % intervals over users.",
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
                "compares, over its limit. cap: running or queued jobs or cores of the user or group. gshare_class: the "
                "share User Analysis uses more of its target than tasks of this class may. quota: of disks. "
                "input_incomplete: an input dataset is complete nowhere."
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
            most=12,
            note="Jobs count once per brokerage: what is held back is asked for again at the next.",
        ),
    ]


def _queue_blocks(t: UserTasks) -> list[Block | None]:
    large = pl.col("share").max().over("part") >= SMALL
    checks = t.removed.filter(~pl.col("part").is_in([CANDIDATE, ANALYSIS.beyond]))
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
                "In order of removal, of the pairs that each locality loop looks at: a pair counts for the first check "
                "it fails, candidates stand last. Checks below 0.5 % in both loops are left out."
            ),
        ),
    ]


def _stabilizer_blocks(t: UserTasks) -> list[Block | None]:
    if t.stabilizer.is_empty():
        return ["No queue reaches the stabilizer: checks before it remove all."]
    return [
        Table(
            name="stabilizer_queues",
            frame=t.stabilizer_queues,
            caption=say(
                "The stabilizer marks {share:%} of the pairs of task and queue that reach it, at {marked} of {n} queues",
                _row(t.stabilizer, "user_queue"),
                marked=t.stabilizer_queues.filter(pl.col("marked") > 0).height,
                n=t.stabilizer_queues.height,
            ),
            columns={
                "queue": "Queue",
                "pairs": "Pairs",
                "throttled": "Can be throttled [%]",
                "marked_share": "Marked [%]",
                "nq": "Waiting [jobs]",
                "nr": "Running [jobs]",
                "trr": "To-running rate [jobs/h]",
                "nq_max": "nQ_max [jobs]",
                "user_share": "User's part [%]",
                "max_q_len": "max_q_len [jobs]",
                "u_queued_d9": "User's waiting jobs, 9th decile [jobs]",
            },
            most=15,
            note=(
                "The Analysis Stabilizer takes a queue from a task where more jobs of its user wait than max_q_len, the "
                "user's part of nQ_max, the longest queue that is sensible there. Numbers of the task's share, medians "
                "over pairs if nothing else is said."
            ),
        ),
    ]


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
                "{n} brokerages with candidates under both; 95 % intervals over users.",
                n=weights.n_brokerages,
            ),
            note=say(
                "current: the {own} weight of the {rules} rules. Queues are hi, mid or lo by how soon they start jobs. Left "
                "out: {n_lost} brokerages with candidates by the original weight only, {n_won} by the new one only.",
                ends,
                own=own,
                rules=period.rules.rules,
            ),
        ),
        Table(
            name="weight_users",
            frame=weights.users.sort(pl.col("change_h").abs(), "user", descending=[True, False]),
            caption=say(
                "Expected wait of a job goes from {original_h:h} to {new_h:h}; it falls for {sooner:%} of the users and grows for {later:%}",
                weights.wait.row(0, named=True) | weights.noticed.row(0, named=True),
            ),
            columns={
                "user": "User",
                "jobs": "Expected jobs",
                "original_h": "Original weight [h]",
                "new_h": "New weight [h]",
                "change_h": "Change [h]",
                "known": "Wait known [% of jobs]",
            },
            most=12,
            note=(
                "Expected wait of a queue: waiting jobs of the share over its to-running rate at that instant. "
                f"Changes below {100 * NOTICED:g} % do not count as falling or growing."
            ),
        )
        if weights.users.height
        else None,
    ]


def _fairness_blocks(t: UserTasks) -> list[Block | None]:
    return [
        Chart(
            draw=charts.lorenz,
            frame=lorenz_curves(t.users),
            finding=say(
                "Jain's index is {index} for jobs that find a queue, and {asked} for jobs asked for",
                _row(t.indices, "placed", "quantity"),
                asked=_row(t.indices, "asked", "quantity")["index"],
            ),
            sample=say("{n} users.", n=t.users.height),
        ),
        Table(
            name="indices",
            frame=t.indices.with_columns(what=pl.col("quantity").replace_strict(charts.QUANTITIES)),
            caption="How evenly users are served: Jain's index",
            columns={"what": "What is divided", "index": "Index [1]"},
            note=f"{OVER_USERS} Jain's index is 1 where all users have the same, and 1/n where one of n has all.",
        ),
    ]


def _own_caveats(t: UserTasks) -> list[Caveat]:
    unknown = 0.0 if t.weights.known is None else 1 - t.weights.known
    return [
        Caveat(
            n=int(unknown > 0),
            text=say(
                "{part:%} of the expected jobs go to queues where jobs wait and none started lately: their wait is "
                "unknown and left out.",
                part=unknown,
            ),
        ),
        Caveat(
            n=t.rows.height,
            text=say(
                "Queues and tasks are rated by one rule set in all {n} brokerages, also where the other one is tried.",
                n=t.rows.height,
            ),
        ),
    ]


def _also(s: Study) -> dict[str, pl.DataFrame]:
    """Return the frames that are written and not shown."""
    t = s.tasks
    return {
        "held_over_time": t.held_over_time,
        "removed": t.removed,
        "removed_by_loop": t.removed_by_loop,
        "routes": t.routes,
        "ended_without_queue": t.without_queue,
        "without_queue": shared.wide(t.without_queue_by_gshare, "gshare"),
        "stabilizer": t.stabilizer,
        "disagreement": t.disagreement,
        "users": t.users,
        "waits": t.waits,
        "weight_gshares": t.weights.by_gshare,
        "weight_classes": t.weights.by_class,
        "weight_queues": t.weights.queues,
        "weight_ends": t.weights.ends,
        "weight_noticed": t.weights.noticed,
        "weight_wait": t.weights.wait,
        "rule_brokerages": s.rule_sets.brokerages,
        "key_curves": s.keys.curves,
        "brokerages": t.rows,
        "decided_queues": t.decisions.queues,
        "decided_first_loop": t.decisions.first_loop,
        "decided_tasks": t.decisions.tasks,
    }
