"""What a back-test cannot tell, in sentences made from what was found in the data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from brokerlab.calibrate.percentiles.parameters import Parameter
from brokerlab.words import plural, short_percent

SMALL = 10  # tasks; below, drawing tasks with replacement says nothing
NUMBER = re.compile(r"\d[\d,.]*\d|\d")


def merge_sentences(sentences: Mapping[str, Sequence[str]]) -> list[str]:
    """Write sentences that several parameters share once; where numbers differ, those of the others stand behind.

    Args:
        sentences: Name of a parameter to its sentences.

    Example:
        >>> merge_sentences({"a": ["3 of 9 jobs are lost.", "No queues."], "b": ["4 of 9 jobs are lost.", "No queues."]})
        ['a: 3 of 9 jobs are lost (b: 4).', 'No queues.']
    """
    alike: dict[str, dict[str, str]] = {}
    for name, of_one in sentences.items():
        for sentence in of_one:
            alike.setdefault(NUMBER.sub("#", sentence), {})[name] = sentence
    return [_merged(each, of_all=len(each) == len(sentences)) for each in alike.values()]


def _merged(by_name: Mapping[str, str], *, of_all: bool) -> str:
    sentence = next(iter(by_name.values()))
    same = [name for name, other in by_name.items() if other == sentence]
    if of_all and len(same) == len(by_name):
        return sentence
    first = NUMBER.findall(sentence)
    others = {name: NUMBER.findall(text) for name, text in by_name.items() if name not in same}
    numbers = [
        f"{name}: {', '.join(n for n, known in zip(found, first, strict=True) if n != known)}"
        for name, found in others.items()
    ]
    more = f" ({'; '.join(numbers)})" if numbers else ""
    return f"{', '.join(same)}: {sentence.removesuffix('.')}{more}."


SENTENCES = {
    "synthetic": "The archive is synthetic: it repeats what is known of real jobs and cannot show what is not.",
    "n_few": (
        "Only {n_few} {tasks} can be scored: what happened in each is exact, but so few say next to nothing about "
        "other tasks, and their intervals are not to be relied on."
    ),
    "n_outgrown": (
        "Every job above its request or limit is counted as killed: {n_outgrown:,} of {n_scored:,} used more than "
        "given and finished, {n_kills:,} were killed for it. Where queues let them run, kills are overstated."
    ),
    "killed": "{killed}",
    "failures_unknown": "No failed jobs were given: jobs killed at a limit cannot be seen, only survivors are scored.",
    "none_failed": "The tasks have no failed job: either none failed, or the archive keeps survivors only.",
    "missing": "{missing}.",
    "n_unmarked": "In {n_unmarked} of {n_tasks} tasks no scout is marked: the first ten jobs created stand in for them.",
    "n_after_second": (
        "{n_after_second:,} of {n_scored:,} scored jobs were created after the second trigger, but scored against "
        "the first estimate."
    ),
    "gap": "Scouts are no random sample: their median lies {gap} that of the rest of their task.",
    "n_small": (
        "{n_small} of {n_tasks_with_jobs} tasks have too few jobs or no scout value: the result speaks of larger "
        "tasks."
    ),
    "no_queues": "No queues were given: the share of queues and slots that can take a task is not known.",
    "queues": "{queues}.",
    "n_zero_estimates": "In {n_zero_estimates} of {n_tasks} tasks the current setting gives an estimate of 0: {at_zero}.",
    "is_disk": (
        "An output above its estimate and allowance counts as a kill; a work directory smaller than requested saves"
        " an unknown part of these jobs."
    ),
    "n_fallback": (
        "In {n_fallback} of {n_tasks} tasks there are too few scouts for the promised coverage: the largest scout "
        "stands in, without a promise."
    ),
}
"""What must be there, and what is said of it, most important first."""


def caveats_of(
    counts: Mapping[str, int],
    parameter: Parameter,
    *,
    killed_as: str,
    gap_ratio: float | None,
    synthetic: bool,
) -> tuple[str, ...]:
    """Return the sentences that apply, most important first.

    Args:
        counts: Of ``Sample.counts`` and of the queues.
        parameter: What was calibrated.
        killed_as: How killed jobs entered.
        gap_ratio: Geometric mean over tasks of scouts' median over the rest's.
        synthetic: The archive was generated.
    """
    n = counts["n_tasks"]
    lack, silent = counts["n_unscorable"], counts["n_scouts_without_value"]
    unknown, free = counts["n_unknown_queues"], counts["n_unlimited"]
    others = lack + counts["n_scored"]
    found = {
        **counts,
        "synthetic": synthetic,
        "n_few": n if n < SMALL else 0,
        "tasks": plural(n, "task"),
        "killed": _killed(counts, parameter, killed_as),
        "failures_unknown": not counts["failures_known"],
        "none_failed": counts["failures_known"] and not counts["n_failed"],
        "missing": _joined(
            (lack, f"{lack} of {others} other jobs lack {parameter.lacks} and are not scored"),
            (silent, f"{silent} {plural(silent, 'scout')} gave no value"),
        ),
        "n_unmarked": n - counts["n_tasks_marked"],
        "gap": _gap(gap_ratio),
        "n_small": max(counts["n_tasks_with_jobs"] - n, 0),
        "no_queues": not counts["n_queues"],
        "queues": _joined(
            (
                unknown,
                f"{unknown} {plural(unknown, 'queue')} of the jobs missing from the queue table",
            ),
            (
                free,
                f"{free} of {counts['n_queues']} queues without a limit, taken as able to take any task",
            ),
        ),
        "at_zero": parameter.at_zero,
        "is_disk": parameter.name == "outdiskcount",
    }
    return tuple(text.format(**found) for name, text in SENTENCES.items() if found[name])


def _joined(*parts: tuple[int, str]) -> str:
    return "; ".join(text for n, text in parts if n)


def _killed(counts: Mapping[str, int], parameter: Parameter, killed_as: str) -> str:
    limit = parameter.limit
    n = counts["n_killed" if limit is None else f"n_killed_{limit.cause}"]
    if n == 0:
        return ""
    at = limit.cause if limit else "memory or walltime"
    jobs = f"{n} {plural(n, 'job')} killed at a limit ({at})"
    if killed_as == "exclude" or limit is None:
        return f"{jobs} and not retried with success left out: the rate is too low by these."
    entered = counts["n_censored"]
    if entered == n:
        return f"{jobs} and not retried entered as needing just more than was seen."
    rest = f", {n - entered} (scouts, task not scored, or nothing recorded) left out"
    return f"{jobs} and not retried: {entered} entered as needing just more than was seen{rest}."


def _gap(ratio: float | None) -> str:
    if ratio is None or abs(ratio - 1) < 0.005:
        return ""
    return f"{short_percent(abs(ratio - 1))} {'below' if ratio < 1 else 'above'}"
