"""Numbers for what facts are keyed by: text joins on pairs would cost too much."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

Tables = dict[str, pl.DataFrame]

POLICY = ("t_type", "t_group", "t_gshare", "t_prio", "t_merging")
"""What a policy of zero share looks at."""
SOFTWARE = ("t_architecture", "t_transhome", "t_container_name", "t_onlytagsforfc")
"""What a request for software and hardware consists of."""


@dataclass(frozen=True)
class Ids:
    """Numbers of parents and sites, the same for tasks and queues.

    Attributes:
        parents: ``parent, p_id``.
        sites: ``site, id`` of ATLAS sites.
        storage: ``parent, p_storage_id``; -2 where the storage site is not known.
    """

    parents: pl.DataFrame
    sites: pl.DataFrame
    storage: pl.DataFrame

    @classmethod
    def of(cls, tasks: pl.DataFrame, queues: pl.DataFrame, tables: Tables) -> Ids:
        """Number parents and sites in name order."""
        parents = numbered(queues.select("parent"), "p_id")
        places = [
            tables["queue_storage_site"]["site_name"], queues["q_site"], tasks["t_nucleus"],
            tables["nuclei"]["nucleus"],
        ]  # fmt: skip
        names = pl.concat([place.rename("site") for place in places]).drop_nulls().to_frame()
        sites = numbered(names, "id")
        storage = tables["queue_storage_site"].join(
            sites.rename({"site": "site_name", "id": "p_storage_id"}), on="site_name"
        )
        return cls(parents, sites, storage.select("p_storage_id", parent="panda_queue"))

    def add(self, tasks: pl.DataFrame, queues: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Add the numbers to tasks and queues."""
        site = self.sites
        queues = (
            queues.join(self.parents, on="parent", how="left")
            .join(site.rename({"site": "q_site", "id": "q_site_id"}), on="q_site", how="left")
            .join(self.storage, on="parent", how="left")
            .join(
                numbered(queues.select("q_fairsharepolicy"), "q_policy"),
                on="q_fairsharepolicy",
                how="left",
                nulls_equal=True,
            )
            .join(
                numbered(queues.select("parent", "p_releases"), "q_offer"),
                on=["parent", "p_releases"],
                how="left",
                nulls_equal=True,
            )
            .with_columns(
                pl.col("q_site_id", "p_storage_id").fill_null(-2),
                q_counted=2 * pl.col("p_id") + (pl.col("q_jobseed") == "eshigh").cast(pl.Int64),
            )
            .sort("q")
        )
        tasks = (
            tasks.join(
                site.rename({"site": "t_nucleus", "id": "t_nucleus_id"}), on="t_nucleus", how="left"
            )
            .with_columns(pl.col("t_nucleus_id").fill_null(-1))
            .join(
                numbered(tasks.select(POLICY), "t_policy"), on=POLICY, how="left", nulls_equal=True
            )
            .join(
                numbered(tasks.select(SOFTWARE), "t_request"),
                on=SOFTWARE,
                how="left",
                nulls_equal=True,
            )
            .join(numbered(tasks.select("snapshot"), "t_state"), on="snapshot", how="left")
        )
        keys = {
            "t_link": ("t_state", "t_nucleus_id", "t_express"),
            "t_near": ("t_version", "t_nucleus_id"),
            "t_counted": ("t_state", "t_tag", "t_gshare", "t_counts_share_only"),
            "t_slots": ("t_state", "t_queue_name", "t_resource_type"),
        }
        for name, columns in keys.items():
            tasks = tasks.join(
                numbered(tasks.select(columns), name), on=columns, how="left", nulls_equal=True
            )
        return tasks.sort("t"), queues


def numbered(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the distinct rows, sorted, with their numbers."""
    distinct = frame.unique().sort(frame.columns)
    return distinct.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(name))
