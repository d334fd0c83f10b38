"""The production task brokerage as a value, and what it decided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import polars as pl

from brokerlab.brokerage import contracts as shared
from brokerlab.brokerage.engine.brokerage import Brokerage, Weight
from brokerlab.brokerage.engine.decisions import PlaceDecisions
from brokerlab.brokerage.engine.pairs import looked_up
from brokerlab.brokerage.engine.rule import setting
from brokerlab.brokerage.engine.steps import made_by, names_of, rules_of
from brokerlab.brokerage.engine.world import Part, World
from brokerlab.brokerage.inputs.frames import KEY, first_valid_for, run
from brokerlab.brokerage.production_tasks import ranking, storage
from brokerlab.brokerage.production_tasks.contracts import ABSENT, NEEDED, OPTIONS, TABLES
from brokerlab.brokerage.production_tasks.facts import asked_for_queues, ends, facts, lookups
from brokerlab.brokerage.production_tasks.ranking import checks, of_tasks, weigh_and_draw
from brokerlab.brokerage.production_tasks.storage import PAIR
from brokerlab.brokerage.rules import ProductionRules

PENDING = timedelta(minutes=30)
"""A task without nucleus is tried again after this (S2)."""
ENDINGS = {
    "no_queue": "no_queue_at_all",
    "parent_missing": "parent_missing",
    "no_storage": "abort",
    "not_reached": "abort",
}
"""The last rule that removed a nucleus, to the outcome that it stands for; ``no_candidates`` for all others."""
_WEIGHT = ("work", "data", "tape", "space_fraction", "space_amount", "weight", "probability")
_ALSO = (
    *("secondary_nucleus", "space_free", "space_expired", "space_total", "rw_all", "demand_gb"),
    *("queued_files", "tot_size", "ava_size_any", "ava_size_disk", "ava_num_disk", "iointensity"),
    "free_disk_cutoff_tb",
)
"""What is shown of a nucleus beside the columns that the rules compare."""


@dataclass(frozen=True, repr=False)
class TaskDecisions(PlaceDecisions):
    """Decisions of the production task brokerage; every table is sorted by its key.

    Attributes:
        places: One row per (``jeditaskid``, ``snapshot``, ``nucleus``) for every task that came to the checks.
            ``position`` in the draw, ``role``; ``check`` (the first failed rule; null: it passed), ``failed`` (i64: bit i
            is set where check i alone says skip), ``detail`` (F1 to F3); the columns that the rules compare (of outputs:
            those of the output that decides; those that steps make are null where a check removed the nucleus before);
            ``rw``, the work left in the weight as the task saw it [HS06 s]; ``weight``, its factors ``work``, ``data``, ``tape``, ``space_fraction``,
            ``space_amount`` (1 = term left out) and ``probability`` of the draw, all null where it did not pass.
        tasks: One row per (``jeditaskid``, ``snapshot``). ``outcome`` is ``nucleus``, ``no_candidates``,
            ``no_queue_at_all``, ``input_not_readable``, ``parent_missing`` or, as deployed, ``abort``.
            ``nucleus`` chosen; ``already_assigned`` (it had one, nothing was checked); ``stage``, the rule, latest
            in the order, that removed a nucleus when nothing was left; ``locality`` (``waived``, ``off_period``,
            null); ``pending_until`` (UTC); the numbers of the waiver next to their limits (``iointensity`` and
            ``min_io_intensity`` [kB/s], ``tot_size_gb`` and ``min_input_size_gb`` [GB], ``priority`` and
            ``max_task_prio``); ``period_days_left`` [days] until a stuck task is no longer kept near its input;
            ``n_nuclei`` looked at and ``n_passed``; ``draw`` [0, 1).
        world: What was decided on.
        datasets: One row per output gathered of a task with a nucleus: ``ddm_endpoint_name`` and ``token``.
    """

    datasets: pl.DataFrame

    @classmethod
    def of(cls, world: World, parts: Iterable[Part]) -> TaskDecisions:
        """Draw the nuclei, name tasks and nuclei and sum up the tasks."""
        made = [(part.pairs, late) for part in parts if (late := part.late) is not None]
        pairs, late = (pl.concat(each) for each in zip(*made, strict=True))
        left = late.filter(pl.col("check").is_null())
        left = left.join(world.facts.queues.select("q", "nucleus"), on="q", maintain_order="left")
        weighed, chosen = weigh_and_draw(world.tasks, left, world.rules)
        keys = world.tasks.select("t", *KEY)
        return cls(
            _places(world, pairs, late, weighed),
            _tasks(world, pairs, late, chosen),
            world,
            _datasets(world, chosen.join(keys, on="t")),
        )

    @property
    def nuclei(self) -> pl.DataFrame:
        """One row per (``jeditaskid``, ``snapshot``, ``nucleus``) for every task that came to the checks."""
        return self.places

    @property
    def shares(self) -> pl.DataFrame:
        """See :class:`~brokerlab.brokerage.engine.decisions.PlaceDecisions`."""
        chosen = self.nuclei.filter(pl.col("check").is_null())
        chosen = chosen.select(*KEY, "nucleus", share="probability")
        return chosen.sort(*KEY, "share", "nucleus", descending=[False, False, True, False])

    @property
    def best(self) -> pl.DataFrame:
        """See there."""
        return self.tasks.select(*KEY, best="nucleus")

    @property
    def about(self) -> pl.DataFrame:
        """See there: the table of tasks."""
        return self.tasks

    @property
    def findings(self) -> pl.DataFrame:
        """What was odd in the input and how it was taken: ``jeditaskid, snapshot, subject, finding``."""
        findings: pl.DataFrame = self.world.base.made["findings"]
        return findings

    def frame(self) -> pl.DataFrame:
        """Return the table of tasks."""
        return self.tasks

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values."""
        frames = {
            name: getattr(self, name).to_dicts()
            for name in ("tasks", "nuclei", "datasets", "findings")
        }
        return frames | {
            "brokerage": self.world.brokerage.name,
            "rules": self.world.rules.to_dict(),
            "config_digest": self.world.config.digest,
            "seed": self.world.base.options["seed"],
            "unasked": self.world.unasked,
        }


def _places(
    world: World, pairs: pl.DataFrame, late: pl.DataFrame, weighed: pl.DataFrame
) -> pl.DataFrame:
    reasons = (*world.checks, *rules_of(world.steps))
    compared = dict.fromkeys(name for rule in reasons for name in rule.columns())
    facts = {*compared, *_ALSO, *KEY, "nucleus", "position", "role"}
    table = looked_up(world.facts, pairs.drop("factor"), facts & {*world.facts.schema})
    numbers = {name: value for rule in reasons for name, value in rule.numbers.items()}
    known = {
        name: value
        for name, value in numbers.items()
        if {*value.meta.root_names()} <= {*table.columns}
    }
    made = [name for name in late.columns if name in made_by(world.steps)]
    keys = ["t", "q"]
    late = late.select(*keys, *(name for name in made if name != "rw"))
    joined = table.lazy().with_columns(**known)
    for part in (late, weighed):
        joined = joined.join(part.lazy(), on=keys, how="left", maintain_order="left")
    passed = pl.col("check").is_null()
    factors = [name for name in _WEIGHT if name in made]
    chained = pl.col("check").cast(pl.String) == "full_chain"
    joined = joined.with_columns(
        pl.when(passed).then(pl.col(factors)), detail=pl.when(chained).then("full_chain_detail")
    )
    first = [*PAIR, "position", "role", "check", "failed", "detail"]
    columns = dict.fromkeys([*first, *compared, *known, *_ALSO, "rw", *_WEIGHT])
    return run(joined.select(name for name in columns if not name.startswith("$")))


def _tasks(
    world: World, pairs: pl.DataFrame, late: pl.DataFrame, chosen: pl.DataFrame
) -> pl.DataFrame:
    names = pl.Enum(names_of(world.checks, world.steps))
    counts = pairs.group_by("t").agg(
        n_nuclei=pl.len().cast(pl.Int64),
        n_passed=pl.col("check").null_count().cast(pl.Int64),
        last=pl.col("check").to_physical().max(),
        abort=(pl.col("check").cast(pl.String) == "no_storage").any(),
    )
    counts = counts.with_columns(stage=counts["last"].cat.to(names).cast(pl.String))
    came = run(late.lazy().group_by("t").agg(pl.col("waived", "came_to_input").any()))
    table = world.tasks.lazy()
    for part in (counts, came, chosen, world.outcomes):
        table = table.join(part.lazy(), on="t", how="left", maintain_order="left")
    return run(table.with_columns(_outcome(world)).select(*KEY, *_columns(world)))


def _outcome(world: World) -> pl.Expr:
    endings = {
        stage: outcome
        for stage, outcome in ENDINGS.items()
        if (outcome != "abort" or world.rules.missing_endpoint == "abort")
        and (stage != "no_queue" or asked_for_queues(world.base))
    }
    stopped = pl.lit(value=world.rules.missing_endpoint == "abort") & pl.col("abort")
    return (
        pl.when(pl.col("outcome").is_not_null())
        .then("outcome")
        .when(stopped)
        .then(pl.lit("abort"))
        .when(pl.col("n_passed") > 0)
        .then(pl.lit("nucleus"))
        .otherwise(pl.col("stage").replace_strict(endings, default="no_candidates"))
        .alias("outcome")
    )


def _columns(world: World) -> list[pl.Expr]:
    """Return what a row of the table of tasks says beside its key."""
    outcome = pl.col("outcome")
    looked_at = ~outcome.is_in(["nucleus", "input_not_readable"])
    stage = pl.when(outcome == "abort").then(pl.lit("no_storage")).when(looked_at).then("stage")
    waits = ~outcome.is_in(["nucleus", "abort"])
    off = ranking.off_period(world.rules) & pl.col("came_to_input") & pl.col("has_input")
    return [
        pl.col("at", "outcome", "nucleus"),
        pl.col("assigned").is_not_null().alias("already_assigned"),
        stage.alias("stage"),
        pl.when("waived")
        .then(pl.lit("waived"))
        .when(off)
        .then(pl.lit("off_period"))
        .alias("locality"),
        pl.when(waits).then(pl.col("at") + PENDING).alias("pending_until"),
        pl.col("n_nuclei", "n_passed").fill_null(0),
        pl.col("iointensity"),
        setting(ranking.MIN_INTENSITY).alias("min_io_intensity"),
        (pl.col("tot_size") / ranking.BYTES_PER_GB).alias("tot_size_gb"),
        setting(ranking.MIN_SIZE).alias("min_input_size_gb"),
        pl.col(world.rules.waiver_priority).alias("priority"),
        setting(ranking.MAX_PRIORITY).alias("max_task_prio"),
        ranking.period_days_left(world.rules).alias("period_days_left"),
        pl.col("draw"),
    ]


def _datasets(world: World, chosen: pl.DataFrame) -> pl.DataFrame:
    """Return where the outputs of tasks with a nucleus go.

    An output without fitting endpoint goes to the default output endpoint of a satellite, and nowhere else.
    """
    tables = world.tables
    endpoints = storage.endpoints_of(tables["nuclei"], tables["nucleus_endpoints"])
    pairs = chosen.with_columns(site="nucleus")
    rows = storage.placed(pairs, tables["output_datasets"], endpoints, tables["storage_endpoints"])
    sites = tables["nuclei"].select("snapshot", "nucleus", "role", "default_endpoint_out")
    known = first_valid_for(rows, sites, ["nucleus"], ["snapshot"]).lazy()
    default = pl.when(pl.col("role") == "satellite").then("default_endpoint_out")
    known = known.with_columns(ddm_endpoint_name=pl.coalesce("ddm_endpoint_name", default))
    token = storage.destination(pl.col("ddm_endpoint_name"), pl.col("storagetoken"))
    columns = ["position", "datasetid", "datasetname", "storagetoken", "ddm_endpoint_name"]
    return run(known.select(*PAIR, *columns, token=token).sort(*KEY, "position"))


def place_of(key: str) -> str:  # noqa: ARG001 - all of them
    """Return ``app/component`` in which the task brokerage looks a key up."""
    return "jedi/taskbrokerage"


def weight(rules: ProductionRules) -> Weight:  # noqa: ARG001 - of one form
    """Return what the weight of a nucleus is made of."""
    says = "input at hand x tape x free part of the storage x free space / work left"
    return Weight(source="production-tasks.md 4", says=says, column="factor")


BROKERAGE = Brokerage(
    name="production-tasks",
    organisation="brokerlab",
    description="the nucleus that gathers the outputs of a production task",
    documentation="production-tasks.md",
    stage="tasks",
    rule_set=ProductionRules,
    tables=TABLES,
    later=OPTIONS,
    others=shared.TABLES,
    options={"hint_queues": None, "seed": 0, "draws": None},
    needed=NEEDED,
    otherwise=ABSENT,
    facts=facts,
    lookups=lookups,
    derived=of_tasks,
    place_of=place_of,
    ends=ends,
    checks=checks,
    steps=ranking.steps,
    cycle=ranking.cycle_of,
    weight=weight,
    decisions=TaskDecisions,
    place="nucleus",
    ranks={"factor": pl.Float64()},
    also_read=("position",),
)
"""The production task brokerage of the documents. Tasks of one ``snapshot`` are handled in one cycle, in the order of
``position``: a task that gets a nucleus makes it busier for those after it.

Options: ``hint_queues``: ``jeditaskid, snapshot, panda_queue`` of the queues that could run each task, from the job
brokerage in hint mode; a task without rows has none; null: check ``no_queue`` is left out. ``seed`` of the draws.
``draws``: ``jeditaskid[, snapshot], draw`` in [0, 1), where they are known.
"""
decide = BROKERAGE.decide
