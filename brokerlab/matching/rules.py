"""The two rule sets of the matching chapters and every switch on which they differ."""

from __future__ import annotations

from dataclasses import dataclass

from brokerlab.rulesets import RuleSet


@dataclass(frozen=True, init=False)
class MatchingRules(RuleSet, chapter="matching"):
    r"""One rule set of the matching of texts with its switches; part of every result's provenance.

    Source: 001, 002; docs/rules/matching.md.

    Example:
        >>> MatchingRules().any_needs_no_request, MatchingRules("production").any_needs_no_request
        (False, True)
    """

    any_needs_no_request: bool
    checked_without_release: bool
    nothing_asked_passes: bool
    implied_cpu_needs_description: bool
    empty_arch_accepts: bool
    resolve_before_compare: bool
    regexp_by_characters: bool
    base_platform_forbids_cmtconfigs: bool
    tags_after_cvmfs: bool
    container_tags_always: bool
    item_without_arch_is_any: bool
    tests_exempt: bool
    merge_priority: str
