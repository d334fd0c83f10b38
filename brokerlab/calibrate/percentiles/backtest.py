"""Replay what every rank, margin and minimum would have told each task, and score it on the task's other jobs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import polars as pl

from brokerlab.calibrate.judge import Outcomes, cap_weights
from brokerlab.calibrate.percentiles.history import Inputs, JobHistory, sample_of
from brokerlab.calibrate.percentiles.parameters import (
    Assumptions,
    LossWeights,
    Parameter,
    Setting,
    current_setting,
    parameter_named,
)
from brokerlab.calibrate.percentiles.replay import (
    Replay,
    frame_of,
    offered,
    outcome_columns,
    slots_by_queue,
    total,
)
from brokerlab.carry import Chunks
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.numerics import FloatArray
from brokerlab.results import Result, Shows
from brokerlab.words import plural, short_percent

R = TypeVar("R")
S = TypeVar("S")


@dataclass(frozen=True, kw_only=True, repr=False)
class Backtest(Result):
    """What every setting would have done; frames sorted by their keys, shares between 0 and 1.

    Amount columns end in the parameter's unit: ``_gbh`` (ramcount), ``_coreh`` (cputime), ``_gb``
    (outdiskcount). ``reserved = used + over + waste``: used and over of the attempt that finished, waste
    of the attempts that were killed.

    Attributes:
        inputs: What it was read from.
        grid: The settings, those with the current minimum first.
        gap: Scouts against the rest, one row per task.
        counts: What was used and left out.
        parts: The tasks by chunk, ready to be replayed under any setting; none of some chunk may be scored.
    """

    shows = Shows(
        about="what every setting would have done, one row per setting",
        columns=(
            "rank, margin_pct [%], minimum_mb [MB], is_current, n_scored, exceed_rate [1], loss, "
            "headroom_mean [1]"
        ),
        keys=("rank", "margin_pct", "minimum_mb"),
        next=(".outcomes()", "calibrate.propose(study)"),
    )

    inputs: Inputs = field(repr=False, compare=False)
    parameter: Parameter
    assumptions: Assumptions
    weights: LossWeights
    grid: tuple[Setting, ...]
    current: Setting
    gap: pl.DataFrame
    counts: dict[str, int]
    parts: Chunks[Replay] = field(repr=False, compare=False)

    def outcomes(self) -> Outcomes:
        """Return what the judge looks at: tasks in the order of time, under the settings that can be set.

        A margin that is fixed in the code stays as it is.

        A task's ``loss`` is its cost per core-hour of its own work, ``exceed_rate`` the share of its scored jobs whose
        first attempt is killed; the parts of the loss are given per core-hour of work, without their weights. A task's
        weight are its core-hours, capped at those of the median task. Tasks without a time, or without work, are left out; if
        none is left, that is an InsufficientDataError.
        """
        margin, free = self.current.margin_pct, self.parameter.margin_key is not None
        grid = tuple(each for each in self.grid if free or each.margin_pct == margin)
        weights = self.weights
        return self.outcomes_of(
            grid, self.current, lambda replay, some: replay.of_judge(some, weights)
        )

    def outcomes_of(
        self,
        settings: tuple[S, ...],
        current: S,
        of: Callable[[Replay, Sequence[S]], dict[str, FloatArray]],
    ) -> Outcomes:
        """Return the same under settings of any kind, of which ``of`` says what they do to the tasks of a chunk."""
        dates = self.inputs.tasks.select("jeditaskid", time="created_at").unique("jeditaskid")
        tasks = (
            self.works.with_row_index("place")
            .join(dates, on="jeditaskid", how="left")
            .filter(pl.col("time").is_not_null() & (pl.col("work") > 0))
            .sort("time", "jeditaskid")
        )
        if tasks.is_empty():
            raise InsufficientDataError("no task with work has a creation time")
        place, work = tasks["place"].to_numpy(), tasks["work"].to_numpy()

        def values(places: Sequence[int]) -> dict[str, FloatArray]:
            some = [settings[each] for each in places]
            result = self.each(lambda replay: of(replay, some))
            return {name: np.concatenate([f[name] for f in result])[place] for name in result[0]}

        return Outcomes(
            units=tasks.select(unit="jeditaskid", time="time", weight=cap_weights(work)),
            settings=settings,
            current=settings.index(current),
            values=values,
        )

    def each(self, function: Callable[[Replay], R]) -> list[R]:
        """Return what a function makes of each chunk, in order."""
        return self.parts.map(function)

    @cached_property
    def works(self) -> pl.DataFrame:
        """Core-hours of work of each task: ``jeditaskid, work``, in the order of the chunks."""

        def of(replay: Replay) -> pl.DataFrame:
            return replay.tasks.select("jeditaskid", work=pl.lit(pl.Series(replay.ledger.coreh)))

        return pl.concat(self.each(of))

    def under(self, settings: Sequence[Setting]) -> pl.DataFrame:
        """Return one row per (task, setting), sorted: what it has in common with :attr:`by_setting`, of the task alone.

        Besides: ``jeditaskid, processingtype, gshare, cores, n_scouts, n_scored``, ``estimate`` (what it is told), ``cost_coreh``,
        ``unreachable_coreh``.
        """
        weights = self.weights
        rows = pl.concat(self.each(lambda replay: replay.by_task(settings, weights)))
        return rows.sort("jeditaskid", *Setting._fields)

    @cached_property
    def by_setting(self) -> pl.DataFrame:
        """One row per (rank, margin_pct, minimum_mb) of the grid, added up over all tasks; no verdict rests on it.

        ``is_current``, ``n_tasks, n_scored``; ``n_exceed`` (jobs whose first attempt is killed), ``exceed_rate`` (of all jobs),
        ``n_lost``, the amounts, ``killed_coreh, work_coreh``, ``headroom_mean`` (request / use - 1),
        ``queues_share, slots_share`` (that can take a task, means over tasks), ``loss``.
        """
        grid, weights = self.grid, self.weights
        parts = self.each(lambda replay: replay.totals(grid, weights))
        sums = {name: np.asarray(sum(part[name] for part in parts)) for name in parts[0]}
        n, jobs = self.counts["n_tasks"], self.counts["n_scored"]
        work = float(self.works["work"].to_numpy().sum())
        shares = {name: sums[name] / n for name in ("queues_share", "slots_share")}
        rows = frame_of(grid).with_columns(
            is_current=pl.Series([setting == self.current for setting in grid]),
            n_tasks=pl.lit(n, pl.Int64),
            n_scored=pl.lit(jobs, pl.Int64),
            **outcome_columns(sums | shares, jobs, work, self.parameter),
            loss=sums["cost_coreh"] / work,
        )
        return rows.sort(Setting._fields)

    @cached_property
    def caveats(self) -> tuple[str, ...]:
        """What this cannot tell, in sentences."""
        return caveats_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the facts that are not tables."""
        return {
            "parameter": self.parameter.name,
            "assumptions": self.assumptions.to_dict(),
            "weights": self.weights.to_dict(),
            "weights_why": dict(self.weights.why(self.parameter.name)),
            "current": list(self.current),
            "counts": dict(self.counts),
            "caveats": list(self.caveats),
        }

    def frame(self) -> pl.DataFrame:
        """Return one row per setting."""
        return self.by_setting


def at_setting(frame: pl.DataFrame, setting: Setting) -> pl.DataFrame:
    """Keep the rows of one setting."""
    here = [pl.col(name).eq_missing(value) for name, value in setting._asdict().items()]
    return frame.filter(*here)


def backtest(
    inputs: Inputs,
    parameter: str = "ramcount",
    *,
    ranks: Iterable[int] = range(50, 100),
    margins: Iterable[int] | None = None,
    minima: Iterable[int | None] = (),
    current: tuple[int, int] | tuple[int, int, int | None] | None = None,
    also: Sequence[Setting] = (),
    loss: LossWeights | None = None,
    assumptions: Assumptions | None = None,
) -> Backtest:
    """Replay a grid of ranks, margins and minima over the history of many tasks, see :func:`brokerlab.calibrate.backtest`.

    Each task's estimate comes from the scouts it really had (or, unmarked, would have had) at the first
    trigger, and is scored on its other jobs. Jobs of tasks that are not among the inputs are not looked at, not even for the size
    of queues: a choice must not know of a later period. Without queues their share and that of slots are null and cost nothing.

    * ``minima`` [MB]: the current one is always tried; another one is not set alone: the current rank with the current
      margin comes with the current one only.
    * ``current`` is compared with, and added to the grid; null: what the configuration says.
    * ``also``: ranks and margins tried besides, with the current minimum.

    Source: scouts.md sections 4, 5, 7; calibration.md 2.
    """
    chosen, tasks, history = parameter_named(parameter), inputs.tasks, inputs.history
    made = assumptions or Assumptions(rules=inputs.rules)
    now = Setting(*current) if current else current_setting(inputs.config, parameter)
    every = chosen.margins if margins is None else margins
    grid = _grid(ranks, every, minima if parameter == "ramcount" else (), now, also, chosen)
    slots = total(
        history.map(lambda h: slots_by_queue(h.quantities.join(tasks, on="jeditaskid", how="semi")))
    )
    prepared = partial(
        _prepare, tasks=tasks, queues=inputs.queues, slots=slots, parameter=chosen, made=made
    )
    parts = history.keep(prepared)
    result = parts.map(lambda part: (part.counts, part.gap, part.sites))
    counts = {name: sum(each[0][name] for each in result) for name in result[0][0]}
    counts["n_tasks_given"] = result[0][0]["n_tasks_given"]  # the same ones to every chunk
    if not counts["n_tasks"]:
        raise InsufficientDataError(
            f"back-test of {parameter}: none of {counts['n_tasks_given']} tasks has at least {made.min_scouts} scouts with a "
            f"value and {made.min_scored} other jobs that can be scored ({counts['n_tasks_with_jobs']} tasks have finished jobs "
            "at all); widen the window or lower min_scored"
        )
    sites = set[str]().union(*(each[2] for each in result))
    counts |= _queue_counts(inputs.queues, chosen, sites)
    zero = parts.map(lambda replay: int((replay.estimates([now]) == 0).sum()))
    return Backtest(
        inputs=inputs,
        parameter=chosen,
        assumptions=made,
        weights=loss or LossWeights.default(parameter),
        grid=grid,
        current=now,
        gap=pl.concat([each[1] for each in result]).sort("jeditaskid"),
        counts=counts | {"n_zero_estimates": sum(zero)},
        parts=parts,
    )


def _grid(
    ranks: Iterable[int],
    margins: Iterable[int],
    minima: Iterable[int | None],
    current: Setting,
    also: Sequence[Setting],
    parameter: Parameter,
) -> tuple[Setting, ...]:
    """Return the settings, the current one and those asked besides among them."""
    given: dict[str, Any] = {"ranks": ranks, "margins": margins, "minima": minima}
    problems = [
        f"{name} = {values!r}: allowed are several whole numbers, such as range(50, 100) or [75]"
        for name, values in given.items()
        if isinstance(values, str) or not isinstance(values, Iterable)
    ]
    if problems:
        raise ConfigError("back-test grid: " + "; ".join(problems))
    all_ranks, all_margins = (dict.fromkeys(values) for values in (ranks, margins))
    all_minima = dict.fromkeys(minima)
    more = [current, *also]
    every_rank = dict.fromkeys([*all_ranks, *(each.rank for each in more)])
    problems += [
        f"{name} {value}: allowed are whole numbers 0 to {top}"
        for name, values, top in (("rank", every_rank, 100), ("margin", all_margins, 1000))
        for value in values
        if not _whole(value, top)
    ]
    problems += [
        f"minimum {least}: allowed are whole numbers of at least 0 [MB], or None"
        for least in all_minima
        if least is not None and not _whole(least, np.inf)
    ]
    if not all_ranks or not all_margins:
        problems.append("ranks and margins must not be empty")
    if parameter.name == "outdiskcount" and any((*all_margins, *(s.margin_pct for s in more))):
        problems.append("outdiskcount has no margin: leave margins out or give 0")
    if problems:
        raise ConfigError("back-test grid: " + "; ".join(problems[:5]))
    pairs = {(r, m) for r in all_ranks for m in all_margins} | {s.pair for s in more}
    others = [least for least in all_minima if least != current.minimum_mb]
    grid = [Setting(*pair, current.minimum_mb) for pair in sorted(pairs)]
    grid += [Setting(*p, least) for least in others for p in sorted(pairs - {current.pair})]
    return tuple(grid)


def _whole(value: object, top: float) -> bool:
    return isinstance(value, int | np.integer) and bool(0 <= value <= top)


def _prepare(
    history: JobHistory,
    tasks: pl.DataFrame,
    queues: pl.DataFrame,
    slots: pl.DataFrame,
    parameter: Parameter,
    made: Assumptions,
) -> Replay:
    sample = sample_of(history.quantities, tasks, history.jobs, parameter, made)
    return Replay.of(sample, queues, slots, parameter, made)


def _queue_counts(queues: pl.DataFrame, parameter: Parameter, seen: set[str]) -> dict[str, int]:
    """Count queues, those without a limit, and those of the jobs that the table lacks."""
    if queues.is_empty():
        return {"n_queues": 0, "n_unlimited": 0, "n_unknown_queues": 0}
    return {
        "n_queues": queues.height,
        "n_unlimited": int(np.isinf(offered(queues, parameter)).sum()),
        "n_unknown_queues": len(seen - set(queues["panda_queue"])),
    }


# --- what it cannot tell, in sentences --------------------------------------------------------------------------------


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
