"""The two rule sets of the matching chapters and every switch on which they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from brokerlab.rulesets import RuleSet, Switch

_HARDWARE = "002, Checks for CPU and/or GPU Hardware"
_RELEASES = "002, Checks for Releases, Caches, or Nightlies"
_POLICY = "001, Zero Share (or FairSharePolicy in CRIC)"

SWITCHES: dict[str, Switch] = {
    "any_needs_no_request": Switch(
        False,
        True,
        "002, ATLAS Production Job Brokerage",
        sentence="This check is skipped when queues have ANY in the releases filed in CRIC.",
    ),
    "checked_without_release": Switch(
        True,
        False,
        _HARDWARE,
        sentence="If host_cpu_spec or host_gpu_spec is specified, the brokerage checks the architectures of the queue",
    ),
    "nothing_asked_passes": Switch(
        True,
        False,
        "002, ATLAS Analysis Job Brokerage",
        sentence="Availability of ATLAS release/cache.",
    ),
    "implied_cpu_needs_description": Switch(
        False,
        True,
        _HARDWARE,
        sentence="If host_cpu_spec or host_gpu_spec is specified, the brokerage checks the architectures of the queue",
    ),
    "empty_arch_accepts": Switch(
        True,
        False,
        _HARDWARE,
        sentence="tasks with #x86_64 are accepted by queues with “arch”: [“x86_64”], “arch”: [“”]",
    ),
    "resolve_before_compare": Switch(
        True,
        False,
        _HARDWARE,
        sentence="The regexp in sw_platform is resolved to a relevant string in the cmtconfigs list of the queue.",
    ),
    "regexp_by_characters": Switch(
        True,
        False,
        _HARDWARE,
        sentence="The regexp in sw_platform is resolved to a relevant string in the cmtconfigs list of the queue.",
    ),
    "base_platform_forbids_cmtconfigs": Switch(
        False,
        True,
        _RELEASES,
        sentence="the task sw_platform is extracted from the task architecture and must be included in the cmtconfigs list.",
    ),
    "tags_after_cvmfs": Switch(True, False, _RELEASES, sentence="If the above is not the case,"),
    "container_tags_always": Switch(
        False,
        True,
        "002, Checks for Fat Containers",
        sentence="If the task doesn’t set onlyTagsForFC,",
    ),
    "item_without_arch_is_any": Switch(
        True,
        False,
        _HARDWARE,
        sentence="The cpu_specs is a list of dictionaries with the following keys: arch, instr, type, and vendor.",
    ),
    "tests_exempt": Switch(
        False,
        True,
        _POLICY,
        sentence="test resolves to the types prod_test, validation, ptest, rc_test, rc_test2, rc_alrb.",
    ),
    "merge_priority": Switch(
        "no_match",
        "match",
        _POLICY,
        ("match", "no_match"),
        sentence="The priority check can be skipped, which is currently done for merge jobs.",
    ),
}


@dataclass(frozen=True, init=False)
class MatchingRules(RuleSet):
    r"""One rule set of the matching of texts with its switches; part of every result's provenance.

    Attributes:
        rules: ``document`` (the pages) or ``production`` (the deployed code).
        any_needs_no_request: Queues with releases ANY take only tasks without a CPU or GPU request.
        checked_without_release: Production tasks without a release are asked for hardware and container too (else: they
            are accepted everywhere; user tasks are asked in both sets).
        nothing_asked_passes: Tasks that ask for no release, container or hardware are accepted where nothing is
            published, or nothing that can be read.
        implied_cpu_needs_description: An architecture that is only the first part of the platform is refused by a queue
            that describes no CPU, like one after ``#`` (else: it is compared where the queue describes its CPUs).
        empty_arch_accepts: ``arch: [""]`` of a queue accepts every CPU architecture, as ``any`` does.
        resolve_before_compare: A regexp platform is resolved at the queue first, then compared (else: compared
            literally, resolved afterwards).
        regexp_by_characters: A platform is a regexp when it holds one of ``( ) [ ] | * ? + \ ^ $`` (else: when it does
            not match itself). The page does not say what makes a regexp.
        base_platform_forbids_cmtconfigs: A base platform closes the way over ``cmtconfigs``.
        tags_after_cvmfs: Tags are consulted also where the cvmfs repository is there (else: only where it is not).
        container_tags_always: A container by logical name or source of a tag is accepted without ``onlytagsforfc`` too.
        item_without_arch_is_any: A CPU item without ``arch`` asks for any (else: rejects the queue).
        tests_exempt: Test tasks are accepted before a policy is read.
        merge_priority: For merging chunks priority clauses do ``no_match``: a sub-policy that has one is passed over; or
            they ``match``, so that a value of 0 forbids merging.

    Source: 001, 002; docs/rules/matching.md.

    Example:
        >>> MatchingRules().any_needs_no_request, MatchingRules("production").any_needs_no_request
        (False, True)
    """

    SWITCHES: ClassVar[Mapping[str, Switch]] = SWITCHES
    SUBJECT: ClassVar[str] = "matching rules"

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
