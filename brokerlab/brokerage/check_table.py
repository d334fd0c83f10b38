"""The checks of a brokerage as a table: documentation that cannot fall behind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import polars as pl

from brokerlab.brokerage import plugins
from brokerlab.brokerage.engine.brokerage import Brokerage, rules_and_steps
from brokerlab.brokerage.engine.rule import OWN, SETTING, Rule
from brokerlab.brokerage.engine.steps import Mark, columns_behind, keys_in, made_by
from brokerlab.brokerage.words import shown
from brokerlab.errors import ConfigError

QUEUE = {
    "q_online": "status",
    "q_pledgedcpu": "pledgedcpu",
    "q_jumbo": "catchall useJumboJobs",
    "q_jumbo_events": "catchall minEventsForJumbo",
    "q_local_only": "catchall use_only_local_data",
    "q_bare": "catchall bareNucleus",
    "q_corecount": "corecount",
    "q_corepower": "corepower",
    "q_maxrss": "maxrss",
    "q_minrss": "minrss",
    "q_maxtime": "maxtime",
    "q_mintime": "mintime",
    "q_network": "wnconnectivity",
    "q_stack": "wnconnectivity",
    "q_jobseed": "jobseed",
    "q_max_io_intensity": "max_io_intensity",
    "p_corecount": "corecount",
    "p_maxdiskio": "maxdiskio",
    "p_maxwdir": "maxwdir",
    "p_maxinputsize": "maxinputsize",
    "p_direct_lan": "direct_access_lan",
    "p_pledgedcpu": "pledgedcpu",
    "p_transferring_limit": "transferringlimit",
    "x_zero_share": "fairsharepolicy",
    "x_software": "releases",
    "x_has_slots": "slots",
    "x_locked": "lock",
    "q_status": "status",
    "q_cloud": "cloud",
    "q_gpu": "catchall gpu",
    "e_vp": "endpoints",
    "e_vp_default": "endpoints",
    "e_output": "endpoints",
    "e_input": "endpoints",
    "e_out_space": "space_usable of endpoints",
    "e_in_space": "space_usable of endpoints",
    "e_read_lan": "read_lan, write_lan of endpoints",
    "e_write_wan": "write_wan, read_wan of endpoints",
}
"""Column of a pair to the field of the queue behind it."""

TASK = {
    "t_prio": "currentpriority",
    "t_urgent": "currentpriority",
    "t_first_class": "currentpriority",
    "t_express": "currentpriority",
    "t_jumbo": "usejumbo",
    "t_cores": "corecount",
    "t_corecount": "corecount",
    "t_maxcores": "maxcorecount",
    "t_ram": "ramcount",
    "t_ram_per_core": "ramcountunit",
    "t_base_ram": "baseramcount",
    "t_lan_only": "allowinputlan",
    "t_reads_lan": "allowinputlan",
    "t_scratch_direct": "outdiskcount, workdiskcount",
    "t_scratch_copy": "outdiskcount, workdiskcount",
    "t_need": "cputime, walltime",
    "t_need_dyn": "dynamicnumevents",
    "t_need_dyn_max": "maxeventsperjob",
    "t_walltime_undefined": "cputime, walltime",
    "t_basewalltime": "basewalltime",
    "t_efficiency": "cpuefficiency",
    "t_ip": "ipconnectivity",
    "t_stack": "ipstack",
    "t_es": "eventservice",
    "t_nucleus_only": "t1weight",
    "t_iointensity": "iointensity",
    "t_diskio": "diskio",
    "t_chained": "fullchain",
    "t_merges_output": "mergeoutput",
    "x_software": "architecture, transhome, container_name",
    "t_avoids_vp": "avoidvp",
    "t_cloud": "cloud",
    "t_auto": "includedsite",
    "x_included": "includedsite",
    "x_excluded": "excludedsite",
    "x_home": "site",
    "t_incomplete_allowed": "allowincompleteinds",
}
"""Column of a pair to the parameter of the task behind it."""


def fields(columns: Iterable[str], of: dict[str, str]) -> list[str]:
    """Return the distinct fields behind columns of a check, in the order of the columns, by :data:`QUEUE` or :data:`TASK`.

    Example:
        >>> fields(["t_ram", "t_ram_per_core", "q_maxrss"], TASK), fields(["q_maxrss"], QUEUE)
        (['ramcount', 'ramcountunit'], ['maxrss'])
    """
    return list(
        dict.fromkeys(name for column in columns if column in of for name in of[column].split(", "))
    )


def in_words(keys: Iterable[str], queue: Iterable[str], task: Iterable[str]) -> str:
    """Return what could be changed, in a few words."""
    parts = {"gdpconfig": keys, "queue": queue, "task": task}
    return "; ".join(
        f"{name} {', '.join(result)}" for name, result in parts.items() if list(result)
    )


_Line: TypeAlias = tuple[object, ...]
_SCHEMA: dict[str, Any] = {
    "step": pl.Int64,
    **dict.fromkeys(("check", "kind", "looks_at", "source"), pl.String),
    **dict.fromkeys(("keys", "inputs", "queue_fields", "task_fields"), pl.List(pl.String)),
    "sentence": pl.String,
}
LOOKS_AT = {"pair": "one place", "task": "all places"}


def checks_table(rules: Any = None, *, stage: str | None = None) -> pl.DataFrame:
    """Return the checks of a brokerage of ours in the order in which they run; that of another one is a method of it.

    Args:
        rules: Rule set; null = ``document``.
        stage: ``jobs``: the checks of queues for production tasks; ``tasks``: of nuclei; ``analysis``: of queues for
            user tasks; null = the first of them that has such rules, ``jobs`` without rules.

    Returns:
        ``step`` (1...), ``check``, ``kind`` (``persistent, temporary``; ``throttle`` for a rule that holds a
        user task back, ``mark`` for a reason why a queue is problematic for it; ``weight`` for the row of what the weight reads), ``looks_at`` (``one place``, ``all places`` of a task together, ``the task``), ``source``, ``keys`` of gdpconfig,
        ``inputs`` (columns compared), ``queue_fields``, ``task_fields`` (what a person could change), ``sentence``
        (with the names of the numbers in braces).

    Raises:
        ConfigError: Unknown stage, or rules of another brokerage.
    """
    if stage is None:
        ours = map(plugins.of_stage, plugins.STAGES)
        brokerage = next(each for each in ours if rules is None or isinstance(rules, each.rule_set))
    else:
        brokerage = plugins.of_stage(stage)
    kind = brokerage.rule_set
    if rules is not None and not isinstance(rules, kind):
        raise ConfigError(f"stage={stage!r} has {kind.__name__}, given are {type(rules).__name__}")
    return table_of(brokerage, rules)


def table_of(brokerage: Brokerage[Any, Any], rules: Any = None) -> pl.DataFrame:
    """Return the checks of a brokerage, those that were added among them; see :func:`checks_table`."""
    rules = rules or brokerage.rule_set()
    checks, steps = rules_and_steps(brokerage, rules)
    weight = brokerage.weight(rules)
    reads = columns_behind((*brokerage.derived(rules), *steps))[weight.column]
    made, keys = {*OWN, *made_by(steps)}, (*keys_in(reads), *weight.keys)
    inputs = [name for name in reads if name not in made and not name.startswith(SETTING)]
    rows = [
        *(_row(rule, "throttle", "the task") for rule in brokerage.before(rules)),
        *map(_row, checks),
        *(
            _row(step.rule, "mark") if isinstance(step, Mark) else _row(step)
            for step in steps
            if isinstance(step, Rule | Mark)
        ),
        _line("weight", "weight", "one place", weight.source, keys, inputs, weight.says),
    ]
    numbered = [(step, *row) for step, row in enumerate(rows, start=1)]
    return pl.DataFrame(numbered, schema=_SCHEMA, orient="row")


def _row(rule: Rule, kind: str | None = None, looks_at: str | None = None) -> _Line:
    return _line(
        rule.name, kind or rule.kind, looks_at or LOOKS_AT[rule.scope], rule.source, rule.keys,
        [name for name in rule.columns() if not name.startswith(SETTING)], rule.says,
    )  # fmt: skip


def _line(
    name: str, kind: str, looks_at: str, source: str, keys: Iterable[str], inputs: Iterable[str],
    says: str,
) -> _Line:  # fmt: skip
    columns = list(inputs)
    of_queue, of_task = fields(columns, QUEUE), fields(columns, TASK)
    return (name, kind, looks_at, source, list(keys), columns, of_queue, of_task, shown(says))
