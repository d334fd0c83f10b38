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
from brokerlab.times import grain
from brokerlab.words import days_of

SMALL = 0.005
"""Checks that remove a smaller share of the pairs in both loops are left to the files."""
ROUTES = {
    "first": "only the one with locality",
    "then_second": "both, as the first left no queue",
    "second_only": "only the one without: a relaxation",
    "held": "none, held back",
}
STABILIZER = {
    "looked_at": "can be throttled",
    "user_queue": "marked: too many jobs of the user wait",
    "bad_jobs": "marked: too many jobs of the task failed there",
    "no_running": "marked: jobs of the share wait, none runs",
    "base": "nQ_max is BASE_QUEUE_LENGTH_PER_PQ",
    "running": "nQ_max follows the running jobs",
    "rate": "nQ_max follows the to-running rate",
    "base_user": "max_q_len is BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER",
    "ratio": "max_q_len follows BASE_QUEUE_RATIO_ON_PQ",
    "percentage": "max_q_len is the user's part of nQ_max",
}
QUANTITIES = charts.QUANTITIES | {
    "throttle": "change by the throttle",
    "checks": "change by the checks",
}
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
            Number.of(
                _row(t.held_by_rule, HELD),
                "share",
                label="Held back",
                unit="%",
                note="of the brokerages",
            ),
            Number.of(
                _row(t.without_queue, "stuck"),
                "share",
                label="Left without a queue",
                unit="%",
                note="of the brokerages, those held back included",
            ),
            Number.of(
                _index(t, "placed"),
                "index",
                label="Jain's index of the jobs that find a queue",
                note="1: all users have the same",
            ),
        ],
        chart=_held_chart(period, t),
        sections={
            "Who is held back": _held_blocks(period, t),
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


def _row(shares: pl.DataFrame, part: str) -> dict[str, Any]:
    return shares.row(by_predicate=pl.col("part") == part, named=True)


def _index(t: UserTasks, quantity: str) -> dict[str, Any]:
    return t.indices.row(by_predicate=pl.col("quantity") == quantity, named=True)


def _headline(t: UserTasks) -> str:
    rules = t.held_by_rule.filter(~pl.col("part").is_in([HELD, PASSED]))
    held, top = _row(t.held_by_rule, HELD), rules.sort("share", descending=True).row(0, named=True)
    if held["total"]:
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
    rules = t.held_by_rule.filter(~pl.col("part").is_in([HELD, PASSED]), pl.col("total") > 0)
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


def _held_blocks(period: Period, t: UserTasks) -> list[Block | None]:
    families = {name: f"By {name} [%]" for name in FAMILIES if t.held_by_level[name].sum() > 0}
    several_users = pl.col("share_lo").is_not_null()  # a day of one user says little
    most = t.held_over_time.sort(several_users, "share", "part").tail(1).to_dicts()
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
        Chart(
            draw=charts.held_over_time,
            frame=t.held_over_time,
            finding=say(
                "Most {when} {day}: {part} hold back {share:%} of the brokerages",
                most[0],
                when="on" if grain(period.window) == "1d" else "in the week from",
                day=most[0]["time"].date(),
            ),
            sample="95 % intervals over users; none where all are of one user.",
        )
        if most
        else None,
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
        Table(
            name="routes",
            frame=t.routes.with_columns(way=pl.col("part").replace_strict(ROUTES)),
            caption="Ways through the locality loops",
            columns={"way": "Loops", "total": "Brokerages", "share": "Share [%]"},
            note=OVER_USERS,
        ),
        Table(
            name="without_queue",
            frame=shared.wide(t.without_queue_by_gshare, "gshare"),
            caption="How brokerages end without a queue, by gshare",
            columns={
                "gshare": "gshare",
                "n_units": "Tasks",
                "whole": "Brokerages",
                "throttled_waiting": "Held back [%]",
                "temporary_error": "Temporary error [%]",
                "fatal": "Fatal [%]",
                "stuck": "In all [%]",
            },
            note=f"{shared.OVER_TASKS} Temporary: tried again later. Fatal: the task ends.",
        ),
    ]


def _stabilizer_blocks(t: UserTasks) -> list[Block | None]:
    if t.stabilizer.is_empty():
        return ["No queue reaches the stabilizer: checks before it remove all."]
    marked = t.stabilizer_queues.filter(pl.col("marked") > 0).height
    return [
        Table(
            name="stabilizer",
            frame=t.stabilizer.with_columns(state=pl.col("part").replace_strict(STABILIZER)),
            caption=say(
                "The stabilizer marks {share:%} of the pairs of task and queue that reach it, at {marked} of {n} queues",
                _row(t.stabilizer, "user_queue"),
                marked=marked,
                n=t.stabilizer_queues.height,
            ),
            columns={"state": "State", "total": "Pairs", "share": "Share [%]"},
            note=(
                f"{OVER_USERS} The Analysis Stabilizer takes a queue from a task where more jobs of its user wait "
                "than max_q_len, the user's part of nQ_max, the longest queue that is sensible there."
            ),
        ),
        Table(
            name="stabilizer_queues",
            frame=t.stabilizer_queues,
            caption="The stabilizer by queue, those that it takes most often first",
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
            note="Numbers of the task's share, medians over pairs if nothing else is said.",
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
    step = pl.col("change_h").abs()
    change = pl.col("change").abs()
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
            note=f"current: the {own} weight of the {period.rules.rules} rules. Queues are hi, mid or lo by how soon they start jobs.",
        ),
        Table(
            name="weight_classes",
            frame=weights.by_class,
            caption="What the new basic weight would move, by class of the task",
            columns={
                "task_class": "Class",
                "n_units": "Users",
                "jobs": "Expected jobs",
                "moved": "Elsewhere [% of jobs]",
                "change_hi": "At hi queues [% points]",
                "change_mid": "At mid queues [% points]",
                "change_lo": "At lo queues [% points]",
            },
            note=(
                f"{OVER_USERS} Points: new less original. "
                + say(
                    "Left out: {n_lost} brokerages with candidates by the original weight only, {n_won} by the new one only.",
                    ends,
                )
            ),
        ),
        Table(
            name="weight_queues",
            frame=weights.queues.sort(change, "queue", descending=[True, False]),
            caption="Queues whose expected jobs change most",
            columns={
                "queue": "Queue",
                "queue_class": "Class",
                "original": "Original weight [jobs]",
                "new": "New weight [jobs]",
                "change": "Change [% of all jobs]",
            },
            most=12,
        ),
        Table(
            name="weight_users",
            frame=weights.users.sort(step, "user", descending=[True, False]),
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
    ends = {
        f"{name}{end}": _index(t, name)[f"index{end}"]
        for name in ("asked", "placed")
        for end in ("", "_lo", "_hi")
    }
    return [
        Chart(
            draw=charts.lorenz,
            frame=lorenz_curves(t.users),
            finding=say(
                "Jain's index is {asked} for jobs asked for and {placed} for jobs that find a queue",
                ends,
            ),
            sample=say("{n} users.", n=t.users.height),
        ),
        Table(
            name="indices",
            frame=t.indices.with_columns(what=pl.col("quantity").replace_strict(QUANTITIES)),
            caption="How evenly users are served: Jain's index",
            columns={"what": "What is divided", "index": "Index [1]"},
            note=f"{OVER_USERS} Jain's index is 1 where all users have the same, and 1/n where one of n has all.",
        ),
        Table(
            name="waits",
            frame=t.waits,
            caption="Jobs that really ran, by the class of their task when they were made",
            columns={
                "task_class": "Class",
                "n_units": "Users",
                "n_jobs": "Jobs",
                "wait_h": "Mean wait [h]",
                "core_h": "Mean core hours [h]",
            },
            note=f"{OVER_USERS} Wait: from being made to the start. Merge jobs are left out.",
        )
        if t.waits.height
        else None,
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
        "removed": t.removed,
        "removed_by_loop": t.removed_by_loop,
        "ended_without_queue": t.without_queue,
        "disagreement": t.disagreement,
        "users": t.users,
        "weight_gshares": t.weights.by_gshare,
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
