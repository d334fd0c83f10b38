"""The sentences of the brokerage replay report, every number taken from the study."""

from __future__ import annotations

from brokerlab.brokerage.production_jobs.decisions import TEMPORARY
from brokerlab.report.brokerage_replay.nuclei import Nuclei
from brokerlab.report.brokerage_replay.study import Study
from brokerlab.report.content import Verdict
from brokerlab.report.replays import sentences as shared
from brokerlab.report.replays.removal import CANDIDATE
from brokerlab.report.replays.words import largest, named, of, value_of
from brokerlab.words import days_of, listed, number, percent, plural, thin

RANK = "rank"
"""The reason of queues beyond the best ten."""
FACTORS = {
    "work": "running against waiting work",
    "data": "input already there",
    "network": "the link to the nucleus",
    "t1": "being a T1",
    "preference": "the preference of the task",
}
"""What a factor of the weight of a queue stands for."""
NUCLEUS_FACTORS = {
    "work": "work left at the nucleus",
    "data": "input already there",
    "tape": "input on tape only",
    "space_fraction": "the free share of the storage",
    "space_amount": "the free amount of storage",
}
"""What a factor of the weight of a nucleus stands for."""
NAMED = 3
"""Checks or keys named in a sentence."""


def days(study: Study) -> str:
    """Show the days of the brokerages."""
    return days_of(*study.inputs.window)


def sample(study: Study, bars: bool = True) -> str:  # noqa: FBT001, FBT002
    """Say what a chart of the job brokerage is made from."""
    words = (
        f"{days(study)}: {number(study.n_tasks)} {plural(study.n_tasks, 'task')}, {number(study.n_brokerages)} "
        f"brokerages, {number(study.n_pairs)} pairs"
    )
    return f"{words}; bars and bands: 95 % intervals over tasks" if bars else words


def verdict(study: Study) -> Verdict:
    """Answer the question of the report in a sentence or two."""
    if not study.n_pairs:
        return Verdict(kind="no_answer", sentence=f"No answer: {_nothing(study)}")
    sentence = (
        f"{_checks_first(study)} {_weights_then(study)} {shared.keys_in_short(study.settings)}"
    )
    return Verdict(kind="finding", sentence=thin(sentence))


def _nothing(study: Study) -> str:
    outcomes = study.decisions.tasks["outcome"].unique().sort().to_list()
    return f"none of the {study.n_brokerages} brokerages came to look at a queue; they ended as {listed(outcomes)}."


def _checks_first(study: Study) -> str:
    hard = 1 - value_of(study.by_check, CANDIDATE) - value_of(study.by_check, RANK)
    top = largest(study.by_check, NAMED, (CANDIDATE, RANK))
    return (
        f"Checks decide first: of {study.n_pairs:,} pairs of task and queue they remove {percent(hard)}, most by "
        f"{named(top)}; {of(study.by_check, CANDIDATE)} become candidates."
    )


def _weights_then(study: Study) -> str:
    top = largest(study.composition, 1, ())
    if not top:
        return "Nowhere two queues compete by weight."
    row = top[0]
    share = percent(row["share"], row["lo"], row["hi"])
    return (
        f"Among the queues left, {FACTORS[row['part']]} makes {share} of the spread of the weight."
    )


def checks(study: Study) -> Verdict:
    """Say what removes queues, and how many tasks are left without one."""
    if not study.n_pairs:
        return Verdict(kind="no_answer", subject="Checks", sentence=f"No answer: {_nothing(study)}")
    stages = (
        study.decisions.tasks.drop_nulls("stage")["stage"]
        .value_counts()
        .sort("count", "stage", descending=[True, False])
    )
    last = f", most often because of {_stage(stages['stage'][0])}" if stages.height else ""
    stuck = f"{of(study.stuck, 'stuck')} of the brokerages leave their task without a queue{last}"
    top = largest(study.by_check, NAMED, (CANDIDATE, RANK))
    return Verdict(
        kind="finding",
        subject="Checks",
        sentence=thin(f"Most pairs are removed by {named(top)}; {stuck}."),
    )


def _stage(name: str) -> str:
    """Name a stage of the brokerage."""
    return "temporary problems" if name == TEMPORARY else name


def weights(study: Study) -> Verdict:
    """Say what orders the queues that are left."""
    rows = largest(study.composition, len(FACTORS), ())
    if not rows:
        return Verdict(
            kind="no_answer",
            subject="Weight",
            sentence="No answer: nowhere two queues compete by weight.",
        )
    parts = [f"{row['part']} {percent(row['share'], row['lo'], row['hi'])}" for row in rows]
    return Verdict(
        kind="finding",
        subject="Weight",
        sentence=thin(f"Of the spread of the log weight among competing queues: {listed(parts)}."),
    )


def settings(study: Study) -> Verdict:
    """Say which settings matter."""
    return shared.settings(study.settings)


def rules(study: Study) -> Verdict:
    """Say how often the rule sets differ, and by what."""
    if not study.n_pairs:
        return Verdict(
            kind="no_answer", subject="Rule sets", sentence="No answer: there is no pair to decide."
        )
    return shared.rules(study.rule_sets)


def nuclei(study: Study) -> Verdict:
    """Say what decides the nucleus."""
    found = study.nuclei
    if found is None:
        return Verdict(
            kind="no_answer", subject="Nuclei", sentence=f"No answer: {study.inputs.no_nuclei}."
        )
    top = largest(found.by_check, NAMED)
    none = 1 - value_of(found.outcomes, "nucleus")
    waived = ""
    if found.locality.height:
        waived = f" The check of data locality was waived for {of(found.locality, 'waived')} of the tasks with input."
    return Verdict(
        kind="finding",
        subject="Nuclei",
        sentence=thin(
            f"Nuclei are removed most by {named(top)}; {percent(none)} of {_n_tasks(found)} tasks get none.{waived}"
        ),
    )


def _n_tasks(found: Nuclei) -> int:
    return found.decisions.tasks.height


def history(study: Study) -> str:
    """Say how the replay agrees with where jobs ran, and against what chance."""
    return shared.history(study.agreement, synthetic=study.inputs.archive.synthetic)


def cannot_tell(study: Study) -> tuple[str, ...]:
    """Collect what the replay cannot tell, from what it found."""
    notes = list(study.inputs.jobs.notes)
    told = [f"Approximated: {note}." for note in notes]
    if study.inputs.nuclei is not None:
        others = [note for note in study.inputs.nuclei.notes if note not in notes]
        told += [f"Approximated at the choice of the nucleus: {note}." for note in others]
    if study.inputs.sampled:
        told.insert(
            0,
            f"A sample: {study.n_tasks:,} of {study.inputs.n_tasks:,} tasks, drawn at random, are replayed.",
        )
    if study.inputs.archive.synthetic:
        told.insert(
            0,
            "The archive is synthetic: the shares of checks and factors are those of its generator, not of a real "
            "system; that its jobs ran somewhere is no evidence for or against a check.",
        )
    told += [f"Odd input, taken as the rules say: {said}." for said in study.odd]
    told += [f"{key} was not tried: {why}." for key, why in study.settings.skipped.items()]
    told += [
        (
            "Consequences: every brokerage is replayed in the state that history left. With another setting or rule set "
            "the queues that later tasks saw would have been others; a key's effect on waiting times is not known."
        ),
        "One key at a time: two keys moved together may do more or less than both alone.",
        (
            "Which candidate a single job goes to: the replay gives the candidates of a task and their weights; "
            "expected jobs are divided in proportion to the weights."
        ),
    ]
    if study.inputs.every:
        told.append(
            f"Moments: instants are rounded down to {study.inputs.every}; what changed within it is not seen."
        )
    return tuple(thin(sentence) for sentence in told)
