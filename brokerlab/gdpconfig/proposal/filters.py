"""What the tasks of an evidence were restricted to, and which keys may be proposed from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from brokerlab.gdpconfig import keys as known
from brokerlab.gdpconfig.fallbacks import has_scope


def filter_problems(keys: Iterable[str], filters: Mapping[str, str] | None) -> list[str]:
    """Say which exact keys must not be proposed from tasks that passed some filters (:attr:`.parts.Evidence.filters`).

    A key may be if it holds every filter in its name.

    Example:
        >>> filter_problems(["NQUEUELIMITSITE_Express"], {"gshare": "Express"})
        []
        >>> filter_problems(["SCOUT_RAMCOUNT_RANK"], {"gshare": "Express"})[0].partition(",")[0]
        'SCOUT_RAMCOUNT_RANK: measured on tasks with gshare Express only'
    """
    if not filters:
        return []
    return [
        f"{key}: measured on {tasks_in_words(filters)}, and the key would act beyond them: "
        "measure without the filter; a keep may be made"
        for key in dict.fromkeys(keys)
        if not any(has_scope(row.key, key, filters) for row in known.rows_of(key))
    ]


def tasks_in_words(filters: Mapping[str, str]) -> str:
    """Return which tasks passed some filters.

    Example:
        >>> tasks_in_words({"gshare": "Express", "processingtype": "simul"}), tasks_in_words({})
        ('tasks with gshare Express, processingtype simul only', 'all tasks')
    """
    if not filters:
        return "all tasks"
    return f"tasks with {', '.join(f'{name} {value}' for name, value in filters.items())} only"
