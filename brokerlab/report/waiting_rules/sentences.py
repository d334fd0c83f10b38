"""The sentences of the waiting rules report, every number taken from the study."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import polars as pl

from brokerlab.lifecycle.waiting import ALL_RULES as ALL
from brokerlab.lifecycle.waiting.firings import HOUR_US
from brokerlab.report.content import Verdict
from brokerlab.report.waiting_rules.study import Study
from brokerlab.report.waiting_rules.words import hours, jobs, labelled, limit, signed
from brokerlab.words import days_of, listed, measured, number, percent, plural, thin

NAMED = 3
"""Rules named in a sentence."""
KIND_WORDS = {
    "only_current": "timed out under {current} rules only",
    "only_other": "timed out under {other} rules only",
    "other_rule": "timed out by another rule or otherwise",
    "other_time": "timed out by the same rule at another time",
    "same": "alike",
}
"""How a job fares under both rule sets."""


def days(study: Study) -> str:
    """Show the days of the period."""
    start, end = study.inputs.window
    return days_of(start, end - timedelta(microseconds=1))


def sample(study: Study) -> str:
    """Say what a chart is made from."""
    inputs = study.inputs
    word = "queues" if inputs.waiting.unit == "queue" else "tasks"
    return (
        f"{days(study)}: {number(inputs.waiting.total('n_jobs'))} jobs, {number(study.n_fired)} timed out; bars and bands: 95 % intervals "
        f"from drawing {number(study.n_units)} {word} again"
    )


def ranked(study: Study) -> pl.DataFrame:
    """Return the rules that fire, most jobs first."""
    return labelled(study.by_rule).sort("jobs", "number", descending=[True, False])


def scaled(study: Study, scale: float, rule: str = ALL) -> dict[str, Any] | None:
    """Return the row of a rule at a scale."""
    rows = study.limits.filter(pl.col("rule") == rule, pl.col("scale") == scale).to_dicts()
    return rows[0] if rows else None


def verdict(study: Study) -> Verdict:
    """Answer the question of the report in a few sentences."""
    inputs = study.inputs
    if not study.n_fired:
        half = _more(study, 0.5)
        sentence = f"No waiting rule fires for any of {inputs.waiting.total('n_jobs'):,} jobs under {inputs.waiting.rules.rules} rules. {half}"
        return Verdict(kind="finding", sentence=thin(sentence.strip()))
    total = study.total
    share = study.n_fired / inputs.waiting.total("n_jobs")
    least = "at least " if (total["still"] or 0) + (total["undecided"] or 0) else ""
    sentence = (
        f"Waiting rules fire for {study.n_fired:,} of {inputs.waiting.total('n_jobs'):,} jobs ({percent(share)}), most by {_top(study)}. "
        f"Until then these jobs wait {hours(total, 'waited_h')}; left alone they would have waited {least}"
        f"{hours(total, 'after_h')} more, yet {_soon(total)} would have gone on within {limit(inputs.waiting.soon_h)}: interrupted "
        f"for nothing. {_more(study, 0.5)} {_more(study, 2.0)}"
    )
    return Verdict(kind="finding", sentence=thin(sentence.strip()))


def _of_all(study: Study) -> str:
    """Set the waiting before a start in proportion to all of it."""
    waiting = study.inputs.waiting
    whole, waited = waiting.waited_h, waiting.waited_before_start_h(study.fired)
    if not whole or not waited:
        return ""
    return f" Before a start it is {waited:,.0f} h, {percent(waited / whole)} of what all jobs wait for one."


def _soon(row: dict[str, Any]) -> str:
    return percent(row["soon_share"], row["soon_share_lo"], row["soon_share_hi"])


def _top(study: Study) -> str:
    rows = ranked(study).head(NAMED).to_dicts()
    return listed([f"{row['name']} ({number(row['jobs'])})" for row in rows])


def _more(study: Study, scale: float) -> str:
    """Say what all limits halved or doubled would do."""
    row = scaled(study, scale)
    if row is None or not row["more_jobs"]:
        return f"{'Halved' if scale < 1 else 'Doubled'}, the limits would do the same." if study.n_fired else ""  # fmt: skip
    if scale < 1:
        return (
            f"Halved limits would end {hours(row, 'more_after_h')} more of waiting and interrupt {jobs(row, 'more_soon')} "
            "more jobs for nothing."
        )
    fewer = _negated(row, ("more_after_h", "more_soon"))
    return (
        f"Doubled limits would leave {hours(fewer, 'more_after_h')} of it and interrupt {jobs(fewer, 'more_soon')} fewer "
        "for nothing."
    )


def _negated(row: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Turn differences round, and their ends."""
    told = dict(row)
    for name in names:
        low, high = row[f"{name}_lo"], row[f"{name}_hi"]
        told[name] = -row[name]
        told[f"{name}_lo"] = None if high is None else -high
        told[f"{name}_hi"] = None if low is None else -low
    return told


def firing(study: Study) -> Verdict:
    """Say which rules fire, where most."""
    if not study.n_fired:
        told = "No rule fires."
        return Verdict(kind="finding", subject="Rules", sentence=f"{told} {quiet(study)}".strip())
    queues = study.by_queue.group_by("computingsite").agg(pl.col("jobs").sum())
    worst = queues.sort("jobs", "computingsite", descending=[True, False]).row(0, named=True)
    rows = [
        f"{row['name']} for {jobs(row)} jobs (limit {limit(_limit_of(study, row))}, {row['action']})"
        for row in ranked(study).head(NAMED).to_dicts()
    ]
    share = worst["jobs"] / queues["jobs"].sum()
    sentence = (
        f"{study.by_rule.height} of {study.by_rule.height + study.quiet.height} rules fire: {listed(rows)}"
        f"{' and others' if study.by_rule.height > NAMED else ''}. {percent(share)} of the firings are at "
        f"{worst['computingsite']}, of {queues.height} {plural(queues.height, 'queue')} with any."
    )
    return Verdict(kind="finding", subject="Rules", sentence=thin(sentence))


def _limit_of(study: Study, row: dict[str, Any]) -> float | None:
    rows = study.limits.filter(
        pl.col("rule") == row["rule"], pl.col("action") == row["action"], pl.col("scale") == 1
    )
    return rows["limit_h"][0] if rows.height else None


def quiet(study: Study) -> str:
    """Name the rules that never fire, and those that could not."""
    seen = labelled(study.quiet)
    never = seen.filter("seen")["name"].to_list()
    blind = seen.filter(~pl.col("seen"))["name"].to_list()
    told = f"Never: {listed(never)}." if never else ""
    if blind:
        told += f" Not to be judged, as the archive tells of no job in their statuses: {listed(blind)}."  # fmt: skip
    return told.strip()


def waste(study: Study) -> Verdict:
    """Say what became of the jobs."""
    total = study.total
    if not study.n_fired:
        return Verdict(
            kind="no_answer",
            subject="Waste",
            sentence="No answer: no rule fires, nothing is wasted.",
        )
    inputs = study.inputs
    fresh = inputs.waiting.fresh_h
    again = (
        f" A job that starts anew waits {number(fresh, 1)} h in the mean from its creation to its start, which is to be "
        "set against what a reassigned one is spared."
        if fresh is not None
        else ""
    )
    sentence = (
        f"Of {study.n_fired:,} jobs, {jobs(total, 'soon')} went on by themselves within {limit(inputs.waiting.soon_h)}, "
        f"{jobs(total, 'later')} did later, {jobs(total, 'ended')} came to nothing and "
        f"{number((total['still'] or 0) + (total['undecided'] or 0))} still wait at the end of the archive. "
        f"Rules end {hours(total, 'after_h')} of waiting at least, after {hours(total, 'waited_h')} of it.{_of_all(study)}{again}"
    )
    return Verdict(kind="finding", subject="Waste", sentence=thin(sentence))


def limits(study: Study) -> Verdict:
    """Say which limits matter most."""
    single = study.limits.filter(pl.col("rule") != ALL)
    if single.is_empty():
        return Verdict(
            kind="no_answer", subject="Limits", sentence="No answer: no rule fires at any of the limits tried."
        )  # fmt: skip
    told = []
    for scale, word in ((0.5, "halved"), (2.0, "doubled")):
        rows = labelled(single.filter(pl.col("scale") == scale))
        row = rows.sort(pl.col("more_after_h").abs(), "number", descending=[True, False]).row(0, named=True)  # fmt: skip
        if row["more_jobs"]:
            told.append(
                f"{word}, {row['name']} changes most: {signed(row, 'more_after_h', 'h')} of waiting ended, "
                f"{signed(row, 'more_soon')} interrupted for nothing"
            )
    moving = single.filter(pl.col("more_jobs").abs() > 0)["rule"].unique()
    still = sorted(set(single["rule"]) - set(moving))
    none = f" No limit tried times out more or fewer jobs by {listed(still, 'or')}." if still else ""  # fmt: skip
    sentence = f"Each rule by itself: {'; '.join(told)}.{none}" if told else none.strip()  # fmt: skip
    return Verdict(kind="finding", subject="Limits", sentence=thin(sentence))


def exceptions(study: Study) -> Verdict:
    """Say what priorities, exempt queues and silence do."""
    queues = study.inputs.waiting.histories.places.height
    urgent = float(study.by_priority.filter(pl.col("priority") == "urgent")["jobs"].sum())
    every = float(study.by_priority["jobs"].sum())
    share = f" {percent(urgent / every)} of the firings are of priority 800 and more." if every else ""  # fmt: skip
    sentence = (
        f"{study.inputs.waiting.n_exempt_queues} of {queues:,} queues are paused or have disableReassign, which spares {study.n_spared:,} "
        f"{plural(study.n_spared, 'job')}.{share} {silence(study)}"
    )
    return Verdict(kind="finding", subject="Exceptions", sentence=thin(sentence))


def silence(study: Study) -> str:
    """Say what is known of silent workers."""
    inputs = study.inputs
    alive = inputs.waiting.n_beating
    lost, ran = int(inputs.waiting.units["n_lost"].sum()), int(inputs.waiting.units["n_ran"].sum())
    hours_lost = float(inputs.waiting.units["lost_us"].sum()) / HOUR_US
    now = (
        f"Of {alive:,} live jobs that should give signs of life, {study.n_silent:,} had been silent for longer than their limit at "
        "the end of the archive."
        if alive
        else "No job is live at the end of the archive, so no silence can be seen in it."
    )
    share = f" ({percent(lost / ran)} of those that ran)" if ran else ""
    return (
        f"{now} In the period {lost:,} {plural(lost, 'job')}{share} failed for a lost heartbeat, after {hours_lost:,.0f} h "
        "of running."
    )


def fast(study: Study) -> Verdict:
    """Say what fast rebrokerage would do."""
    found = study.fast
    if found is None:
        return Verdict(
            kind="no_answer",
            subject="Fast rebrokerage",
            sentence="No answer: no queue and share has a job at any instant.",
        )
    row = found.totals.row(0, named=True)
    n = found.n_instants
    busy = int((found.by_time["n_places"] > 0).sum())
    n_ever, n_set, moved = found.places.height, found.n_places_as_set, found.moved_as_set
    head = (
        "No share has a threshold, so nothing moves as things are set; with the 10 jobs of the dry run "
        if found.dry_run
        else f"As things are set, {n_set} {plural(n_set, 'pair')} of queue and share ever trigger and {number(moved, 1)} jobs "
        "move at an instant in the mean. With 10 as threshold of the shares that have none, as the dry run takes it, "
    )
    places = found.places.head(NAMED).to_dicts()
    most = (
        " Most: "
        + listed(
            [f"{p['gshare']} at {p['computingsite']} ({number(p['onset_jobs'])})" for p in places]
        )
        + ", counted when they begin to trigger."
        if places
        else ""
    )
    sentence = (
        f"{head}{n_ever} {plural(n_ever, 'pair')} of queue and share ever trigger, some at {percent(busy / n)} of {n} instants; in the mean "
        f"{_mean(row, 'to_move')} of {found.queued:,.0f} queued jobs would move at an instant.{most}"
    )
    return Verdict(kind="finding", subject="Fast rebrokerage", sentence=thin(sentence))


def _mean(row: dict[str, Any], name: str) -> str:
    return measured(row[name], row[f"{name}_lo"], row[f"{name}_hi"], 1)


def rules(study: Study) -> Verdict:
    """Say how the rule sets differ."""
    found, inputs = study.rule_sets, study.inputs
    if not found.n_any:
        return Verdict(
            kind="finding", subject="Rule sets", sentence="Neither rule set times out any job."
        )
    kinds = found.kinds.filter(pl.col("kind") != "same").sort("jobs", "kind", descending=[True, False])  # fmt: skip
    parts = [
        f"{jobs(row)} {_kind(study, row['kind'])}" for row in kinds.iter_rows(named=True)
    ]  # fmt: skip
    switches = found.switches.filter(pl.col("n_changed") > 0)
    single = ""
    if switches.height:
        row = switches.sort("explained", "switch", descending=[True, False]).row(0, named=True)
        single = f" One difference, {row['switch']}, makes {percent(row['explained'])} of it alone."
    differ = (
        f"{found.n_different:,} of {found.n_any:,} jobs that {inputs.waiting.rules.rules} or {inputs.waiting.other.rules} rules time out "
        f"fare differently: {listed(parts)}.{single}"
        if found.n_different
        else f"Both rule sets do the same to all {found.n_any:,} jobs."
    )
    return Verdict(kind="finding", subject="Rule sets", sentence=thin(differ))


def _kind(study: Study, kind: str) -> str:
    inputs = study.inputs
    return KIND_WORDS[kind].format(
        current=inputs.waiting.rules.rules, other=inputs.waiting.other.rules
    )
