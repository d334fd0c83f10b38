"""Facts that the analysis job brokerage looks up: what stands for long, whatever happens from cycle to cycle.

See :mod:`.state` for the others.
"""

from __future__ import annotations

from functools import partial

import polars as pl

from brokerlab.brokerage.analysis_jobs.facts import named_parents
from brokerlab.brokerage.analysis_jobs.locality import Locality, locality
from brokerlab.brokerage.engine.lookup import Known, Lookup, Made, made_rows
from brokerlab.brokerage.engine.pairs import run
from brokerlab.brokerage.inputs.data import WITH_TAPE
from brokerlab.brokerage.inputs.valid import for_tasks
from brokerlab.brokerage.production_jobs.lookups import (
    OFFER,
    PARENT,
    at_offers,
    at_parents,
    policies,
    refused_pairs,
    slots,
    totals,
)
from brokerlab.brokerage.production_jobs.settings import COMPLETENESS_KEYS
from brokerlab.matching.software_pairs import platform_pairs

SLOTS = ("snapshot", "t_gshare", "t_resource_type")
SOFTWARE = ("t_architecture", "t_transhome", "t_container_name", "t_transuses")
ON_DISK_OR_TAPE = ("localdisk", "localtape")
"""Kinds of places that count as local: a cache does not (6.4)."""
_UP = ("e_read_lan", "e_write_lan", "e_write_wan", "e_read_wan")
ENDPOINTS = {
    **dict.fromkeys(("e_output", "e_input", "e_same", *_UP, "e_vp", "e_vp_default"), False),
    **dict.fromkeys(("e_out_space", "e_in_space")),
}


def of_places() -> tuple[Lookup, ...]:
    """Return what is known of endpoints, lists, policies, software and slots."""
    named = {"x_included": False, "x_excluded": False}
    return (
        Lookup(task=("t_home",), place=PARENT, facts={"x_home": False}, rows=_home),
        Lookup(task=("snapshot",), place=PARENT, facts=ENDPOINTS, rows=partial(made_rows, "endpoints")),
        policies(),
        Lookup(
            task=SOFTWARE, place=OFFER, facts={"x_software": 0, "x_software_reason": None},
            rows=software,
        ),
        Lookup(
            task=("t_architecture",), place=OFFER, facts={"x_platform_missing": False},
            rows=_platforms,
        ),
        Lookup(task=("t_list_key",), place=PARENT, facts=named, rows=_named),
        slots(SLOTS),
    )  # fmt: skip


def of_input() -> tuple[Lookup, ...]:
    """Return where the input of a task is."""
    about = ("t_has_input", "t_distributed", "t_incomplete", "t_remote_source", "t_union")
    here = {"x_data": False, "x_data_weight": 0.0, "x_non_vp": False}
    keys = COMPLETENESS_KEYS
    return (
        totals(),
        Lookup(task=("jeditaskid",), facts={"t_files_known": False}, rows=_known_files),
        at_parents(ON_DISK_OR_TAPE),
        Lookup(task=("jeditaskid",), place=PARENT, facts={"x_whole": False}, rows=_whole),
        Lookup(task=("t",), facts=dict.fromkeys(about), rows=_about, keys=keys),
        Lookup(task=("t",), facts={"t_n_data": 0}, rows=_n_data, keys=keys),
        Lookup(task=("t",), place=PARENT, facts=here, rows=_data, keys=keys),
    )


def _locality(known: Known) -> Locality:
    """Find where the input of tasks is; where replicas are unknown, it is somewhere."""
    tasks, pool = run(known.tasks), known.made["pool"]
    found = locality(tasks, known.given, pool=pool, config=known.config)
    if "replicas" not in known.missing:
        return found
    some = pl.lit(value=True)
    about = found.tasks.with_columns(t_incomplete=~some, t_remote_source=some)
    return Locality(about, found.queues)


LOCALITY = Made(name="locality", of=_locality, keys=COMPLETENESS_KEYS)


def _about(known: Known) -> pl.LazyFrame:
    found: Locality = known.made["locality"]
    return found.tasks.lazy()


def _data(known: Known) -> pl.LazyFrame:
    found: Locality = known.made["locality"]
    return found.queues.lazy()


def _n_data(known: Known) -> pl.LazyFrame:
    parents = known.places.select("parent").unique()
    rows = _data(known).filter("x_data").join(parents, on="parent", how="semi")
    return rows.group_by("t").agg(t_n_data=pl.len().cast(pl.Int64))


def _home(known: Known) -> pl.LazyFrame:
    homes = known.tasks.select("t_home").drop_nulls().unique()
    return homes.with_columns(parent="t_home", x_home=pl.lit(value=True))


def software(known: Known) -> pl.LazyFrame:
    """Return what (request, parent) pairs are refused.

    Source:
        002, ATLAS Analysis Job Brokerage: "This check is skipped when queues have ANY in the releases filed in CRIC.";
        docs/rules/matching.md 9.
    """
    return refused_pairs(known, SOFTWARE, analysis=True).lazy()


def _platforms(known: Known) -> pl.LazyFrame:
    wanted = known.kinds(architecture="t_architecture")
    decided = at_offers(
        run(known.places.filter("q_gpu")),
        lambda some: platform_pairs(wanted, some, known.table("sw_tags"), rules=known.matching),
    )
    return decided.lazy().filter(~pl.col("accept")).select(
        parent="panda_queue", p_releases="releases", t_architecture="architecture",
        x_platform_missing=pl.lit(value=True),
    )  # fmt: skip


def _named(known: Known) -> pl.LazyFrame:
    return named_parents(run(known.tasks), run(known.places)).lazy()


def _known_files(known: Known) -> pl.LazyFrame:
    files = known.tables["file_locations"].select("jeditaskid").unique()
    asked = known.kinds("jeditaskid")
    located = for_tasks(run(files), asked).select("jeditaskid").unique()
    return located.lazy().with_columns(t_files_known=pl.lit(value=True))


def _whole(known: Known) -> pl.LazyFrame:
    """Return where every dataset of which files are known has all of them: on disk, in cache or on tape (7)."""
    wanted = known.kinds("jeditaskid")
    key = ["jeditaskid", "datasetname"]
    number = for_tasks(known.table("files"), wanted).group_by(key).agg(n=pl.col("lfn").n_unique())
    places = for_tasks(known.table("file_locations"), wanted)
    own = pl.col("kind").is_in(WITH_TAPE)  # what is read from elsewhere is not there
    whole = (
        places.group_by(*key, "panda_queue", "kind")
        .agg(here=pl.col("lfn").n_unique())
        .join(number, on=key)
        .group_by(*key, "panda_queue")
        .agg(whole=(own & (pl.col("here") >= pl.col("n"))).any())
        .group_by("jeditaskid", parent="panda_queue")
        .agg(x_whole=pl.col("whole").all())
    )
    return whole.lazy()
