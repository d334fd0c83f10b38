"""Tell which column of a table a foreign name means: the same, a near one, or none; and the table by its columns."""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache

from brokerlab.archive import conversion
from brokerlab.archive.contracts import TABLES, columns_of, required_columns
from brokerlab.archive.contracts._columns import about
from brokerlab.archive.parsing import low

GLOBAL_ALIASES = {"jeditaskid": ("taskid",), "pandaid": ("jobid",)}
"""Names that stand for a key in every table that has it; those of one table stand in its contract."""

DERIVED = {
    "jobs": ("endtime", "statechangetime", "starttime", "creationtime"),
    "tasks": ("statechangetime", "endtime", "starttime", "creationdate"),
}
"""Where a table has no ``modificationtime``: the first of these times that a row has stands for it."""

MEANINGS = {
    "pandaid": ("job", "id"),
    "jeditaskid": ("task", "id"),
    "computingsite": ("site", "queue", "pandaqueue"),
    "panda_queue": ("queue",),
    "jobstatus": ("status", "state"),
    "status": ("state",),
    "creationtime": (
        *("created", "creationdate", "submitted", "submittime", "submissiontime", "queuedtime"),
    ),
    "creationdate": ("created", "submitted", "submittime", "submissiontime"),
    "starttime": ("started", "startdate"),
    "endtime": ("ended", "enddate", "finishtime", "stoptime", "completiontime"),
    "modificationtime": ("modified", "updated", "lastupdate"),
    "produsername": ("user", "username", "owner"),
    "username": ("user", "owner"),
    "corecount": ("cores", "ncores", "cpus", "ncpus"),
    "cpuconsumptiontime": ("cputime",),
    "maxpss": ("memory", "maxmemory", "peakmemory", "pss"),
    "maxrss": ("rss", "peakrss"),
    "minramcount": ("requestedmemory",),
    "ramcount": ("requestedmemory",),
    "prodsourcelabel": ("label",),
    "gshare": ("share",),
    "currentpriority": ("priority",),
    "transexitcode": ("exitcode",),
    "nevents": ("events",),
    "inputfilebytes": ("inputsize", "inputbytes"),
    "outputfilebytes": ("outputsize",),
}
"""Frequent foreign names of columns, without case, marks and unit; only suggested, never taken."""

_MARKS = re.compile(r"[\s_.\-]+")
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_NEAR = 0.8
_LEAST = 3
"""A table is told by its columns from this many on."""


def plain(name: str) -> str:
    """Write a name without case and the marks between its parts: ``CPU_Consumption-Time`` as ``cpuconsumptiontime``."""
    return _MARKS.sub("", low(name))


@cache
def spellings(table: str) -> Mapping[str, tuple[str, ...]]:
    """Return the names that the columns of a table go by, each its own first."""
    return {
        name: (name, *about(column).get("aliases", ()), *GLOBAL_ALIASES.get(name, ()))
        for name, column in columns_of(table).items()
    }


@cache
def meant(table: str) -> Mapping[str, str]:
    """Return the columns of a table by every plain name they go by; what is the name of one is no alias of another."""
    result: dict[str, str] = {}
    for name, (_, *others) in spellings(table).items():
        for other in others:
            result.setdefault(plain(other), name)
    return result | {plain(name): name for name in spellings(table)}


def suggestion(table: str, name: str, free: Collection[str]) -> tuple[str, str] | None:
    """Find the free column that a foreign name probably means, and the unit that the name ends with, empty if none.

    Example:
        >>> suggestion("jobs", "MaxPSS_MB", ["maxpss", "maxrss"])
        ('maxpss', 'MB')
        >>> suggestion("jobs", "cpu_time", ["cpuconsumptiontime", "maxrss"])
        ('cpuconsumptiontime', '')
    """
    parts = _PARTS.findall(name)
    if len(parts) > 1:
        unit = conversion.spelled(parts[-1])
        column = _near(table, parts[:-1], free) if unit else None
        if column and unit and not conversion.problem(table, column, unit):
            return column, unit if unit != conversion.unit_of(table, column) else ""
    column = _near(table, parts, free)
    return None if column is None else (column, "")


def _near(table: str, parts: list[str], free: Collection[str]) -> str | None:
    """Find a free column that is called nearly so: the same, known to mean it, holding its parts, or alike."""
    word = "".join(parts).lower()
    known = meant(table).get(word)
    candidates = [known, *(name for name, words in MEANINGS.items() if word in words)]
    if hit := next((name for name in candidates if name in free), None):
        return hit
    pattern = re.compile(".*".join(map(re.escape, (part.lower() for part in parts))))
    if len(word) > _LEAST and (holding := [n for n in free if pattern.search(plain(n))]):
        return min(holding, key=lambda n: (len(n), n))
    spelled = {plain(n): n for n in sorted(free)}
    close = difflib.get_close_matches(word, list(spelled), n=1, cutoff=_NEAR)
    return spelled[close[0]] if close else None


def table_of_columns(names: Iterable[str]) -> str | None:
    """Tell the table by its columns: it has all that are required, and more of them than any other table.

    None where too few are known, or two tables fit equally.

    Example:
        >>> table_of_columns(["PandaID", "job_status", "prodsourcelabel", "creationtime", "endtime"])
        'jobs'
        >>> table_of_columns(["name", "value"]) is None
        True
    """
    counts = _known(names, guess=False)
    has = {plain(name) for name in names}
    fits = {
        table: n
        for table, n in counts.items()
        if n >= _LEAST and 2 * n >= len(has) and not _missing(table, has)
    }
    best = [table for table, n in fits.items() if n == max(fits.values())]
    return best[0] if len(best) == 1 else None


def looks_like(names: Iterable[str]) -> str | None:
    """Return the table of which most columns may be meant, two at least, where one has more than all others.

    Example:
        >>> looks_like(["TaskID", "Job_ID", "state", "submitted", "cpu_time", "site"])
        'jobs'
    """
    counts = _known(names, guess=True)
    most = max(counts.values())
    best = [table for table, n in counts.items() if n == most]
    return best[0] if len(best) == 1 and most > 1 else None


def _missing(table: str, has: Collection[str]) -> list[str]:
    """Return the required columns of a table that plain names do not give, derived times left out."""
    known = meant(table)
    there = {known[name] for name in has if name in known}
    derived = {"modificationtime"} if there & set(DERIVED.get(table, ())) else set()
    return [name for name in required_columns(table) if name not in there | derived]


def _known(names: Iterable[str], *, guess: bool) -> dict[str, int]:
    """Count for every table how many of its columns the names give, or may give."""
    has = {plain(name) for name in names}
    if guess:
        has |= {column for column, words in MEANINGS.items() if has.intersection(words)}
    return {table: len({c for n, c in meant(table).items() if n in has}) for table in TABLES}
