"""Which keys a look-up asks, in which order: the fallback chains, written as data.

Source: docs/rules/gdpconfig.md, Look-up rules, 5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

PLACEHOLDER = re.compile(r"<([^<>]+)>")
"""``<prodsourcelabel>`` in a key pattern."""


@dataclass(frozen=True)
class Chain:
    """The keys to ask one after the other; a template with a placeholder that has no value is passed over.

    If ``non_zero``, the first value that is not 0 wins, instead of the first that is defined.
    """

    keys: tuple[str, ...]
    non_zero: bool = False


def _throttler(name: str) -> Chain:
    forms = ("_<gshare>_<resource_type>", "_<gshare>_<cores>*", "_<gshare>")
    return Chain(tuple(name + form for form in forms), non_zero=True)


_RESOURCE_FORMS = "_<gshare>[_<resource_type>|_MCORE*|_SCORE*]"

CHAINS: Mapping[str, Chain] = MappingProxyType(
    {
        "DISK_THRESHOLD[_<gshare>]": Chain(("DISK_THRESHOLD_<gshare>", "DISK_THRESHOLD")),
        "MIN_WEIGHT_<prodsourcelabel>[_<gshare>]": Chain(
            ("MIN_WEIGHT_<prodsourcelabel>_<gshare>", "MIN_WEIGHT_<prodsourcelabel>")
        ),
        "MAX_JOB_FAILURE_RATE_TO_PAUSE_<prodsourcelabel>[_<gshare>]": Chain(
            (
                "MAX_JOB_FAILURE_RATE_TO_PAUSE_<prodsourcelabel>_<gshare>",
                "MAX_JOB_FAILURE_RATE_TO_PAUSE_<prodsourcelabel>",
            )
        ),
        "MAX_HEP_SCORE_FAILURE_RATE_TO_PAUSE_<prodsourcelabel>[_<gshare>]": Chain(
            (
                "MAX_HEP_SCORE_FAILURE_RATE_TO_PAUSE_<prodsourcelabel>_<gshare>",
                "MAX_HEP_SCORE_FAILURE_RATE_TO_PAUSE_<prodsourcelabel>",
            )
        ),
        "ANALY_TIMEOUT[_<workinggroup>]": Chain(("ANALY_TIMEOUT_<workinggroup>", "ANALY_TIMEOUT")),
        "NQUEUELIMIT" + _RESOURCE_FORMS: _throttler("NQUEUELIMIT"),
        "NQUEUECAP" + _RESOURCE_FORMS: _throttler("NQUEUECAP"),
        "NRUNNINGCAP" + _RESOURCE_FORMS: _throttler("NRUNNINGCAP"),
        "TYPNFILES_<prodsourcelabel>_[<gshare>]_<processingtype>": Chain(
            (
                "TYPNFILES_<prodsourcelabel>_<gshare>_<processingtype>",
                "TYPNFILES_<prodsourcelabel>__<processingtype>",
            )
        ),
    }
)
"""Key pattern with an optional part -> its chain; every other pattern is its own chain."""


def chain(pattern: str) -> Chain:
    """Return the chain of a catalogue key or pattern."""
    return CHAINS.get(pattern) or Chain((pattern,))


def scope_names(pattern: str) -> tuple[set[str], set[str]]:
    """Return the required and the optional placeholders of a key pattern.

    Example:
        >>> required, optional = scope_names("MIN_WEIGHT_<prodsourcelabel>[_<gshare>]")
        >>> sorted(required), sorted(optional)
        (['prodsourcelabel'], ['gshare'])
    """
    required = set(PLACEHOLDER.findall(re.sub(r"\[.*?\]", "", pattern)))
    return required, set(PLACEHOLDER.findall(pattern)) - required


def has_scope(pattern: str, key: str, scope: Mapping[str, str]) -> bool:
    """Whether an exact key of a pattern acts for a scope only: all of it stands in the name of the key.

    The name may hold further placeholders; of these only a resource type may hold underscores, so that "A_B" is not read as a
    share "B" of a label that ends in "A".

    Example:
        >>> pattern = "MIN_WEIGHT_<prodsourcelabel>[_<gshare>]"
        >>> [has_scope(pattern, "MIN_WEIGHT_managed_A", {"gshare": name}) for name in ("A", "B")]
        [True, False]
        >>> has_scope("SCOUT_RAMCOUNT_RANK", "SCOUT_RAMCOUNT_RANK", {"gshare": "A"})
        False
    """
    for template in chain(pattern).keys:
        parts = PLACEHOLDER.split(template)
        if scope.keys() <= set(parts[1::2]):
            others = {name: ".+" if name == "resource_type" else "[^_]+" for name in parts[1::2]}
            texts = {**others, **{name: re.escape(value) for name, value in scope.items()}}
            parts = [texts[part] if i % 2 else re.escape(part) for i, part in enumerate(parts)]
            if re.fullmatch("".join(parts), key):
                return True
    return False


def expand(pattern: str, scope: Mapping[str, str]) -> list[str]:
    """Return the exact keys to ask, in order; a missing value leaves out the forms that need it.

    ``<cores>`` follows from the first five letters of the resource type.

    Example:
        >>> expand("DISK_THRESHOLD[_<gshare>]", {"gshare": "MC 16 simul"})
        ['DISK_THRESHOLD_MC 16 simul', 'DISK_THRESHOLD']
        >>> pattern = "NQUEUECAP_<gshare>[_<resource_type>|_MCORE*|_SCORE*]"
        >>> expand(pattern, {"gshare": "Express", "resource_type": "MCORE_HIMEM"})
        ['NQUEUECAP_Express_MCORE_HIMEM', 'NQUEUECAP_Express_MCORE*', 'NQUEUECAP_Express']
    """
    values = dict(scope)
    cores = scope.get("resource_type", "")[:5]
    if cores in ("MCORE", "SCORE"):
        values["cores"] = cores
    return [
        PLACEHOLDER.sub(lambda found: values[found[1]], template)
        for template in chain(pattern).keys
        if set(PLACEHOLDER.findall(template)) <= values.keys()
    ]
