from __future__ import annotations

import pytest

from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config, diff

BASE = {
    "app": "jedi",
    "component": "dbproxy",
    "key": "SCOUT_RAMCOUNT_RANK",
    "value": "60",
    "type": "int",
}


def test_added_removed_changed() -> None:
    old = Config.from_rows([BASE, {**BASE, "key": "OLD"}, {**BASE, "key": "SAME", "descr": "x"}])
    new = Config.from_rows(
        [
            {**BASE, "key": "SAME", "descr": "y", "type": "INT"},
            {**BASE, "value": "70"},
            {**BASE, "vo": "atlas"},
        ]
    )
    table = diff(old, new)
    assert table.select("key", "vo", "change", "old", "new", "default", "unit").rows() == [
        ("OLD", None, "removed", "60", None, None, None),
        ("SCOUT_RAMCOUNT_RANK", None, "changed", "60", "70", "75", "percentile"),
        ("SCOUT_RAMCOUNT_RANK", "atlas", "added", None, "60", "75", "percentile"),
    ]


def test_nothing_differs() -> None:
    c = Config.from_rows([BASE])
    assert diff(c, c).height == 0
    assert diff(Config.empty(), Config.empty()).columns[:4] == ["app", "component", "key", "vo"]


def test_json_and_the_first_of_equal_entries() -> None:
    rows = [{**BASE, "value": None, "value_json": "[1]", "type": "json"}, {**BASE, "value": "5"}]
    table = diff(Config.empty(), Config.from_rows(rows))
    assert table["new"].to_list() == ["[1]"]


def test_history_is_refused() -> None:
    c = Config.from_rows([{**BASE, "valid_from": "2026-01-01"}])
    with pytest.raises(ConfigError, match=r"choose config.at\(time\)"):
        diff(c, Config.empty())
