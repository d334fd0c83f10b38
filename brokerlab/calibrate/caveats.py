"""What a back-test cannot tell, in sentences made from what was found in the data."""

from __future__ import annotations

from collections.abc import Mapping

from brokerlab.calibrate.parameters import Parameter
from brokerlab.words import plural, short_percent

SMALL = 10  # tasks; below, drawing tasks with replacement says nothing


def caveats_of(
    counts: Mapping[str, int],
    parameter: Parameter,
    *,
    killed_as: str,
    gap_ratio: float | None,
    n_fallback: int,
    synthetic: bool,
) -> tuple[str, ...]:
    """Return the sentences that apply, most important first.

    Args:
        counts: Of ``Sample.counts`` and of the queues.
        parameter: What was calibrated.
        killed_as: How killed jobs entered.
        gap_ratio: Geometric mean over tasks of scouts' median over the rest's.
        n_fallback: Tasks in which the conformal rule had too few scouts under the current setting.
        synthetic: The archive was generated.
    """
    found = [
        _synthetic(synthetic=synthetic),
        _few_tasks(counts),
        _enforced(counts, parameter),
        _killed(counts, parameter, killed_as),
        _survivors(counts),
        _missing(counts, parameter),
        _scouts(counts),
        _second(counts),
        _gap(gap_ratio, parameter),
        _left_out(counts),
        _queues(counts),
        _zero(counts, parameter),
        _disk(parameter),
        _fallback(n_fallback, counts),
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
        return f"{jobs} and not retried with success left out: the exceed rate is too low by these."
    entered = counts["n_censored"]
    rest = (
        ""
        if entered == n
        else f", {n - entered} (scouts, task not scored, or nothing recorded) left out"
    )
    return (
        f"{jobs} and not retried: {entered} entered as needing just more than was seen{rest}; the true "
        "need of these jobs is unknown."
    )


def _enforced(counts: Mapping[str, int], parameter: Parameter) -> str:
    n, kills = counts["n_outgrown"], counts["n_kills"]
    if n == 0:
        return ""
    what, given = {
        "ramcount": ("memory", "request"),
        "cputime": ("walltime", "limit"),
    }[parameter.name]
    return (
        f"Every job above its {given} is counted as killed. In the archive {n:,} of {counts['n_scored']:,} scored "
        f"jobs used more {what} than they were given, as recorded, and finished all the same; {kills:,} were "
        "killed for it. Where queues let such jobs run, kills and what they cost are overstated."
    )


def _second(counts: Mapping[str, int]) -> str:
    n = counts["n_after_second"]
    if n == 0:
        return ""
    return (
        f"{n:,} of {counts['n_scored']:,} scored jobs were created after the second trigger, when 100 more jobs "
        "had renewed the estimate: they are scored against the first."
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


def _gap(ratio: float | None, parameter: Parameter) -> str:
    if ratio is None or abs(ratio - 1) < 0.005:
        return ""
    side = "below" if ratio < 1 else "above"
    return (
        f"Scouts are no random sample: their median {parameter.name} lies {short_percent(abs(ratio - 1))} {side} "
        "that of the rest of their task (geometric mean over tasks)."
    )


def _left_out(counts: Mapping[str, int]) -> str:
    n = counts["n_tasks_with_jobs"] - counts["n_tasks"]
    if n <= 0:
        return ""
    return (
        f"{n} of {counts['n_tasks_with_jobs']} tasks have too few jobs or no scout value and are not "
        "scored: the result speaks of larger tasks."
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
        "outdiskcount": "less than 1 kB per event is rounded down, only the allowance of each job is left",
    }[parameter.name]
    return f"In {n} of {counts['n_tasks']} tasks the current setting gives an estimate of 0: {consequence}."


def _disk(parameter: Parameter) -> str:
    if parameter.name != "outdiskcount":
        return ""
    return (
        "An output above its estimate and allowance is counted as a kill; a work directory smaller than "
        "requested saves an unknown part of these jobs."
    )


def _fallback(n: int, counts: Mapping[str, int]) -> str:
    if n == 0:
        return ""
    return (
        f"In {n} of {counts['n_tasks']} tasks there are too few scouts for the promised coverage: the "
        "largest scout stands in, without a promise."
    )
