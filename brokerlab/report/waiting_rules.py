"""Which waiting rules fire, how much waiting do they end, and would other limits have ended more of it?

`brokerlab.lifecycle.waiting` judges the waiting of a period; this shows it: rule by rule, at other limits, where and
when, what fast rebrokerage would move, and what the other rule set would do.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar, NamedTuple

import polars as pl
from pydantic import Field, PositiveFloat

from brokerlab.archive.store import open_archive
from brokerlab.brokerage.replay.counts import Counts
from brokerlab.charts import waiting as charts
from brokerlab.errors import collect_warnings
from brokerlab.lifecycle import waiting as judge
from brokerlab.lifecycle.timeouts import decision_table
from brokerlab.lifecycle.waiting import ALL_RULES, OUTCOMES, RULE, Waiting
from brokerlab.lifecycle.waiting.fast import PLACE, FastOver, instants_of
from brokerlab.lifecycle.waiting.period import Unit
from brokerlab.lifecycle.waiting.rule_sets import RuleSetComparison
from brokerlab.report import kit
from brokerlab.report.kit import Block, Caveat, Chart, Number, Page, Table, Verdict, say
from brokerlab.times import grain
from brokerlab.words import days_of

CHANGED = {0.5: "halved", 2.0: "doubled"}
"""Scales of limits that are looked at whatever was asked, beside the limits as set."""
STRATA = {
    "computingsite": "queue",
    "gshare": "gshare",
    "prodsourcelabel": "label",
    "priority": "priority",
}
LEVELS_SHOWN = 3
"""Lines of each stratum, those with most jobs."""
RULES_DRAWN = 4
"""Rules with a panel of their own over time, those with most jobs."""
OUTCOME_NAMES = {
    "soon": "went on soon",
    "later": "went on later",
    "ended": "came to nothing",
    "still": "still waits",
    "undecided": "too early to say",
}
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
but for the {n_exempt_queues} of {n_queues} queues that are paused or have disableReassign. –: none, or the archive has no job \
in the rule's statuses."""
ENDED_NOTE = "Came to nothing: failed, cancelled or closed where it waited, by the system's own timeouts too."
ENDS = ("", "_lo", "_hi")
DURATION = r"^[1-9]\d*[smhd]$"
FAST_NUMBERS = ("queued", "n_slots", "n_places_as_set", "moved_as_set")


class Params(kit.Params):
    """What may be asked."""

    report: ClassVar[str] = "waiting-rules"
    question: ClassVar[str] = (
        "Which waiting rules fire, how much waiting do they end, and would other limits have ended more of it?"
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
    every: str = Field("6h", pattern=DURATION, description="step of fast rebrokerage [duration]")
    unit: Unit = Field("queue", description="what the bootstrap draws, queue or task [name]")
    n_boot: int = Field(1000, ge=20, description="bootstrap replicates [1]")


class Data(NamedTuple):
    """What was read: the period, jobs by queue, share and status at instants, and what was odd in the settings."""

    waiting: Waiting
    instants: pl.DataFrame
    counts: pl.DataFrame
    odd: tuple[str, ...]


class Study(NamedTuple):
    """The frames of the page, and its single numbers."""

    fired: pl.DataFrame
    total: dict[str, Any]
    rules: pl.DataFrame
    by_time: pl.DataFrame
    levels: pl.DataFrame
    exempted: pl.DataFrame
    limits: pl.DataFrame
    undecided: pl.DataFrame
    fast: FastOver | None
    rule_sets: RuleSetComparison
    numbers: dict[str, Any]


@kit.answers
def load(p: Params) -> Data:
    """Read the waiting of the period, and count jobs at instants."""
    archive = open_archive(p.archive)
    kit.need(archive, "jobs")
    with collect_warnings() as odd:
        waiting = judge.read_waiting(
            archive,
            start=p.start,
            end=p.end,
            rules=p.rules,
            least=min(*p.scales, *CHANGED),
            soon_h=p.soon_h,
            unit=p.unit,
        )
    instants = instants_of(waiting.start, waiting.end, p.every)
    log = archive.job_status_log if archive.has("job_status_log") else None
    counts = Counts.of(archive.jobs, log, instants).table(*PLACE, "jobstatus")
    return Data(waiting, instants, counts, tuple(odd))


@kit.answers
def study(data: Data, p: Params) -> Study:
    """Judge the waiting."""
    waiting = data.waiting
    again: dict[str, Any] = {"n_boot": p.n_boot, "seed": p.seed}
    draws: dict[str, Any] = {"units": waiting.units["unit"], **again}
    by_scale = {scale: waiting.firings(scale) for scale in sorted({*p.scales, 1.0, *CHANGED})}
    fired = by_scale[1.0]
    comparison = judge.compare_rule_sets(waiting, fired, **again)
    fast = judge.fast_rebrokerage_over(waiting, data.counts, data.instants, **again)
    spared = waiting.exempted(fired)
    numbers = judge.numbers_of(waiting, fired) | {
        "n_spared": spared["pandaid"].n_unique(),
        "n_instants": data.instants.height,
        **{name: getattr(comparison, name) for name in ("n_any", "n_different")},
        **({name: getattr(fast, name) for name in FAST_NUMBERS} if fast else {}),
    }
    return Study(
        fired=fired,
        total=judge.wasted_waiting(fired.filter("first"), by=(), **draws).row(0, named=True),
        rules=judge.by_rule(waiting, fired, **again),
        by_time=judge.firings_over_time(
            fired, every=step_of(waiting), start=waiting.start, end=waiting.end, **draws
        ),
        levels=judge.by_level(waiting, fired, STRATA, **again),
        exempted=judge.wasted_waiting(spared, **draws),
        limits=judge.other_limits(by_scale, **draws),
        undecided=judge.undecided_by_end(by_scale),
        fast=fast,
        rule_sets=comparison,
        numbers=numbers,
    )


def page(data: Data, s: Study, p: Params) -> Page:
    """Lay the answer out."""
    waiting = data.waiting
    return Page(
        verdict=Verdict(kind="finding", sentence=headline(s, p)),
        numbers=first_numbers(s),
        chart=all_limits(data, s),
        sections={
            "Rule by rule": rule_by_rule(s),
            "Other limits": other_limits(data, s),
            "Where and when": where_and_when(data, s),
            "Fast rebrokerage": fast_rebrokerage(data, s),
            f"{p.rules.capitalize()} against {waiting.other.rules} rules": rule_sets(data, s),
        },
        caveats=caveats(data, s, p),
        facts={
            "Intervals": f"95 %, from drawing {waiting.unit}s again, expanded percentiles",
            "Settings": "those at the end of the period; of each queue its latest row",
        },
        archive=waiting.archive,
        config=waiting.config,
        rules=waiting.rules,
        window=f"rules that fire {days(data)} (UTC)",
        also={
            "fired": s.fired,
            "total": pl.DataFrame([s.total]),
            "all_limits": s.limits,
            "exempted": s.exempted,
            "undecided": s.undecided,
            "rule_counts": s.rule_sets.by_rule,
        }
        | ({"fast_shares_at": s.fast.shares, "fast_totals": s.fast.totals} if s.fast else {}),
        values=s.numbers,
    )


def run(p: Params) -> dict[str, Any]:
    """Read, judge, write the page."""
    data = load(p)
    return kit.publish(page(data, study(data, p), p), p)


# --- the first screen -------------------------------------------------------------------------------------------------


def headline(s: Study, p: Params) -> str:
    """Say how many of the jobs are timed out needlessly."""
    text = "{soon_share:%} of {n_fired} timed-out jobs would have gone on by themselves within {soon_h} h."
    if not s.numbers["n_fired"]:
        text = "No waiting rule fires for any of {n_jobs} jobs under {rules} rules."
    elif s.total["soon_share"] is None:
        text = "Rules fire for {n_fired} of {n_jobs} jobs; too early to say how many needlessly."
    return say(text, s.total | s.numbers, rules=p.rules, soon_h=p.soon_h)


def first_numbers(s: Study) -> list[Number]:
    """Return how many jobs are timed out, what that ends, and what it costs."""
    numbers, total = s.numbers, s.total
    if not numbers["n_fired"]:
        return []
    part = say("{part:%} of {n_jobs} jobs", numbers, part=numbers["n_fired"] / numbers["n_jobs"])
    before = say("after {hours:.0f} h of it", hours=total["waited_h"])
    cost = "from creation to start: so long a reassigned job waits again"
    return [
        Number.of(total, "jobs", label="Timed out", unit="jobs", note=part),
        Number.of(total, "after_h", label="Waiting ended, at least", unit="h", note=before),
        Number("Mean wait of a new job", numbers["fresh_h"], unit="h", note=cost),
    ]


def all_limits(data: Data, s: Study) -> Chart | None:
    """Show what all limits together would end and interrupt if they were shorter or longer."""
    every = s.limits.filter(rule=ALL_RULES)
    if every.is_empty():
        return None
    now, ends = pl.col("is_current"), pl.col("value").is_in([*CHANGED, every["value"].min()])
    scale = pl.col("value").cast(pl.String).str.strip_suffix(".0")
    frame = every.with_columns(
        setting=pl.when(now).then(pl.lit("current")).otherwise(pl.lit("other limits")),
        label=pl.when(now).then(pl.lit("current")).when(ends).then(pl.format("× {}", scale)),
    )
    counted = say("{days}: {n_jobs} jobs, {n_fired} timed out", s.numbers, days=days(data))
    text = "Halved limits: {after_h:.0f} h of waiting ended, {soon:.0f} jobs interrupted needlessly; now {now_h:.0f} h and {now:.0f}"
    as_set = every.filter("is_current").row(0, named=True)
    half = every.filter(value=0.5).row(0, named=True)
    return Chart(
        draw=charts.limits_chart,
        frame=frame,
        finding=say(text, half, now_h=as_set["after_h"], now=as_set["soon"]),
        sample=f"{counted}; {over_units(data)}",
        note=say(
            "All limits so many times as long; a job counts once, by its first rule. Needlessly: it would have gone on within {h} h.",
            h=data.waiting.soon_h,
        ),
    )


# --- sections ---------------------------------------------------------------------------------------------------------


def rule_by_rule(s: Study) -> list[Block | None]:
    """Show every rule of the set, and what became of the jobs."""
    firing = ranked(s)
    spared = s.exempted.select(*RULE, *(pl.col(f"jobs{end}").alias(f"spared{end}") for end in ENDS))
    table = Table(
        name="rules",
        frame=named(s.rules).join(spared, on=list(RULE), how="left", maintain_order="left"),
        caption=say("{n} of {of} rules fire", n=firing.height, of=s.rules.height),
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
    if firing.is_empty():
        return [table]
    parts = firing.unpivot(
        OUTCOMES, index=["name", "jobs"], variable_name="outcome", value_name="n"
    )
    shares = parts.filter(pl.col("n") > 0).select(
        "name",
        outcome=pl.col("outcome").replace(OUTCOME_NAMES),
        share=pl.col("n") / pl.col("jobs"),
    )
    waiting = s.total["still"] + s.total["undecided"]
    text = "{later:.0f} jobs went on later, {ended:.0f} came to nothing, {waiting:.0f} still wait"
    chart = Chart(
        draw=charts.outcomes_chart,
        frame=shares,
        finding=say(text, {name: s.total[name] for name in OUTCOMES}, waiting=waiting),
        note=ENDED_NOTE if s.total["ended"] else "",
    )
    return [table, chart]


def other_limits(data: Data, s: Study) -> list[Block | None]:
    """Show what each limit alone would do if it were halved or doubled."""
    changes = judge.limit_changes(s.limits, list(CHANGED))
    if changes.is_empty():
        return []
    rules = decision_table(rules=data.waiting.rules, config=data.waiting.config)
    keys = rules.select(*RULE, set_by=pl.col("keys").list.join(", ").replace("", None))
    limits = pl.col("value").replace_strict(CHANGED, return_dtype=pl.String)
    rows = named(changes).with_columns(limits=limits)
    rows = rows.join(keys, on=list(RULE), how="left", maintain_order="left")
    most = rows.sort(pl.col("more_after_h").abs(), descending=True).row(0, named=True)
    chart = Chart(
        draw=charts.limit_changes_chart,
        frame=rows,
        finding=say("Largest change: {name} {limits}, {more_after_h:h} of waiting ended", most),
        sample=over_units(data),
    )
    table = Table(
        name="limit_changes",
        frame=rows,
        caption="Each limit halved and doubled, against the limit as set",
        columns={
            "name": "Rule",
            "limits": "Limit is",
            "limit_h": "Limit [h]",
            "more_jobs": "More timed out [jobs]",
            "more_soon": "More needlessly [jobs]",
            "more_after_h": "More waiting ended [h]",
            "set_by": "gdpconfig key",
        },
        most=12,
        note="Largest changes first. inactive_queue keeps its 2 h without a start at every limit.",
    )
    return [chart, table]


def where_and_when(data: Data, s: Study) -> list[Block | None]:
    """Show the queues, shares, labels and days with most firings."""
    if s.fired.is_empty():
        return []
    place = pl.int_range(pl.len()).over("stratum")
    first = pl.when(place == 0).then(pl.lit("most jobs"))
    levels = named(s.levels).with_columns(place=place, mark=first)
    levels = levels.sort(pl.col("place") >= LEVELS_SHOWN, maintain_order=True)
    n_queues = s.levels.filter(stratum="queue")["level"].n_unique()
    text = "Most firings at a queue: {jobs:.0f} of {name} at {level}, of {n} queues with any"
    top = {name: levels[name][0] for name in ("jobs", "name", "level")}
    where = Table(
        name="levels",
        frame=levels,
        caption=say(text, top, n=n_queues),
        columns={
            "stratum": "By",
            "level": "Level",
            "name": "Rule",
            "jobs": "Timed out [jobs]",
            "after_h": "Waited on, at least [h]",
            "soon_share": "Needless [% of jobs]",
        },
        mark="mark",
        most=levels.filter(pl.col("place") < LEVELS_SHOWN).height,
        note="Urgent: priority 800 and more. No interval: whole ones of these are drawn again.",
    )
    names = ranked(s)["rule"].unique(maintain_order=True).head(RULES_DRAWN).to_list()
    rows = s.by_time.filter(rule=names[0])
    most = rows.sort("jobs", descending=True, maintain_order=True).row(0, named=True)
    step = "day" if step_of(data.waiting) == "1d" else "week"
    when = Chart(
        draw=charts.over_time_chart,
        frame=s.by_time,
        options={"rules": names, "step": step},
        finding=say(
            "{part:%} of the firings of {rule} fall on one {step}, {date}",
            rule=most["rule"],
            part=most["jobs"] / rows["jobs"].sum(),
            step=step,
            date=days_of(most["time"], most["time"]),
        ),
        sample=over_units(data),
    )
    return [where, when]


def fast_rebrokerage(data: Data, s: Study) -> list[Block | None]:
    """Show which queues and shares trigger, when, and what the keys do."""
    fast, n = s.fast, data.instants.height
    if fast is None or fast.places.is_empty():
        return [say("No queue meets its conditions for any share at any of {n} instants.", n=n)]
    instants = say("{days}: {n} instants", days=days(data), n=n)
    most = fast.by_time.sort("to_move", "at", descending=[True, False]).row(0, named=True)
    date = days_of(most["at"], most["at"])
    over_time = Chart(
        draw=charts.fast_over_time_chart,
        frame=fast.by_time,
        finding=say("At most {to_move} jobs would move at an instant, on {date}", most, date=date),
        sample=instants,
        note="Each instant is judged in the state that history left, as if nothing had moved before. A share without a "
        "threshold is taken to have 10 jobs, as the system's dry run does.",
    )
    keys = fast.keys.with_columns(name=pl.col("key").str.strip_prefix("FAST_REBRO_THRESHOLD_"))
    ends = keys.group_by("name", maintain_order=True).agg(
        low=pl.col("to_move").min(), high=pl.col("to_move").max()
    )
    widest = ends.sort(pl.col("high") - pl.col("low"), descending=True).row(0, named=True)
    over_values = Chart(
        draw=charts.fast_keys_chart,
        frame=keys,
        finding=say("{name} matters most: {low} to {high} jobs would move per instant", widest),
        sample=f"{instants}; one key at a time; bands: 95 % intervals from drawing queues again",
        note="NQNR_RATIO: queued over running jobs. NQUEUE_FRAC: part of all queued jobs of the share. NQUEUE_<gshare>: queued "
        "jobs, of all shares alike.",
    )
    text = "{n} pairs of queue and share ever trigger; as things are set {n_places_as_set} do, and {moved_as_set} jobs move per instant"
    places = Table(
        name="fast_places",
        frame=fast.places,
        caption=say(text, s.numbers, n=fast.places.height),
        columns={
            "computingsite": "Queue",
            "gshare": "gshare",
            "met_share": "Triggers [% of instants]",
            "n_onsets": "Begins to",
            "onset_jobs": "To move when it begins [jobs]",
            "max_jobs": "Most [jobs]",
        },
        most=6,
    )
    shares = Table(
        name="fast_shares",
        frame=fast.by_share,
        caption="By share, means over the instants",
        columns={
            "gshare": "gshare",
            "threshold": "Threshold [jobs]",
            "dry_run": "Dry run",
            "queued": "Queued [jobs]",
            "n_met": "Queues that trigger",
            "to_move": "To move [jobs]",
        },
        most=6,
    )
    return [over_time, over_values, places, shares]


def rule_sets(data: Data, s: Study) -> list[Block | None]:
    """Show how jobs fare under the other rule set, and which single differences make it."""
    found, waiting = s.rule_sets, data.waiting
    if not found.n_any:
        return []
    names = {"current": waiting.rules.rules, "other": waiting.other.rules}
    words = {kind: text.format(**names) for kind, text in KIND_NAMES.items()}
    kinds = Table(
        name="rule_kinds",
        frame=found.kinds.with_columns(what=pl.col("kind").replace(words)),
        caption=say("{n_different} of {n_any} jobs that either set times out fare differently", s.numbers),
        columns={"what": "The job is", "jobs": "Jobs", "share": "Share [%]"},
        note="Each job by its first rule.",
    )  # fmt: skip
    pairs = Table(
        name="rule_pairs",
        frame=found.pairs.with_columns(pl.col("current", "other").fill_null("none")),
        caption="Most frequent changes of the first rule",
        columns={"current": names["current"], "other": names["other"], "jobs": "Jobs"},
        most=6,
    )
    changing = found.switches.filter(pl.col("n_changed") > 0)
    text = "Shares need not add up: a job may need two differences, or follow from either."
    switches = Table(
        name="rule_switches",
        frame=found.switches,
        most=changing.height,
        caption="Single differences of the rule sets, changed alone",
        columns={
            "switch": "Difference",
            "row": "Row of the chapter",
            "n_changed": "Changes [jobs]",
            "explained": "Of all changes [%]",
        },
        note=text,
    )
    return [kinds, pairs if pairs.frame.height else None, switches if changing.height else None]


# --- what it cannot tell ----------------------------------------------------------------------------------------------


CAVEATS = {
    "waiting": "{waiting} of {n_fired} jobs still wait at the end of the archive: their hours are the least they wait.",
    "undecided": "{undecided} jobs were timed out less than {soon_h} h before the end: they are in no share of needless ones.",
    "none_alive": "No job is alive at the end of the archive: waits that outlived it are missing, so long ones are too few.",
    "doubled": "{doubled} waits last to the end of the archive and count as not timed out at doubled limits.",
    "ended": "{ended} of {n_fired} jobs failed, or were cancelled or closed where they waited, perhaps by these very rules: nobody knows whether they would have gone on.",
    "n_late": "Limits that are long for the period: {late}. A wait that begins late cannot be seen to reach them.",
    "n_unlogged": "{n_unlogged} of {n_jobs} jobs have no status log: assigned stands for all before activation, activated for sent and starting too; holding and transferring are not seen.",
    "n_ran": "The archive keeps no signs of life: heartbeats are judged for the {n_beating} live jobs at its end alone, of which {n_silent} were silent beyond their limit. Of {n_ran} jobs that ran {n_lost} are known to have lost theirs, after {lost_h:.0f} h of running.",
    "n_slots": "{n_slots} queues with slots set by hand are left out of fast rebrokerage.",
}
"""Number that makes it so, and what it makes so."""


def caveats(data: Data, s: Study, p: Params) -> list[Caveat]:
    """Say what the end of the archive, its missing log and the system's own doing hide."""
    late = judge.late_rules(data.waiting, s.limits)["rule"].to_list()
    told: dict[str, Any] = {"n_slots": 0, "soon_h": p.soon_h} | s.numbers
    told |= {name: int(s.total[name]) for name in OUTCOMES}
    told |= {
        "waiting": told["still"] + told["undecided"],
        "none_alive": not told["n_live"],
        "doubled": s.undecided.filter(value=2.0)["n_waiting"].sum(),
        "late": ", ".join(late),
        "n_late": len(late),
    }
    odd = (Caveat(n=1, text=f"Odd settings, taken as the rules say: {one}.") for one in data.odd)
    return [*(Caveat(n=int(told[n]), text=say(text, told)) for n, text in CAVEATS.items()), *odd]


# --- names and frames -------------------------------------------------------------------------------------------------


def named(frame: pl.DataFrame) -> pl.DataFrame:
    """Add ``name``: the rule, with its action where the rule takes several."""
    several = pl.col("action").n_unique().over("rule") > 1
    full = pl.format("{} ({})", "rule", "action")
    return frame.with_columns(name=pl.when(several).then(full).otherwise("rule"))


def ranked(s: Study) -> pl.DataFrame:
    """Return the rules that fire, most jobs first."""
    firing = named(s.rules).filter(pl.col("jobs") > 0)
    return firing.sort("jobs", "number", descending=[True, False])


def step_of(waiting: Waiting) -> str:
    """Return the step of numbers over time."""
    return grain((waiting.start, waiting.end))


def days(data: Data) -> str:
    """Write the days of the period."""
    return days_of(data.waiting.start, data.waiting.end - timedelta(microseconds=1))


def over_units(data: Data) -> str:
    """Say what bars and bands are."""
    waiting = data.waiting
    text = "bars and bands: 95 % intervals from drawing {n} {unit}s again"
    return say(text, n=waiting.units.height, unit=waiting.unit)
