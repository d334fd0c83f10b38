from __future__ import annotations

import warnings

import pytest

from brokerlab.errors import BrokerlabWarning, ConfigError
from brokerlab.gdpconfig import Config, validate

BASE = {
    "app": "jedi",
    "component": "dbproxy",
    "key": "SCOUT_RAMCOUNT_RANK",
    "value": "60",
    "type": "int",
}


@pytest.mark.parametrize(
    ("row", "kind", "message"),
    [
        (
            {"key": "SCOUT_RAMCOUNT_RNAK"},
            "unknown key",
            "nothing reads it; did you mean 'SCOUT_RAMCOUNT_RANK'?",
        ),
        ({"component": "jobbroker"}, "never read there", "it is read at jedi/dbproxy"),
        ({"app": "pandaserver"}, "never read there", "it is read at jedi/dbproxy"),
        (
            {
                "key": "MAX_FAILED_HEP_SCORE_RATE_TO_PAUSE_managed",
                "component": "watchdog",
                "value": "0.5",
                "type": "float",
            },
            "never read there",
            "the code reads MAX_HEP_SCORE_FAILURE_RATE_TO_PAUSE_<prodsourcelabel>",
        ),
        (
            {"key": "SCOUT_SHORT_EXECTIME_<prodsourcelabel>"},
            "pattern",
            "is a pattern; nothing reads it until",
        ),
        ({"value": "6o"}, "undefined", "counts as undefined: '6o' is not of type int"),
        ({"value": None}, "undefined", "value is null, type is int"),
        ({"type": "str"}, "type", "is stored as str ('60'), the code needs int"),
        (
            {"value": "60.0", "type": "float"},
            "type",
            "is stored as float (60.0), the code needs int",
        ),
        ({"value": "101"}, "bounds", "101 is outside the sensible range 50 to 100 [percentile]"),
        (
            {"key": "JUMBO_PROG_TO_BOOST", "component": "JumboWatchDog", "value": "-1"},
            "bounds",
            "-1 is outside the sensible range 0 to inf [%]",
        ),
    ],
)
def test_findings(row: dict[str, str], kind: str, message: str) -> None:
    with pytest.warns(BrokerlabWarning, match="1 finding"):
        (finding,) = validate(Config.from_rows([BASE | row]))
    assert finding.kind == kind
    assert message in finding.message


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [BASE],
        [BASE, {**BASE, "vo": "atlas"}],
        [{**BASE, "valid_to": "2026-01-01"}, {**BASE, "valid_from": "2026-01-01"}],
        [{**BASE, "app": "pilot", "key": "anything", "value": "x"}],
        [{**BASE, "key": "SCOUT_CHANGE_SR_user", "value": "true", "type": "bool"}],
        [{**BASE, "key": "MIN_INPUT_COMPLETENESS", "component": "anal_jobbroker"}],
    ],
)
def test_nothing_to_say(rows: list[dict[str, str]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert validate(Config.from_rows(rows), strict=True) == ()


@pytest.mark.parametrize(
    "second",
    [{}, {"valid_from": "2026-01-01"}, {"valid_to": "2026-01-01"}],
)
def test_repeated_entries(second: dict[str, str]) -> None:
    with pytest.warns(BrokerlabWarning):
        (finding,) = validate(Config.from_rows([BASE, BASE | second]))
    assert finding.kind == "repeated"


def test_strict_says_everything_at_once_with_five_examples_of_a_kind() -> None:
    rows = [{**BASE, "key": f"ZZZ{number}"} for number in range(7)] + [
        {**BASE, "value": "0", "vo": "atlas"}
    ]
    with pytest.raises(ConfigError) as error:
        validate(Config.from_rows(rows).frame(), strict=True)
    text = str(error.value)
    assert text.startswith(
        "gdpconfig: 8 finding(s)\nbounds (1):\n  jedi/dbproxy/SCOUT_RAMCOUNT_RANK (VO atlas): 0 is"
    )
    assert "unknown key (7):" in text
    assert text.endswith("  and 2 more")
    assert text.count("ZZZ") == 5
