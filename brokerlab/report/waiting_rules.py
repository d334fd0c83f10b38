"""Which waiting rules fire, how much waiting do they end, and would other limits have ended more of it?

`brokerlab.lifecycle.waits` judges the waiting of a period; this shows it: rule by rule, at other limits, where, what
fast rebrokerage would move, and what the other rule set would do. Rows of single firings are not written:
`Waiting.firings` returns them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar, NamedTuple

import polars as pl
from pydantic import Field, PositiveFloat

from brokerlab.archive.store import open_archive
from brokerlab.brokerage.replaying.counts import Counts
from brokerlab.charts import waiting as charts
from brokerlab.errors import collect_warnings
from brokerlab.lifecycle import waits as judge
from brokerlab.lifecycle.waits import HALVED_AND_DOUBLED, OUTCOMES, Waiting, WaitingStudy
from brokerlab.lifecycle.waits.fast import PLACE
from brokerlab.lifecycle.waits.period import Unit
from brokerlab.report import kit
from brokerlab.report.kit import Block, Caveat, Chart, Number, Page, Table, Verdict, say
from brokerlab.report.needs import Needs
from brokerlab.report.switches import switch_table
from brokerlab.times import instants_of
from brokerlab.words import days_of

LEVELS_SHOWN = 3  # lines of each stratum, those with most jobs
KIND_NAMES = {
    "same": "treated alike",
    "other_time": "timed out by the same rule at another time",
    "other_rule": "timed out by another rule, or otherwise",
    "only_current": "timed out under {current} rules only",
    "only_other": "timed out under {other} rules only",
}
RULES_NOTE = """\
Each rule is judged as if the others were not there; a job that is sent \
back waits again elsewhere, so hours are the most it can gain. Limit: that of most jobs where queues differ. Spared: timed out \
but for the {n_exempt_queues} of {n_queues:#queue} that are paused or have disableReassign. –: none, or the archive has no job \
in the rule's statuses."""


class Params(kit.Params):
    """What may be asked."""

    report: ClassVar[str] = "waiting-rules"
    question: ClassVar[str] = (
        "Which waiting rules fire, how much waiting do they end, and would other limits have ended more of it?"
    )

    needs: ClassVar[Needs] = Needs(
        tables=("jobs",),
        without={
            "queues": "No queues are known: none is taken for paused, or as one that keeps its jobs.",
            "gdpconfig": "No settings are recorded: limits are the catalogue's defaults.",
        },
    )

    scales: list[PositiveFloat] = Field(
        [0.25, 0.5, 0.75, 1, 1.5, 2],
        min_length=1,
        max_length=12,
        description="limits, so many times as long [1]",
    )
    soon_h: float = Field(
        1.0, gt=0, description="who goes on within this is timed out needlessly [h]"
    )
    every: kit.Duration = Field("6h", description="step of fast rebrokerage [duration]")
    unit: Unit = Field("queue", description="what the bootstrap draws, queue or task [name]")
    n_boot: int = Field(1000, ge=20, description="bootstrap replicates [1]")


class Data(NamedTuple):
    """What was read: the period, jobs by queue, share and status at instants, and what was odd in the settings."""

    waiting: Waiting
    instants: pl.DataFrame
    counts: pl.DataFrame
    odd: tuple[str, ...]


@kit.answers
def load(p: Params) -> Data:
    """Read the waiting of the period, and count jobs at instants."""
    archive = p.needs.opened(open_archive(p.archive))
    with collect_warnings() as odd:
        waiting = judge.read_waiting(
            archive,
            start=p.start,
            end=p.end,
            rules=p.rules,
            least=min(*p.scales, *HALVED_AND_DOUBLED),
            soon_h=p.soon_h,
            unit=p.unit,
        )
    instants = instants_of(waiting.start, waiting.end, p.every)
    log = archive.joinable_if_there("job_status_log")
    counts = Counts.of(archive.joinable("jobs"), log, instants).table(*PLACE, "jobstatus")
    return Data(waiting, instants, counts, tuple(odd))


@kit.answers
def study(data: Data, p: Params) -> WaitingStudy:
    """Judge the waiting."""
    return judge.study_waiting(
        data.waiting, data.counts, data.instants, scales=p.scales, n_boot=p.n_boot, seed=p.seed
    )


def page(data: Data, s: WaitingStudy, p: Params) -> Page:
    """Lay the answer out."""
    waiting = data.waiting
    return Page(
        verdict=Verdict(kind="finding", sentence=_headline(s, p)),
        numbers=_first_numbers(s),
        chart=_all_limits(data, s),
        sections={
            "Rule by rule": [_rule_by_rule(s)],
            "Other limits": [_limit_by_limit(s)],
            "Where": [_where(data, s)],
            "Fast rebrokerage": _fast_rebrokerage(data, s),
            f"{p.rules.capitalize()} against {waiting.other.rules} rules": _rule_sets(data, s),
        },
        caveats=_caveats(data, s, p),
        facts={
            "Intervals": f"95 %, from drawing {waiting.unit}s again, expanded percentiles",
            "Settings": "those at the end of the period; of each queue its latest row",
        },
        archive=waiting.archive,
        config=waiting.config,
        rules=waiting.rules,
        window=f"rules that fire {_days(data)} (UTC)",
        also=_also(s),
        values=s.numbers,
    )


def _also(s: WaitingStudy) -> dict[str, pl.DataFrame]:
    written = {
        "total": pl.DataFrame([s.total]),
        "all_limits": s.limits,
        "by_time": s.by_time,
        "levels": s.levels,
        "exempted": s.exempted,
        "undecided": s.undecided,
        "rule_counts": s.rule_sets.by_rule,
        "rule_pairs": s.rule_sets.pairs,
    }
    if s.fast is None:
        return written
    times, shares, totals = s.fast.by_time, s.fast.by_share, s.fast.totals
    return written | {"fast_by_time": times, "fast_shares": shares, "fast_totals": totals}


# --- the first screen -------------------------------------------------------------------------------------------------


def _headline(s: WaitingStudy, p: Params) -> str:
    text = "{soon_share:%} of {n_decided:.0f} timed-out jobs would have gone on by themselves within {soon_h} h."
    n_decided = s.total["jobs"] - s.total["undecided"]
    if not s.numbers["n_fired"]:
        text = "No waiting rule fires for any of {n_jobs:#job} under {rules} rules."
    elif s.total["soon_share"] is None:
        text = "Rules fire for {n_fired} of {n_jobs:#job}; too early to say how many needlessly."
    return say(text, s.total | s.numbers, n_decided=n_decided, rules=p.rules, soon_h=p.soon_h)


def _first_numbers(s: WaitingStudy) -> list[Number]:
    numbers, total = s.numbers, s.total
    if not numbers["n_fired"]:
        return []
    part = say("{part:%} of {n_jobs:#job}", numbers, part=numbers["n_fired"] / numbers["n_jobs"])
    if total["undecided"]:
        part += say("; {undecided:.0f} too late to judge", total)
    before = say("after {hours:.0f} h of it", hours=total["waited_h"])
    cost = "until its start; a reassigned job waits so again"
    return [
        Number.of(total, "jobs", label="Timed out", unit="jobs", note=part),
        Number.of(total, "after_h", label="Waiting ended, at least", unit="h", note=before),
        Number("Mean wait of a new job", numbers["fresh_h"], unit="h", note=cost),
    ]


def _all_limits(data: Data, s: WaitingStudy) -> Chart | None:
    frame = judge.all_limits_changed(s.limits)
    if frame.is_empty():
        return None
    counted = say("{days}: {n_jobs:#job}, {n_fired} timed out", s.numbers, days=_days(data))
    text = "Halved limits: {after_h:.0f} h of waiting ended, {soon:#job} interrupted needlessly; now {now_h:.0f} h and {now:.0f}"
    bars, n = "; bars: 95 % intervals from drawing {n} {unit}s again", data.waiting.units.height
    as_set = frame.filter("is_current").row(0, named=True)
    half = frame.filter(value=0.5).row(0, named=True)
    return Chart(
        draw=charts.limits_chart,
        frame=frame,
        finding=say(text, half, now_h=as_set["after_h"], now=as_set["soon"]),
        sample=f"{counted}{say(bars, n=n, unit=data.waiting.unit) if n > 1 else ''}",
        note=say(
            "All limits so many times as long; a job counts once, by its first rule. Needlessly: it would have gone on within {h} h.",
            h=data.waiting.soon_h,
        ),
    )


# --- sections ---------------------------------------------------------------------------------------------------------


def _rule_by_rule(s: WaitingStudy) -> Table:
    firing = s.rules.filter(pl.col("jobs") > 0).height
    waiting = s.total["still"] + s.total["undecided"]
    text = "{n} of {of:#rule} fire; {later:#job} went on later, {ended:.0f} came to nothing, {waiting:.0f} still wait"
    return Table(
        name="rules",
        frame=s.rules,
        caption=say(text, s.total, n=firing, of=s.rules.height, waiting=waiting),
        columns={
            "name": "Rule",
            "action": "Action",
            "limit_h": "Limit [h]",
            "jobs": "Timed out [jobs]",
            "after_h": "Waited on, at least [h]",
            "soon_share": "Needless [% of jobs]",
            "spared": "Spared [jobs]",
        },
        most=30,
        note=say(RULES_NOTE, s.numbers),
    )


def _limit_by_limit(s: WaitingStudy) -> Table | None:
    if s.changes.is_empty():
        return None
    most = s.changes.sort(pl.col("more_after_h").abs(), descending=True).row(0, named=True)
    text = "Largest change of the waiting ended: {more_after_h:h}, by {name}, limit × {value}"
    return Table(
        name="limit_changes",
        frame=s.changes,
        caption=say(text, most),
        columns={
            "name": "Rule",
            "value": "Limit × [1]",
            "limit_h": "Limit [h]",
            "more_jobs": "More timed out [jobs]",
            "more_soon": "More needlessly [jobs]",
            "more_after_h": "More waiting ended [h]",
            "set_by": "gdpconfig key",
        },
        most=12,
        note="Each limit halved and doubled alone, against the limit as set; largest changes first. inactive_queue keeps its "
        "2 h without a start at every limit.",
    )


def _where(data: Data, s: WaitingStudy) -> Table | None:
    if s.levels.is_empty():
        return None
    n_queues = s.levels.filter(stratum="queue")["level"].n_unique()
    text = "Most firings at a queue: {jobs:.0f} of {name} at {level}, of {n:#queue} with any"
    bare = " Queues have no interval: whole ones are drawn again."
    return Table(
        name="most_fired",
        frame=s.levels.group_by("stratum", maintain_order=True).head(LEVELS_SHOWN),
        caption=say(text, s.levels.row(0, named=True), n=n_queues),
        columns={
            "stratum": "By",
            "level": "Level",
            "name": "Rule",
            "jobs": "Timed out [jobs]",
            "after_h": "Waited on, at least [h]",
            "soon_share": "Needless [% of jobs]",
        },
        note=f"Urgent: priority 800 and more.{bare if data.waiting.unit == 'queue' else ''}",
    )


def _fast_rebrokerage(data: Data, s: WaitingStudy) -> list[Block | None]:
    fast, n = s.fast, data.instants.height
    if fast is None or fast.places.is_empty():
        return [say("No queue meets its conditions for any share at any of {n:#instant}.", n=n)]
    over_values = Chart(
        draw=charts.fast_keys_chart,
        frame=fast.keys,
        finding=say(
            "{name} matters most: {low} to {high:#job} would move per instant", fast.widest_key
        ),
        sample=say(
            "{days}: {n:#instant}; one key at a time; bands: 95 % intervals from drawing queues again",
            days=_days(data),
            n=n,
        ),
        note="NQNR_RATIO: queued over running jobs. NQUEUE_FRAC: part of all queued jobs of the share. NQUEUE_<gshare>: queued "
        "jobs, of all shares alike; a share without it is taken to have 10, as the system's dry run does. Each instant is "
        "judged in the state that history left, as if nothing had moved before.",
    )
    text = "{n:#pair} of queue and share ever triggered; as things are set {n_places_as_set} did, and {moved_as_set:#job} would move per instant"
    places = Table(
        name="fast_places",
        frame=fast.places,
        caption=say(text, s.numbers, n=fast.places.height),
        columns={
            "computingsite": "Queue",
            "gshare": "gshare",
            "met_share": "Triggers [% of instants]",
            "n_onsets": "Begins to trigger [times]",
            "onset_jobs": "To move at the beginnings, together [jobs]",
            "max_jobs": "Most at an instant [jobs]",
        },
        most=6,
    )
    return [over_values, places]


def _rule_sets(data: Data, s: WaitingStudy) -> list[Block | None]:
    compared, waiting = s.rule_sets, data.waiting
    if not compared.n_any:
        return []
    names = {"current": waiting.rules.rules, "other": waiting.other.rules}
    words = {kind: text.format(**names) for kind, text in KIND_NAMES.items()}
    kinds = Table(
        name="rule_kinds",
        frame=compared.kinds.with_columns(what=pl.col("kind").replace(words)),
        caption=say(
            "{n_different} of {n_any:#job} that either set times out fare differently", s.numbers
        ),
        columns={"what": "The job is", "jobs": "Jobs", "share": "Share [%]"},
        note="Each job by its first rule.",
    )
    switches = switch_table(
        compared.switches,
        {"n_changed": "Changes [jobs]", "explained": "Of all changes [%]"},
        caption="What each switch does to the jobs",
    )
    return [kinds, switches]


# --- what it cannot tell ----------------------------------------------------------------------------------------------


CAVEATS = {
    "waiting": "{waiting} of {n_fired:#job} still wait at the end of the archive: their hours are the least they wait.",
    "undecided": "Timed out less than {soon_h} h before the end: {undecided:#job}, in no share of needless ones.",
    "none_alive": "No job is alive at the end of the archive: waits that outlived it are missing, so long ones are too few.",
    "doubled": "At the end of the archive doubled limits are not reached yet: {doubled:#wait}, counted as not timed out there.",
    "n_halved_before": "Halved limits are reached before the period begins: {n_halved_before:#job} that reach the limits as set in it, missed at halved limits.",
    "ended": "{ended} of {n_fired:#job} failed, or were cancelled or closed where they waited, perhaps by these very rules: nobody knows whether they would have gone on.",
    "n_late": "Limits that are long for the period: {late}. A wait that begins late cannot be seen to reach them.",
    "n_unlogged": "{n_unlogged} of {n_jobs:#job} have no status log: assigned stands for all before activation, activated for sent and starting too; holding and transferring are not seen.",
    "n_ran": "The archive keeps no signs of life: heartbeats are judged for the {n_beating} live jobs at its end alone, of which {n_silent} were silent beyond their limit. Of {n_ran:#job} that ran {n_lost} are known to have lost theirs, after {lost_h:.0f} h of running.",
    "n_slots": "Left out of fast rebrokerage: {n_slots:#queue} with slots set by hand.",
}
"""Number that makes it so, and what it makes so."""


def _caveats(data: Data, s: WaitingStudy, p: Params) -> list[Caveat]:
    late = judge.late_rules(data.waiting, s.limits)["rule"].to_list()
    values: dict[str, Any] = {"n_slots": 0, "soon_h": p.soon_h} | s.numbers
    values |= {name: int(s.total[name]) for name in OUTCOMES}
    values |= {
        "waiting": values["still"] + values["undecided"],
        "none_alive": not values["n_live"],
        "doubled": s.undecided.filter(value=2.0)["n_waiting"].sum(),
        "late": ", ".join(late),
        "n_late": len(late),
    }
    odd = (Caveat(1, f"Odd settings, taken as the rules say: {one}.") for one in data.odd)
    return [*(Caveat.of(int(values[n]), text, values) for n, text in CAVEATS.items()), *odd]


def _days(data: Data) -> str:
    return days_of(data.waiting.start, data.waiting.end - timedelta(microseconds=1))
