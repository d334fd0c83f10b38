"""The checks X1 to X7 that stop a task, each one small value (docs/rules/exhausted.md 2).

A check is an ordered list of reasons not to fire. The first that holds is the ``why_not`` of the trace; a
check for which none holds fires. Checks run in order on the tasks that none before has decided; the rules
for retries (E1 to E8, in ``retry``) are checks of the same form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.results import Result, Shows
from brokerlab.scouts.rules import ScoutRules
from brokerlab.scouts.settings import uses_scouts

CPUTIME_UNITS = ("HS06sPerEvent", "mHS06sPerEvent", "HS06sPerEventFixed", "mHS06sPerEventFixed")
"""Units of ``cputime`` that scale with HS06."""
LONG_EXEC_S = 24 * 3600
CPU_ABUSE_FACTOR = 2
AVALANCHE_FACTOR = 10  # input per job after the avalanche over that of a scout
NOT_EVALUATED = "not evaluated"
ONLY_REPORTED = "only reported in production"


@dataclass(frozen=True)
class Check:
    """One exhausted check."""

    name: str  # X1 to X7, or E1 to E8
    reason: str  # reason code of the status
    source: str  # section it comes from
    keys: tuple[str, ...]  # gdpconfig keys it reads
    inputs: tuple[str, ...]  # columns of the deciding comparison
    # (why_not, condition) in the order in which they end the check
    unless: tuple[tuple[str, pl.Expr], ...]

    def why_not(self) -> pl.Expr:
        """Return the first reason that ends the check; null where it fires."""
        return pl.coalesce(
            pl.when(condition.fill_null(value=True)).then(pl.lit(why))
            for why, condition in self.unless
        )

    def run(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Evaluate the check where ``open``, and close the tasks on which it fires.

        The frame with ``evaluated``, ``why_not`` (null where it fires) and :attr:`fired`.
        """
        why = pl.when("open").then(self.why_not()).otherwise(pl.lit(NOT_EVALUATED))
        frame = frame.with_columns(why_not=why, evaluated="open")
        frame = frame.with_columns(pl.col("why_not").is_null().alias(self.fired))
        return frame.with_columns(open=pl.col("open") & ~pl.col(self.fired))

    @property
    def fired(self) -> str:
        """Name of the column that tells where the check fired."""
        return f"{self.name}_fired"

    def trace(self) -> list[pl.Expr]:
        """Return ``jeditaskid, rule, evaluated, fired, why_not`` of a frame on which the check just ran."""
        return [
            pl.col("jeditaskid"),
            pl.lit(self.name).alias("rule"),
            pl.col("evaluated"),
            pl.col(self.fired).alias("fired"),
            pl.col("why_not"),
        ]


@dataclass(frozen=True, repr=False)
class Decisions(Result):
    """What checks decided; each kind of result says what its columns are.

    Attributes:
        verdicts: One row per task.
        trace: One row per task and check.
        rules: The rule set it was decided under.
        config_digest: Digest of the gdpconfig it was decided under.
    """

    shows = Shows(
        about="which tasks checks stop, one row per task",
        columns="jeditaskid, status, rule, reason_code, action, numbers",
        keys=("jeditaskid",),
        next=("scouts.next_status(tasks, scouts, result)", "scouts.write_tasks(tasks, scouts)"),
    )

    verdicts: pl.DataFrame
    trace: pl.DataFrame
    rules: ScoutRules
    config_digest: str

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values."""
        return {
            "verdicts": self.verdicts.to_dicts(),
            "trace": self.trace.to_dicts(),
            "rules": self.rules.to_dict(),
            "config_digest": self.config_digest,
        }


def decided(order: Sequence[Check]) -> dict[str, pl.Expr]:
    """Return ``rule, reason_code, numbers`` of the check that fired; null where none did.

    ``numbers`` is JSON of the inputs of its comparison.
    """

    def of_fired(value: Callable[[Check], pl.Expr]) -> pl.Expr:
        return pl.coalesce(pl.when(check.fired).then(value(check)) for check in order)

    return {
        "rule": of_fired(lambda check: pl.lit(check.name)),
        "reason_code": of_fired(lambda check: pl.lit(check.reason)),
        "numbers": of_fired(lambda check: pl.struct(check.inputs).struct.json_encode()),
    }


def _off(name: str) -> pl.Expr:
    """Tell where a setting is missing or 0."""
    return pl.col(name).fill_null(0) == 0


def _fraction(part: pl.Expr, whole: str) -> pl.Expr:
    return part / pl.when(pl.col(whole) > 0).then(pl.col(whole))


def checks(rules: ScoutRules) -> tuple[Check, ...]:
    """Return the checks X1 to X7 in the order in which they run."""
    return (
        _cputime(rules),
        _ramcount(rules),
        _leak(rules),
        _short(rules),
        _inefficient(),
        _abuse(),
        _success_rate(),
    )


WITHIN_FACTOR = "within the factor of the preset"


def _within_factor(measured: str, preset: str) -> pl.Expr:
    """Tell where a measured value differs from its preset by the threshold's factor at most, up and down."""
    factor = pl.col("wrong_cputime_threshold")
    larger = pl.col(measured) > factor * pl.col(preset)
    smaller = pl.col(measured) * factor < pl.col(preset)
    return ~(larger | smaller)


def _cputime(rules: ScoutRules) -> Check:
    wanted = pl.col("wrong_cputime_threshold") * pl.col("old_cputime")
    not_wrong: tuple[tuple[str, pl.Expr], ...] = (
        ("not above the threshold", ~(pl.col("cputime") > wanted)),
        ("jobs run 24 h or less", ~(pl.col("exec_time") > LONG_EXEC_S)),
    )
    if rules.wrong_cputime == "differs":  # 0: does not scale with events
        unscaled = ("cputime does not scale with events", pl.col("cputime") == 0)
        not_wrong = (unscaled, (WITHIN_FACTOR, _within_factor("cputime", "old_cputime")))
    return Check(
        "X1",
        "scout_cpuTime",
        "docs/rules/exhausted.md X1",
        ("SCOUT_WRONG_CPUTIME_THRESHOLD",),
        ("cputime", "old_cputime", "wrong_cputime_threshold", "exec_time"),
        (
            ("unit of cputime is not HS06", ~pl.col("task_cputimeunit").is_in(CPUTIME_UNITS)),
            ("no new cputime", pl.col("cputime").is_null() | pl.col("exec_time").is_null()),
            ("threshold off", ~(pl.col("wrong_cputime_threshold") > 0)),
            ("no cputime was requested", _off("old_cputime")),
            *not_wrong,
        ),
    )


def _ramcount(rules: ScoutRules) -> Check:
    threshold = pl.col("ram_threshold_mb")
    key, limit = "RAM_THR_EXAUSTED", "ram_threshold_mb"
    not_wrong: tuple[tuple[str, pl.Expr], ...] = (
        ("requested at or above the threshold", ~(pl.col("old_ramcount") < threshold)),
        ("measured at or below the threshold", ~(threshold < pl.col("ramcount"))),
    )
    if rules.wrong_ramcount == "differs":
        key, limit = "SCOUT_WRONG_CPUTIME_THRESHOLD", "wrong_cputime_threshold"
        not_wrong = (
            ("threshold off", ~(pl.col(limit) > 0)),
            ("a ramcount of 0 was requested", pl.col("old_ramcount") == 0),
            (WITHIN_FACTOR, _within_factor("ramcount", "old_ramcount")),
        )
    return Check(
        "X2",
        "scout_ramCount",
        "docs/rules/exhausted.md X2",
        (key,),
        ("ramcount", "old_ramcount", limit),
        (
            (
                "unit of ramcount is not per core",
                ~pl.col("task_ramunit").is_in(["MBPerCore", "MBPerCoreFixed"]),
            ),
            ("no new ramcount", pl.col("ramcount").is_null()),
            ("no ramcount was requested", pl.col("old_ramcount").is_null()),
            *not_wrong,
        ),
    )


def _leak(rules: ScoutRules) -> Check:
    return Check(
        "X3",
        "scout_memory_leak",
        "docs/rules/exhausted.md X3",
        ("SCOUT_MEM_LEAK_PER_CORE_<prodsourcelabel>",),
        ("memory_leak_core", "leak_threshold"),
        (
            ("threshold off", _off("leak_threshold")),
            ("no leak measured", _off("memory_leak_core")),
            ("not above the threshold", ~(pl.col("memory_leak_core") > pl.col("leak_threshold"))),
            (ONLY_REPORTED, pl.lit(not rules.leak_exhausts)),
        ),
    )


def many_short_jobs(rules: ScoutRules) -> tuple[tuple[str, pl.Expr], ...]:
    """Return what ends X4 before its split rule may change: too few short jobs, or too few jobs to come."""
    expected = pl.min_horizontal(_jobs_of_cutoff(rules))
    share = _fraction(pl.col("n_short"), "total_short_base")
    return (
        ("number or cutoff off", _off("short_tenths") | _off("short_cutoff")),
        ("no job with known duration", ~(pl.col("total_short_base") > 0)),
        ("too few short jobs", ~(share >= pl.col("short_fraction"))),
        ("few jobs expected", expected < pl.col("short_cutoff")),
    )


def _jobs_of_cutoff(rules: ScoutRules) -> tuple[str, ...]:
    """Return the numbers of jobs of which the smallest is held to X4's cutoff."""
    if rules.short_cutoff_counts == "new_jobs":
        return ("new_jobs",)
    return "expected_jobs", "expected_jobs_event"


def copies_explain() -> tuple[str, pl.Expr]:
    """Return what ends X4 because the short jobs had to copy their input to scratch."""
    uncopied = _fraction(pl.col("n_short") - pl.col("n_short_copy"), "total_short_base")
    return "short where copy to scratch is forced", uncopied < pl.col("short_fraction")


def _short(rules: ScoutRules) -> Check:
    scaled_min = pl.col("longest_short") * AVALANCHE_FACTOR // 60
    grows = pl.col("NE").is_null() & uses_scouts()
    if rules.growth_needs_more_files:
        grows &= pl.col("NF").is_null() & (pl.col("MF").fill_null(0) != 1)
    return Check(
        "X4",
        "many_shorter_jobs",
        "docs/rules/exhausted.md X4",
        (
            "SCOUT_NUM_SHORT_<prodsourcelabel>",
            "SCOUT_THR_SHORT_<prodsourcelabel>",
            "SCOUT_SHORT_EXECTIME_<prodsourcelabel>",
            "SCOUT_CHANGE_SR_<prodsourcelabel>",
        ),
        (
            *("n_short", "n_short_copy", "total_short_base", "short_tenths"),
            *(*_jobs_of_cutoff(rules), "short_cutoff"),
            *("longest_short", "short_exec_time"),
        ),
        (
            *many_short_jobs(rules),
            ("split rule changed instead", pl.col("splitrule_changed")),
            (
                "jobs grow long enough after the avalanche",
                grows & (scaled_min > pl.col("short_exec_time")),
            ),
            copies_explain(),
            ("never exhausts in production", pl.lit(not rules.short_jobs_exhaust)),
        ),
    )


def _inefficient() -> Check:
    own, measured = pl.col("MC"), pl.col("min_cpu_efficiency")
    has_own = own.fill_null(0) != 0
    most = pl.max_horizontal("expected_jobs", "expected_jobs_event")
    share = _fraction(pl.col("n_inefficient"), "n_total_for_ineff")
    general = (
        ~_off("inefficient_tenths")
        & (share >= pl.col("inefficient_fraction"))
        & ~_off("inefficient_cutoff")
        & (most > pl.col("inefficient_cutoff"))
    ).fill_null(value=False)
    busy = (pl.col("iointensity").fill_null(0) > pl.col("max_io_intensity")) & ~_off(
        "max_io_intensity"
    )
    return Check(
        "X5",
        "low_efficiency",
        "docs/rules/exhausted.md X5",
        (
            "SCOUT_NUM_CPU_INEFFICIENT_<prodsourcelabel>",
            "SCOUT_THR_CPU_INEFFICIENT_<prodsourcelabel>",
            "SCOUT_LOW_CPU_EFFICIENCY_<prodsourcelabel>",
            "SCOUT_MAX_IO_INTENSITY_FOR_EXHAUSTED_<prodsourcelabel>",
        ),
        (
            *("min_cpu_efficiency", "MC", "n_inefficient", "n_total_for_ineff"),
            *("inefficient_tenths", "expected_jobs", "expected_jobs_event", "inefficient_cutoff"),
            *("iointensity", "max_io_intensity"),
        ),
        (
            ("split rule changed instead", pl.col("splitrule_changed")),
            ("efficiency not measured", has_own & measured.is_null()),
            ("meets its own limit", (has_own & (measured >= own)).fill_null(value=False)),
            ("within the general limit", ~has_own & ~general),
            ("excused by its ioIntensity", busy.fill_null(value=False)),
        ),
    )


def _abuse() -> Check:
    allowed = pl.col("max_cpu_time_duration") * pl.col("max_cpu_time_cores") * CPU_ABUSE_FACTOR
    return Check(
        "X6",
        "over_cpu_consumption",
        "docs/rules/exhausted.md X6",
        (),
        ("max_cpu_time", "max_cpu_time_duration", "max_cpu_time_cores"),
        (("not above twice duration times cores", ~(pl.col("max_cpu_time") > allowed)),),
    )


def _success_rate() -> Check:
    both = pl.col("min_ok_rate").is_not_null() & pl.col("SS").is_not_null()
    stricter = both & (pl.col("SS") > pl.col("min_ok_rate") * 10)
    return Check(
        "X7",
        "low_success_rate",
        "docs/rules/exhausted.md X7",
        ("SCOUT_MIN_OK_RATE_EXHAUSTED_<prodsourcelabel>",),
        ("success_rate", "SS", "min_ok_rate"),
        (
            ("rates not both set, or the task's is not stricter", ~stricter),
            ("no success rate", pl.col("success_rate").is_null()),
            ("meets the task's own rate", ~(pl.col("success_rate") < pl.col("required_rate"))),
        ),
    )
