"""The two rule sets of the analysis job brokerage and every switch on which they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from brokerlab.rulesets import RuleSet, Switch

SWITCHES: dict[str, Switch] = {
    "basic_weight": Switch("original", "new", "D1", ("original", "new")),
    "cap_rt_effective": Switch(True, False, "D2"),
    "cap_rt_form": Switch(
        "twice_larger", "larger_of_twice", "D2", ("twice_larger", "larger_of_twice")
    ),
    "bad_jobs_mode": Switch("all", "after_stabilizer", "D3", ("all", "after_stabilizer")),
    "locality_mode": Switch("suppress", "retry", "D4", ("suppress", "retry")),
    "count_total_row": Switch(False, True, "D5"),
    "trr_scaled": Switch(True, True, "D6"),
    "use_base_ram": Switch(True, False, "D8"),
    "min_capacity_mode": Switch("maxtime", "capacity", "D9", ("maxtime", "capacity")),
    "maxwdir_mode": Switch("per_core", "single_core", "D10", ("per_core", "single_core")),
    "slots_zero_mode": Switch("larger", "sum", "D11", ("larger", "sum")),
    "slots_per_core": Switch(False, True, "D12"),
    "use_l1_share": Switch(False, True, "D13"),
    "closed_skips": Switch(False, True, "D14"),
    "used_sites_first": Switch(False, True, "D17"),
    "pending_min": Switch(20, 60, "D19"),
    "space_strict": Switch(True, False, "D21"),
    "new_weight": Switch("document", "budgets", "D22", ("document", "budgets")),
    "lists_need_limitedsites": Switch(True, True, "D24"),
    "status_mode": Switch("online", "not_offline", "D26", ("online", "not_offline")),
    "any_mode": Switch("explicit", "implied", "D27", ("explicit", "implied")),
    "lists_first": Switch(True, False, "3, P3"),
    "vp_default_scope": Switch(False, True, "4, 6"),
}
"""Rows D of analysis-job-brokerage.md 8 that the brokerage itself acts on, and differences that its text names."""


@dataclass(frozen=True, init=False)
class AnalysisRules(RuleSet):
    """One rule set of the analysis brokerage with its switches; part of every result's provenance.

    Where the last column of the chapter's table recommends the code's fact, both rule sets follow it. Rows D7 and
    D20 say how the tables ``to_run_rate`` and ``user_job_stats`` are counted: they are inputs here.

    Attributes:
        rules: ``document`` (the published pages, production where they are silent) or ``production``.
        basic_weight: D1, which basic weight ranks.
        cap_rt_effective: D2, check ``cap_rt`` removes queues.
        cap_rt_form: D2, limit 2 max(20, running), or max(20, 2 running).
        bad_jobs_mode: D3, bad jobs that reach the limit mark every queue (``all``), or bad jobs over the limit mark
            the queues that the stabilizer looked at.
        locality_mode: D4, a relaxation suppresses the check of locality, or the check is tried and then retried without.
        count_total_row: D5, the number of users of a queue counts the row of totals too.
        trr_scaled: D6, the to-running rate of a queue is scaled to the share.
        use_base_ram: D8, the memory need includes baseramcount.
        min_capacity_mode: D9, 24 h compare with maxtime, or with its HS06 capacity.
        maxwdir_mode: D10, every job gets its cores' part of maxwdir and must leave something free, or single-core jobs
            only get a part and may fill it.
        slots_zero_mode: D11, 0 slots count the larger of running and starting jobs, or their sum.
        slots_per_core: D12, slots are divided by the cores of the queue.
        use_l1_share: D13, usage is the lesser of that of the share and the equivalent of its first level.
        closed_skips: D14, one closed job of the task skips the queue.
        used_sites_first: D17, queues that the task already uses come first.
        pending_min: D19, how long a task without candidates waits [min].
        space_strict: D21, space equal to the limit is too little.
        new_weight: D22, new weight by the page's table, or by budgets per class with spill.
        lists_need_limitedsites: D24, include and exclude lists count only with limitedsites.
        status_mode: D26, queues have to be online, or anything that passes for it.
        any_mode: D27, queues with releases ANY refuse hardware asked for explicitly, or implied by the platform too.
        lists_first: P3, include and exclude lists act before all checks.
        vp_default_scope: check 6 looks for VP endpoints in scope default only.

    Example:
        >>> AnalysisRules().basic_weight, AnalysisRules("production").basic_weight
        ('original', 'new')
    """

    SWITCHES: ClassVar[Mapping[str, Switch]] = SWITCHES
    SUBJECT: ClassVar[str] = "analysis brokerage rules"

    basic_weight: str
    cap_rt_effective: bool
    cap_rt_form: str
    bad_jobs_mode: str
    locality_mode: str
    count_total_row: bool
    trr_scaled: bool
    use_base_ram: bool
    min_capacity_mode: str
    maxwdir_mode: str
    slots_zero_mode: str
    slots_per_core: bool
    use_l1_share: bool
    closed_skips: bool
    used_sites_first: bool
    pending_min: float
    space_strict: bool
    new_weight: str
    lists_need_limitedsites: bool
    status_mode: str
    any_mode: str
    lists_first: bool
    vp_default_scope: bool
