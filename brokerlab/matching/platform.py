"""Platforms: is one a regexp, and what does it stand for at a queue? (docs/rules/matching.md 6.3)."""

from __future__ import annotations

import re
from functools import lru_cache

from brokerlab.matching.description import ANY, Description
from brokerlab.matching.patterns import PatternError, compile_pattern
from brokerlab.matching.rules import MatchingRules

REGEXP_CHARACTERS = frozenset("()[]|*?+\\^$")

_ALTERNATIVES = re.compile(r"\(([A-Za-z0-9_.+-]+(?:\|[A-Za-z0-9_.+-]+)*)\)([A-Za-z0-9_.+-]+)")


@lru_cache(maxsize=4096)
def is_regexp(sw_platform: str | None, *, by_characters: bool) -> bool:
    r"""Tell whether a platform is a regexp (docs/rules/matching.md 6.3)."""
    if sw_platform is None:
        return False
    if by_characters:
        return not REGEXP_CHARACTERS.isdisjoint(sw_platform)
    try:
        return not compile_pattern(sw_platform).match(sw_platform)
    except PatternError:
        return True


def resolve_platform(sw_platform: str | None, description: Description | None) -> str | None:
    """Resolve a regexp platform to what a queue has.

    The first of ``cmtconfigs`` that the regexp matches in full; else, for ``(a|b)rest``, the first alternative
    among the architectures of the queue's CPUs, with the rest. None where nothing fits, where the literal
    platform is published, or where the regexp cannot be read.

    Source: docs/rules/matching.md 6.3.
    """
    if sw_platform is None or description is None or sw_platform in description.cmtconfigs:
        return None
    try:
        pattern = compile_pattern(sw_platform)
        fitting = [platform for platform in description.cmtconfigs if pattern.fullmatch(platform)]
    except PatternError:
        fitting = []
    return fitting[0] if fitting else _by_architecture(sw_platform, description)


def _by_architecture(sw_platform: str, description: Description) -> str | None:
    """Return the first alternative of ``(a|b)rest`` that the queue's CPUs have, with the rest."""
    result = _ALTERNATIVES.fullmatch(sw_platform)
    if result is None or description.cpu is None:
        return None
    listed = description.cpu.attributes.get("arch", ())
    alternatives = result[1].split("|")
    return next((one + result[2] for one in alternatives if one in listed or ANY in listed), None)


def with_base(platform: str | None, base_platform: str | None) -> str | None:
    """Return a resolved platform with the base platform appended."""
    return f"{platform}@{base_platform}" if platform and base_platform else platform


def platform_at(
    sw_platform: str | None, description: Description, *, rules: MatchingRules
) -> tuple[str | None, str | None]:
    """Return the platform to look for among ``cmtconfigs`` and tags at a queue (None: there is none), and what it resolves to.

    A resolution is tried whether or not the platform counts as a regexp; None: nothing to resolve, or not resolved.

    Source: docs/rules/matching.md 6.2, 6.3.
    """
    resolved = resolve_platform(sw_platform, description)
    regexp = is_regexp(sw_platform, by_characters=rules.regexp_by_characters)
    if not regexp or not rules.resolve_before_compare:
        return sw_platform, resolved
    if sw_platform in description.cmtconfigs:
        return sw_platform, sw_platform
    return resolved, resolved
