"""Where the columns that checks compare come from: what a person could change to change a decision."""

from __future__ import annotations

from collections.abc import Iterable

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
    """Return the distinct fields behind columns, in the order of the columns.

    Args:
        columns: Columns of a check.
        of: :data:`QUEUE` or :data:`TASK`.

    Example:
        >>> fields(["t_ram", "t_ram_per_core", "q_maxrss"], TASK), fields(["q_maxrss"], QUEUE)
        (['ramcount', 'ramcountunit'], ['maxrss'])
    """
    return list(
        dict.fromkeys(name for column in columns if column in of for name in of[column].split(", "))
    )


def in_words(keys: Iterable[str], queue: Iterable[str], task: Iterable[str]) -> str:
    """Return what could be changed, in a few words.

    Example:
        >>> in_words(["NQUEUED_SAT_CAP"], [], ["currentpriority"])
        'gdpconfig NQUEUED_SAT_CAP; task currentpriority'
    """
    parts = {"gdpconfig": keys, "queue": queue, "task": task}
    return "; ".join(f"{name} {', '.join(found)}" for name, found in parts.items() if list(found))
