"""The switches of the matching rules: both rule sets, single switches, unknown names."""

from __future__ import annotations

import pytest

from brokerlab.errors import ConfigError
from brokerlab.matching import MatchingRules

TABLE = {
    "any_needs_no_request": (False, True),
    "checked_without_release": (True, False),
    "nothing_asked_passes": (True, False),
    "implied_cpu_needs_description": (False, True),
    "empty_arch_accepts": (True, False),
    "resolve_before_compare": (True, False),
    "regexp_by_characters": (True, False),
    "base_platform_forbids_cmtconfigs": (False, True),
    "tags_after_cvmfs": (True, False),
    "container_tags_always": (False, True),
    "item_without_arch_is_any": (True, False),
    "tests_exempt": (False, True),
    "merge_priority": ("no_match", "match"),
}


@pytest.mark.parametrize(("number", "rules"), [(0, "document"), (1, "production")])
def test_the_two_rule_sets(number: int, rules: str) -> None:
    values = {name: pair[number] for name, pair in TABLE.items()}
    assert MatchingRules(rules).to_dict() == {"rules": rules, **values}


def test_a_switch_of_its_own_changes_the_digest() -> None:
    changed = MatchingRules("production", merge_priority="no_match")
    assert changed.merge_priority == "no_match"
    assert changed.digest != MatchingRules("production").digest


def test_wrong_switches_are_refused_at_once() -> None:
    with pytest.raises(
        ConfigError, match=r"tags_after_cvmf: .*'tags_after_cvmfs'.*merge_priority='maybe'"
    ):
        MatchingRules(tags_after_cvmf=True, merge_priority="maybe")
