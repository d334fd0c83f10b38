"""The catalogue: sound in itself, found by exact key and by pattern, and what of it may be searched."""

from __future__ import annotations

import re

import pytest

from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import catalogue, keys
from brokerlab.gdpconfig.keys import CHAINS, chain, scope_names

TYPES = {"int", "float", "bool", "str", "json", "any"}
NUMERIC = {"int", "float"}


def test_places_are_unique() -> None:
    places = [(row.app, row.components, row.key) for row in keys.rows()]
    assert len(places) == len(set(places)) == 148


def test_types_and_bounds() -> None:
    for row in keys.rows():
        assert row.type in TYPES
        if row.minimum is not None and row.maximum is not None:
            assert row.minimum < row.maximum, row.key


@pytest.mark.parametrize("row", keys.rows(), ids=lambda row: f"{row.components[0]}-{row.key}")
def test_default_is_a_value_of_the_type_or_says_why_not(row: keys.CatalogueKey) -> None:
    if row.default is None:
        in_words = re.match(
            r"none|not read|2 for production|10 x JUMBO|JUMBO_MAX", row.default_text
        )
        assert in_words, row.default_text
        return
    keys.check_value(row, row.key, row.default)
    # -1 for "no limit" and 999999 for "off" are inside their bounds, so every number must be
    if row.type in NUMERIC and row.minimum is not None and row.maximum is not None:
        assert row.minimum <= row.default <= row.maximum


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("8000 (metric collector), 10000 (analysis brokerage, not used there)", "int", 8000),
        ("none in the brokerage, 10000 in the priority watchdog", "int", None),
        ("none (static setting, 168)", "int", 168),
        ("10 and report only", "int", 10),
        ("2 for production and analysis, none otherwise", "int", None),
        ("-999999 (off)", "int", -999999),
        ("10 x JUMBO_MIN_EVENTS_DISABLE", "int", None),
        ("2", "float", 2.0),
        ("2.0", "float", 2.0),
        ("none (false)", "bool", False),
        ("none (true)", "bool", True),
        ("false", "bool", False),
        ("userName", "str", "userName"),
        ("not read", "json", None),
    ],
)
def test_defaults_in_words(text: str, kind: str, value: object) -> None:
    found = keys.parse_default(text, kind)
    assert found == value
    assert type(found) is type(value)


def test_every_optional_part_has_a_chain() -> None:
    optional = {row.key for row in keys.rows() if scope_names(row.key)[1]}
    assert optional == CHAINS.keys()


@pytest.mark.parametrize(
    ("key", "pattern"),
    [
        ("SCOUT_SHORT_EXECTIME_rc_test2", "SCOUT_SHORT_EXECTIME_<prodsourcelabel>"),
        ("DISK_THRESHOLD", "DISK_THRESHOLD[_<gshare>]"),
        ("DISK_THRESHOLD_MC 16 simul", "DISK_THRESHOLD[_<gshare>]"),
        ("MIN_WEIGHT_managed", "MIN_WEIGHT_<prodsourcelabel>[_<gshare>]"),
        ("MIN_WEIGHT_managed_Express", "MIN_WEIGHT_<prodsourcelabel>[_<gshare>]"),
        ("MIN_FILES_READY_managed_FC", "MIN_FILES_READY_<prodsourcelabel>_FC"),
        ("MIN_FILES_READY_managed", "MIN_FILES_READY_<prodsourcelabel>"),
        ("NQUEUECAP_Express_MCORE*", "NQUEUECAP_<gshare>[_<resource_type>|_MCORE*|_SCORE*]"),
        ("NQUEUELIMITSITE_Express", "NQUEUELIMITSITE_<gshare>"),
        ("FAST_REBRO_THRESHOLD_NQUEUE_FRAC", "FAST_REBRO_THRESHOLD_NQUEUE_FRAC"),
        ("FAST_REBRO_THRESHOLD_NQUEUE_Express", "FAST_REBRO_THRESHOLD_NQUEUE_<gshare>"),
        ("TYPNFILES_managed__archive", "TYPNFILES_<prodsourcelabel>_[<gshare>]_<processingtype>"),
        ("TYPNFILES_managed_MC_evgen", "TYPNFILES_<prodsourcelabel>_[<gshare>]_<processingtype>"),
    ],
)
def test_pattern_of_an_exact_key(key: str, pattern: str) -> None:
    assert {row.key for row in keys.rows_of(key)} == {pattern}


@pytest.mark.parametrize(
    "key", ["", "SCOUT_SHORT_EXECTIME_", "scout_cputime_rank", "X" * 10_000_000]
)
def test_other_keys_match_nothing(key: str) -> None:
    assert keys.rows_of(key) == ()


def test_find_names_the_place_or_asks_for_it() -> None:
    assert keys.find("NW_ACTIVE").components == ("jobbroker",)
    with pytest.raises(
        ConfigError, match="never read at jedi/dbproxy; it is read at jedi/jobbroker"
    ):
        keys.find("NW_ACTIVE", "jedi", "dbproxy")
    with pytest.raises(ConfigError, match="jedi/jobbroker, jedi/anal_jobbroker: say which"):
        keys.find("MIN_INPUT_COMPLETENESS")
    with pytest.raises(ConfigError, match="did you mean 'RAM_THR_EXAUSTED'"):
        keys.find("RAM_THR_EXHAUSTED")
    with pytest.raises(ConfigError, match="'zzz' is unknown: see"):
        keys.find("zzz")


def test_resolve() -> None:
    assert keys.resolve("jedi/anal_jobbroker/MIN_INPUT_COMPLETENESS")[1] == "anal_jobbroker"
    assert keys.resolve("jedi/anal_job_throttler/NQUEUECAP_Express")[1] == "anal_job_throttler"
    with pytest.raises(ConfigError, match=r"is a pattern: put values in place of <...>"):
        keys.resolve("SCOUT_SHORT_EXECTIME_<prodsourcelabel>")
    with pytest.raises(ConfigError, match="prod_job_throttler and anal_job_throttler: say which"):
        keys.resolve("NQUEUECAP_Express")


def test_catalogue_has_every_row() -> None:
    table = catalogue()
    assert table.height == len(keys.rows())
    ranks = table.filter(table["key"] == "SCOUT_RAMCOUNT_RANK").to_dicts()[0]
    assert (ranks["default"], ranks["sensible_min"], ranks["sensible_max"]) == ("75", 50.0, 100.0)


@pytest.mark.parametrize(
    "key",
    [
        "NQUEUED_SAT_CAP", "NQUEUED_NUC_CAP_FOR_JOBS", "SIZE_CUTOFF_TO_MOVE_INPUT", "NUM_CUTOFF_TO_MOVE_INPUT",
        "MIN_BAD_JOBS_TO_SKIP_PQ",
    ],
)  # fmt: skip
def test_limits_that_rule_sets_read_differently_name_both(key: str) -> None:
    (row,) = keys.rows_of(key)
    assert "(document; production: " in row.effect


def test_chain_of_a_plain_key_is_itself() -> None:
    assert chain("NW_ACTIVE").keys == ("NW_ACTIVE",)
