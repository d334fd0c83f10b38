"""The sentences of the site classes report, every number taken from the study."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.lifecycle.classes.wait_stats import PROBE_USER
from brokerlab.lifecycle.classes.weighted import LARGEST_S
from brokerlab.report.content import Verdict
from brokerlab.report.replays.shares import DAY
from brokerlab.report.replays.words import of
from brokerlab.report.site_classes.rating import NONE
from brokerlab.report.site_classes.study import Study
from brokerlab.report.site_classes.tasks import TASK_CLASSES
from brokerlab.report.site_classes.waits import STEERED
from brokerlab.report.site_classes.words import NAMES, REASONS, setting, share_of, time
from brokerlab.words import days_of, listed, measured, number, percent, plural, thin

USUAL = 0.5
"""A queue is usually of a class that it has at more than this part of the instants."""
LITTLE = 0.01
"""A smaller part of the queues and instants is next to nothing."""
THIN_BAND = "below 1"
"""Band of the sum of weights in which less than one job counts."""


def days(study: Study) -> str:
    """Show the days of the instants."""
    return days_of(*study.inputs.window)


def sample(study: Study, *, bars: str = "") -> str:
    """Say what a chart is made from."""
    words = (
        f"{days(study)}: {number(study.n_queues)} {plural(study.n_queues, 'queue')} at {number(study.n_instants)} instants, "
        f"every {study.inputs.every}"
    )
    return f"{words}; {bars}: 95 % intervals over days" if bars else words


def nothing(study: Study, subject: str = "") -> Verdict:
    """Say that no queue can be rated."""
    n = study.inputs.n_sample
    why = (
        f"the archive has no merge job of User Analysis and no probe (user {PROBE_USER}), whose waits rate queues"
        if not n
        else f"none of the {n:,} merge jobs and probes of the archive gives a queue a class in this period"
    )
    return Verdict(kind="no_answer", subject=subject, sentence=thin(f"No answer: {why}."))


def verdict(study: Study) -> Verdict:
    """Answer the question of the report."""
    if not study.n_rated:
        return nothing(study)
    sentence = f"{_classes(study)} {_hangs_on(study)} {_holds(study)}{_order(study)}"
    return Verdict(kind="finding", sentence=thin(sentence))


def _classes(study: Study) -> str:
    over = study.overall.filter(pl.col("over") == DAY)
    n = len(usually(study, "hi"))
    return (
        f"{n} of {study.n_queues:,} queues {'is' if n == 1 else 'are'} hi more than half of the time; a queue changes class {_rate(study)} "
        f"times a day, and {of(over, NONE)} of the queues and instants have no class and count as mid."
    )


def _rate(study: Study) -> str:
    """Show how often a queue changes class in a day."""
    row = study.overall.row(
        by_predicate=(pl.col("part") == "per_day") & (pl.col("over") == DAY), named=True
    )
    return measured(row["share"], row["lo"], row["hi"])


def usually(study: Study, name: str) -> list[str]:
    """Return the queues that usually have a class, the most constant first."""
    found = study.by_queue.filter(pl.col("part") == name, pl.col("share") > USUAL)
    return found.sort("share", "queue", descending=[True, False])["queue"].to_list()


def _hangs_on(study: Study) -> str:
    keys = ("percentile_low", "percentile_high", "hi_limit_hours", "lo_limit_hours")
    steps = [max(rows, key=_moved) for key in keys if (rows := neighbours(study, key))]
    moving = [row for row in steps if _moved(row) >= LITTLE]
    some = [_stepped(row, first=not place) for place, row in enumerate(moving)]
    still = [NAMES[row["key"]] for row in steps if _moved(row) < LITTLE]
    said = ""
    if some:
        said = (
            f" Another class would come to {some[0]}{''.join(f', to {text}' for text in some[1:])}."
        )
    if still:
        said += f" The values tried next to the present {listed(still)} move less than 1 %."
    binding = study.what_if.binding
    return (
        f"The percentile sets the limit of hi at {of(binding, 'percentile_hi')} of the instants and that of lo at "
        f"{of(binding, 'percentile_lo')}, else the hours do.{said}"
    )


def neighbours(study: Study, key: str) -> list[dict[str, Any]]:
    """Return the values tried next to the current one of a number of the rules."""
    rows = study.what_if.curves.filter(pl.col("key") == key).sort("value").to_dicts()
    here = [place for place, row in enumerate(rows) if row["is_current"]]
    if not here:
        return []
    return [rows[place] for place in (here[0] - 1, here[0] + 1) if 0 <= place < len(rows)]


def _moved(row: dict[str, Any]) -> float:
    return row["share"] or 0.0


def _stepped(row: dict[str, Any], *, first: bool) -> str:
    """Show what one value of a number of the rules would move."""
    moved = percent(row["share"], row["lo"], row["hi"])
    value, current = (setting(row[name], row["unit"]) for name in ("value", "current"))
    of_what = " of the queues and instants" if first else ""
    return f"{moved}{of_what} with the {NAMES[row['key']]} at {value} instead of {current}"


def _holds(study: Study) -> str:
    rows = study.waits.by_class.filter(pl.col("kind") == STEERED, pl.col("class_name") != NONE)
    told = [
        f"{time(row['median_s'], row['median_lo'], row['median_hi'])} at {row['class_name']}"
        for row in rows.iter_rows(named=True)
        if row["n"]
    ]
    if not told:
        return "No analysis job shows whether the classes hold."
    return f"In the median, analysis jobs waited {listed(told)} queues."


def queues(study: Study) -> Verdict:
    """Say which queues are fast, and how stable that is."""
    if not study.n_rated:
        return nothing(study, "Queues")
    over = study.overall.filter(pl.col("over") == DAY)
    counts = {name: len(usually(study, name)) for name in ("hi", "mid", "lo", NONE)}
    shifting = study.n_queues - sum(counts.values())
    sentence = (
        f"{counts['hi']} queues are usually hi, {counts['mid']} mid, {counts['lo']} lo, {counts[NONE]} without class, "
        f"{shifting} are in no one of these for more than half of the time. A queue changes class {_rate(study)} times a day and is in its commonest "
        f"class at {of(over, 'in_modal')} of the instants; {of(over, 'jump')} of the changes jump between hi and lo."
    )
    return Verdict(kind="finding", subject="Queues", sentence=thin(sentence))


def limits(study: Study) -> Verdict:
    """Say what the percentiles and the hours do."""
    if not study.n_rated:
        return nothing(study, "Limits")
    binding, median = study.what_if.binding, study.limits
    rules = study.inputs.rules
    sentence = (
        f"The lower percentile is {time(median['p33'])} in the median and exceeds {setting(rules.hi_limit_hours, 'h')} at "
        f"{of(binding, 'percentile_hi')} of the instants, the upper one is {time(median['p67'])} and exceeds "
        f"{setting(rules.lo_limit_hours, 'h')} at {of(binding, 'percentile_lo')}. Where percentiles are the limits, they hold for the same "
        f"part of the queues however fast these are.{_ranks(study)}{_cut(study)}{_idle(study)}"
    )
    return Verdict(kind="finding", subject="Limits", sentence=thin(sentence))


def _ranks(study: Study) -> str:
    """Set the parts of the queues with a class that are hi and lo against those that the ranks name."""
    rules = study.inputs.rules
    return (
        f" Of the queues and instants with a class {percent(study.rated('hi'))} are hi and {percent(study.rated('lo'))} lo; by the ranks alone it would be "
        f"{percent(rules.percentile_low)} and {percent(1 - rules.percentile_high)}."
    )


def _cut(study: Study) -> str:
    """Say how often the percentiles are where upper limits are cut."""
    binding = study.what_if.binding
    if not share_of(binding, "cut_lo"):  # the upper one is at least as often
        return ""
    low = (
        f"; the lower one is at {of(binding, 'cut_hi')}, when every queue below is quick enough for hi"
        if share_of(binding, "cut_hi")
        else ""
    )
    return (
        f" At {of(binding, 'cut_lo')} of the instants the upper percentile is the {LARGEST_S:,.0f} s at which limits are cut, because few "
        f"jobs count, so that next to no queue can be lo{low}."
    )


def _idle(study: Study) -> str:
    """Name the numbers whose neighbours move next to nothing."""
    still = [
        NAMES[key]
        for key in study.what_if.curves["key"].unique(maintain_order=True)
        if (rows := neighbours(study, key)) and max(map(_moved, rows)) < LITTLE
    ]
    if not still:
        return ""
    return f" The values tried next to the present {listed(still)} move less than 1 %."


def waits(study: Study) -> Verdict:
    """Say whether a class holds for the jobs that come."""
    known = study.waits.beyond.filter(pl.col("kind") == STEERED, pl.col("band") == "all")
    if not study.n_rated or known.is_empty():
        return Verdict(
            kind="no_answer",
            subject="Waits",
            sentence="No answer: no analysis job was made at a queue with a class.",
        )
    row = known.row(0, named=True)
    beyond = percent(row["share"], row["lo"], row["hi"])
    bands = {row["band"]: row for row in study.waits.bands.iter_rows(named=True)}
    weak = bands.get(THIN_BAND)
    rest = ""
    if weak is not None:
        rest = (
            f" At {percent(weak['share'])} of the rated queues and instants less than one job counts: there the limit is "
            f"{number(weak['ratio'], 1 if weak['ratio'] < 10 else 0)} times the mean (median), so that having few jobs alone can keep a queue from being hi."
        )
    sentence = f"{_holds(study)} The limit that is to hold 95 % of the waits was exceeded by {beyond} of them.{_order(study)}{rest}"
    return Verdict(kind="finding", subject="Waits", sentence=thin(sentence))


def _order(study: Study) -> str:
    """Say which neighbouring classes cannot be told apart by what jobs waited, or are the wrong way round."""
    rows = {
        row["class_name"]: row
        for row in study.waits.by_class.filter(pl.col("kind") == STEERED).iter_rows(named=True)
    }
    pairs = [pair for pair in (("hi", "mid"), ("mid", "lo")) if rows.keys() >= set(pair)]
    # a median is above another beyond its interval: of the quicker class as it should not be
    wrong = [pair for pair in pairs if _above(rows[pair[0]], rows[pair[1]])]
    apart = [pair for pair in pairs if _above(rows[pair[1]], rows[pair[0]])]
    blurred = [
        f"{quick} and {slow}"
        for quick, slow in pairs
        if (quick, slow) not in (*wrong, *apart) and rows[quick]["median_lo"] is not None
        and rows[slow]["median_lo"] is not None
    ]  # fmt: skip
    said = "".join(f" At {quick} queues jobs waited longer than at {slow} ones." for quick, slow in wrong)  # fmt: skip
    return said + (f" The medians of {listed(blurred)} cannot be told apart." if blurred else "")


def _above(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Say whether the interval of a median lies above that of another one."""
    low, high = one["median_lo"], other["median_hi"]
    return low is not None and high is not None and low > high


def rules(study: Study) -> Verdict:
    """Say how often the rule sets differ, and by what."""
    found = study.rule_sets
    if not study.n_rated:
        return nothing(study, "Rule sets")
    if not share_of(found.totals, "differs"):
        sentence = f"The {found.other} rules class every queue as the {found.current} rules do."
        return Verdict(kind="finding", subject="Rule sets", sentence=sentence)
    most = found.switches.sort("explained", "switch", descending=[True, False])
    row = most.row(0, named=True) if most.height else None
    single = (
        ""
        if row is None
        else f" One difference, {row['switch']} ({row['here']} → {row['there']}), alone brings {percent(row['explained'])} of them about."
    )
    sentence = (
        f"The {found.other} rules class {of(found.totals, 'differs')} of the queues and instants otherwise than the {found.current} rules, "
        f"{of(found.totals, 'better')} better and {of(found.totals, 'worse')} worse, where {of(found.totals, 'jobs')} of the analysis jobs "
        f"are made.{single}"
    )
    return Verdict(kind="finding", subject="Rule sets", sentence=thin(sentence))


def tasks(study: Study) -> Verdict:
    """Say which classes tasks get, and why."""
    found = study.tasks
    if found is None:
        return Verdict(
            kind="no_answer",
            subject="Tasks",
            sentence="No answer: the archive has no task of a user in a status that is rated.",
        )
    there = [name for name in TASK_CLASSES if share_of(found.by_class, name)]
    parts = [f"{name} {of(found.by_class, name)}" for name in there]
    gone = [name for name in TASK_CLASSES if name not in there]
    never = f"; {listed(gone)} {'does' if len(gone) == 1 else 'do'} not occur" if gone else ""
    sentence = (
        f"{found.n_tasks:,} tasks of users are, over the instants at which they were active: {listed(parts)}{never}.{_thresholds(study)} "
        f"The {study.rule_sets.other} rules rate {of(found.other, 'differs')} of the tasks and instants otherwise."
    )
    return Verdict(kind="finding", subject="Tasks", sentence=thin(sentence))


def _thresholds(study: Study) -> str:
    found = study.tasks
    if found is None or found.thresholds is None or found.users.is_empty():
        return ""
    a, b = found.thresholds
    peak_a, peak_b = found.users["peak_a"].max(), found.users["peak_b"].max()
    over = found.users.filter((pl.col("peak_a") > a) | (pl.col("peak_b") > b)).height
    if not over:
        return (
            f" No user ever exceeds a threshold: at most {number(float(peak_a))} slots at hi queues (A: {number(a)}) and "  # type: ignore[arg-type]
            f"{number(float(peak_b))} at hi and mid ones (B: {number(b)})."  # type: ignore[arg-type]
        )
    return f" {over} of {found.users.height} users exceed A ({number(a)} slots at hi queues) or B ({number(b)} at hi and mid ones) at times."


def shares(study: Study) -> Verdict:
    """Say which shares are above and below their targets."""
    found = study.targets
    known = None if found is None else found.leaves.filter(pl.col("share").is_not_null())
    if known is None or known.is_empty():
        return Verdict(
            kind="no_answer",
            subject="Shares",
            sentence="No answer: the archive has no tree of shares with targets.",
        )
    ordered = known.sort("share", "gshare", descending=[True, False]).to_dicts()
    told = [
        f"{row['gshare']} runs {word}, at {percent(row['share'], row['lo'], row['hi'])} of its target"
        for word, row in (("most", ordered[0]), ("least", ordered[-1]))
    ]
    sure = known.filter((pl.col("lo") > 1) | (pl.col("hi") < 1)).height
    sentence = (
        f"{'; '.join(told)}. {sure} of {known.height} leaf shares are off target by more "
        "than their interval."
    )
    return Verdict(kind="finding", subject="Shares", sentence=thin(sentence))


def missing(study: Study) -> str:
    """Say how many queues lack data, and what that means."""
    never = study.by_queue.filter(pl.col("part") == NONE, pl.col("share") == 1.0).height
    lacking = study.rows.filter(pl.col("class_name") == NONE)
    if lacking.is_empty():
        return "Every queue has a class at every instant."
    top = lacking["reason"].value_counts().sort("count", "reason", descending=[True, False])
    over = study.overall.filter(pl.col("over") == DAY)
    why = REASONS.get(top["reason"][0], top["reason"][0])
    return thin(
        f"{never:,} of {study.n_queues:,} queues never have a class and count as mid throughout. Where a class is lacking, it is most often because {why}. "
        f"{of(over, 'jobs_none')} of the analysis jobs and {of(over, 'slots_none')} of the analysis slots are at queues without class."
    )


def cannot_tell(study: Study) -> tuple[str, ...]:
    """Collect what the report cannot tell, from what it found."""
    inputs = study.inputs
    told = []
    if inputs.archive.synthetic:
        told.append(
            "The archive is synthetic: waits, users and shares are those of its generator; which queues are fast, and how much the "
            "ranks and hours matter, is not known of a real system from it."
        )
    told += [f"Approximated: {note}." for note in inputs.notes]
    n_days = inputs.window[1].date() - inputs.window[0].date()
    told.append(
        f"Chance: intervals resample {n_days.days + 1} days as wholes. Classes are made from jobs of up to four days, so neighbouring days "
        "are not independent, and the intervals are too narrow rather than too wide."
    )
    not_started = int(study.waits.by_class["not_started"].sum())
    if not_started:
        told.append(
            f"{not_started:,} analysis jobs of the period never started; they are not among the waits, which are therefore too short."
        )
    told.append(
        "Consequences: the jobs went where history sent them. With other ranks, hours or rules they would have gone elsewhere, and the "
        "waits that make the classes would have been others."
    )
    recorded = "not compared with" if inputs.archive.has("metrics") else "not in the archive"
    told.append(
        f"Recorded classes: what the system itself rated is {recorded}; classes are made anew from the jobs."
    )
    if study.tasks is not None:
        told.append(
            "Progress of tasks: the archive knows the last job of a file only; jobs that were tried again are not counted among those of "
            "a task."
        )
    return tuple(thin(sentence) for sentence in told)
