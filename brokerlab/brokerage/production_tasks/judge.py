"""Which check removes which nucleus, and how a task ends (production-task-brokerage.md 4 to 6)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from brokerlab.brokerage.engine.own import problems_of
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.production_tasks import locality, storage
from brokerlab.brokerage.production_tasks.checks import INPUT_CHECKS, OUTPUT_CHECKS, checks
from brokerlab.brokerage.production_tasks.held import KEY
from brokerlab.brokerage.production_tasks.storage import PAIR
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError

FIRST = ("nucleus_inactive", "transfer_backlog")
BEFORE_INPUT = (*FIRST, *OUTPUT_CHECKS, "no_queue")


def checked(
    pairs: pl.DataFrame, outputs: pl.DataFrame, order: Sequence[Rule], rules: ProductionRules
) -> pl.DataFrame:
    """Evaluate every check on every nucleus.

    Args:
        pairs: Facts of :func:`facts.of_pairs`.
        outputs: Of :func:`storage.destinations`.
        order: The checks, in order.
        rules: Rule set.

    Returns:
        The pairs with ``waived``, one boolean per check, ``storage_reason`` and the columns of the output that
        decides; an output-less task passes the checks of outputs.
    """
    of_output = [check for check in order if check.name in OUTPUT_CHECKS]
    of_nucleus = [
        check for check in order if check.name not in OUTPUT_CHECKS and check.scope == "pair"
    ]
    at_outputs = storage.at_pairs(outputs, of_output)
    pairs = pairs.join(at_outputs, on=PAIR, how="left", maintain_order="left")
    pairs = pairs.with_columns(pl.col(OUTPUT_CHECKS).fill_null(value=False))
    _refuse_unfit(pairs, order, rules)
    pairs = storage.evaluated(pairs.with_columns(waived=pl.lit(value=False)), of_nucleus)
    pairs = pairs.with_columns(waived=_waived(order, rules))
    pairs = storage.evaluated(pairs, [check for check in of_nucleus if check.name in INPUT_CHECKS])
    for place, check in enumerate(order):
        if check.scope == "task":
            pairs = _of_task(pairs, check, order[:place])
    return pairs


def _refuse_unfit(pairs: pl.DataFrame, order: Sequence[Rule], rules: ProductionRules) -> None:
    """Refuse rules of one's own that read what is not there, or that say neither yes nor no.

    Raises:
        ConfigError: What is wrong, of all rules.
    """
    ours = {check.name for check in checks(rules)}
    schema = {**pairs.schema, **dict.fromkeys(("t", "q"), pl.Int64()), "check": pl.String()}
    own = [check for check in order if check.name not in ours]
    problems = [problem for check in own for problem in problems_of(check, schema)]
    if problems:
        raise ConfigError(f"own rules: {'; '.join(problems)}")


def _of_task(pairs: pl.DataFrame, check: Rule, before: Sequence[Rule]) -> pl.DataFrame:
    """Ask a check that looks at all nuclei of a task that those before it leave (``check`` is null)."""
    reasons = (pl.when(each.name).then(pl.lit(each.name)) for each in before)
    numbered = pairs.with_columns(
        t=pl.struct(KEY).rank("dense"), q=pl.col("position"), check=pl.coalesce(*reasons)
    )
    return storage.evaluated(numbered, [check]).drop("t", "q", "check")


def _waived(order: Sequence[Rule], rules: ProductionRules) -> pl.Expr:
    """Tell where the check of locality is cancelled: some nucleus reaches it, and none passes (section 5.1)."""
    names = [check.name for check in order if check.scope == "pair"]
    reaches = ~pl.any_horizontal(names[: names.index(INPUT_CHECKS[0])])
    passes = reaches & ~pl.any_horizontal(INPUT_CHECKS)
    none = reaches.any().over(KEY) & ~passes.any().over(KEY)
    return none & locality.may_waive(rules)


def outcomes(
    tasks: pl.DataFrame,
    pairs: pl.DataFrame,
    order: Sequence[Rule],
    *,
    asked: bool,
    rules: ProductionRules,
) -> pl.DataFrame:
    """Return how every task that came to the checks ends.

    Args:
        tasks: ``jeditaskid, snapshot``.
        pairs: Of :func:`checked`.
        order: The checks, in order.
        asked: The job brokerage was asked which queues could run the tasks.
        rules: Switch ``missing_endpoint``.

    Returns:
        ``jeditaskid, snapshot, outcome``; ``abort_at``, the position of the nucleus at which an aborted task
        stopped; ``came_to_input``: some nucleus was left for the check of locality.
    """

    def left(names: Sequence[str]) -> pl.Expr:
        return (~pl.any_horizontal(names)).any()

    stops = (pl.col("storage_reason") == "no_storage") & ~pl.any_horizontal(FIRST)
    stops = stops & pl.lit(value=rules.missing_endpoint == "abort")
    found = pairs.group_by(KEY).agg(
        abort_at=pl.col("position").filter(stops).min(),
        stored=left((*FIRST, *OUTPUT_CHECKS)),
        with_queue=left(BEFORE_INPUT),
        near=left((*BEFORE_INPUT, *INPUT_CHECKS)),
        orphan=pl.col("parent_unknown").first(),
        some=left([check.name for check in order]),
    )
    flags = pl.col("stored", "with_queue", "near", "orphan", "some").fill_null(value=False)
    ends = tasks.select(KEY).join(found, on=KEY, how="left", maintain_order="left")
    outcome = (
        pl.when(pl.col("abort_at").is_not_null())
        .then(pl.lit("abort"))
        .when(~pl.col("stored"))
        .then(pl.lit("no_candidates"))
        .when(~pl.col("with_queue"))
        .then(pl.lit("no_queue_at_all" if asked else "no_candidates"))
        .when(~pl.col("near"))
        .then(pl.lit("no_candidates"))
        .when("orphan")
        .then(pl.lit("parent_missing"))
        .when(~pl.col("some"))
        .then(pl.lit("no_candidates"))
        .otherwise(pl.lit("nucleus"))
    )
    came = pl.col("with_queue") & pl.col("abort_at").is_null()
    return ends.with_columns(flags).select(*KEY, "abort_at", outcome=outcome, came_to_input=came)


def with_reasons(pairs: pl.DataFrame, order: Sequence[Rule]) -> pl.DataFrame:
    """Add ``skip_reason``, ``detail``, ``passed``, and take back what was never asked.

    Args:
        pairs: Of :func:`checked`, with ``outcome`` and ``abort_at``.
        order: The checks, in order.
    """
    reached = pl.col("abort_at").is_null() | (pl.col("position") <= pl.col("abort_at"))
    stored = ~pl.any_horizontal(*FIRST, *OUTPUT_CHECKS)
    aborted, orphan = (pl.col("outcome") == name for name in ("abort", "parent_missing"))
    reasons = []
    for name in [check.name for check in order]:
        if name in FIRST:
            reasons.append(pl.when(name).then(pl.lit(name)))
        elif name == OUTPUT_CHECKS[0]:
            reasons.append(pl.when(reached).then("storage_reason"))
        elif name not in OUTPUT_CHECKS:
            never = aborted | orphan if name == "full_chain" else aborted
            reasons.append(pl.when(pl.col(name) & ~never).then(pl.lit(name)))
    reason = pl.coalesce(reasons)
    unasked = ~stored & pl.col("no_queue")
    pairs = pairs.with_columns(skip_reason=reason, no_queue=pl.when(~unasked).then("no_queue"))
    return pairs.with_columns(
        passed=pl.col("skip_reason").is_null() & (pl.col("outcome") == "nucleus"),
        detail=pl.when(pl.col("skip_reason") == "full_chain").then("full_chain_detail"),
    )


def stages(pairs: pl.DataFrame, order: Sequence[Rule]) -> pl.DataFrame:
    """Return the check, latest in the order, that removed a nucleus of every task: ``stage``."""
    names = [check.name for check in order]
    number = pl.col("skip_reason").replace_strict(
        names, range(len(names)), default=None, return_dtype=pl.Int64
    )
    last = pairs.group_by(KEY).agg(stage=number.max())
    return last.with_columns(
        pl.col("stage").replace_strict(
            range(len(names)), names, default=None, return_dtype=pl.String
        )
    )


def would_help(pairs: pl.DataFrame, order: Sequence[Rule]) -> pl.DataFrame:
    """Return the checks each of which alone keeps every nucleus from a task: ``would_help``, a list.

    Some nucleus fails this check and no other. What was never asked counts as passed; that other nuclei passing
    may waive the check of locality is not followed.
    """
    names = [check.name for check in order]
    failed = [pl.col(name).fill_null(value=False) for name in names]
    alone = pl.sum_horizontal(flag.cast(pl.Int64) for flag in failed) == 1
    found = pairs.group_by(KEY).agg(
        (flag & alone).any().alias(name) for flag, name in zip(failed, names, strict=True)
    )
    listed = pl.concat_list(pl.when(name).then(pl.lit(name)) for name in names).list.drop_nulls()
    return found.select(*KEY, would_help=listed)
