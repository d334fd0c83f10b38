"""Rule sets: switches are rows of a table, fields of a class, and the two are the same."""

from __future__ import annotations

import pytest

from brokerlab.errors import ConfigError
from brokerlab.lifecycle.classification import ClassRules
from brokerlab.rulesets import RuleSet
from brokerlab.workflows.rules import PilotRules


def test_a_class_whose_fields_are_not_the_rows_of_its_chapter_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Short: its fields are not the switches of waiting"):

        class Short(RuleSet, chapter="waiting"):
            second_look: bool


def test_a_word_that_could_be_a_number_stays_a_word() -> None:
    assert PilotRules("notes").first_comparison == "infinity"
    assert PilotRules("peer").margin == 1.1


def test_the_meaning_of_a_switch_stands_in_the_help_of_its_class() -> None:
    assert "half_life_hours: Half-life of a job's weight [h]." in (ClassRules.__doc__ or "")


def test_numbers_are_held_to_their_range_and_whole_ones_to_whole() -> None:
    with pytest.raises(ConfigError, match=r"percentile_low=2: .* at least 0 and at most 1"):
        ClassRules(percentile_low=2)
    with pytest.raises(ConfigError, match=r"retries=1\.5: allowed is a whole number of at least 0"):
        PilotRules(retries=1.5)
    with pytest.raises(ConfigError, match=r"margin=0\.5: allowed is a number of at least 1"):
        PilotRules(margin=0.5)


def test_a_set_a_name_or_nothing_say_which_rules_are_meant() -> None:
    own = ClassRules("production", half_life_hours=8)
    assert ClassRules.of(own) is own
    assert ClassRules.of("production") == ClassRules("production")
    assert ClassRules.of(None) == ClassRules("document")
    with pytest.raises(ConfigError, match=r"rules='produktion': did you mean 'production'\?"):
        ClassRules.of("produktion")
    with pytest.raises(
        ConfigError, match=r"rules of classes: given is a PilotRules; allowed are Cl"
    ):
        ClassRules.of(PilotRules())  # type: ignore[arg-type]
