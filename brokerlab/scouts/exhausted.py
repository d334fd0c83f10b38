"""When scouts stop a task: the checks of :mod:`brokerlab.scouts.checks`, run in their order.

The first check that fires decides; the trace says of every check why it did not.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.archive.given import Source, tables_of
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.lazy import call
from brokerlab.scouts.checks import (
    ONLY_REPORTED,
    Decisions,
    checks,
    copies_explain,
    decided,
    many_short_jobs,
)
from brokerlab.scouts.estimate import ScoutResult, estimate
from brokerlab.scouts.rules import ScoutRules
from brokerlab.scouts.settings import (
    label_settings,
    remove_tag,
    set_tag,
    splitrule_with,
    tag_value,
    task_settings,
)
from brokerlab.scouts.tables import TASK_COLUMNS, small

MIN_NEW_JOBS = 20
MIN_MAX_FILES = 200

LABEL_KEYS = {
    "leak_threshold": "SCOUT_MEM_LEAK_PER_CORE_<prodsourcelabel>",
    "short_tenths": "SCOUT_NUM_SHORT_<prodsourcelabel>",
    "short_cutoff": "SCOUT_THR_SHORT_<prodsourcelabel>",
    "change_split_rule": "SCOUT_CHANGE_SR_<prodsourcelabel>",
    "inefficient_tenths": "SCOUT_NUM_CPU_INEFFICIENT_<prodsourcelabel>",
    "inefficient_cutoff": "SCOUT_THR_CPU_INEFFICIENT_<prodsourcelabel>",
    "max_io_intensity": "SCOUT_MAX_IO_INTENSITY_FOR_EXHAUSTED_<prodsourcelabel>",
    "min_ok_rate": "SCOUT_MIN_OK_RATE_EXHAUSTED_<prodsourcelabel>",
}
# tenths become fractions by a column of tens: Polars multiplies by 0.1 where it is told to divide by 10
FRACTIONS = {
    "short_fraction": "short_tenths",
    "inefficient_fraction": "inefficient_tenths",
    "required_rate": "SS",
}
STOPPABLE = ("scouting", "ready", "running")  # statuses from which a task may become exhausted


class ExhaustedResult(Decisions):
    """The verdict on every task.

    Attributes:
        verdicts: ``jeditaskid``; ``status`` after the checks, ``exhausted`` where one fired while the task was
            scouting, ready or running; ``rule`` and ``reason_code`` of the check that fired, null if none;
            ``message_code`` of the message left on the task (X3 leaves one in production without
            exhausting); ``action`` ``change_split_rule`` or null; ``splitrule`` after that action;
            ``numbers`` JSON of the inputs of the deciding comparison; ``rules``.
        trace: ``jeditaskid, rule, evaluated, fired, why_not, note``, one row per task and check.
    """


@call("scouts.exhausted")
def exhausted(
    source: Source,
    *,
    scouts: ScoutResult | None = None,
    rules: ScoutRules | str | None = None,
    config: Config | None = None,
    use_exhausted: bool = True,
) -> ExhaustedResult:
    """Run the exhausted checks on every task.

    Args:
        source: An archive, or tables by name; ``tasks`` as they were before their scouts were read.
        scouts: Result of :func:`brokerlab.scouts.estimate` for these tasks; its rule set is used. None: it is asked, which
            needs its tables.
        rules: Rule set where scouts are asked, or its name; default the document's.
        config: gdpconfig; default the catalogue's defaults.
        use_exhausted: False where the trigger does not allow the checks (T3).

    Returns:
        Verdicts and trace, sorted by ``jeditaskid``.

    Raises:
        ConfigError: ``scouts`` were made under other rules than those given.
        MissingTableError: A needed table is missing.

    Source: docs/rules/exhausted.md 1 and 2.
    """
    if scouts is None:
        scouts = estimate(source, rules=rules, config=config)
    elif rules is not None and (asked := ScoutRules.of(rules)) != scouts.rules:
        raise ConfigError(
            f"rules: {asked.digest}, but the scouts given are of {scouts.rules.digest}"
        )
    rules = scouts.rules
    config = config or Config.empty()
    frame = _inputs(tables_of(source, ["tasks"])["tasks"], scouts, config)
    frame = frame.with_columns(open=pl.lit(use_exhausted) & _eligible(rules))
    order, traces = checks(rules), []
    for check in order:
        if check.name == "X4":  # its first steps may change the split rule, which ends X5 too
            frame = _edit_split_rule(frame, rules)
        frame = check.run(frame)
        traces.append(frame.select(*check.trace(), note=_note(check.name, rules)))
        if check.name == "X3":
            leaks = pl.col("why_not").is_null() | (pl.col("why_not") == ONLY_REPORTED)
            frame = frame.with_columns(leak_message=leaks)
    verdicts = _verdicts(frame, decided(order), rules)
    trace = pl.concat(traces).sort("jeditaskid", "rule")
    return ExhaustedResult(verdicts, trace, rules, config.digest)


def each_check(tasks: Any, scouts: ScoutResult, *, config: Config | None = None) -> pl.DataFrame:
    """Ask every check of every task on its own, whatever the others say.

    One row per task, sorted: ``jeditaskid``, ``eligible`` (its scouts succeeded and, in production, more than 20 jobs
    are to come: the checks run), and a Boolean column per check, ``X1`` to ``X7``: it fires; false where the task is not eligible.

    Source: docs/rules/exhausted.md 1 and 2.
    """
    frame = _inputs(tasks, scouts, config or Config.empty())
    rules = scouts.rules
    frame = _edit_split_rule(frame.with_columns(open=_eligible(rules)), rules)
    fires = {check.name: check.why_not().is_null() & pl.col("open") for check in checks(rules)}
    return frame.select("jeditaskid", eligible="open", **fires)


def _eligible(rules: ScoutRules) -> pl.Expr:
    """Tell for which tasks the checks run: scouts that succeeded, and in production enough jobs to come."""
    enough = (pl.col("new_jobs") > MIN_NEW_JOBS) | pl.lit(not rules.checks_need_new_jobs)
    return (pl.col("succeeded") & enough).fill_null(value=False)


def _inputs(tasks: Any, scouts: ScoutResult, config: Config) -> pl.DataFrame:
    """Join what the scouts said, what the task was, and what its label's settings are."""
    before = task_settings(small(tasks, "tasks", TASK_COLUMNS), scouts.rules, merge=False)
    before = before.select(
        *("jeditaskid", "prodsourcelabel", "status", "splitrule"),
        *("US", "SS", "NE", "MC", "NF", "NG", "MF"),
        task_cputimeunit="cputimeunit",
        task_ramunit="ramunit",
    )
    joined = before.join(scouts.parameters, on="jeditaskid", how="inner")
    # a new nGBPerJob is in the split rule by now, and X4 may take it out again
    with_ng = splitrule_with(joined.drop_nulls("newng"), "NG", pl.col("newng"))
    joined = (
        joined.join(with_ng, on="jeditaskid", how="left", suffix="_ng")
        .with_columns(splitrule=pl.coalesce("splitrule_ng", "splitrule"))
        .with_columns(NG=pl.coalesce("newng", "NG"))
    )
    labels = label_settings(config, joined["prodsourcelabel"], LABEL_KEYS)
    if tenths := scouts.rules.default_short_tenths:
        labels = labels.with_columns(pl.col("short_tenths").fill_null(tenths))
    return (
        joined.join(labels, on="prodsourcelabel", how="left", nulls_equal=True)
        .with_columns(
            ten=pl.lit(10.0),
            wrong_cputime_threshold=pl.lit(float(config.get("SCOUT_WRONG_CPUTIME_THRESHOLD"))),
            ram_threshold_mb=pl.lit(config.get("RAM_THR_EXAUSTED") * 1000),
        )
        .with_columns((pl.col(tenths) / pl.col("ten")).alias(n) for n, tenths in FRACTIONS.items())
        .sort("jeditaskid")
    )


def _edit_split_rule(frame: pl.DataFrame, rules: ScoutRules) -> pl.DataFrame:
    """Apply step 3 of X4: drop files and GB per job, in production raise the maximal files to 200."""
    raises = rules.edit_raises_max_files
    ends = many_short_jobs(rules)
    if rules.edit_excuses_copies:
        ends = (*ends, copies_explain())
    ended = pl.any_horizontal(condition.fill_null(value=True) for _, condition in ends)
    few_files = (pl.col("MF") < MIN_MAX_FILES).fill_null(value=False) & pl.lit(raises)
    limits = pl.col("NF").is_not_null() | pl.col("NG").is_not_null() | few_files
    allowed = pl.col("change_split_rule").fill_null(0) != 0
    changed = pl.col("open") & ~ended & allowed & limits
    frame = frame.with_columns(splitrule_changed=changed)
    texts = frame.filter("splitrule_changed")["splitrule"].unique()
    edited = pl.DataFrame(
        {
            "splitrule": texts,
            "new_splitrule": [edit_split_rule(text, raises_max_files=raises) for text in texts],
        },
        schema={"splitrule": pl.String, "new_splitrule": pl.String},
    )
    return frame.join(edited, on="splitrule", how="left", maintain_order="left").with_columns(
        new_splitrule=pl.when("splitrule_changed").then("new_splitrule").otherwise("splitrule")
    )


def edit_split_rule(splitrule: str, *, raises_max_files: bool) -> str:
    """Relax the limits that make jobs short (X4 step 3)."""
    rule = remove_tag(remove_tag(splitrule, "NF"), "NG")
    limit = tag_value(rule, "MF")
    if not raises_max_files or limit is None or limit >= MIN_MAX_FILES:
        return rule
    return set_tag(rule, "MF", MIN_MAX_FILES)


def _note(check: str, rules: ScoutRules) -> pl.Expr:
    """Return the note on a task's own efficiency limit, on which the deployed code stops (X5)."""
    stops = pl.lit(check == "X5" and rules.rules == "production")
    own_limit = pl.col("MC").fill_null(0) != 0
    return pl.when(stops & own_limit).then(pl.lit("mc_unsupported_in_1_0_4"))


def _verdicts(frame: pl.DataFrame, verdicts: dict[str, pl.Expr], rules: ScoutRules) -> pl.DataFrame:
    """Return the deciding check of each task with its numbers."""
    leak = pl.when("leak_message").then(pl.lit("scout_memory_leak"))
    stopped = verdicts["rule"].is_not_null() & pl.col("status").is_in(STOPPABLE)
    return frame.select(
        "jeditaskid",
        status=pl.when(stopped).then(pl.lit("exhausted")).otherwise("status"),
        rule=verdicts["rule"],
        reason_code=verdicts["reason_code"],
        message_code=pl.coalesce(verdicts["reason_code"], leak),
        action=pl.when("splitrule_changed").then(pl.lit("change_split_rule")),
        splitrule="new_splitrule",
        numbers=verdicts["numbers"],
        rules=pl.lit(rules.rules),
    )
