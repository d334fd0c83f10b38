"""What a back-test cannot tell, in sentences made from what was found in the data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from brokerlab.calibrate.percentiles.parameters import Parameter
from brokerlab.words import plural, short_percent

SMALL = 10  # tasks; below, drawing tasks with replacement says nothing
NUMBER = re.compile(r"\d[\d,.]*\d|\d")


def told_once(told: Mapping[str, Sequence[str]]) -> list[str]:
    """Say once what is said of several parameters; where numbers differ, those of the others stand behind.

    Args:
        told: Name of a parameter to its sentences.

    Example:
        >>> told_once({"a": ["3 of 9 jobs are lost.", "No queues."], "b": ["4 of 9 jobs are lost.", "No queues."]})
        ['a: 3 of 9 jobs are lost (b: 4).', 'No queues.']
    """
    alike: dict[str, dict[str, str]] = {}
    for name, sentences in told.items():
        for sentence in sentences:
            alike.setdefault(NUMBER.sub("#", sentence), {})[name] = sentence
    return [_together(said, of_all=len(said) == len(told)) for said in alike.values()]


def _together(said: Mapping[str, str], *, of_all: bool) -> str:
    sentence = next(iter(said.values()))
    same = [name for name, other in said.items() if other == sentence]
    if of_all and len(same) == len(said):
        return sentence
    first = NUMBER.findall(sentence)
    others = {name: NUMBER.findall(other) for name, other in said.items() if name not in same}
    numbers = [
        f"{name}: {', '.join(n for n, known in zip(found, first, strict=True) if n != known)}"
        for name, found in others.items()
    ]
    more = f" ({'; '.join(numbers)})" if numbers else ""
    return f"{', '.join(same)}: {sentence.removesuffix('.')}{more}."


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
    found = [
        _synthetic(synthetic=synthetic),
        _few_tasks(counts),
        _enforced(counts),
        _killed(counts, parameter, killed_as),
        _survivors(counts),
        _missing(counts, parameter),
        _scouts(counts),
        _second(counts),
        _gap(gap_ratio),
        _left_out(counts),
        _queues(counts),
        _zero(counts, parameter),
        _disk(parameter),
        _fallback(counts),
    ]
    return tuple(sentence for sentence in found if sentence)


def _synthetic(*, synthetic: bool) -> str:
    if not synthetic:
        return ""
    return "The archive is synthetic: it repeats what is known of real jobs and cannot show what is not."


def _few_tasks(counts: Mapping[str, int]) -> str:
    n = counts["n_tasks"]
    if n >= SMALL:
        return ""
    return (
        f"Only {n} {plural(n, 'task')} can be scored: what happened in each is exact, but so few say "
        "next to nothing about other tasks, and their intervals are not to be relied on."
    )


def _killed(counts: Mapping[str, int], parameter: Parameter, killed_as: str) -> str:
    cause = {"ramcount": "memory", "cputime": "walltime"}.get(parameter.name)
    n = counts["n_killed"] if cause is None else counts[f"n_killed_{cause}"]
    if n == 0:
        return ""
    jobs = f"{n} {plural(n, 'job')} killed at a limit ({cause or 'memory or walltime'})"
    if killed_as == "exclude" or cause is None:
        return f"{jobs} and not retried with success left out: the rate is too low by these."
    entered = counts["n_censored"]
    if entered == n:
        return f"{jobs} and not retried entered as needing just more than was seen."
    rest = f", {n - entered} (scouts, task not scored, or nothing recorded) left out"
    return f"{jobs} and not retried: {entered} entered as needing just more than was seen{rest}."


def _enforced(counts: Mapping[str, int]) -> str:
    n, kills = counts["n_outgrown"], counts["n_kills"]
    if n == 0:
        return ""
    return (
        f"Every job above its request or limit is counted as killed: {n:,} of {counts['n_scored']:,} used more than given "
        f"and finished, {kills:,} were killed for it. Where queues let them run, kills are overstated."
    )


def _second(counts: Mapping[str, int]) -> str:
    n = counts["n_after_second"]
    if n == 0:
        return ""
    return (
        f"{n:,} of {counts['n_scored']:,} scored jobs were created after the second trigger, but scored against the first "
        "estimate."
    )


def _survivors(counts: Mapping[str, int]) -> str:
    if not counts["failures_known"]:
        return "No failed jobs were given: jobs killed at a limit cannot be seen, only survivors are scored."
    if counts["n_failed"] == 0:
        return (
            "The tasks have no failed job: either none failed, or the archive keeps survivors only."
        )
    return ""


def _missing(counts: Mapping[str, int], parameter: Parameter) -> str:
    n, scouts = counts["n_unscorable"], counts["n_scouts_without_value"]
    what = {
        "ramcount": "maxpss, duration or cores",
        "cputime": "times, events or core power",
        "outdiskcount": "output, events or input size",
    }[parameter.name]
    parts = []
    if n:
        parts.append(f"{n} of {n + counts['n_scored']} other jobs lack {what} and are not scored")
    if scouts:
        parts.append(f"{scouts} {plural(scouts, 'scout')} gave no value")
    return "; ".join(parts) + "." if parts else ""


def _scouts(counts: Mapping[str, int]) -> str:
    n = counts["n_tasks"] - counts["n_tasks_marked"]
    if n == 0:
        return ""
    return (
        f"In {n} of {counts['n_tasks']} tasks no scout is marked: the first ten jobs created stand in "
        "for them."
    )


def _gap(ratio: float | None) -> str:
    if ratio is None or abs(ratio - 1) < 0.005:
        return ""
    side = "below" if ratio < 1 else "above"
    return (
        f"Scouts are no random sample: their median lies {short_percent(abs(ratio - 1))} {side} "
        "that of the rest of their task."
    )


def _left_out(counts: Mapping[str, int]) -> str:
    n = counts["n_tasks_with_jobs"] - counts["n_tasks"]
    if n <= 0:
        return ""
    return (
        f"{n} of {counts['n_tasks_with_jobs']} tasks have too few jobs or no scout value: the result "
        "speaks of larger tasks."
    )


def _queues(counts: Mapping[str, int]) -> str:
    if counts.get("n_queues", 0) == 0:
        return (
            "No queues were given: the share of queues and slots that can take a task is not known."
        )
    parts = []
    if counts["n_unknown_queues"]:
        n = counts["n_unknown_queues"]
        parts.append(f"{n} {plural(n, 'queue')} of the jobs missing from the queue table")
    if counts["n_unlimited"]:
        n = counts["n_unlimited"]
        parts.append(
            f"{n} of {counts['n_queues']} queues without a limit, taken as able to take any task"
        )
    return "; ".join(parts) + "." if parts else ""


def _zero(counts: Mapping[str, int], parameter: Parameter) -> str:
    n = counts["n_zero_estimates"]
    if n == 0:
        return ""
    consequence = {
        "ramcount": "their requests are the base alone",
        "cputime": "their limits are the base time alone",
        "outdiskcount": "less than 1 kB per event is rounded down, only the allowance is left",
    }[parameter.name]
    return f"In {n} of {counts['n_tasks']} tasks the current setting gives an estimate of 0: {consequence}."


def _disk(parameter: Parameter) -> str:
    if parameter.name != "outdiskcount":
        return ""
    return (
        "An output above its estimate and allowance counts as a kill; a work directory smaller than "
        "requested saves an unknown part of these jobs."
    )


def _fallback(counts: Mapping[str, int]) -> str:
    n = counts["n_fallback"]
    if n == 0:
        return ""
    return (
        f"In {n} of {counts['n_tasks']} tasks there are too few scouts for the promised coverage: the "
        "largest scout stands in, without a promise."
    )
