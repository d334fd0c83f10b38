"""The sentences of the report on user tasks, every number taken from the study."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.brokerage.studies.user_tasks.outcomes import PASSED
from brokerlab.brokerage.studies.user_tasks.weights import NOTICED
from brokerlab.report.analysis_replay.study import Study
from brokerlab.report.content import Verdict
from brokerlab.report.replays import sentences as shared
from brokerlab.report.replays.kinds import ANALYSIS
from brokerlab.report.replays.removal import CANDIDATE
from brokerlab.report.replays.words import largest, named, of, value_of
from brokerlab.words import days_of, listed, measured, number, percent, plural, thin

BEYOND = ANALYSIS.beyond
"""The reason of queues beyond the best ten."""
NAMED = 3
"""Rules, checks or keys named in a sentence."""
FIRST, SECOND = 1, 2
"""Locality loops."""


def days(study: Study) -> str:
    """Show the days of the brokerages."""
    return days_of(*study.inputs.window)


def sample(study: Study, over: str = "users") -> str:
    """Say what a chart is made from."""
    return (
        f"{days(study)}: {number(study.n_tasks)} {plural(study.n_tasks, 'task')} of {number(study.n_users)} "
        f"{plural(study.n_users, 'user')}, {number(study.n_brokerages)} brokerages; bars and bands: 95 % intervals over {over}"
    )


def verdict(study: Study) -> Verdict:
    """Answer the question of the report."""
    if not study.n_pairs:
        return Verdict(kind="no_answer", sentence=f"No answer: {_nothing(study)}")
    parts = (
        _held(study),
        _removed(study),
        _moved(study),
        _fair(study),
        shared.keys_in_short(study.settings),
    )
    return Verdict(kind="finding", sentence=thin(" ".join(parts)))


def _nothing(study: Study) -> str:
    rules = study.rows.filter(pl.col("rule") != PASSED)["rule"].unique().sort().to_list()
    why = f"they were held back by {listed(rules)}" if rules else "there was none to look at"
    return f"none of the {study.n_brokerages} brokerages came to look at a queue; {why}."


def held_share(study: Study) -> str:
    """Show the share of brokerages held back with its interval."""
    row = study.by_rule.filter(pl.col("part") == PASSED).row(0, named=True)
    low, high = (None if row[end] is None else 1 - row[end] for end in ("hi", "lo"))
    return percent(1 - row["share"], low, high)


def _held(study: Study) -> str:
    top = largest(study.by_rule, NAMED - 1, (PASSED,))
    n = f"{study.n_brokerages:,} brokerages of user tasks"
    if not top:
        return f"No rule holds any of {n} back."
    return f"{held_share(study)} of {n} are held back, most by {named(top)}."


def _removed(study: Study) -> str:
    failed = 1 - value_of(study.by_check, CANDIDATE) - value_of(study.by_check, BEYOND)
    top = largest(study.by_check, NAMED - 1, (CANDIDATE, BEYOND))
    return (
        f"Of {study.n_pairs:,} pairs of task and queue, {percent(failed)} fail a check, most {named(top)}; the stabilizer "
        f"marks {of(study.limits, 'user_queue')} of those that reach it."
    )


def _moved(study: Study) -> str:
    found = study.weights
    if found.moved.is_empty() or found.moved["share"][0] is None:
        return "No job can be weighed both ways."
    return f"The new basic weight would send {of(found.moved, 'moved')} of the jobs to another queue than the original{_lost(study)}."


def _fair(study: Study) -> str:
    return (
        f"Jain's index over {study.n_users} {plural(study.n_users, 'user')} is {index_of(study, 'asked')} for the jobs asked for "
        f"and {index_of(study, 'placed')} for those that find a queue."
    )


def held(study: Study) -> Verdict:
    """Say who is held back and why."""
    if study.rows.is_empty():
        return Verdict(kind="no_answer", subject="Throttle", sentence="No answer: no brokerage.")
    top = largest(study.by_rule, NAMED, (PASSED,))
    if not top:
        return Verdict(
            kind="finding", subject="Throttle", sentence=thin(f"{_held(study)}{_nearest(study)}")
        )
    jobs = float(study.units["jobs_held"].sum())
    asked = float(study.units["jobs"].sum())
    n = study.units.filter(pl.col("held") > 0).height
    first = study.units.row(0, named=True)
    whose = (
        f" They meet {n} of {study.units.height} users and groups and {percent(jobs / asked if asked else None)} of the "
        f"jobs asked for; most jobs wait for {first['unit']} ({number(first['jobs_held'])} of {number(first['jobs'])})."
    )
    told = f"{held_share(study)} of the brokerages are held back, by {named(top)}.{whose}"
    return Verdict(kind="finding", subject="Throttle", sentence=thin(told))


def _nearest(study: Study) -> str:
    """Say how near a limit tasks come where none is passed."""
    known = study.margins.drop_nulls("largest").sort("largest", "rule", descending=[True, False])
    if known.is_empty():
        return " No limit of the throttle is set or known."
    row = known.row(0, named=True)
    return f" The nearest comes to {percent(row['largest'])} of its limit ({row['rule']})."


def checks(study: Study) -> Verdict:
    """Say what removes queues in either loop."""
    if not study.n_pairs:
        return Verdict(kind="no_answer", subject="Checks", sentence=f"No answer: {_nothing(study)}")
    told = []
    for loop, name in ((FIRST, "With locality"), (SECOND, "Without")):
        rows = study.by_loop.filter(pl.col("loop") == loop)
        if rows.height:
            top = largest(rows, NAMED, (CANDIDATE, BEYOND))
            told.append(
                f"{name}, {of(rows, CANDIDATE)} of the pairs become candidates, most are removed by {named(top)}"
            )
    loops = f"{of(study.routes, 'then_second')} of the brokerages try again without locality, {of(study.routes, 'second_only')} need none from the start"
    sentence = (
        f"{'. '.join(told)}. {loops}; {of(study.stuck, 'stuck')} leave their task without a queue."
    )
    return Verdict(kind="finding", subject="Checks", sentence=thin(sentence))


def stabilizer(study: Study) -> Verdict:
    """Say where the stabilizer may act, how often it does, and what its limits are made of."""
    found = study.limits
    if found.is_empty():
        return Verdict(
            kind="no_answer", subject="Stabilizer", sentence="No answer: no queue reaches it."
        )
    whole = number(found["whole"][0])
    names = {
        "base": "BASE_QUEUE_LENGTH_PER_PQ",
        "running": "running jobs",
        "rate": "the to-running rate",
    }
    made = [
        f"{word} in {percent(value_of(found, name))}"
        for name, word in names.items()
        if value_of(found, name) > 0
    ]
    marked = study.limits_by_queue.filter(pl.col("marked") > 0)
    where = (
        f" It marks {marked.height} of {study.limits_by_queue.height} queues at all."
        if marked.height
        else ""
    )
    sentence = (
        f"Of {whole} pairs of task and queue that reach it, {of(found, 'looked_at')} can be throttled and "
        f"{of(found, 'user_queue')} are marked because too many jobs of the user wait; bad jobs mark {of(found, 'bad_jobs')}."
        f"{where} nQ_max is set by {listed(made)} of the pairs."
    )
    return Verdict(kind="finding", subject="Stabilizer", sentence=thin(sentence))


def weights(study: Study) -> Verdict:
    """Say what the new basic weight would change for users."""
    found = study.weights
    if found.moved.is_empty() or found.moved["share"][0] is None:
        why = "no brokerage has candidates under both weights"
        return Verdict(kind="no_answer", subject="Weight", sentence=f"No answer: {why}.")
    sentence = (
        f"The new basic weight would send {of(found.moved, 'moved')} of the expected jobs elsewhere{_lost(study)}."
        f"{_hi_queues(study)}{_felt(study)}"
    )
    return Verdict(kind="finding", subject="Weight", sentence=thin(sentence))


def _lost(study: Study) -> str:
    """Say how many brokerages would have no queue left."""
    found = study.weights
    if not value_of(found.ends, "lost"):
        return ""
    return f", and leave {of(found.ends, 'lost')} of the brokerages with candidates without any, most by {found.lost_by}"


def _hi_queues(study: Study) -> str:
    """Say how much more or less goes to the queues that start jobs soonest."""
    rows = study.weights.changes.filter(pl.col("task_class") == "all", pl.col("part") == "hi")
    if rows.is_empty() or rows["share"][0] is None:
        return ""
    row = rows.row(0, named=True)
    more = row["share"] >= 0
    change = points(row, 1 if more else -1)
    return f" Queues of class hi would get {change} of the jobs {'more' if more else 'less'}."


def _felt(study: Study) -> str:
    """Say how many users would wait less or more."""
    felt = study.weights.felt
    if felt.is_empty():
        return ""
    return (
        f" As waiting jobs over the to-running rate tell, {of(felt, 'sooner')} of {felt['n_users'][0]} users would wait less "
        f"by {100 * NOTICED:g} % or more, {of(felt, 'later')} longer by as much."
    )


def points(row: dict[str, Any], sign: int = 1) -> str:
    """Show a difference of shares, its interval turned round for sign -1."""
    ends = [None if row[end] is None else sign * row[end] for end in ("lo", "hi")]
    low, high = ends if sign > 0 else ends[::-1]
    return percent(sign * row["share"], low, high)


def index_of(study: Study, quantity: str) -> str:
    """Show one of Jain's indices with its interval."""
    row = study.indices.filter(pl.col("quantity") == quantity).row(0, named=True)
    return "unknown" if row["index"] is None else measured(row["index"], row["lo"], row["hi"])


def fairness(study: Study) -> Verdict:
    """Say how evenly jobs and cores are divided among users, and who waits."""
    if study.users.is_empty():
        return Verdict(kind="no_answer", subject="Fairness", sentence="No answer: no user.")
    sentence = (
        f"Jain's index over {study.n_users} {plural(study.n_users, 'user')} (1: all alike) is {index_of(study, 'asked')} for the jobs "
        f"asked for, {index_of(study, 'placed')} for those that find a queue and {index_of(study, 'core_h')} for the core hours that "
        f"really ran; the throttle changes it by {index_of(study, 'throttle')}, the checks by {index_of(study, 'checks')}."
        f"{_waits(study)}"
    )
    return Verdict(kind="finding", subject="Fairness", sentence=thin(sentence))


def _waits(study: Study) -> str:
    rows = study.waits.filter(pl.col("part") == "wait_h", pl.col("task_class") != "all").drop_nulls(
        "lo"
    )
    rows = rows.sort("share", "task_class", descending=[True, False])
    if rows.height < 2:
        return ""
    told = [
        f"{measured(row['share'], row['lo'], row['hi'])} h in class {row['task_class']}"
        for row in (rows.row(0, named=True), rows.row(-1, named=True))
    ]
    return f" Jobs really waited {told[0]} and {told[1]} on average."


def rules(study: Study) -> Verdict:
    """Say how often the rule sets differ, and by what."""
    found = study.rule_sets
    if not study.n_pairs:
        return Verdict(
            kind="no_answer", subject="Rule sets", sentence="No answer: there is no pair to decide."
        )
    return shared.rules(found)


def settings(study: Study) -> Verdict:
    """Say which settings matter."""
    return shared.settings(study.settings)


def history(study: Study) -> str:
    """Say how the replay agrees with where jobs ran, and against what chance."""
    return shared.history(study.agreement, synthetic=study.inputs.archive.synthetic)


def cannot_tell(study: Study) -> tuple[str, ...]:
    """Collect what the replay cannot tell, from what it found."""
    told = []
    if study.inputs.archive.synthetic:
        told.append(
            "The archive is synthetic: who is held back, by what, and who waits are facts of its generator, not of a real "
            "system; its jobs were placed without a brokerage."
        )
    if study.inputs.sampled:
        told.append(
            f"A sample: {study.n_tasks:,} of {study.inputs.n_tasks:,} tasks, drawn at random, are replayed."
        )
    told += [f"Approximated: {note}." for note in study.inputs.replay.notes]
    told += [f"Odd input, taken as the rules say: {said}." for said in study.odd]
    told += [f"{key} was not tried: {why}." for key, why in study.settings.skipped.items()]
    known = study.weights.known
    if known is not None and known < 1:
        told.append(
            f"Expected waits: {percent(1 - known)} of the expected jobs go to queues where jobs wait and none started lately; "
            "their wait is not known and left out."
        )
    told += [
        (
            "Consequences: every brokerage is replayed in the state that history left. Had another weight, setting or rule set "
            "been in force, jobs waiting and running, classes and usage would have been others, and so would what is held back."
        ),
        (
            "Rule sets and classes: queues and tasks are rated by the rule set of the study throughout, also where the brokerage "
            "of the other rule set is tried."
        ),
        "One key at a time: two keys moved together may do more or less than both alone.",
    ]
    if study.inputs.every:
        told.append(
            f"Moments: instants are rounded down to {study.inputs.every}; what changed within it is not seen."
        )
    return tuple(thin(sentence) for sentence in told)
