"""What a back-test cannot tell, in sentences made from what was found in the data."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from brokerlab.calibrate.percentiles.parameters import Parameter
from brokerlab.words import plural, short_percent

if TYPE_CHECKING:
    from brokerlab.calibrate.percentiles.backtest import Backtest

SMALL = 10  # tasks; below, drawing tasks with replacement says nothing
NUMBER = re.compile(r"\d[\d,.]*\d|\d")


def merge_sentences(sentences: Mapping[str, Sequence[str]]) -> list[str]:
    """Write sentences that several parameters share once; where numbers differ, those of the others stand behind.

    Example:
        >>> merge_sentences({"a": ["3 of 9 jobs are lost.", "No queues."], "b": ["4 of 9 jobs are lost.", "No queues."]})
        ['a: 3 of 9 jobs are lost (b: 4).', 'No queues.']
    """
    alike: dict[str, dict[str, str]] = {}
    for name, of_one in sentences.items():
        for sentence in of_one:
            alike.setdefault(NUMBER.sub("#", sentence), {})[name] = sentence
    return [_merge(each, of_all=len(each) == len(sentences)) for each in alike.values()]


def _merge(by_name: Mapping[str, str], *, of_all: bool) -> str:
    sentence = next(iter(by_name.values()))
    same = [name for name, other in by_name.items() if other == sentence]
    if of_all and len(same) == len(by_name):
        return sentence
    first = NUMBER.findall(sentence)
    others = {name: NUMBER.findall(text) for name, text in by_name.items() if name not in same}
    numbers = [
        f"{name}: {', '.join(n for n, known in zip(result, first, strict=True) if n != known)}"
        for name, result in others.items()
    ]
    more = f" ({'; '.join(numbers)})" if numbers else ""
    return f"{', '.join(same)}: {sentence.removesuffix('.')}{more}."


def caveats_of(tried: Backtest) -> tuple[str, ...]:
    """Return the sentences that apply, most important first."""
    n, parameter = SimpleNamespace(**tried.counts), tried.parameter
    unmarked, small = n.n_tasks - n.n_tasks_marked, n.n_tasks_with_jobs - n.n_tasks
    killed = _killed(n, parameter, tried.assumptions.killed_as)
    missing, gap, queues = (
        _missing(n, parameter),
        _gap(tried.gap["ratio_median"].log().mean()),
        _queues(n),
    )
    few, scored = n.n_tasks < SMALL, f"{n.n_scored:,}"
    applies: dict[str, object] = {
        "The archive is synthetic: it repeats what is known of real jobs and cannot show what is not.": tried.inputs.archive.synthetic,
        (
            f"Only {n.n_tasks} {plural(n.n_tasks, 'task')} can be scored: what happened in each is exact, but so few say next "
            "to nothing about other tasks, and their intervals are not to be relied on."
        ): few,
        (
            f"Every job above its request or limit is counted as killed: {n.n_outgrown:,} of {scored} used more than given "
            f"and finished, {n.n_kills:,} were killed for it. Where queues let them run, kills are overstated."
        ): n.n_outgrown,
        killed: killed,
        (
            "The tasks have no failed job: either none failed, or the archive keeps survivors only."
        ): not n.n_failed,
        f"{missing}.": missing,
        (
            f"In {unmarked} of {n.n_tasks} tasks no scout is marked: the first ten jobs created stand in for them."
        ): unmarked,
        (
            f"{n.n_after_second:,} of {scored} scored jobs were created after the second trigger, but scored against the "
            "first estimate."
        ): n.n_after_second,
        f"Scouts are no random sample: their median lies {gap} that of the rest of their task.": gap,
        (
            f"{small} of {n.n_tasks_with_jobs} tasks have too few jobs or no scout value: the result speaks of larger tasks."
        ): small > 0,
        (
            "No queues were given: the share of queues and slots that can take a task is not known."
        ): not n.n_queues,
        f"{queues}.": queues,
        (
            f"In {n.n_zero_estimates} of {n.n_tasks} tasks the current setting gives an estimate of 0: {parameter.at_zero}."
        ): n.n_zero_estimates,
        (
            "An output above its estimate and allowance counts as a kill; a work directory smaller than requested saves an "
            "unknown part of these jobs."
        ): parameter.name == "outdiskcount",
    }
    return tuple(sentence for sentence, result in applies.items() if result)


def _missing(n: SimpleNamespace, parameter: Parameter) -> str:
    lack, silent = n.n_unscorable, n.n_scouts_without_value
    others = f"{lack} of {lack + n.n_scored} other jobs lack {parameter.lacks} and are not scored"
    scouts = f"{silent} {plural(silent, 'scout')} gave no value"
    return "; ".join(text for count, text in ((lack, others), (silent, scouts)) if count)


def _queues(n: SimpleNamespace) -> str:
    unknown, free = n.n_unknown_queues, n.n_unlimited
    lost = f"{unknown} {plural(unknown, 'queue')} of the jobs missing from the queue table"
    open_ = f"{free} of {n.n_queues} queues without a limit, taken as able to take any task"
    return "; ".join(text for count, text in ((unknown, lost), (free, open_)) if count)


def _killed(counts: SimpleNamespace, parameter: Parameter, killed_as: str) -> str:
    limit = parameter.limit
    n = counts.n_killed if limit is None else getattr(counts, f"n_killed_{limit.cause}")
    if n == 0:
        return ""
    at = limit.cause if limit else "memory or walltime"
    jobs = f"{n} {plural(n, 'job')} killed at a limit ({at})"
    if killed_as == "exclude" or limit is None:
        return f"{jobs} and not retried with success left out: the rate is too low by these."
    entered = counts.n_censored
    if entered == n:
        return f"{jobs} and not retried entered as needing just more than was seen."
    rest = f", {n - entered} (scouts, task not scored, or nothing recorded) left out"
    return f"{jobs} and not retried: {entered} entered as needing just more than was seen{rest}."


def _gap(log_ratio: Any) -> str:
    """Say by how much the geometric mean over tasks of scouts over rest lies beside 1."""
    ratio = 1.0 if log_ratio is None else math.exp(log_ratio)
    if abs(ratio - 1) < 0.005:
        return ""
    return f"{short_percent(abs(ratio - 1))} {'below' if ratio < 1 else 'above'}"
