"""The two rule sets of the matching chapters and every switch on which they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from brokerlab.rulesets import RuleSet, Switch

SWITCHES: dict[str, Switch] = {
    "any_needs_no_request": Switch(False, True, "H1"),
    "empty_arch_accepts": Switch(True, False, "H2"),
    "resolve_before_compare": Switch(True, False, "H3"),
    "regexp_by_characters": Switch(True, False, "H4"),
    "base_platform_forbids_cmtconfigs": Switch(False, True, "H5"),
    "tags_after_cvmfs": Switch(True, False, "H6"),
    "container_tags_always": Switch(False, True, "H7"),
    "item_without_arch_is_any": Switch(True, False, "2.2, 7"),
    "merge_priority": Switch("match", "match", "zero share 6", ("match", "no_match")),
}
"""Rows H of software-hardware-matching.md 8, and the last table of zero-share.md."""


@dataclass(frozen=True, init=False)
class MatchingRules(RuleSet):
    r"""One rule set of the matching of texts with its switches; part of every result's provenance.

    Attributes:
        rules: ``document`` (the published pages, production where they are silent) or ``production``.
        any_needs_no_request: H1, queues with releases ANY take only tasks without a CPU or GPU request.
        empty_arch_accepts: H2, ``arch: [""]`` of a queue accepts every CPU architecture, as ``any`` does.
        resolve_before_compare: H3, a regexp platform is resolved at the queue first, then compared
            (else: compared literally, resolved afterwards).
        regexp_by_characters: H4, a platform is a regexp when it holds one of ``( ) [ ] | * ? + \ ^ $``
            (else: when it does not match itself).
        base_platform_forbids_cmtconfigs: H5, a base platform closes the way over ``cmtconfigs``.
        tags_after_cvmfs: H6, tags are consulted also where the cvmfs repository is there (else: only
            where it is not).
        container_tags_always: H7, a container by logical name or source of a tag is accepted without
            ``onlytagsforfc`` too.
        item_without_arch_is_any: a CPU item without ``arch`` asks for any (else: rejects the queue).
        merge_priority: zero share, priority clauses of merging chunks ``match`` or do ``no_match``.

    Source: software-hardware-matching.md 8, zero-share.md 6.

    Example:
        >>> MatchingRules().any_needs_no_request, MatchingRules("production").any_needs_no_request
        (False, True)
    """

    SWITCHES: ClassVar[Mapping[str, Switch]] = SWITCHES
    SUBJECT: ClassVar[str] = "matching rules"

    any_needs_no_request: bool
    empty_arch_accepts: bool
    resolve_before_compare: bool
    regexp_by_characters: bool
    base_platform_forbids_cmtconfigs: bool
    tags_after_cvmfs: bool
    container_tags_always: bool
    item_without_arch_is_any: bool
    merge_priority: str
