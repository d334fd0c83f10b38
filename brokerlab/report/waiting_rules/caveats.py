"""What the report cannot tell, from what it found."""

from __future__ import annotations

import polars as pl

from brokerlab.lifecycle.waiting.period import LOST_HEARTBEAT
from brokerlab.report.waiting_rules.inputs import Inputs
from brokerlab.report.waiting_rules.study import Study
from brokerlab.report.waiting_rules.words import limit
from brokerlab.units import HOUR_S
from brokerlab.words import listed, percent, thin


def cannot_tell(study: Study) -> tuple[str, ...]:
    """Collect what cannot be told, most consequential first."""
    inputs = study.inputs
    told = []
    if inputs.waiting.archive.synthetic:
        told.append(
            "The archive is synthetic: how long jobs wait, where they get stuck and which workers fall silent is the "
            "generator's choice, not a real system's."
        )
    told += [*_ends(study), *_system(study), *_seen(inputs)]
    told += [f"Odd settings, taken as the rules say: {said}." for said in inputs.odd]
    told += [
        (
            "Consequences: a job that is sent back waits again elsewhere, and the queue it leaves gets shorter; neither is "
            "in the hours that a rule ends, so they are the most it can gain."
        ),
        (
            "One rule at a time: each is judged as if the others were not there; lines of all rules count a job once, by "
            "the rule that fires first."
        ),
        (
            "The queues as they were: status, catchall and limits are those of the latest row of each queue, the settings "
            "those at the end of the period, for all of it. Rule inactive_queue keeps its 2 h without a start at every scale."
        ),
        (
            "Analysis rebrokerage (12 h, section 3) looks at groups of jobs, not at single ones, and is not judged here; "
            "output reports that wait for work are not known either."
        ),
    ]
    if study.fast is not None:
        told.append(
            "Fast rebrokerage at instants: each is judged in the state that history left, as if nothing had moved before; "
            "numbers of instants must not be added up. Jobs without status log count as queued from creation to start. "
            "Queues with slots set by hand are left out all the time, resource work queues are not known."
        )
    return tuple(thin(sentence) for sentence in told)


def _ends(study: Study) -> list[str]:
    """Tell what the ends of the archive hide."""
    inputs = study.inputs
    total = study.total
    told = []
    waiting = int((total["still"] or 0) + (total["undecided"] or 0))
    if waiting:
        open_end = int(total["undecided"] or 0)
        share = (
            f", and for {open_end:,} of them nobody knows whether they go on within {limit(inputs.waiting.soon_h)}: they are left out "
            "of that share"
            if open_end
            else f"; all of them had waited on for more than {limit(inputs.waiting.soon_h)}, so none was interrupted for nothing by "
            "that measure"
        )
        told.append(
            f"The end of the archive: {waiting:,} of {study.n_fired:,} jobs still wait there; their hours are the least they "
            f"wait{share}."
        )
    if not inputs.waiting.n_live:
        told.append(
            "The archive holds no job that is still alive at its end: waits that outlived it are not in it at all, so that "
            "long ones are too few, the more so the nearer the end."
        )
    at_two = study.cut_off.filter(pl.col("scale") == 2)
    hidden = int(at_two["n_waiting"].sum()) if at_two.height else 0
    if hidden:
        told.append(
            f"Longer limits: {hidden:,} pairs of job and rule still wait at the end of the archive and are not due at doubled "
            "limits yet; they count as not timed out there."
        )
    late = _too_long(study)
    if late:
        told.append(
            f"Limits that are long for the period: {listed(late)}. A wait that begins later than that before the end cannot "
            "be seen to reach it, so these rules, and their doubles, fire too seldom here."
        )
    return told


def _too_long(study: Study) -> list[str]:
    """Name the rules of which the doubled limit is more than half the period; where queues differ, that of most jobs."""
    inputs = study.inputs
    start, end = inputs.window
    length_h = (end - start).total_seconds() / HOUR_S
    long = inputs.waiting.late_rules(study.limits.rename({"scale": "value"}))
    return [
        f"{name} ({limit(hours)} of {length_h / 24:.0f} d)"
        for name, hours in long.select("rule", "limit_h").iter_rows()
    ]


def _system(study: Study) -> list[str]:
    """Tell that the system's own rules cut the waits that longer limits would let go on."""
    ended = int(study.total["ended"] or 0)
    if not ended:
        return []
    share = ended / study.n_fired
    return [
        (
            f"What the system itself did: {ended:,} of {study.n_fired:,} jobs ({percent(share)}) failed or were cancelled or "
            "closed where they waited, its own timeouts among the reasons; how long they would have waited, and whether a "
            "longer limit would have let them go on, cannot be seen."
        )
    ]


def _seen(inputs: Inputs) -> list[str]:
    """Tell which statuses and signs the archive lacks."""
    told = []
    if inputs.waiting.n_unlogged:
        told.append(
            f"Statuses: {inputs.waiting.n_unlogged:,} jobs have no status log and are read from their times: assigned stands for "
            "everything before activation, activated for sent and starting too, and nothing is known of holding and "
            "transferring."
        )
    over = int(inputs.waiting.units["n_ran"].sum())
    told.append(
        f"Silent workers: the archive keeps no signs of life. Heartbeat rules judge the {inputs.waiting.n_beating:,} live jobs at its "
        f"end alone; of {over:,} jobs that ran and are over only those failed with jobdispatchererrorcode {LOST_HEARTBEAT} (lost "
        "heartbeat) are known to have been silent, not since when, nor who fell silent and came back."
    )
    return told
