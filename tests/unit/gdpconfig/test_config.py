"""Look-ups: which entry, which type, which default, which chain, at which time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.errors import BrokerlabWarning, ConfigError
from brokerlab.gdpconfig import Config, keys
from brokerlab.gdpconfig.keys import scope_names

SHORT = "SCOUT_SHORT_EXECTIME_<prodsourcelabel>"


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokerlabWarning)
        yield


def time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def row(key: str, value: object, component: str = "dbproxy", **others: object) -> dict[str, object]:
    kind = {int: "int", float: "float", str: "str", bool: "bool"}.get(type(value), "int")
    text = None if value is None else str(value)
    base = {"app": "jedi", "component": component, "key": key, "value": text, "type": kind}
    return {**base, **others}


def config(*rows: dict[str, object]) -> Config:
    return Config.from_rows(rows)


def test_with_a_vo_its_own_entry_comes_first() -> None:
    c = config(row("K", 1), row("K", 2, vo="atlas"), row("K", 3, vo="other"))
    assert c.look_up("jedi", "dbproxy", "K", "atlas")[0] == 2
    assert c.look_up("jedi", "dbproxy", "K", "lsst")[0] == 1
    with quiet():
        assert c.look_up("jedi", "dbproxy", "K")[0] == 1


def test_the_first_candidate_decides_even_if_it_cannot_be_converted() -> None:
    c = config(row("K", 1), row("K", "x", vo="atlas", type="int"))
    with pytest.warns(
        BrokerlabWarning, match="jedi/dbproxy/K counts as undefined: 'x' is not of type int"
    ):
        assert c.look_up("jedi", "dbproxy", "K", "atlas")[0] is None


def test_names_are_case_sensitive() -> None:
    c = config(row("K", 1), row("K", 2, app="pandaserver"))
    assert c.look_up("pandaserver", "dbproxy", "K")[0] == 2
    assert c.look_up("pandaserver", "dbproxy", "k")[0] is None
    assert c.look_up("pandaserver", "DBPROXY", "K")[0] is None


def test_equal_candidates_warn_once() -> None:
    c = config(row("K", 1), row("K", 2))
    with pytest.warns(BrokerlabWarning, match="several entries for VO None; the first is used"):
        assert c.look_up("jedi", "dbproxy", "K")[0] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert c.look_up("jedi", "dbproxy", "K")[0] == 1


def test_defaults() -> None:
    c = Config.empty()
    assert c.get("SCOUT_CPUTIME_RANK") == 95
    assert c.get("SCOUT_RAMCOUNT_MIN") is None
    assert c.get("SCOUT_WRONG_CPUTIME_THRESHOLD") == 2.0
    assert c.get("NW_ACTIVE") is False
    assert c.get("JOB_SUBMISSION") is True
    assert c.get("SCOUT_CHANGE_SR_<prodsourcelabel>", prodsourcelabel="user") is False
    assert c.get("HEARTBEAT_TIMEOUT_<workflow>", workflow="production") == 2
    assert c.get("HEARTBEAT_TIMEOUT_<workflow>", workflow="lsst") is None
    assert c.get("JUMBO_MIN_EVENTS_ENABLE") == 1_000_000
    assert c.get("JUMBO_MAX_EVENTS") == 500_000


def test_every_row_of_the_catalogue_can_be_asked() -> None:
    for entry in keys.rows():
        if entry.app == keys.PILOT_APP:
            continue
        required, _ = scope_names(entry.key)
        scope: dict[str, Any] = dict.fromkeys(required, "x")
        place = {"app": entry.app, "component": entry.components[0]}
        found = Config.empty().found(entry.key, **place, **scope)
        assert found.entry is None
        assert found.row is entry


def test_patterns_and_exact_keys() -> None:
    c = config(row("SCOUT_SHORT_EXECTIME_user", 10))
    assert c.get(SHORT, prodsourcelabel="user") == 10
    assert c.get(SHORT, prodsourcelabel="managed") == 0
    assert c.get("SCOUT_SHORT_EXECTIME_user") == 10
    assert c.get("SCOUT_SHORT_EXECTIME_managed") == 0
    assert c.get(SHORT, prodsourcelabel="user", gshare="not in this key") == 10
    assert c.get(SHORT, prodsourcelabel=None) == 0  # a task without label has no entry


@pytest.mark.parametrize(
    ("key", "place", "scope", "message"),
    [
        ("SCOUT_RAMCOUNT_RNAK", {}, {}, "did you mean 'SCOUT_RAMCOUNT_RANK'"),
        ("NW_ACTIVE", {"component": "dbproxy"}, {}, "never read at .*/dbproxy"),
        (SHORT, {}, {}, "a value is needed for 'prodsourcelabel'"),
        (
            SHORT,
            {},
            {"prodsourcelable": "user"},
            "'prodsourcelable' is unknown: did you mean 'prodsourcelabel'",
        ),
        ("MAX_MISSING_INPUT_FILES", {}, {}, "say which component is meant"),
        ("THROTTLE_THRESHOLD", {}, {}, "prod_job_throttler and anal_job_throttler: say which"),
    ],
)
def test_wrong_questions(
    key: str, place: dict[str, str], scope: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Config.empty().get(key, **place, **scope)


def test_vo_as_the_code_asks() -> None:
    fixed = config(row("FREE_DISK_CUTOFF", 1, "taskbrokerage", vo="other"))
    assert fixed.get("FREE_DISK_CUTOFF", vo="other") == 1000  # always asked with atlas
    any_vo = config(row("SCOUT_RAMCOUNT_RANK", 60, vo="other"))
    assert any_vo.get("SCOUT_RAMCOUNT_RANK", vo="atlas") == 60  # asked without a VO
    own = config(row("TW_DONE_JOB_STAT", 9, "anal_jobbroker", vo="lsst"))
    assert own.get("TW_DONE_JOB_STAT", vo="atlas") == 6
    assert own.get("TW_DONE_JOB_STAT", vo="lsst") == 9


def test_zero_that_means_the_default() -> None:
    c = config(
        row("DATA_LOCATION_CHECK_PERIOD", 0, "taskbrokerage"),
        row("SCOUT_WRONG_CPUTIME_THRESHOLD", 0.0),
        row("OUTDISKCOUNT_ANALY_KB", -1, "taskrefiner"),
    )
    assert c.get("DATA_LOCATION_CHECK_PERIOD") == 7
    assert c.get("SCOUT_WRONG_CPUTIME_THRESHOLD") == 0
    assert c.get("OUTDISKCOUNT_ANALY_KB") == 500


def test_a_value_of_another_type_counts_as_undefined() -> None:
    c = config(row("SCOUT_RAMCOUNT_RANK", "80"), row("SCOUT_CPUTIME_RANK", True))
    with pytest.warns(BrokerlabWarning, match="'80' is not of type int"):
        assert c.get("SCOUT_RAMCOUNT_RANK") == 75
    with pytest.warns(BrokerlabWarning, match="True is not of type int"):
        assert c.get("SCOUT_CPUTIME_RANK") == 95


def test_documented_but_never_read() -> None:
    c = config(row("MAX_FAILED_HEP_SCORE_RATE_TO_PAUSE_managed", 0.5, "watchdog"))
    assert c.get("MAX_FAILED_HEP_SCORE_RATE_TO_PAUSE_managed") is None


CHAIN_CASES = [
    (
        "DISK_THRESHOLD[_<gshare>]",
        "taskbrokerage",
        {"gshare": "A"},
        ["DISK_THRESHOLD_A", "DISK_THRESHOLD"],
        100,
    ),
    (
        "MIN_WEIGHT_<prodsourcelabel>[_<gshare>]",
        "jobbroker",
        {"prodsourcelabel": "managed", "gshare": "MC 16 simul"},
        ["MIN_WEIGHT_managed_MC 16 simul", "MIN_WEIGHT_managed"],
        0,
    ),
    (
        "NQUEUECAP_<gshare>[_<resource_type>|_MCORE*|_SCORE*]",
        "prod_job_throttler",
        {"gshare": "A", "resource_type": "SCORE_HIMEM"},
        ["NQUEUECAP_A_SCORE_HIMEM", "NQUEUECAP_A_SCORE*", "NQUEUECAP_A"],
        None,
    ),
    (
        "MAX_JOB_FAILURE_RATE_TO_PAUSE_<prodsourcelabel>[_<gshare>]",
        "watchdog",
        {"prodsourcelabel": "user", "gshare": "A"},
        ["MAX_JOB_FAILURE_RATE_TO_PAUSE_user_A", "MAX_JOB_FAILURE_RATE_TO_PAUSE_user"],
        None,
    ),
    (
        "TYPNFILES_<prodsourcelabel>_[<gshare>]_<processingtype>",
        "jobgen",
        {"prodsourcelabel": "managed", "gshare": "A", "processingtype": "archive"},
        ["TYPNFILES_managed_A_archive", "TYPNFILES_managed__archive"],
        None,
    ),
]


@pytest.mark.parametrize(("pattern", "component", "scope", "chain", "default"), CHAIN_CASES)
def test_chains(
    pattern: str, component: str, scope: dict[str, str], chain: list[str], default: object
) -> None:
    place = {"app": "jedi", "component": component}
    for first in range(len(chain)):
        c = config(
            *(
                row(key, number + 1, component)
                for number, key in enumerate(chain)
                if number >= first
            )
        )
        assert c.get(pattern, **place, **scope) == first + 1
    assert Config.empty().get(pattern, **place, **scope) == default
    shortest = {name: text for name, text in scope.items() if name in scope_names(pattern)[0]}
    assert config(row(chain[-1], 5, component)).get(pattern, **place, **shortest) == 5


def test_throttler_takes_the_first_non_zero_value_other_chains_the_first_defined() -> None:
    throttler = config(
        row("NRUNNINGCAP_A_MCORE", 0, "anal_job_throttler"),
        row("NRUNNINGCAP_A", 7, "anal_job_throttler"),
    )
    key = "NRUNNINGCAP_<gshare>[_<resource_type>|_MCORE*|_SCORE*]"
    got = throttler.get(key, component="anal_job_throttler", gshare="A", resource_type="MCORE")
    assert got == 7
    disk = config(
        row("DISK_THRESHOLD_A", 0, "taskbrokerage"), row("DISK_THRESHOLD", 7, "taskbrokerage")
    )
    assert disk.get("DISK_THRESHOLD[_<gshare>]", gshare="A") == 0


def test_analysis_timeout_and_pending_timeout() -> None:
    rows = [row("ANALY_TIMEOUT", 6, "rebroker", app="pandaserver")]
    assert config(*rows).get("ANALY_TIMEOUT[_<workinggroup>]", workinggroup="higgs") == 6
    assert Config.empty().get("ANALY_TIMEOUT[_<workinggroup>]", workinggroup="higgs") == 12
    assert Config.empty().get("PENDING_TIMEOUT_<prodsourcelabel>", prodsourcelabel="user") == 168


def test_history() -> None:
    new_year = time("2026-01-01")
    c = config(
        row("SCOUT_RAMCOUNT_RANK", 60, valid_to=new_year),
        row("SCOUT_RAMCOUNT_RANK", 70, valid_from=new_year),
    )
    with pytest.raises(ConfigError, match=r"has a history: say when, config.at\(time\)"):
        c.get("SCOUT_RAMCOUNT_RANK")
    assert c.at(time("2025-12-31T23:59:59")).get("SCOUT_RAMCOUNT_RANK") == 60
    assert c.at(new_year).get("SCOUT_RAMCOUNT_RANK") == 70
    assert c.at(new_year, latency_s=3600).get("SCOUT_RAMCOUNT_RANK") == 60
    assert c.at(time("2026-01-01T01:00"), latency_s=3600).get("SCOUT_RAMCOUNT_RANK") == 70
    assert c.get("SCOUT_CPUTIME_RANK") == 95  # other keys are not affected
    flat = config(row("SCOUT_RAMCOUNT_RANK", 60))
    assert flat.at(new_year) is flat
    with pytest.raises(ConfigError, match="has a zone; UTC without zone is needed"):
        flat.at(new_year.replace(tzinfo=UTC))


def test_with_values_changes_the_entry_that_is_found() -> None:
    c = config(
        row("SCOUT_RAMCOUNT_RANK", 60, vo="atlas", descr="kept"),
        row("TW_DONE_JOB_STAT", 3, "anal_jobbroker"),
    )
    changed = c.with_values(
        {"SCOUT_RAMCOUNT_RANK": 80, "NW_THRESHOLD": 2, "SCOUT_CHANGE_SR_user": True}
    )
    assert c.get("SCOUT_RAMCOUNT_RANK") == 60
    assert changed.get("SCOUT_RAMCOUNT_RANK") == 80
    assert (changed.entries[0].vo, changed.entries[0].descr) == ("atlas", "kept")
    assert changed.get("NW_THRESHOLD") == 2.0
    assert isinstance(changed.get("NW_THRESHOLD"), float)
    assert changed.get("SCOUT_CHANGE_SR_user") is True
    assert len(changed.entries) == 4
    assert c.with_values({"SCOUT_RAMCOUNT_RANK": None}).get("SCOUT_RAMCOUNT_RANK") == 75
    assert c.with_values({"NW_ACTIVE": None}) == c


def test_with_values_says_everything_that_is_wrong_at_once() -> None:
    wrong = {
        "SCOUT_RAMCOUNT_RNAK": 1,
        "SCOUT_RAMCOUNT_RANK": 80.5,
        "NW_ACTIVE": 1,
        "SCOUT_CPUTIME_RANK": True,
        "NW_THRESHOLD": float("nan"),
        SHORT: 1,
    }
    with pytest.raises(ConfigError) as error:
        Config.empty().with_values(wrong)
    for part in (
        "did you mean 'SCOUT_RAMCOUNT_RANK'",
        "'SCOUT_RAMCOUNT_RANK' is of type int, found 80.5",
        "'NW_ACTIVE' is of type bool, found 1",
        "'SCOUT_CPUTIME_RANK' is of type int, found True",
        "NaN is no value",
        "is a pattern",
    ):
        assert part in str(error.value)


def test_digest() -> None:
    a, b = row("A", 1), row("B", 2)
    assert config(a, b).digest == config(b, a).digest
    assert config({**a, "descr": "x"}).digest == config(a).digest
    assert config(a).digest != config({**a, "value": "2"}).digest
    assert config(a).digest != config({**a, "vo": "atlas"}).digest
    first, second = {**a, "vo": "x"}, {**a, "vo": "y"}
    assert (
        config(first, second).digest != config(second, first).digest
    )  # the first one found is used


def test_html() -> None:
    assert "SCOUT_RAMCOUNT_RANK" in config(row("SCOUT_RAMCOUNT_RANK", 60))._repr_html_()


NAMES = st.sampled_from(["K1", "K2", "k1"])
ROWS = st.lists(
    st.builds(
        lambda key, value, vo: row(key, value, vo=vo),
        NAMES,
        st.integers(-5, 5),
        st.sampled_from([None, "atlas", "other"]),
    ),
    max_size=8,
)


@settings(derandomize=True, deadline=None)
@given(ROWS, NAMES, st.sampled_from([None, "atlas"]))
def test_look_up_equals_a_scan_of_the_table(
    rows: list[dict[str, object]], key: str, vo: str | None
) -> None:
    fitting = [r for r in rows if r["key"] == key and (vo is None or r["vo"] in (vo, None))]
    if vo is not None:
        fitting.sort(key=lambda r: r["vo"] is None)  # stable: the order of the table stays
    expected = int(str(fitting[0]["value"])) if fitting else None
    with quiet():
        assert config(*rows).look_up("jedi", "dbproxy", key, vo)[0] == expected


@settings(derandomize=True, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["SCOUT_RAMCOUNT_RANK", "SCOUT_CPUTIME_RANK", "SCOUT_RAMCOUNT_MIN"]),
        st.integers(0, 100),
    ),
    ROWS,
)
def test_values_that_are_set_are_found_and_others_stay(
    values: dict[str, int], rows: list[dict[str, object]]
) -> None:
    with quiet():
        changed = config(*rows).with_values(values)
        assert {key: changed.get(key) for key in values} == values
        for key in ("K1", "K2", "k1"):
            before, after = (c.look_up("jedi", "dbproxy", key)[0] for c in (config(*rows), changed))
            assert before == after
