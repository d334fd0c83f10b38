"""The endpoints of analysis queues, and where the input of user tasks is: at which queues, and which of them are candidates (4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from brokerlab.brokerage.analysis_jobs.settings import COMPONENT, AnalysisRules
from brokerlab.brokerage.inputs.data import completeness, real
from brokerlab.brokerage.inputs.frames import KEY, at_every, for_tasks, run, run_all
from brokerlab.brokerage.inputs.queues import SPACES, space_usable, up
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config

OTHER_UP = ProductionRules(other_status_up=True)
"""Null and whatever is neither OFF nor TEST counts as up."""
VP = "_VP_DISK"
OWN_SCOPE, DEFAULT_SCOPE = "analysis", "default"
STATES = ("read_lan", "read_wan", "write_lan", "write_wan")


def in_scope(queue_endpoints: pl.DataFrame) -> pl.DataFrame:
    """Return the endpoints that count: scope ``analysis`` where the queue has it, by direction, else ``default`` (or null)."""
    rows = queue_endpoints.with_columns(pl.col("scope").fill_null(DEFAULT_SCOPE))
    own = (pl.col("scope") == OWN_SCOPE).any().over("panda_queue", "direction")
    wanted = pl.when(own).then(pl.lit(OWN_SCOPE)).otherwise(pl.lit(DEFAULT_SCOPE))
    return rows.filter(pl.col("scope") == wanted)


def storage_of(queue_endpoints: pl.DataFrame, storage_endpoints: pl.DataFrame) -> pl.DataFrame:
    """Return each endpoint, as the inputs of a brokerage want them; what ``storage_endpoints`` knows of one goes first.

    ``snapshot`` (null: every instant), ``ddm_endpoint_name``, ``is_tape`` and the four states.
    """
    columns = ["snapshot", "ddm_endpoint_name", "is_tape", *STATES]
    known = storage_endpoints.select(columns)
    plain = (
        queue_endpoints.join(known, on="ddm_endpoint_name", how="anti")
        .group_by("ddm_endpoint_name")
        .agg(pl.col(name).first() for name in ("is_tape", *STATES))
        .with_columns(snapshot=pl.lit(None, pl.Int64))
    )
    return pl.concat([known, plain.select(columns)], rechunk=True)


def usable_space() -> pl.Expr:
    """Return the space that can be used [GB]: null counts as 0, all nulls as unknown (archive.md 6)."""
    known = pl.any_horizontal(pl.col(SPACES).is_not_null())
    return pl.when(known).then(space_usable())


def _space(rules: AnalysisRules) -> pl.Expr:
    """Return the space that counts [GB] (switch ``local_space``); nulls as in :func:`usable_space`."""
    usable = usable_space()
    free = pl.when(usable.is_not_null()).then(pl.col("space_free").fill_null(0.0))
    return usable if rules.local_space == "usable" else free


def _with_states(
    links: pl.DataFrame,
    storage_endpoints: pl.DataFrame,
    snapshots: pl.DataFrame,
    rules: AnalysisRules,
) -> pl.DataFrame:
    """Add ``snapshot`` and take states and space of the instant where they are known."""
    names = ("space_usable", *STATES)
    if storage_endpoints.is_empty():
        return links.with_columns(snapshot=pl.lit(None, pl.Int64))
    then = storage_endpoints.select(
        "snapshot", "ddm_endpoint_name",
        known=pl.lit(value=True), space_usable_then=_space(rules),
        **{f"{name}_then": pl.col(name) for name in STATES},
    )  # fmt: skip
    key = ["snapshot", "ddm_endpoint_name"]
    known = at_every(then, snapshots, "storage_endpoints")
    rows = links.join(snapshots, how="cross").join(known, on=key, how="left")
    return rows.with_columns(
        pl.when("known").then(f"{name}_then").otherwise(name).alias(name) for name in names
    ).drop("known", *(f"{name}_then" for name in names))


def endpoint_facts(
    queue_endpoints: pl.DataFrame,
    storage_endpoints: pl.DataFrame,
    snapshots: pl.DataFrame,
    *,
    rules: AnalysisRules,
) -> pl.DataFrame:
    """Sum up the endpoints of each queue; what ``storage_endpoints`` knows of one at an instant goes first.

    One row per ``snapshot`` (null: every instant) and ``parent``: ``e_output`` and ``e_input`` (there are any), ``e_out_space``,
    ``e_in_space`` [GB] of the defaults, ``e_same`` (one default for both), ``e_out_name``, ``e_read_lan``, ``e_write_lan``,
    ``e_write_wan``, ``e_read_wan`` (up), ``e_vp``, ``e_vp_default`` (a VP endpoint, in the scope that counts, or ``default``).
    """
    rows = _with_states(in_scope(queue_endpoints), storage_endpoints, snapshots, rules).lazy()
    takes, gives = pl.col("direction") == "input", pl.col("direction") == "output"
    default = pl.col("is_default").fill_null(value=False)

    def of_default(column: str, direction: pl.Expr) -> pl.Expr:
        return pl.col(column).filter(default & direction).first()

    def any_up(status: str, direction: pl.Expr) -> pl.Expr:
        return (direction & up(status, rules=OTHER_UP)).any()

    vp = pl.col("ddm_endpoint_name").str.ends_with(VP)
    ordered = rows.sort("panda_queue", "ddm_endpoint_name")
    result = ordered.group_by("snapshot", parent="panda_queue").agg(
        e_output=gives.any(),
        e_input=takes.any(),
        e_out_space=of_default("space_usable", gives),
        e_in_space=of_default("space_usable", takes),
        e_out_name=of_default("ddm_endpoint_name", gives),
        e_in_name=of_default("ddm_endpoint_name", takes),
        e_read_lan=any_up("read_lan", takes),
        e_write_lan=any_up("write_lan", gives),
        e_write_wan=any_up("write_wan", takes),
        e_read_wan=any_up("read_wan", gives),
        e_vp=(takes & vp).any(),
    )  # fmt: skip
    plain = queue_endpoints.lazy().filter(
        takes & vp & (pl.col("scope").fill_null(DEFAULT_SCOPE) == DEFAULT_SCOPE)
    )
    named = plain.select(parent="panda_queue").unique().with_columns(e_vp_default=True)
    return run(
        result.join(named, on="parent", how="left")
        .with_columns(
            pl.col("e_vp_default").fill_null(value=False),
            e_same=(pl.col("e_in_name") == pl.col("e_out_name")).fill_null(value=False),
        )
        .drop("e_in_name")
        .sort("snapshot", "parent")
    )


TAPE_WEIGHT = 0.001
CONTAINER = "/"
LISTS = ("any", "disk", "plain")
"""Lists of the queues that have a dataset: anywhere, on disk (or VP, if the task reads it), anywhere but VP."""


@dataclass(frozen=True)
class Locality:
    """Where the input of each task is.

    Attributes:
        tasks: ``t``, ``t_has_input``, ``t_distributed`` (some input is), ``t_incomplete`` (no complete copy that can
            be read), ``t_remote_source`` (every input can be read over WAN somewhere), ``t_union`` (no queue has
            every dataset, and the task is not pre-assigned).
        queues: ``t, parent``, ``x_data`` (candidate by locality), ``x_data_weight``, ``x_non_vp`` (has data at
            endpoints that are not VP: all datasets, of a union some).
    """

    tasks: pl.DataFrame
    queues: pl.DataFrame


def locality(
    tasks: pl.DataFrame, tables: Mapping[str, pl.DataFrame], *, pool: pl.DataFrame, config: Config
) -> Locality:
    """Find the queues that hold the input, among those that the check is asked of: ``t_pool, parent``."""
    wanted = tasks.select("jeditaskid").unique()
    names = real(tables["datasets"].rename({"is_distributed": "distributed"}), distributed=True)
    flags = for_tasks(tables["datasets"], wanted.lazy()).select(
        "jeditaskid", "datasetname", said=pl.col("is_distributed").fill_null(value=False)
    )
    asked = run(
        for_tasks(names, wanted.lazy())
        .join(flags.unique(["jeditaskid", "datasetname"]), on=["jeditaskid", "datasetname"], how="left")
        .join(tasks.lazy().select("t", *KEY, "t_uses_vp", "t_home", "t_pool"), on="jeditaskid")
    )  # fmt: skip
    records = _records(asked, tables)
    copies = _copies(asked, records, tables, pool)
    asked = _with_distributed(asked, records, copies, tables)
    about = _about(tasks, asked, tables, config)
    uses = about.lazy().select("t", t_vp=pl.col("t_uses_vp") & ~pl.col("t_distributed"))
    lists = run(_lists(copies.lazy().join(uses, on="t"), asked.lazy()))
    chosen, union = _choose(lists.lazy(), asked.lazy())
    weights = _weights(lists.lazy(), asked.lazy(), union)
    queues = chosen.lazy().join(weights, on=["t", "parent"], how="full", coalesce=True)
    queues = queues.with_columns(
        pl.col("x_data", "x_non_vp").fill_null(value=False), pl.col("x_data_weight").fill_null(0.0)
    )
    about = about.with_columns(t_union=pl.col("t").is_in(union.implode()))
    return Locality(
        about.select(
            "t", "t_has_input", "t_distributed", "t_incomplete", "t_remote_source", "t_union"
        ),
        run(queues.sort("t", "parent")),
    )


def _records(asked: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the last record of each dataset at each endpoint, with ``whole``: no file is missing."""
    records = (
        tables["replicas"]
        .lazy()
        .with_columns(
            whole=(pl.col("found") == pl.col("total")).fill_null(value=False),
            vp=pl.col("vp").fill_null(value=False) | pl.col("ddm_endpoint_name").str.ends_with(VP),
        )
    )
    own = records.select("jeditaskid", "datasetname", "ddm_endpoint_name", "whole", "vp")
    rows = for_tasks(own, asked.lazy().select("jeditaskid").unique())
    key = ["jeditaskid", "datasetname", "ddm_endpoint_name"]
    return run(rows.unique(key, keep="last", maintain_order=True))


def _copies(
    asked: pl.DataFrame,
    records: pl.DataFrame,
    tables: Mapping[str, pl.DataFrame],
    pool: pl.DataFrame,
) -> pl.DataFrame:
    """Return the copies of the datasets at the input endpoints of the queues looked at."""
    inputs = in_scope(tables["queue_endpoints"]).lazy().filter(pl.col("direction") == "input")
    places = inputs.select(
        "ddm_endpoint_name", parent="panda_queue", tape=pl.col("is_tape").fill_null(value=False)
    )
    copies = (
        asked.lazy()
        .select("t", "t_pool", "jeditaskid", "datasetname", "said", "t_uses_vp")
        .join(records.lazy(), on=["jeditaskid", "datasetname"])
        .join(places.unique(), on="ddm_endpoint_name")
        .join(pool.lazy(), on=["t_pool", "parent"], how="semi")
    )
    return run(copies.with_columns(disk=~pl.col("tape") & ~pl.col("vp")))


def _with_distributed(
    asked: pl.DataFrame,
    records: pl.DataFrame,
    copies: pl.DataFrame,
    tables: Mapping[str, pl.DataFrame],
) -> pl.DataFrame:
    """Add which datasets are distributed, and which have a truly complete copy on some disk."""
    at_queues = copies.lazy().group_by("t", "datasetname").agg(somewhere=pl.col("whole").any())
    endpoints = storage_of(tables["queue_endpoints"], tables["storage_endpoints"]).lazy()
    tape = endpoints.select(
        "ddm_endpoint_name", tape=pl.col("is_tape").fill_null(value=False)
    ).unique("ddm_endpoint_name", keep="last", maintain_order=True)
    plain = records.lazy().filter(pl.col("whole") & ~pl.col("vp"))
    on_disk = plain.join(tape, on="ddm_endpoint_name").filter(~pl.col("tape"))
    joined = (
        asked.lazy()
        .join(at_queues, on=["t", "datasetname"], how="left")
        .join(
            on_disk.select("jeditaskid", "datasetname", on_disk=pl.lit(value=True)).unique(),
            on=["jeditaskid", "datasetname"], how="left",
        )
        .with_columns(pl.col("somewhere", "on_disk").fill_null(value=False))
    )  # fmt: skip
    named = pl.col("datasetname").str.ends_with(CONTAINER)
    return run(joined.with_columns(distributed=named | (pl.col("said") & ~pl.col("somewhere"))))


def _about(
    tasks: pl.DataFrame, asked: pl.DataFrame, tables: Mapping[str, pl.DataFrame], config: Config
) -> pl.DataFrame:
    """Add to tasks what is true of their input as a whole."""
    result = completeness(
        tasks.select(*KEY, vo=pl.lit("atlas"), inputprestaging=pl.lit(value=False)),
        asked.select("jeditaskid", "datasetname", "distributed").unique(),
        tables["replicas"],
        storage_of(tables["queue_endpoints"], tables["storage_endpoints"]),
        config=config, rules=OTHER_UP, component=COMPONENT,
    ).datasets  # fmt: skip
    sums = (
        result.lazy()
        .group_by(KEY)
        .agg(
            t_incomplete=(~(pl.col("complete_disk") | pl.col("complete_tape"))).any(),
            t_remote_source=pl.col("remote_source").all(),
        )
    )
    inputs = asked.lazy().group_by("t").agg(t_distributed=pl.col("distributed").any()).with_columns(
        t_has_input=pl.lit(value=True)
    )  # fmt: skip
    return run(
        tasks.lazy()
        .select("t", *KEY, "t_uses_vp")
        .join(sums, on=KEY, how="left")
        .join(inputs, on="t", how="left")
        .with_columns(
            pl.col("t_incomplete", "t_distributed", "t_has_input").fill_null(value=False),
            pl.col("t_remote_source").fill_null(value=True),
        )
        .sort("t")
    )


def _lists(copies: pl.LazyFrame, asked: pl.LazyFrame) -> pl.LazyFrame:
    """Return the queues of each dataset: ``t, datasetname, parent`` and :data:`LISTS` (in which list it is) (4)."""
    facts = asked.select("t", "datasetname", "distributed", "on_disk")
    at_queue = copies.group_by("t", "datasetname", "parent").agg(
        has_vp=pl.col("vp").any(),
        strong=(pl.col("whole") & pl.col("disk")).any(),
        **_states("any", pl.lit(value=True)),
        **_states("disk", ~pl.col("tape") & (pl.col("t_vp") | ~pl.col("vp"))),
        **_states("plain", ~pl.col("vp")),
    )
    dataset = ("t", "datasetname")
    frame = at_queue.join(facts, on=dataset).with_columns(n=pl.col("strong").any().over(dataset))
    allowed = pl.col("distributed") | ~pl.col("on_disk")
    for name in LISTS:
        banned = pl.col("n") & pl.col("has_vp")
        c, i = pl.col(f"{name}_c") & ~banned, pl.col(f"{name}_i") & ~banned
        frame = frame.with_columns(c=c, i=i)
        none = ~pl.col("c").any().over(dataset)
        only = pl.col("n") | ~allowed
        chosen = pl.when(none).then("i").when(only).then("c").otherwise(pl.col("c") | pl.col("i"))
        frame = frame.with_columns(chosen.alias(name))
    return frame.select(*dataset, "parent", *LISTS)


def _states(name: str, kept: pl.Expr) -> dict[str, pl.Expr]:
    return {
        f"{name}_c": (kept & pl.col("whole")).any(),
        f"{name}_i": (kept & ~pl.col("whole")).any(),
    }


def _choose(lists: pl.LazyFrame, asked: pl.LazyFrame) -> tuple[pl.DataFrame, pl.Series]:
    """Intersect over datasets; return ``t, parent, x_data`` and the tasks that fell back to the union (4.1e)."""
    number = asked.group_by("t").agg(n_datasets=pl.len(), home=pl.col("t_home").first())
    at_queue = (
        lists.group_by("t", "parent")
        .agg(n_any=pl.col("any").sum(), n_disk=pl.col("disk").sum())
        .join(number, on="t")
        .with_columns(
            all_any=pl.col("n_any") == pl.col("n_datasets"),
            all_disk=pl.col("n_disk") == pl.col("n_datasets"),
            some_any=pl.col("n_any") > 0,
            some_disk=pl.col("n_disk") > 0,
        )
        .cache()
    )
    kinds = ("all_disk", "all_any", "some_disk", "some_any")
    exists = at_queue.group_by("t").agg(
        pl.col("home").first(),
        **{f"has_{kind}": pl.col(kind).any() for kind in kinds},
        **{f"home_{kind}": (pl.col(kind) & (pl.col("parent") == pl.col("home"))).any() for kind in kinds},
    ).cache()  # fmt: skip
    of_home = ("all_any", "some_any")
    bound = pl.coalesce(pl.when(f"home_{kind}").then(pl.lit(kind)) for kind in of_home)
    free = pl.coalesce(pl.when(f"has_{kind}").then(pl.lit(kind)) for kind in kinds)
    kind = exists.select(
        "t", kind=pl.when(pl.col("home").is_not_null()).then(bound).otherwise(free)
    )
    picked = at_queue.join(kind, on="t").with_columns(
        x_data=pl.coalesce(pl.when(pl.col("kind") == name).then(name) for name in kinds)
    )
    none_has_all = ~pl.col("has_all_disk") & ~pl.col("has_all_any")
    union = exists.filter(none_has_all & pl.col("home").is_null()).select("t")
    chosen = picked.filter("x_data").select("t", "parent", "x_data")
    result = run_all([chosen, union])
    return result[0], result[1]["t"]


def _weights(lists: pl.LazyFrame, asked: pl.LazyFrame, union: pl.Series) -> pl.LazyFrame:
    """Return the data weight of queues by the lists they are in, and which have the data without VP."""
    by_dataset = pl.when("disk").then(1.0).when("any").then(TAPE_WEIGHT).otherwise(0.0)
    at_queue = lists.group_by("t", "parent").agg(
        x_data_weight=by_dataset.sum(), n_plain=pl.col("plain").sum()
    )
    number = asked.group_by("t").agg(n=pl.len())
    least = pl.when(pl.col("t").is_in(union.implode())).then(1).otherwise("n")
    return at_queue.join(number, on="t").select(
        "t", "parent", "x_data_weight", x_non_vp=pl.col("n_plain") >= least
    )
